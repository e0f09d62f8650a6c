"""S-12 to S-15: groups of pods are placed in one pass, or not at all."""

import pytest

from bayplan.api.pod_groups import KINDS
from tests.scenarios.gangs import (
    FIT,
    LABELS,
    MING,
    X_K8S,
    add_member,
    bound,
    message,
    put_group,
    status,
)
from tests.scenarios.world import World, play


@pytest.mark.parametrize("kind", KINDS)
def test_s12_part_a_a_gang_waits_for_its_members(kind: str) -> None:
    async def story(world: World) -> None:
        for name in ("n1", "n2", "n3"):
            world.add_node(name, cpu=1, memory="4Gi")
        put_group(world, "nginx", 3, kind)
        add_member(world, "nginx-1", "nginx", kind)
        add_member(world, "nginx-2", "nginx", kind)
        await world.until(59)
        assert list(bound(world, "nginx-1", "nginx-2")) == [None, None]
        text = "group default/nginx: 2 of 3 members are here "
        text += "(current pods number: 2, minMember of group: 3)"
        assert message(world, "nginx-1") == message(world, "nginx-2") == text
        await world.until(60)
        add_member(world, "nginx-3", "nginx", kind)
        await world.until(61)
        assert list(bound(world, "nginx-1", "nginx-2", "nginx-3")) == [60, 60, 60]
        assert {world.bound(f"nginx-{i}")[1] for i in (1, 2, 3)} == {"n1", "n2", "n3"}  # type: ignore[index]
        await world.until(70)
        add_member(world, "nginx-4", "nginx", kind)
        await world.until(71)
        assert list(bound(world, "nginx-4")) == [70]
        found = status(world, "nginx", kind)
        if kind in LABELS:
            assert (found["phase"], found["scheduled"], found["running"]) == ("Running", 4, 4)
            assert found["scheduleStartTime"]
        else:
            [condition] = found["conditions"]
            assert condition["type"] == "PodGroupInitiallyScheduled"
            assert (condition["status"], condition["reason"]) == ("True", "Scheduled")

    play(story, plugins=FIT)


@pytest.mark.parametrize("kind", [X_K8S, MING, "scheduling.k8s.io/v1beta1 PodGroup"])
def test_s12_part_b_a_lowered_minimum_lets_the_group_go_at_once(kind: str) -> None:
    async def story(world: World) -> None:
        world.add_node("n1")
        put_group(world, "g", 10, kind)
        add_member(world, "a", "g", kind)
        add_member(world, "b", "g", kind)
        await world.until(30)
        put_group(world, "g", 2, kind)
        await world.until(31)
        assert list(bound(world, "a", "b")) == [30, 30]

    play(story, plugins=FIT)


@pytest.mark.parametrize("kind", [X_K8S, MING, "scheduling.k8s.io/v1beta1 PodGroup"])
def test_s12_part_c_members_wait_for_the_groups_object(kind: str) -> None:
    async def story(world: World) -> None:
        world.add_node("n1")
        add_member(world, "a", "nginx", kind)
        add_member(world, "b", "nginx", kind)
        await world.until(19)
        assert "group default/nginx: PodGroup not found" in message(world, "a")
        await world.until(20)
        put_group(world, "nginx", 2, kind)
        await world.until(21)
        assert list(bound(world, "a", "b")) == [20, 20]

    play(story, plugins=FIT)


def test_s12_part_d_five_that_do_not_count() -> None:
    async def story(world: World) -> None:
        world.add_node("n1")
        put_group(world, "nginx", 3)
        for name in "ab":
            add_member(world, name, "nginx")
        add_member(world, "c", "nginx", namespace="other")
        add_member(world, "f", "nginx", gates=["later"])
        add_member(world, "g", "nginx", scheduler_name="default-scheduler")
        await world.until(50)
        assert list(bound(world, "a", "b", "f")) == [None] * 3
        assert "2 of 3" in message(world, "a")
        await world.until(60)
        world.change_pod("f", lambda content: content["spec"].pop("schedulingGates"))
        await world.until(61)
        assert list(bound(world, "a", "b", "f", "g")) == [60, 60, 60, None]

    play(story, plugins=["SchedulingGates", *FIT])


def test_s13_part_a_two_gangs_one_after_the_other() -> None:
    async def story(world: World) -> None:
        for index in range(4):
            world.add_node(f"n{index}", cpu=4, memory="8Gi")
        put_group(world, "x", 3)
        put_group(world, "y", 3)
        for name in ("x1", "y1", "x2", "y2", "x3", "y3"):
            add_member(world, name, name[0], cpu=3, memory="1Gi")
        await world.until(0.5)
        assert list(bound(world, "x1", "x2", "x3")) == [0, 0, 0]
        assert "group default/y: 1 of 3 members fit; the 2nd, default/y2: " in message(world, "y1")
        assert world.scheduler.cache.assumed_count == 0
        await world.until(1)
        world.add_pod("z", cpu=3, memory="1Gi")
        await world.until(99)
        assert list(bound(world, "z", "y1", "y2", "y3")) == [1, None, None, None]
        await world.until(100)
        for name in ("x1", "x2", "x3"):
            world.delete_pod(name)
        await world.until(104)
        times = list(bound(world, "y1", "y2", "y3"))
        assert len(set(times)) == 1
        assert times[0] is not None and 100 <= times[0] <= 103

    play(story, plugins=FIT)


def test_s13_part_b_the_older_group_first_and_what_fits_beyond_the_minimum() -> None:
    async def story(world: World) -> None:
        put_group(world, "a", 3)
        for name in ("a1", "a2"):
            add_member(world, name, "a", cpu=3, memory="1Gi")
        await world.until(1)
        put_group(world, "b", 3)
        for name in ("b1", "b2", "b3"):
            add_member(world, name, "b", cpu=3, memory="1Gi")
        await world.until(9)
        for name in ("a3", "a4", "a5"):
            add_member(world, name, "a", cpu=3, memory="1Gi")
        await world.until(20)
        world.add_node("big", cpu=12, memory="32Gi")
        await world.until(40)
        for name in ("a1", "a2", "a3", "a4"):
            assert world.bound(name) is not None
        for name in ("a5", "b1", "b2", "b3"):
            assert world.bound(name) is None

    play(story, plugins=FIT)


def test_s14_what_really_fits_decides_whatever_the_sum_says() -> None:
    async def story(world: World) -> None:
        for name in ("n1", "n2", "n3"):
            world.add_node(name, cpu=4, memory="8Gi")
        put_group(world, "g", 2, minResources={"cpu": "12"})
        for name in ("g1", "g2"):
            add_member(world, name, "g", cpu=6, memory="1Gi")
        await world.until(29)
        assert "0 of 2" in message(world, "g1")
        assert "3 Insufficient cpu" in message(world, "g1")
        await world.until(30)
        world.add_node("n4", cpu=16, memory="32Gi")
        await world.until(33)
        assert {world.bound(name)[1] for name in ("g1", "g2")} == {"n4"}  # type: ignore[index]

    play(story, plugins=FIT)


def test_s15_part_b_a_group_that_does_not_fit_holds_nothing() -> None:
    async def story(world: World) -> None:
        for name in ("n1", "n2"):
            world.add_node(name, cpu=4, memory="8Gi")
        put_group(world, "t", 3)
        for name in ("t1", "t2", "t3"):
            add_member(world, name, "t", cpu=3, memory="1Gi")
        await world.until(5)
        world.add_pod("q", cpu=3, memory="1Gi")
        await world.until(15)
        assert list(bound(world, "q", "t1", "t2", "t3")) == [5, None, None, None]

    play(story, plugins=FIT)
