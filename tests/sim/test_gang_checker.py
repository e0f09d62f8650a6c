"""The gangs' invariant, shown to catch what is planted, and nothing else."""

from typing import Any

import pytest

from bayplan.engine.group_placements import GroupPlacements
from bayplan.engine.placements import Placements
from bayplan.framework.status import Code, Status
from bayplan.plugins.coscheduling import Coscheduling
from bayplan.sim.checkers import InvariantBroken
from bayplan.state.pod_groups import GroupState
from tests.framework.answering import answering
from tests.scenarios.gangs import FIT, add_member, bound, put_group
from tests.scenarios.world import World, play

POD_BY_POD = {
    "plugins": FIT,
    "queue_sort": "Coscheduling",
    "args": {"Coscheduling": {"placement": "pod"}},
}


def two_of_three_fit(world: World) -> None:
    world.add_node("n1", cpu=2)
    put_group(world, "g", 3)
    for name in "abc":
        add_member(world, name, "g", cpu=1)


def always(_: Any) -> bool:
    return True


# ---- what is wrong -------------------------------------------------------------------------


def test_members_placed_one_by_one_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupState, "is_met", property(always))

    async def story(world: World) -> None:
        two_of_three_fit(world)
        await world.until(1)

    wanted = "default/a was placed on n1: group default/g holds 1 nodes of 3"
    with pytest.raises(InvariantBroken, match=wanted):
        play(story, plugins=FIT)


def test_a_member_placed_without_a_groups_object_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GroupState, "is_met", property(always))

    async def story(world: World) -> None:
        world.add_node("n1")
        add_member(world, "a", "g")
        await world.until(1)

    with pytest.raises(InvariantBroken, match="holds 1 nodes and has no object"):
        play(story, plugins=FIT)


def test_a_group_that_gives_back_only_some_nodes_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two that wait at Permit, the first to be rejected leaves the other one there."""

    def give_back(self: GroupPlacements, group: Any, pod: Any, status: Any) -> None:
        placements: Placements = self._placements
        placements.give_back(next(one for one in group.members if one.pod.uid == pod.uid))

    monkeypatch.setattr(GroupPlacements, "_give_back", give_back)
    seconds = {"a": 10.0, "b": 20.0}
    slow = answering("Slow", permit=lambda _, pod, __: (Status(Code.WAIT), seconds[pod.name]))

    async def story(world: World) -> None:
        world.add_node("n1")
        put_group(world, "g", 2)
        for name in seconds:
            add_member(world, name, "g")
        await world.until(11)

    wanted = "group default/g gave nodes back and holds 1 of 2: default/b waits on n1"
    with pytest.raises(InvariantBroken, match=wanted):
        play(story, plugins=[*FIT, "Slow"], classes=[slow])


def test_pod_by_pod_a_member_that_does_not_wait_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Coscheduling, "permit", lambda *_: (None, 0.0))

    async def story(world: World) -> None:
        two_of_three_fit(world)
        await world.until(1)

    with pytest.raises(InvariantBroken, match="group default/g holds 1 nodes of 3"):
        play(story, **POD_BY_POD)


# ---- what is not ---------------------------------------------------------------------------


def test_groups_placed_in_one_pass_are_looked_at() -> None:
    async def story(world: World) -> None:
        two_of_three_fit(world)
        await world.until(1)
        assert world.gangs.taken_count == 0
        world.add_node("n2", cpu=2)
        await world.until(20)

    assert play(story, plugins=FIT).gangs.taken_count == 3


def test_pod_by_pod_members_may_wait_with_their_nodes() -> None:
    async def story(world: World) -> None:
        two_of_three_fit(world)
        await world.until(1)
        assert world.gangs.taken_count
        assert not any(bound(world, *"abc"))

    play(story, **POD_BY_POD)


def test_what_others_do_to_a_group_is_nobodys_fault() -> None:
    """A member is deleted, and the minimum raised: no member joins before there are enough."""

    async def story(world: World) -> None:
        world.add_node("n1", cpu=4)
        put_group(world, "g", 2)
        for name in "ab":
            add_member(world, name, "g", cpu=1)
        await world.until(1)
        world.delete_pod("a")
        put_group(world, "g", 3)
        await world.until(2)
        assert world.gangs.left_count == 1
        add_member(world, "c", "g", cpu=1)
        await world.until(3)
        assert world.gangs.taken_count == 2
        add_member(world, "d", "g", cpu=1)
        await world.until(4)
        assert world.gangs.taken_count == 4

    play(story, plugins=FIT)


def test_pods_without_groups_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        world.add_node("n1")
        monkeypatch.setattr(world.scheduler.cache.table.log, "rows_since", None)
        world.add_pod("p")

    world = play(story, plugins=FIT)
    assert world.gangs.taken_count == 0
