"""S-13: two gangs, one cluster."""

from collections.abc import Hashable

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import ScalarFilterPlugin, SignPlugin
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord
from bayplan.sim.world.checkers import differences
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from tests.scenarios.gangs import (
    FIT,
    add_member,
    add_members,
    bound,
    group_attempts,
    message,
    put_group,
)
from tests.scenarios.world import World, scenario

X, Y = ("x1", "x2", "x3"), ("y1", "y2", "y3")


@scenario(plugins=FIT)
async def test_part_a_one_group_follows_the_other_without_a_reservation(world: World) -> None:
    for index in range(1, 5):
        world.add_node(f"n{index}", cpu=4, memory="8Gi")
    put_group(world, "x", 3)
    put_group(world, "y", 3)
    for pair in zip(X, Y, strict=True):
        for name in pair:
            add_member(world, name, name[0], cpu=3, memory="1Gi")
    await world.until(0.5)
    assert list(bound(world, *X)) == [0, 0, 0]
    assert len({place[1] for name in X if (place := world.bound(name))}) == 3
    assert "group default/y: 1 of 3 members fit; the 2nd, default/y2: " in message(world, "y1")
    assert "0/4 nodes are available: 4 Insufficient cpu." in message(world, "y1")
    assert _all_requested(world) == 9000
    await world.until(1)
    world.add_pod("z", cpu=3, memory="1Gi")
    await world.until(1.5)
    assert list(bound(world, "z")) == [1]
    assert _all_requested(world) == 12000
    for seconds in range(2, 100):
        await world.until(seconds)
        assert world.scheduler.cache.assumed_count == 0
        assert _all_requested(world) == 12000
    await world.until(100)
    for name in X:
        world.end_pod(name)
    await world.until(104)
    times = list(bound(world, *Y))
    assert len(set(times)) == 1
    assert times[0] is not None
    assert 100 <= times[0] <= 103
    records = [r for r in world.journal.records if isinstance(r, AttemptRecord)]
    assert not any("last failed" in record.message for record in records)
    assert not any("last failed" in message(world, name) for name in (*X, *Y, "z"))


def _all_requested(world: World) -> int:
    return sum(world.requested(f"n{index}") for index in range(1, 5))


@scenario(plugins=FIT)
async def test_part_b_the_older_group_is_first_with_all_members_above_the_minimum_that_fit(
    world: World,
) -> None:
    world.add_node("tiny", cpu="100m", memory="1Gi")
    put_group(world, "a", 3)
    add_members(world, ("a1", "a2"), "a", cpu=3, memory="1Gi")
    await world.until(1)
    put_group(world, "b", 3)
    add_members(world, ("b1", "b2", "b3"), "b", cpu=3, memory="1Gi")
    await world.until(9)
    add_members(world, ("a3", "a4", "a5"), "a", cpu=3, memory="1Gi")
    await world.until(20)
    world.add_node("big", cpu=12, memory="32Gi")
    await world.until(40)
    assert [world.bound(name) for name in ("a1", "a2", "a3", "a4")] == [(20, "big")] * 4
    assert list(bound(world, "a5", "b1", "b2", "b3")) == [None] * 4
    (a_at_20,) = [r for r in group_attempts(world, "a") if r.result == "placed"]
    first_b = next(r for r in group_attempts(world, "b") if r.at_seconds >= 20)
    records = list(world.journal.records)
    assert records.index(a_at_20) < records.index(first_b)


@scenario(plugins=FIT)
async def test_part_c_a_group_that_never_fits_is_not_retried_in_a_loop(world: World) -> None:
    world.add_node("n1", cpu=1)
    put_group(world, "g", 50)
    for index in range(50):
        add_member(world, f"m{index}", "g", cpu=1)
    await world.until(3600)
    attempts = group_attempts(world, "g")
    assert 2 <= len(attempts) <= 13
    assert {record.result for record in attempts} == {"unschedulable"}


class CountingFilter(ScalarFilterPlugin, SignPlugin):
    """Accepts every node, and counts the evaluated rows."""

    name = "CountingFilter"
    evaluated_rows = 0

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.evaluated_rows += 1
        return None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


@scenario(plugins=["CountingFilter", *FIT], classes=[CountingFilter])
async def test_part_d_members_with_equal_signatures_reuse_results(world: World) -> None:
    for index in range(50):
        world.add_node(f"n{index}", cpu=4, memory="8Gi")
    put_group(world, "g", 20)
    names = [f"m{index}" for index in range(20)]
    add_members(world, names, "g", cpu="500m", memory="1Gi")
    await world.until(0.5)
    assert list(bound(world, *names)) == [0] * 20
    assert len({place[1] for name in names if (place := world.bound(name))}) == 20
    assert world.plugin("CountingFilter").evaluated_rows == 50 + 19


@scenario(plugins=FIT)
async def test_capacity_lost_between_two_members_admits_no_partial_group(world: World) -> None:
    """G-017: a node is deleted at the moment of the group's attempt."""
    for name in ("n1", "n2", "n3"):
        world.add_node(name, cpu=4)
    put_group(world, "x", 3)
    add_members(world, X, "x", cpu=3)
    world.delete_node("n2")
    await world.until(30)
    assert list(bound(world, *X)) == [None] * 3
    assert "2 of 3 members fit" in message(world, "x1")
    assert not differences(world.scheduler, world.cluster)


@scenario(plugins=FIT)
async def test_a_member_that_keeps_failing_does_not_prolong_the_backoff_of_its_siblings(
    world: World,
) -> None:
    """G-015: the backoff grows once per attempt of the group, regardless of the member count."""
    world.add_node("n1", cpu=4)
    put_group(world, "x", 3)
    add_members(world, X, "x", cpu=3)
    for seconds in (10, 20, 30):
        await world.until(seconds)
        world.change_node("n1", annotations={"at": str(seconds)}, labels={"at": str(seconds)})
    await world.until(40)
    world.add_node("n2", cpu=8)
    await world.until(60)
    attempts = group_attempts(world, "x")
    assert [record.attempt for record in attempts] == list(range(1, len(attempts) + 1))
    (placed,) = [r for r in attempts if r.result == "placed"]
    assert 40 <= placed.at_seconds <= 41


@scenario(plugins=FIT)
async def test_a_required_member_that_does_not_fit_ends_the_attempt_at_once(world: World) -> None:
    """G-037, G-023: a gang of 3 with room for 2: one pass, no pod waits, no node is reserved."""
    for name in ("n1", "n2"):
        world.add_node(name, cpu=4)
    put_group(world, "x", 3)
    add_members(world, X, "x", cpu=3)
    await world.until(0)
    assert list(bound(world, *X)) == [None] * 3
    (attempt,) = group_attempts(world, "x")
    assert (attempt.at_seconds, attempt.fitting) == (0, 2)
    assert [len(world.attempts(name)) for name in X] == [1, 1, 1]
    assert world.scheduler.waiting_pods() == []
    assert world.scheduler.cache.assumed_count == 0
