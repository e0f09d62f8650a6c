"""Plugins and pod groups whose kinds the API server lacks."""

import asyncio
import logging
from collections.abc import Collection
from typing import Any

import pytest

from bayplan.api.pod_groups import COSCHEDULING_GROUP, KINDS, MING_GROUP
from bayplan.config import SchedulerConfig, config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.framework.events import KIND_OF_RESOURCE
from bayplan.framework.plugin import ScalarFilterPlugin
from bayplan.framework.status import Status
from bayplan.plugins.registry import Registry
from bayplan.profile.resolved_config import resolve
from bayplan.serving.discovery import (
    AWAITED_PERIOD_SECONDS,
    PERIOD_SECONDS,
    GroupKinds,
    kinds_in_use,
    offered_kinds,
    without_absent,
)
from tests.adapters.live.talking import talking_to
from tests.scenarios.world import Setup, config_dict
from tests.serving.device_plugin import CLASS, SLICE, Devices
from tests.serving.fake_api import OFFERED, FakeApi

# ---- absent kinds ---------------------------------------------------------------------------


REGISTRY = Registry()
REGISTRY.add(Devices)


def config(*plugins: str) -> SchedulerConfig:
    return config_from(config_dict(Setup(plugins=plugins)))


def filters(found: SchedulerConfig) -> list[str]:
    (profile,) = resolve(found, REGISTRY).profiles
    return [entry.name for entry in profile.lists["filter"]]


def test_kinds_of_disabled_plugins_are_not_requested() -> None:
    assert kinds_in_use(config("NodeName"), REGISTRY) == []
    # Devices registers no events, so it waits for those of all kinds.
    expected = sorted({*Devices.kinds, *KIND_OF_RESOURCE.values()})
    assert kinds_in_use(config("NodeName", "Devices"), REGISTRY) == expected


def test_a_server_with_all_kinds_changes_nothing() -> None:
    given = config("NodeName", "Devices")
    assert without_absent(given, REGISTRY, lambda kind: True) == (given, [])


def test_a_plugin_with_missing_kinds_is_disabled_with_one_line() -> None:
    given = config("NodeName", "Devices")
    left, absent = without_absent(given, REGISTRY, lambda kind: kind == "v1 Service")
    assert filters(left) == ["NodeName"]
    (found,) = absent
    assert str(found) == (
        "Devices is switched off: the API server does not offer "
        "ResourceSlice of resource.k8s.io/v1, DeviceClass of resource.k8s.io/v1"
    )


def test_every_instance_of_the_plugin_is_disabled() -> None:
    given = config("Devices/a", "NodeName", "Devices/b")
    left, absent = without_absent(given, REGISTRY, lambda kind: False)
    assert filters(left) == ["NodeName"]
    assert [found.plugin for found in absent] == ["Devices"]


def test_a_plugin_of_the_default_profile_is_disabled() -> None:
    given = config_from(DEFAULT_CONFIG)
    assert "PodTopologySpread" in filters(given)
    left, absent = without_absent(given, REGISTRY, lambda kind: kind != "apps/v1 ReplicaSet")
    assert "PodTopologySpread" not in filters(left)
    assert "NodeResourcesFit" in filters(left)
    assert [found.kinds for found in absent] == [("apps/v1 ReplicaSet",)]


class Lenient(ScalarFilterPlugin):
    name = "Lenient"
    kinds = (SLICE, CLASS)
    optional_kinds = (CLASS,)

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status | None:
        return None


REGISTRY.add(Lenient)


def test_a_missing_optional_kind_does_not_disable_the_plugin() -> None:
    given = config("NodeName", "Lenient")
    assert without_absent(given, REGISTRY, lambda kind: kind != CLASS) == (given, [])
    left, absent = without_absent(given, REGISTRY, lambda kind: kind != SLICE)
    assert filters(left) == ["NodeName"]
    assert [found.kinds for found in absent] == [(SLICE,)]


def test_a_server_without_device_kinds_disables_only_dynamic_resources() -> None:
    given = config_from(DEFAULT_CONFIG)
    left, absent = without_absent(given, REGISTRY, lambda kind: "resource.k8s.io" not in kind)
    assert [found.plugin for found in absent] == ["DynamicResources"]
    assert {"NodeResourcesFit", "VolumeBinding"} <= set(filters(left))


# ---- group kinds ----------------------------------------------------------------------------


X_K8S = "scheduling.x-k8s.io/v1alpha1"
MING = "scheduling.ming.io/v1"
POD_GROUPS = (("PodGroup", "podgroups", True),)


def test_without_pod_group_kinds_nothing_is_watched() -> None:
    assert offered_kinds(KINDS, lambda _: False) == ()


def test_each_api_group_is_watched_in_its_newest_version() -> None:
    assert offered_kinds(KINDS, lambda kind: "/v1 " not in kind or ".ming." in kind) == (
        "scheduling.k8s.io/v1beta1 PodGroup",
        "scheduling.x-k8s.io/v1alpha1 PodGroup",
        "scheduling.ming.io/v1 PodGroup",
    )


class _Watched:
    """What a watch does at a server that changes between its looks."""

    def __init__(self, api: FakeApi, awaited: Collection[str] = ()) -> None:
        self._api = api
        self._awaited = awaited
        #: What is offered from before each look on; the watch ends after the last.
        self.changes: list[dict[str, object]] = []
        self.followed: list[str] = []
        self.slept_seconds: list[float] = []

    async def _sleep(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)
        if not self.changes:
            raise asyncio.CancelledError
        self._api.offer(self.changes.pop(0))

    def run(self) -> None:
        async def main() -> None:
            async with talking_to(self._api) as client:
                kinds = GroupKinds(client, tuple(KINDS), self._sleep)
                self.followed += await kinds.look()
                with pytest.raises(asyncio.CancelledError):
                    await kinds.watch(lambda: self._awaited, self.followed.append)

        asyncio.run(main())


def _messages(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.getMessage().startswith(text)]


def test_a_kind_that_appears_later_is_watched_from_then_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="bayplan")
    watched = _Watched(FakeApi({**OFFERED, MING: POD_GROUPS}))
    watched.changes = [{}, {X_K8S: POD_GROUPS}, {}]
    watched.run()
    assert watched.followed == [f"{MING} PodGroup", f"{X_K8S} PodGroup"]
    assert watched.slept_seconds == [PERIOD_SECONDS] * 4
    assert len(_messages(caplog, "Pod groups are followed from now on")) == 1


def test_a_kind_that_pods_wait_for_is_polled_more_often_and_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = _Watched(FakeApi(), awaited={COSCHEDULING_GROUP, "unheard.of"})
    watched.changes = [{}, {}, {X_K8S: POD_GROUPS}]
    watched.run()
    assert watched.followed == [f"{X_K8S} PodGroup"]
    assert watched.slept_seconds == [AWAITED_PERIOD_SECONDS] * 3 + [PERIOD_SECONDS]
    (message,) = _messages(caplog, "Pods wait for groups of an API group")
    assert "deploy/crds" in message


def test_a_forbidden_kind_is_named_once_and_watched_when_it_is_allowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = FakeApi({**OFFERED, MING: POD_GROUPS}, ("list podgroups",))
    watched = _Watched(api, awaited={MING_GROUP})
    watched.changes = [{}, {}]
    watched.run()
    assert watched.followed == []
    assert len(_messages(caplog, "Pod groups are ignored")) == 1


def test_a_failed_discovery_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    api = FakeApi()
    watched = _Watched(api)
    watched.changes = [{X_K8S: None}, {X_K8S: POD_GROUPS}]
    watched.run()
    assert watched.followed == [f"{X_K8S} PodGroup"]
    assert len(_messages(caplog, "Kinds of pod groups are looked for later")) == 1
