"""Notes of one attempt: write, read, delete, clone."""

import pytest

from bayplan.framework.cycle_state import Cloneable, CycleState, StateNotFound


def test_a_note_is_written_read_and_deleted() -> None:
    state = CycleState()
    state["k"] = 1
    assert (state["k"], "k" in state, state.get("k")) == (1, True, 1)
    del state["k"]
    assert ("k" in state, state.get("k")) == (False, None)


def test_reading_a_missing_key_raises_state_not_found() -> None:
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
