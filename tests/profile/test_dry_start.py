"""Plugins started for a scheduler that does nothing."""

from typing import Any

import pytest

from bayplan.config import ConfigError, SchedulerConfig, config_from
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.framework.handle import UndeclaredKind
from bayplan.plugins.registry import Registry
from bayplan.profile.dry_start import dry_start, dry_start_of_server, idle_handle
from tests.engine.plugin_kit import Both, Gate, NoEvents, Rack, config, profile, registry

REGISTRY = registry(Both, Gate, Rack, NoEvents)


def test_every_plugin_of_the_default_profile_starts() -> None:
    dry_start(SchedulerConfig(), Registry())


def test_a_plugin_that_does_not_start_is_reported() -> None:
    with pytest.raises(ConfigError, match="NoEvents"):
        dry_start(config(profile(["NoEvents"])), REGISTRY)


def test_the_handle_of_a_dry_start_makes_plugins_and_has_no_objects() -> None:
    handle = idle_handle(REGISTRY, "default-scheduler", "Rack/a", Rack)
    assert handle.make("Gate").name == "Gate"
    assert handle.profile_name == "default-scheduler"
    assert (handle.seed, handle.now_seconds, handle.waiting_pods()) == (0, 0.0, [])
    assert handle.waiting_pod("uid") is None
    assert not handle.reject_waiting_pod("uid")
    with pytest.raises(UndeclaredKind):
        handle.objects("v1 Service")


def test_a_declared_kind_has_no_objects_yet() -> None:
    spread = Registry().find("PodTopologySpread")
    assert spread is not None
    handle: Any = idle_handle(Registry(), "", "PodTopologySpread", spread)
    assert list(handle.objects(spread.kinds[0]).list()) == []


def with_gate(name: str, kubernetes: KubernetesVersion | None = None) -> SchedulerConfig:
    return config_from({**DEFAULT_CONFIG, "featureGates": {name: True}}, kubernetes=kubernetes)


def test_a_server_starts_in_the_newest_version_that_accepts_its_configuration() -> None:
    """SchedulerQueueingHints is a gate until 1.36; the API server will say its version later."""
    config = with_gate("SchedulerQueueingHints")
    assert dry_start_of_server(config, Registry()).gates.version is KubernetesVersion.V1_36
    named = with_gate("SchedulerQueueingHints", KubernetesVersion.V1_37)
    with pytest.raises(ConfigError, match="SchedulerQueueingHints"):
        dry_start_of_server(named, Registry())


def test_a_server_does_not_start_with_what_no_version_accepts() -> None:
    with pytest.raises(ConfigError, match="unrecognized feature gate: Nonsense"):
        dry_start_of_server(with_gate("Nonsense"), Registry())
