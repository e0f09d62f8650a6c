"""Attempts at pod groups in a cluster: outcome, order, events and metrics."""

from typing import Any

import pytest

from bayplan.framework.status import Code, Status
from bayplan.objects.keys import object_key
from tests.framework.answering import answering
from tests.scenarios.gangs import (
    FIT,
    X_K8S,
    add_member,
    add_members,
    bound,
    explanation,
    group_attempts,
    message,
    put_group,
    status,
    timed_count,
)
from tests.scenarios.world import PROFILE, World, play, scenario

TRIO = ("a", "b", "c")


def trio(world: World, minimum: int = 3, **options: Any) -> None:
    put_group(world, "g", minimum)
    add_members(world, TRIO, "g", **{"cpu": 3, **options})


@scenario(plugins=["NodeAffinity", *FIT])
async def test_a_member_that_fits_on_no_node_blocks_its_group_until_a_node_fits(
    world: World,
) -> None:
    world.add_node("n1", cpu=16)
    put_group(world, "g", 3)
    add_members(world, ("a", "b"), "g")
    add_member(world, "c", "g", node_selector={"gpu": "yes"})
    await world.until(50)
    assert list(bound(world, *TRIO)) == [None] * 3
    expected = "the 3rd, default/c: 0/1 nodes are available: 1 node(s) didn't match Pod's node"
    assert expected in message(world, "a")
    assert message(world, "a") == message(world, "b") == message(world, "c")
    world.change_node("n1", labels={"gpu": "yes"})
    await world.until(51)
    assert list(bound(world, *TRIO)) == [50] * 3


@scenario(plugins=["InterPodAffinity", *FIT])
async def test_later_members_see_the_placements_of_earlier_members(world: World) -> None:
    """Each needs a node without a sibling, so the second does not use the node of the first."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    for name in ("n1", "n2", "n3"):
        world.add_node(name, cpu=16)
    trio(world, affinity=affinity, labels={"app": "x"})
    await world.until(0)
    assert {world.bound(name) for name in TRIO} == {(0, "n1"), (0, "n2"), (0, "n3")}


@scenario(plugins=FIT)
async def test_a_lowered_minimum_lets_the_members_that_fit_start(world: World) -> None:
    world.add_node("n1", cpu=7)
    trio(world, 3)
    await world.until(30)
    assert list(bound(world, *TRIO)) == [None] * 3
    put_group(world, "g", 2)
    await world.until(31)
    assert list(bound(world, *TRIO)) == [30, 30, None]
    # The third member is tried alone from now on, and has the message of a single pod.
    await world.until(45)
    assert message(world, "c") == "0/1 nodes are available: 1 Insufficient cpu."


@scenario(plugins=FIT)
async def test_a_group_whose_object_is_deleted_and_created_again_is_placed(world: World) -> None:
    trio(world)
    await world.until(5)
    world.cluster.delete(object_key(X_K8S, "default", "g"))
    await world.until(10)
    assert "group default/g: PodGroup not found" in explanation(world, "g")
    world.add_node("n1", cpu=16)
    await world.until(20)
    assert list(bound(world, *TRIO)) == [None] * 3
    put_group(world, "g", 3)
    await world.until(21)
    assert list(bound(world, *TRIO)) == [20] * 3


@scenario(plugins=FIT)
async def test_an_older_group_is_tried_before_a_younger_single_pod_of_its_priority(
    world: World,
) -> None:
    """G-051: the group was created first, although its last member arrived after the pod."""
    world.add_node("tiny", cpu="1m")
    put_group(world, "g", 2)
    add_member(world, "a", "g", cpu=3)
    await world.until(1)
    world.add_pod("lone", cpu=3)
    await world.until(9)
    add_member(world, "b", "g", cpu=3)
    await world.until(12)
    world.add_node("n1", cpu=7)
    await world.until(30)
    assert list(bound(world, "a", "b", "lone")) == [12, 12, None]


@scenario(plugins=FIT)
async def test_a_higher_priority_is_tried_before_an_older_group(world: World) -> None:
    world.add_node("tiny", cpu="1m")
    put_group(world, "g", 2)
    add_members(world, ("a", "b"), "g", cpu=3)
    await world.until(1)
    world.add_pod("lone", cpu=3, priority=10)
    await world.until(12)
    world.add_node("n1", cpu=7)
    await world.until(30)
    assert list(bound(world, "lone", "a", "b")) == [12, None, None]


def test_an_error_of_a_plugin_ends_the_attempt_and_names_the_plugin() -> None:
    def broken(state: Any, pod: Any, node: Any) -> Status | None:
        return Status(Code.ERROR, ("out of order",)) if pod.name == "b" else None

    async def scenario(world: World) -> None:
        world.add_node("n1", cpu=16)
        trio(world)
        await world.until(0)
        assert list(bound(world, *TRIO)) == [None] * 3
        assert world.scheduler.cache.assumed_count == 0
        assert "out of order" in message(world, "a")
        assert world.reason("a") == "SchedulerError"
        (attempt,) = group_attempts(world, "g")
        assert (attempt.result, attempt.fitting) == ("error", 1)

    play(scenario, plugins=["Broken", *FIT], classes=[answering("Broken", filter_node=broken)])


def test_a_bug_in_an_attempt_loses_no_pod() -> None:
    """An exception inside the engine fails this attempt; the members are tried again."""
    fails = [True]
    reserves = answering("Reserves", reserve=None, unreserve=None)

    async def scenario(world: World) -> None:
        world.add_node("n1", cpu=16)
        commit = type(world.scheduler.pod_groups).assume

        def assume(groups: Any, placed: Any) -> None:
            if fails and placed.name == "c":
                fails.clear()
                raise RuntimeError("unthought of")
            commit(groups, placed)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(world.scheduler.pod_groups), "assume", assume)
            trio(world)
            await world.until(0)
            assert list(bound(world, *TRIO)) == [None] * 3
            await world.until(30)
        assert None not in list(bound(world, *TRIO))
        assert world.metric("bayplan_bugs_total") == 1
        points = [call[1] for call in reserves.calls]
        assert (points.count("reserve"), points.count("unreserve")) == (6, 3)

    play(scenario, plugins=["Reserves", *FIT], classes=[reserves], raise_bugs=False)


async def _assemble(world: World, count: int) -> None:
    put_group(world, "g", count + 1)
    for index in range(count):
        add_member(world, f"m{index}", "g")
        await world.until(index + 1)
    await world.until(60)


@scenario(plugins=FIT)
async def test_nothing_is_written_to_members_while_their_group_assembles(world: World) -> None:
    """Otherwise an autoscaler would add nodes for an incomplete group."""
    await _assemble(world, 40)
    for index in range(40):
        assert world.events(f"m{index}", "FailedScheduling") == []
        assert message(world, f"m{index}") == ""
    assert status(world, "g")["phase"] == "Pending"


@pytest.mark.parametrize("count", [3, 40])
@scenario(plugins=FIT, config={"podGroups": {"reportAssembling": True}})
async def test_with_assembling_events_members_get_at_most_two_events_about_missing_members(
    world: World, count: int
) -> None:
    await _assemble(world, count)
    events = [len(world.events(f"m{index}", "FailedScheduling")) for index in range(count)]
    assert max(events[-2:]) <= 2
    assert 0 < sum(events) <= count * 33
    assert "members are here" in message(world, "m0")


# ---- metrics -------------------------------------------------------------------------------


@scenario(plugins=FIT)
async def test_attempts_at_groups_are_counted_and_timed(world: World) -> None:
    def attempts(world: World, result: str) -> float:
        counter, duration = "podgroup_schedule_attempts", "podgroup_scheduling_attempt_duration"
        return timed_count(world, counter, duration, result)

    world.add_node("n1", cpu=2)
    trio(world, cpu=1)
    await world.until(0)
    assert (attempts(world, "unschedulable"), attempts(world, "scheduled")) == (1, 0)
    await world.until(60)
    tried_count = attempts(world, "unschedulable")
    world.add_node("n2", cpu=2)
    await world.until(90)
    assert (attempts(world, "unschedulable"), attempts(world, "scheduled")) == (tried_count, 1)
    algorithm = "scheduler_podgroup_scheduling_algorithm_duration_seconds_count"
    assert world.metric(algorithm) == tried_count + 1


def test_a_failed_attempt_at_a_group_is_counted_as_an_error() -> None:
    def broken(state: Any, pod: Any, node: Any) -> Status | None:
        return Status(Code.ERROR, ("out of order",))

    async def scenario(world: World) -> None:
        world.add_node("n1")
        trio(world)
        await world.until(0)
        labels = {"result": "error", "profile": PROFILE}
        assert world.metric("scheduler_podgroup_schedule_attempts_total", **labels) == 1

    play(scenario, plugins=["Broken"], classes=[answering("Broken", filter_node=broken)])
