"""Status, messages and timeout of a group. tests/scenarios/test_s15.py tests the timeout, too."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.objects import ObjectMeta, Pod, decode
from bayplan.api.pod_groups import KINDS, GroupKey, key_of
from bayplan.clock import ManualClock, rfc3339
from bayplan.engine.podgroups.status import (
    GroupTimeouts,
    ordinal,
    phase_of,
    reservation_of,
    reserved_for,
    timed_out_message,
    too_few_fit,
    waiting_for,
)
from bayplan.engine.reservations import Reservation
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.objects.keys import object_key
from bayplan.state.pod_groups import GroupState, MemberStatus
from bayplan.testing import api_pod
from tests.framework.answering import answering
from tests.scenarios.gangs import (
    FIT,
    add_member,
    add_members,
    condition,
    explanation,
    owned_by,
    put_group,
    status,
)
from tests.scenarios.world import World, play, scenario

# ---- messages of groups ---------------------------------------------------------------------


STATE = GroupState(GroupKey("scheduling.x-k8s.io", "default", "g"))


@pytest.mark.parametrize("nodes", [{"a"}, {"a", "b"}], ids=len)
@pytest.mark.parametrize(("start", "seconds"), [(130.5, 30.5), (float("inf"), None)])
def test_the_message_of_a_reservation_is_read_back(
    nodes: set[str], start: float, seconds: float | None
) -> None:
    reservation = Reservation(STATE.key, 0, frozenset(nodes), start)
    assert reservation_of(reserved_for(STATE, reservation, 100.0)) == (len(nodes), seconds)
    assert reservation_of("group default/g: 1 of 2 members fit") is None


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (112, "112th"), (21, "21st")],
)
def test_the_text_about_members_uses_singular_and_plural(count: int, expected: str) -> None:
    assert ordinal(count) == expected


def test_a_group_without_an_object_is_reported_as_not_found() -> None:
    assert waiting_for(STATE) == (
        "group default/g: PodGroup not found in scheduling.x-k8s.io (current pods number: 0)"
    )


def test_the_first_member_that_does_not_fit_is_explained() -> None:
    assert too_few_fit(STATE, 0, 1, "default/a", why="no") == (
        "group default/g: 0 of 1 members fit; the 1st, default/a: no"
    )


# ---- group timeouts -------------------------------------------------------------------------


KIND = "scheduling.x-k8s.io/v1alpha1 PodGroup"


def group_of(clock: ManualClock, created_seconds: float = 0.0, **spec: Any) -> GroupState:
    stamp = rfc3339(clock.epoch_seconds() - clock.now() + created_seconds)
    meta = {"name": "g", "namespace": "default", "creationTimestamp": stamp}
    group = KINDS[KIND].compile(
        KIND, decode(KIND, {"metadata": meta, "spec": {"minMember": 2, **spec}})
    )
    return GroupState(key_of(KIND, ObjectMeta(name="g", namespace="default")), group)


def add_waiting(state: GroupState, clock: ManualClock, name: str, created_seconds: float) -> None:
    member: Pod = api_pod(name)
    stamp = rfc3339(clock.epoch_seconds() - clock.now() + created_seconds)
    member = replace(member, metadata=replace(member.metadata, creation_timestamp=stamp))
    state.sort_in(name, member, MemberStatus.PENDING)


@pytest.mark.parametrize(
    ("group_at", "members_at", "due"),
    [(0, (0, 5), 10), (0, (4, 5), 14), (7, (0, 5), 17)],
    ids=["members and group at once", "members later", "the group later"],
)
def test_the_timeout_starts_when_the_members_and_the_group_exist(
    group_at: int, members_at: tuple[int, ...], due: float
) -> None:
    clock = ManualClock()
    timeouts = GroupTimeouts(clock)
    state = group_of(clock, group_at, scheduleTimeoutSeconds=10)
    for at in members_at:
        add_waiting(state, clock, f"m{at}", at)
    timeouts.note(state, is_waiting=True)
    assert timeouts.deadlines.next_seconds() == due
    assert timeouts.deadlines.take_due(due - 0.5) == []
    assert timeouts.deadlines.take_due(due) == [state.key]
    assert timeouts.deadlines.take_due(due) == []
    assert timeouts.deadlines.next_seconds() is None


@pytest.mark.parametrize("seconds", [None, 0, -5])
def test_a_missing_or_invalid_timeout_means_no_timeout(seconds: int | None) -> None:
    clock = ManualClock()
    timeouts = GroupTimeouts(clock)
    spec = {} if seconds is None else {"scheduleTimeoutSeconds": seconds}
    state = group_of(clock, **spec)
    add_waiting(state, clock, "a", 0)
    timeouts.note(state, is_waiting=True)
    assert timeouts.deadlines.next_seconds() is None


def test_a_group_that_stopped_waiting_or_already_timed_out_does_not_time_out() -> None:
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


def test_the_timeout_message_gives_duration_and_reason() -> None:
    state = group_of(ManualClock(), scheduleTimeoutSeconds=10)
    assert timed_out_message(state) == "not placed within 10 s (scheduleTimeoutSeconds)"
    state.message = "no room"
    assert timed_out_message(state) == "not placed within 10 s (scheduleTimeoutSeconds): no room"


# ---- group status ---------------------------------------------------------------------------


def _state(bound: int, running: int, succeeded: int, failed: int, pending: int) -> GroupState:
    """``bound``: members that have, or had, a node."""
    content = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}
    group = KINDS[KIND].compile(KIND, decode(KIND, content))
    state = GroupState(GroupKey("scheduling.x-k8s.io", "default", "g"), group)
    counts = {
        MemberStatus.BOUND: bound - running - succeeded - failed,
        MemberStatus.RUNNING: running,
        MemberStatus.SUCCEEDED: succeeded,
        MemberStatus.FAILED: failed,
        MemberStatus.PENDING: pending,
    }
    for value, count in counts.items():
        for index in range(count):
            name = f"{value.value}-{index}"
            state.sort_in(name, api_pod(name), value)
    return state


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0, 0, 0, 3), "Pending"),
        ((3, 1, 0, 0, 0), "Scheduling"),
        ((3, 3, 0, 0, 0), "Running"),
        ((3, 2, 1, 0, 0), "Running"),
        ((3, 0, 3, 0, 0), "Finished"),
        ((3, 2, 0, 1, 0), "Failed"),
        pytest.param((3, 2, 0, 1, 1), "Scheduling", id="a failed member has its replacement"),
    ],
)
def test_the_phase_follows_from_the_counts(
    counts: tuple[int, int, int, int, int], expected: str
) -> None:
    assert phase_of(_state(*counts)) == expected


# ---- written status, in a cluster -----------------------------------------------------------


@scenario(plugins=FIT)
async def test_a_restarted_scheduler_does_not_write_an_unchanged_status(world: World) -> None:
    world.add_node("n1", cpu=4)
    put_group(world, "g", 2, scheduleTimeoutSeconds=10)
    add_member(world, "a", "g", metadata=owned_by("job"))
    await world.until(20)
    before = stored(world)
    assert condition(world, "g", "ScheduleTimedOut")["status"] == "True"
    await world.kill()
    world.start()
    await world.until(60)
    assert stored(world) == before
    assert len(world.events("g", "ScheduleTimedOut")) == 1


@scenario(plugins=FIT)
async def test_a_recreated_group_object_gets_the_complete_status(world: World) -> None:
    put_group(world, "g", 2)
    add_member(world, "a", "g", metadata=owned_by("job"))
    await world.until(1)
    first = status(world, "g")
    world.cluster.delete(object_key(KIND, "default", "g"))
    put_group(world, "g", 2)
    await world.until(2)
    assert status(world, "g") == first
    assert (first["phase"], first["occupiedBy"]) == ("Pending", "default/job")


@scenario(plugins=FIT)
async def test_occupied_by_is_the_owner_of_the_first_member_and_stays(world: World) -> None:
    world.add_node("n1", cpu=4)
    put_group(world, "g", 1)
    add_member(world, "bare", "g")
    await world.until(1)
    assert "occupiedBy" not in status(world, "g")
    add_member(world, "a", "g", metadata=owned_by("one"))
    await world.until(2)
    add_member(world, "b", "g", metadata=owned_by("other"))
    world.delete_pod("a")
    await world.until(3)
    assert status(world, "g")["occupiedBy"] == "default/one"


@scenario(plugins=FIT)
async def test_counts_follow_members_that_end(world: World) -> None:
    world.add_node("n1", cpu=4)
    put_group(world, "g", 3)
    add_members(world, "abc", "g")
    await world.until(1)
    assert counts(world) == ("Running", 3, 3, 0, 0)
    world.end_pod("a")
    await world.until(2)
    assert counts(world) == ("Running", 3, 2, 1, 0)
    world.end_pod("b", "Failed")
    await world.until(3)
    assert counts(world) == ("Failed", 3, 1, 1, 1)
    add_member(world, "d", "g")
    await world.until(4)
    # A pod that ended is no member, so a single new member is not enough for an attempt.
    assert counts(world) == ("Scheduling", 3, 1, 1, 1)
    assert "2 of 3 members are here" in explanation(world, "g")
    add_member(world, "e", "g")
    await world.until(5)
    assert counts(world) == ("Running", 5, 3, 1, 1)
    for name in "cde":
        world.end_pod(name)
    await world.until(6)
    assert counts(world) == ("Finished", 5, 0, 4, 1)


def test_an_attempt_with_an_error_has_the_error_reason_until_another_attempt_has_none() -> None:
    """A group of Kubernetes' own kind, whose condition has the reason."""
    answers = [Status(Code.ERROR, ("out of order",)), unschedulable("not here")]
    kind = "scheduling.k8s.io/v1beta1 PodGroup"

    def reason(world: World) -> Any:
        return condition(world, "g", "PodGroupInitiallyScheduled", kind).get("reason")

    async def scenario(world: World) -> None:
        world.add_node("n1")
        put_group(world, "g", 2, kind)
        add_member(world, "a", "g", kind)
        await world.until(0)
        assert reason(world) is None
        add_member(world, "b", "g", kind)
        await world.until(0.5)
        assert reason(world) == "SchedulerError"
        await world.until(60)
        assert reason(world) == "Unschedulable"

    broken = answering(
        "Broken", filter_node=lambda *_: answers.pop(0) if answers[1:] else answers[0]
    )
    play(scenario, plugins=["Broken"], classes=[broken])


def stored(world: World) -> Any:
    result = world.cluster.get(object_key(KIND, "default", "g"))
    assert result is not None
    return result.content


def counts(world: World) -> tuple[Any, ...]:
    result = status(world, "g")
    return tuple(result.get(n, 0) for n in ("phase", "scheduled", "running", "succeeded", "failed"))
