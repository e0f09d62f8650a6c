"""The contract of a plugin: what the framework's own values promise."""

from typing import Any

import pytest
from msgspec import Struct

from bayplan.config.problems import ConfigError
from bayplan.framework.interface import (
    MAX_NODE_SCORE,
    MAX_TOTAL_SCORE,
    MIN_NODE_SCORE,
    Cloneable,
    CycleState,
    NominatingMode,
    Nomination,
    Plugin,
    PluginArgs,
    PreBindPlugin,
    QueuedPodInfo,
    StateNotFound,
)
from bayplan.testing import handle, plugin, pod
from tests.framework.answering import answering, made


def test_scores_have_upstreams_bounds() -> None:
    assert (MIN_NODE_SCORE, MAX_NODE_SCORE, MAX_TOTAL_SCORE) == (0, 100, 9223372036854775807)


# ---- CycleState -----------------------------------------------------------------------------


def test_a_note_is_written_read_and_deleted() -> None:
    state = CycleState()
    state["k"] = 1
    assert (state["k"], "k" in state, state.get("k")) == (1, True, 1)
    del state["k"]
    assert ("k" in state, state.get("k")) == (False, None)


def test_a_missing_note_is_not_found() -> None:
    state = CycleState()
    with pytest.raises(StateNotFound, match="k"):
        state["k"]
    with pytest.raises(StateNotFound):
        del state["k"]
    assert issubclass(StateNotFound, KeyError)


class Count(Cloneable):
    def __init__(self, number: int) -> None:
        self.number = number

    def clone(self) -> "Count":
        return Count(self.number)


def test_a_clone_has_its_own_copy_of_notes_that_can_clone() -> None:
    state = CycleState()
    shared: list[int] = []
    state["count"], state["shared"] = Count(1), shared
    state.skip_filter_plugins.add("A")
    state.skip_score_plugins.add("B")
    state.skip_pre_bind_plugins.add("C")
    state.record_plugin_metrics = True
    clone = state.clone()
    clone["count"].number = 2
    clone["new"] = True
    clone.skip_filter_plugins.add("Z")
    assert state["count"].number == 1
    assert "new" not in state
    assert clone["shared"] is shared
    assert (state.skip_filter_plugins, clone.skip_filter_plugins) == ({"A"}, {"A", "Z"})
    assert (clone.skip_score_plugins, clone.skip_pre_bind_plugins) == ({"B"}, {"C"})
    assert clone.record_plugin_metrics


def test_clones_share_the_stash() -> None:
    state = CycleState()
    state.clone().pods_to_activate["default/f"] = pod("f")
    assert list(state.pods_to_activate) == ["default/f"]


# ---- small values ---------------------------------------------------------------------------


def test_a_nomination_keeps_unless_it_overrides() -> None:
    assert Nomination() == Nomination(NominatingMode.NOOP, "")
    assert [mode.value for mode in NominatingMode] == ["Noop", "Override"]


def test_a_queued_pod_begins_without_a_history() -> None:
    queued = QueuedPodInfo(pod("p", priority=7), 1.5)
    assert (queued.attempts, queued.initial_attempt_seconds, queued.gated) == (0, None, False)
    assert (queued.unschedulable_plugins, queued.pending_plugins) == (set(), set())
    assert queued.priority == 7
    queued.gating_plugin = "SchedulingGates"
    assert queued.gated


# ---- Plugin ---------------------------------------------------------------------------------


def test_an_instance_is_called_as_its_class_unless_it_has_a_label() -> None:
    found = answering("A", filter=None)
    assert made(found).instance_name == "A"
    assert made(found, "A/one").instance_name == "A/one"


def test_setup_comes_once_when_args_and_handle_are_there() -> None:
    seen: list[Any] = []

    class Curious(PreBindPlugin):
        name = "Curious"

        def setup(self) -> None:
            seen.append((self.args, self.handle.now_seconds, self.instance_name))

        async def pre_bind(self, state: Any, pod: Any, node_name: str, port: Any) -> None: ...

    given = handle()
    found = Curious(None, given)
    assert seen == [(None, 0.0, "Curious")]
    assert found.pre_bind_preflight(CycleState(), pod(), "n1") is None


def test_closing_is_optional() -> None:
    made(answering("A", filter=None)).close()


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
