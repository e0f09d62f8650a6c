"""Entries of the queue and the table of their transitions."""

import pytest

from bayplan.queue.entry import (
    ENTERED_QUEUES,
    PENDING_QUEUES,
    TRANSITIONS,
    State,
    Trigger,
    counted_as,
    next_state,
    pod_entry,
)
from tests.queue.factories import queued

# ---- entry ----------------------------------------------------------------------------------


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
    assert pod_entry(queued(rejected_by=rejected_by, pending=pending)).has_rejectors is has


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
    assert pod_entry(one).waiting_since_seconds == since


# ---- transitions ----------------------------------------------------------------------------


def test_every_state_has_a_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(State)


def test_every_cause_has_a_transition_from_some_state() -> None:
    assert {trigger for row in TRANSITIONS.values() for trigger in row} == set(Trigger)


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


def test_a_transition_outside_of_the_table_raises() -> None:
    with pytest.raises(AssertionError, match="nothing in state ACTIVE can be BACKOFF_OVER"):
        next_state(State.ACTIVE, Trigger.BACKOFF_OVER)


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
