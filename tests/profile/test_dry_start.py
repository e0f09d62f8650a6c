"""Plugins started for a scheduler that does nothing."""

from typing import Any

import pytest

from bayplan.config import ConfigError, SchedulerConfig
from bayplan.framework.handle import UndeclaredKind
from bayplan.plugins.registry import Registry
from bayplan.profile.dry_start import dry_start, idle_handle
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
