"""Entries."""

import pytest

from bayplan.queue.entry import Entry, rejectors
from bayplan.queue.transitions import State
from tests.queue.factories import queued


def test_a_new_entry_is_nowhere_and_consists_of_its_pod() -> None:
    one = queued("a")
    entry = Entry(one)
    assert entry.state is State.ABSENT
    assert entry.pods == (one,)
    assert entry.key == one.pod.uid


@pytest.mark.parametrize(
    ("rejected_by", "pending", "has"),
    [
        pytest.param([], [], False, id="an error has no plugin to blame"),
        pytest.param(["Fit"], [], True, id="rejected"),
        pytest.param([], ["Claims"], True, id="pending"),
    ],
)
def test_an_entry_knows_whether_a_plugin_is_to_blame(
    rejected_by: list[str], pending: list[str], has: bool
) -> None:
    assert Entry(queued(rejected_by=rejected_by, pending=pending)).has_rejectors is has


def test_rejectors_are_those_of_both_kinds_in_order() -> None:
    assert rejectors(queued(rejected_by=["B", "C"], pending=["A", "B"])) == ["A", "B", "C"]


def test_an_entry_is_gated_by_the_plugin_that_gates_its_pod() -> None:
    one = queued()
    assert Entry(one).gating_plugin == ""
    one.gating_plugin = "Gate"
    assert Entry(one).gating_plugin == "Gate"


@pytest.mark.parametrize(
    ("at", "flushed_at", "since"),
    [
        pytest.param(5, None, 5, id="never flushed"),
        pytest.param(5, 305, 305, id="flushed later"),
        pytest.param(5, 3, 5, id="flushed before it came back"),
    ],
)
def test_the_wait_counts_from_coming_back_or_from_the_last_flush(
    at: float, flushed_at: float | None, since: float
) -> None:
    one = queued(at=at)
    one.flushed_at_seconds = flushed_at
    assert Entry(one).waiting_since_seconds == since


def test_coming_back_rejected_counts_rejections_and_ends_a_row_of_errors() -> None:
    one = queued(rejected_by=["Fit"])
    one.consecutive_errors_count = 3
    Entry(one).come_back(one, 7.5, 9)
    assert (one.unschedulable_count, one.consecutive_errors_count) == (1, 0)
    assert (one.timestamp_seconds, one.sequence) == (7.5, 9)


def test_coming_back_without_a_plugin_to_blame_counts_errors() -> None:
    one = queued()
    one.unschedulable_count = 2
    Entry(one).come_back(one, 7.5, 9)
    assert (one.unschedulable_count, one.consecutive_errors_count) == (2, 1)


def test_a_pod_that_comes_back_replaces_the_popped_one() -> None:
    entry, newer = Entry(queued()), queued(rejected_by=["Fit"])
    entry.come_back(newer, 7.5, 9)
    assert entry.queued is newer
    assert entry.pods == (newer,)


def test_coming_back_ends_being_flushed() -> None:
    one = queued(rejected_by=["Fit"])
    one.was_flushed, one.flushed_at_seconds = True, 3.0
    Entry(one).come_back(one, 7.5, 9)
    assert (one.was_flushed, one.flushed_at_seconds) == (False, None)
