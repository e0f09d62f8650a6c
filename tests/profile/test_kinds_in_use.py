"""Plugins whose kinds the API server lacks."""

from typing import Any

from bayplan.config import SchedulerConfig, config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.framework.events import KIND_OF_RESOURCE
from bayplan.framework.plugin import ScalarFilterPlugin
from bayplan.framework.status import Status
from bayplan.plugins.registry import Registry
from bayplan.profile.kinds_in_use import kinds_in_use, without_absent
from bayplan.profile.resolved_config import resolve
from tests.scenarios.world import Setup, config_dict
from tests.serving.device_plugin import CLASS, SLICE, Devices

REGISTRY = Registry()
REGISTRY.add(Devices)


def config(*plugins: str) -> SchedulerConfig:
    return config_from(config_dict(Setup(plugins=plugins)))


def filters(configuration: SchedulerConfig) -> list[str]:
    (profile,) = resolve(configuration, REGISTRY).profiles
    return [entry.name for entry in profile.lists["filter"]]


def test_kinds_of_disabled_plugins_are_not_requested() -> None:
    assert kinds_in_use(config("NodeName"), REGISTRY) == []
    # Devices registers no events, so it waits for those of all kinds.
    expected = sorted({*Devices.kinds, *KIND_OF_RESOURCE.values()})
    assert kinds_in_use(config("NodeName", "Devices"), REGISTRY) == expected


def test_a_server_with_all_kinds_changes_nothing() -> None:
    configuration = config("NodeName", "Devices")
    assert without_absent(configuration, REGISTRY, lambda kind: True) == (configuration, [])


def test_a_plugin_with_missing_kinds_is_disabled_with_one_line() -> None:
    configuration = config("NodeName", "Devices")
    left, absent = without_absent(configuration, REGISTRY, lambda kind: kind == "v1 Service")
    assert filters(left) == ["NodeName"]
    (absence,) = absent
    assert str(absence) == (
        "Devices is switched off: the API server does not offer "
        "ResourceSlice of resource.k8s.io/v1, DeviceClass of resource.k8s.io/v1"
    )


class Lenient(ScalarFilterPlugin):
    name = "Lenient"
    kinds = (SLICE, CLASS)
    optional_kinds = (CLASS,)

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status | None:
        return None


REGISTRY.add(Lenient)


def test_a_missing_optional_kind_does_not_disable_the_plugin() -> None:
    configuration = config("NodeName", "Lenient")
    assert without_absent(configuration, REGISTRY, lambda kind: kind != CLASS) == (
        configuration,
        [],
    )
    left, absent = without_absent(configuration, REGISTRY, lambda kind: kind != SLICE)
    assert filters(left) == ["NodeName"]
    assert [absence.kinds for absence in absent] == [(SLICE,)]


def test_a_server_without_device_kinds_disables_only_dynamic_resources() -> None:
    configuration = config_from(DEFAULT_CONFIG)
    left, absent = without_absent(
        configuration, REGISTRY, lambda kind: "resource.k8s.io" not in kind
    )
    assert [absence.plugin for absence in absent] == ["DynamicResources"]
    assert {"NodeResourcesFit", "VolumeBinding"} <= set(filters(left))
