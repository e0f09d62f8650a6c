"""Entries of the queue and the table of their transitions."""

import pytest

from bayplan.queue.entry import (
    ENTERED_QUEUES,
    PENDING_QUEUES,
    TRANSITIONS,
    Cause,
    Entry,
    State,
    counted_as,
    is_possible,
    is_waiting,
    next_state,
    rejectors,
)
from tests.queue.factories import queued

# ---- entry ----------------------------------------------------------------------------------


def test_a_new_entry_is_absent_and_contains_its_pod() -> None:
    one = queued("a")
    entry = Entry(one)
    assert entry.state is State.ABSENT
    assert entry.pods == (one,)
    assert entry.key == one.pod.uid


@pytest.mark.parametrize(
    ("rejected_by", "pending", "has"),
    [
        pytest.param([], [], False, id="an error has no rejecting plugin"),
        pytest.param(["Fit"], [], True, id="rejected"),
        pytest.param([], ["Claims"], True, id="pending"),
    ],
)
def test_an_entry_reports_whether_a_plugin_rejected_it(
    rejected_by: list[str], pending: list[str], has: bool
) -> None:
    assert Entry(queued(rejected_by=rejected_by, pending=pending)).has_rejectors is has


def test_rejectors_are_unschedulable_and_pending_plugins_in_order() -> None:
    assert rejectors(queued(rejected_by=["B", "C"], pending=["A", "B"])) == ("A", "B", "C")


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
        pytest.param(5, 3, 5, id="flushed before its return"),
    ],
)
def test_the_wait_counts_from_the_return_or_from_the_last_flush(
    at: float, flushed_at: float | None, since: float
) -> None:
    one = queued(at=at)
    one.flushed_at_seconds = flushed_at
    assert Entry(one).waiting_since_seconds == since


def test_a_return_after_a_rejection_counts_rejections_and_resets_errors() -> None:
    one = queued(rejected_by=["Fit"])
    one.consecutive_errors_count = 3
    Entry(one).come_back(one, 7.5, 9)
    assert (one.unschedulable_count, one.consecutive_errors_count) == (1, 0)
    assert (one.timestamp_seconds, one.sequence) == (7.5, 9)


def test_a_return_without_a_rejecting_plugin_counts_errors() -> None:
    one = queued()
    one.unschedulable_count = 2
    Entry(one).come_back(one, 7.5, 9)
    assert (one.unschedulable_count, one.consecutive_errors_count) == (2, 1)


def test_a_pod_that_returns_replaces_the_popped_one() -> None:
    entry, newer = Entry(queued()), queued(rejected_by=["Fit"])
    entry.come_back(newer, 7.5, 9)
    assert entry.queued is newer
    assert entry.pods == (newer,)


def test_a_return_ends_the_flushed_state() -> None:
    one = queued(rejected_by=["Fit"])
    one.was_flushed, one.flushed_at_seconds = True, 3.0
    Entry(one).come_back(one, 7.5, 9)
    assert (one.was_flushed, one.flushed_at_seconds) == (False, None)


# ---- transitions ----------------------------------------------------------------------------


def test_every_state_has_a_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(State)


def test_every_cause_has_a_transition_from_some_state() -> None:
    assert {cause for row in TRANSITIONS.values() for cause in row} == set(Cause)


def test_every_state_is_reached_from_absent() -> None:
    reached = {State.ABSENT}
    for _ in State:
        reached |= {target for state in reached for target in TRANSITIONS[state].values()}
    assert reached == set(State)


@pytest.mark.parametrize("state", State)
def test_every_entry_can_leave_the_queue(state: State) -> None:
    reached = {state}
    for _ in State:
        reached |= {target for one in reached for target in TRANSITIONS[one].values()}
    assert State.ABSENT in reached


@pytest.mark.parametrize("state", [state for state in State if is_waiting(state)])
def test_a_waiting_pod_can_be_deleted(state: State) -> None:
    assert next_state(state, Cause.DELETED) is State.ABSENT


@pytest.mark.parametrize("state", State)
def test_only_activeq_and_the_plain_backoffq_are_popped_from(state: State) -> None:
    assert is_possible(state, Cause.POPPED) == (state in (State.ACTIVE, State.BACKOFF))


@pytest.mark.parametrize("state", State)
def test_a_state_that_may_reach_activeq_may_be_gated(state: State) -> None:
    leads_to_active = State.ACTIVE in TRANSITIONS[state].values()
    # From activeQ itself, a group that lost a member.
    assert is_possible(state, Cause.REFUSED) == (leads_to_active or state is State.ACTIVE)


def test_a_pod_deleted_in_flight_stays_in_flight_until_it_is_done() -> None:
    assert next_state(State.IN_FLIGHT, Cause.DELETED) is State.IN_FLIGHT
    assert next_state(State.IN_FLIGHT, Cause.FINISHED) is State.ABSENT


def test_a_transition_outside_of_the_table_raises() -> None:
    with pytest.raises(AssertionError, match="nothing in state ACTIVE can be BACKOFF_OVER"):
        next_state(State.ACTIVE, Cause.BACKOFF_OVER)


@pytest.mark.parametrize(
    ("state", "pending", "entered"),
    [
        pytest.param(State.ACTIVE, "active", "active", id="active"),
        pytest.param(State.BACKOFF, "backoff", "backoff", id="backoff"),
        pytest.param(State.ERROR_BACKOFF, "backoff", "backoff", id="both backoffQs are one"),
        pytest.param(State.UNSCHEDULABLE, "unschedulable", "unschedulable", id="unschedulable"),
        pytest.param(State.GATED, "gated", "unschedulable", id="gated counts as unschedulable"),
        pytest.param(State.IN_FLIGHT, "", "", id="in flight is in no queue"),
        pytest.param(State.ABSENT, "", "", id="absent is in no queue"),
    ],
)
def test_states_are_counted_under_upstreams_labels(
    state: State, pending: str, entered: str
) -> None:
    assert (counted_as(state), ENTERED_QUEUES[state]) == (pending, entered)


def test_the_labels_of_pending_pods_are_upstreams() -> None:
    assert PENDING_QUEUES == ("active", "backoff", "unschedulable", "gated")
