"""Groups that wait too long; the whole story stands in tests/scenarios/test_s15.py."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.objects import ObjectMeta, Pod, decode
from bayplan.api.pod_groups import KINDS, key_of
from bayplan.clock import ManualClock, rfc3339
from bayplan.engine.group_timeouts import GroupTimeouts, timed_out_message
from bayplan.state.pod_groups import GroupState, Standing
from bayplan.testing import api_pod

KIND = "scheduling.x-k8s.io/v1alpha1 PodGroup"


def group_of(clock: ManualClock, created_seconds: float = 0.0, **spec: Any) -> GroupState:
    stamp = rfc3339(clock.epoch_seconds() - clock.now() + created_seconds)
    meta = {"name": "g", "namespace": "default", "creationTimestamp": stamp}
    group = KINDS[KIND].compile(
        KIND, decode(KIND, {"metadata": meta, "spec": {"minMember": 2, **spec}})
    )
    return GroupState(key_of(KIND, ObjectMeta(name="g", namespace="default")), group)


def add_waiting(state: GroupState, clock: ManualClock, name: str, created_seconds: float) -> None:
    found: Pod = api_pod(name)
    stamp = rfc3339(clock.epoch_seconds() - clock.now() + created_seconds)
    found = replace(found, metadata=replace(found.metadata, creation_timestamp=stamp))
    state.sort_in(name, found, Standing.PENDING)


@pytest.mark.parametrize(
    ("group_at", "members_at", "due"),
    [(0, (0, 5), 10), (0, (4, 5), 14), (7, (0, 5), 17)],
    ids=["all at once", "members later", "the group later"],
)
def test_the_time_runs_from_when_members_and_group_are_there(
    group_at: int, members_at: tuple[int, ...], due: float
) -> None:
    clock = ManualClock()
    timeouts = GroupTimeouts(clock)
    state = group_of(clock, group_at, scheduleTimeoutSeconds=10)
    for at in members_at:
        add_waiting(state, clock, f"m{at}", at)
    timeouts.note(state, is_waiting=True)
    assert timeouts.deadlines.next_seconds() == due
    clock.advance_to(due - 0.5)
    assert timeouts.deadlines.take_due() == []
    clock.advance_to(due)
    assert timeouts.deadlines.take_due() == [state.key]
    assert timeouts.deadlines.take_due() == []
    assert timeouts.deadlines.next_seconds() is None


@pytest.mark.parametrize("seconds", [None, 0, -5])
def test_no_time_or_nonsense_is_no_time_out(seconds: int | None) -> None:
    clock = ManualClock()
    timeouts = GroupTimeouts(clock)
    spec = {} if seconds is None else {"scheduleTimeoutSeconds": seconds}
    state = group_of(clock, **spec)
    add_waiting(state, clock, "a", 0)
    timeouts.note(state, is_waiting=True)
    assert timeouts.deadlines.next_seconds() is None


def test_one_that_waits_no_more_and_one_that_was_told_are_not_told() -> None:
    clock = ManualClock()
    timeouts = GroupTimeouts(clock)
    state = group_of(clock, scheduleTimeoutSeconds=10)
    add_waiting(state, clock, "a", 0)
    timeouts.note(state, is_waiting=True)
    timeouts.note(state, is_waiting=False)
    assert timeouts.deadlines.next_seconds() is None
    state.has_timed_out = True
    timeouts.note(state, is_waiting=True)
    assert timeouts.deadlines.next_seconds() is None


def test_it_says_for_how_long_and_why() -> None:
    state = group_of(ManualClock(), scheduleTimeoutSeconds=10)
    assert timed_out_message(state) == "not placed within 10 s (scheduleTimeoutSeconds)"
    state.message = "no room"
    assert timed_out_message(state) == "not placed within 10 s (scheduleTimeoutSeconds): no room"
