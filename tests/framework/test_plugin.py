"""The contract of a plugin: the values that the framework defines."""

from typing import Any

import pytest
from msgspec import Struct

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Plugin, PluginArgs, PreBindPlugin
from bayplan.framework.types import (
    MAX_NODE_SCORE,
    MAX_TOTAL_SCORE,
    MIN_NODE_SCORE,
    NominatingMode,
    Nomination,
    QueuedPodInfo,
)
from bayplan.problems import ConfigError
from bayplan.testing import handle, plugin, pod
from tests.framework.answering import answering, made


def test_scores_have_upstreams_bounds() -> None:
    assert (MIN_NODE_SCORE, MAX_NODE_SCORE, MAX_TOTAL_SCORE) == (0, 100, 9223372036854775807)


# ---- CycleState -----------------------------------------------------------------------------


def test_a_nomination_without_override_leaves_the_nominated_node_unchanged() -> None:
    assert Nomination() == Nomination(NominatingMode.NOOP, "")
    assert [mode.value for mode in NominatingMode] == ["Noop", "Override"]


# ---- Plugin ---------------------------------------------------------------------------------


def test_an_instance_is_called_as_its_class_unless_it_has_a_label() -> None:
    plugin = answering("A", filter=None)
    assert made(plugin).instance_name == "A"
    assert made(plugin, "A/one").instance_name == "A/one"


def test_setup_is_called_once_after_args_and_handle_are_set() -> None:
    seen: list[Any] = []

    class Curious(PreBindPlugin):
        name = "Curious"

        def setup(self) -> None:
            seen.append((self.args, self.handle.now_seconds, self.instance_name))

        async def pre_bind(self, state: Any, pod: Any, node_name: str, port: Any) -> None: ...

    plugin_handle = handle()
    result = Curious(None, plugin_handle)
    assert seen == [(None, 0.0, "Curious")]
    assert result.pre_bind_preflight(CycleState(), pod(), "n1") is None


class PriceArgs(PluginArgs, frozen=True):
    label: str = "price"
    max_price: int = 100


class Price(Plugin):
    name = "Price"
    args_type = PriceArgs


def test_args_are_strict_frozen_and_camel_cased() -> None:
    assert issubclass(PluginArgs, Struct)
    assert plugin(Price).args == PriceArgs()
    assert plugin(Price, {"maxPrice": 7}).args.max_price == 7
    with pytest.raises(ConfigError, match="labl"):
        plugin(Price, {"labl": "x"})
    with pytest.raises(AttributeError):
        plugin(Price).args.label = "other"
    assert list(PriceArgs().problems()) == []


def test_a_queued_pod_begins_without_a_history() -> None:
    queued = QueuedPodInfo(pod("p", priority=7), 1.5)
    assert (queued.attempts, queued.initial_attempt_seconds, queued.gated) == (0, None, False)
    assert (queued.unschedulable_plugins, queued.pending_plugins) == (set(), set())
    assert queued.priority == 7
    queued.gating_plugin = "SchedulingGates"
    assert queued.gated
