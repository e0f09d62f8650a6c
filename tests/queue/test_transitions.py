"""The table of a pod's life."""

import pytest

from bayplan.queue.transitions import (
    PENDING_QUEUES,
    TRANSITIONS,
    Cause,
    State,
    counted_as,
    entered_as,
    is_possible,
    is_waiting,
    next_state,
)


def test_every_state_has_its_row() -> None:
    assert set(TRANSITIONS) == set(State)


def test_every_cause_does_something_somewhere() -> None:
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
def test_whatever_may_reach_activeq_may_be_refused(state: State) -> None:
    leads_to_active = State.ACTIVE in TRANSITIONS[state].values()
    # From activeQ itself, a group that lost a member.
    assert is_possible(state, Cause.REFUSED) == (leads_to_active or state is State.ACTIVE)


def test_a_deleted_pod_in_flight_stays_so_until_it_is_done() -> None:
    assert next_state(State.IN_FLIGHT, Cause.DELETED) is State.IN_FLIGHT
    assert next_state(State.IN_FLIGHT, Cause.FINISHED) is State.ABSENT


def test_a_way_that_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="nothing in state ACTIVE can be BACKOFF_OVER"):
        next_state(State.ACTIVE, Cause.BACKOFF_OVER)


@pytest.mark.parametrize(
    ("state", "pending", "entered"),
    [
        pytest.param(State.ACTIVE, "active", "active", id="active"),
        pytest.param(State.BACKOFF, "backoff", "backoff", id="backoff"),
        pytest.param(State.ERROR_BACKOFF, "backoff", "backoff", id="both backoffQs are one"),
        pytest.param(State.UNSCHEDULABLE, "unschedulable", "unschedulable", id="unschedulable"),
        pytest.param(State.GATED, "gated", "unschedulable", id="gated enter the unschedulable"),
        pytest.param(State.IN_FLIGHT, "", "", id="in flight is in no queue"),
        pytest.param(State.ABSENT, "", "", id="absent is in no queue"),
    ],
)
def test_states_are_counted_under_upstreams_labels(
    state: State, pending: str, entered: str
) -> None:
    assert (counted_as(state), entered_as(state)) == (pending, entered)


def test_the_labels_of_pending_pods_are_upstreams() -> None:
    assert PENDING_QUEUES == ("active", "backoff", "unschedulable", "gated")
