"""S-15: waiting at Permit compared with placing in one pass."""

from typing import Any

import pytest

from tests.scenarios.gangs import (
    FIT,
    X_K8S,
    add_members,
    bound,
    condition,
    message,
    put_group,
)
from tests.scenarios.world import World, play, scenario

MEMBERS = ("t1", "t2", "t3")


def _start(world: World, node_count: int = 2, **spec: Any) -> None:
    for index in range(1, node_count + 1):
        world.add_node(f"n{index}", cpu=4, memory="8Gi")
    put_group(world, "t", 3, **spec)
    add_members(world, MEMBERS, "t", cpu=3, memory="1Gi")


def _pod_by_pod(**args: Any) -> dict[str, Any]:
    """The options of a world with Coscheduling without its PostFilter."""
    names = ("Coscheduling", "NodeResourcesFit", "DefaultBinder")
    enabled = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}
    post_filter = {"disabled": [{"name": "Coscheduling"}]}
    return {
        "args": {"Coscheduling": {"placement": "pod", **args}},
        "profile": {"plugins": {"multiPoint": enabled, "postFilter": post_filter}},
    }


@pytest.mark.parametrize(
    ("timeout", "args", "seconds", "printed_duration"),
    [
        ({"scheduleTimeoutSeconds": 10}, {"permitWaitingTimeSeconds": 30}, 10, "10s"),
        ({}, {"permitWaitingTimeSeconds": 30}, 30, "30s"),
        ({}, {}, 60, "1m0s"),
    ],
    ids=["the group's", "the argument's", "the default"],
)
def test_part_a_members_wait_at_permit_to_the_exact_second(
    timeout: dict[str, int], args: dict[str, int], seconds: int, printed_duration: str
) -> None:
    async def scene(world: World) -> None:
        _start(world, **timeout)
        await world.until(5)
        world.add_pod("q", cpu=3, memory="1Gi")
        await world.until(seconds - 0.001)
        assert {waiting.pod.name for waiting in world.scheduler.waiting_pods()} == {"t1", "t2"}
        assert list(bound(world, "q")) == [None]
        await world.until(seconds)
        # Both are rejected at once and release their nodes; q gets one of them.
        assert world.waiting("t1") is None
        assert world.waiting("t2") is None
        texts = [message(world, name) for name in MEMBERS]
        expected = (
            f"rejected due to timeout after waiting {printed_duration} at plugin Coscheduling"
        )
        assert any(expected in text for text in texts)
        await world.until(seconds + 15)
        assert list(bound(world, *MEMBERS)) == [None] * 3
        result = world.bound("q")
        assert result is not None
        assert result[0] >= seconds

    play(scene, **_pod_by_pod(**args))


@scenario(plugins=FIT)
async def test_part_b_in_one_pass_nothing_is_reserved_and_the_timeout_is_reported_once(
    world: World,
) -> None:
    _start(world, scheduleTimeoutSeconds=10)
    await world.until(5)
    assert world.scheduler.cache.assumed_count == 0
    world.add_pod("q", cpu=3, memory="1Gi")
    await world.until(5)
    assert list(bound(world, "q", *MEMBERS)) == [5, None, None, None]
    await world.until(9.999)
    assert condition(world, "t", "ScheduleTimedOut") == {}
    await world.until(10)
    result = condition(world, "t", "ScheduleTimedOut")
    assert (result["status"], result["reason"]) == ("True", "NotPlacedInTime")
    assert result["lastTransitionTime"] == "2026-01-01T00:00:10Z"
    assert result["message"].startswith("not placed within 10 s (scheduleTimeoutSeconds): group")
    await world.until(700)
    assert len(world.events("t", "ScheduleTimedOut")) == 1
    assert condition(world, "t", "ScheduleTimedOut") == result


@scenario(plugins=FIT)
async def test_part_b_a_group_that_timed_out_is_placed_when_a_node_is_added(world: World) -> None:
    _start(world, scheduleTimeoutSeconds=10)
    await world.until(40)
    world.add_node("n3", cpu=4, memory="8Gi")
    await world.until(42)
    assert list(bound(world, *MEMBERS)) == [40] * 3
    result = condition(world, "t", "ScheduleTimedOut")
    assert (result["status"], result["reason"], result["message"]) == ("False", "Placed", "")
    assert len(world.events("t", "ScheduleTimedOut")) == 1


@pytest.mark.parametrize("placement", ["pod", "group"])
def test_part_c_permit_of_the_third_member_releases_all_members_at_once(placement: str) -> None:
    async def scene(world: World) -> None:
        _start(world, node_count=3)
        await world.until(0)
        assert list(bound(world, *MEMBERS)) == [0] * 3

    play(scene, **{**_pod_by_pod(), "args": {"Coscheduling": {"placement": placement}}})


@scenario(**_pod_by_pod())
async def test_the_timeout_condition_is_not_written_if_members_wait_at_permit(world: World) -> None:
    _start(world, scheduleTimeoutSeconds=10)
    await world.until(30)
    assert condition(world, "t", "ScheduleTimedOut", X_K8S) == {}
