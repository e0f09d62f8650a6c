"""Reservations for a group that has waited long, and the pods that may use the reserved nodes."""

from types import SimpleNamespace
from typing import Any

import pytest

from bayplan.api.pod_groups import GroupKey
from bayplan.clock import ManualClock, rfc3339
from bayplan.engine.cycle import OUTSIDE_OF_DOMAIN
from bayplan.engine.exclusive_domains import ExclusiveDomains
from bayplan.engine.reservations import (
    RESERVATION_NAME,
    RESERVED,
    Reservation,
    Reservations,
    end_seconds,
    restrict_to_unreserved,
    run_seconds,
)
from bayplan.state.pod_groups import PodGroups
from bayplan.testing import pod
from tests.scenarios.gangs import FIT, add_members, bound, message, put_group
from tests.scenarios.world import World, play, scenario

# ---- reservations ---------------------------------------------------------------------------


ON = {"podGroups": {"reserveAfterSeconds": 10}}
GANG = ("g1", "g2")


def lasting(seconds: float | None) -> dict[str, Any]:
    """``metadata`` of a pod with a duration."""
    return {} if seconds is None else {"annotations": {"bayplan.dev/duration": f"{seconds:g}s"}}


async def crowded(world: World, seconds: float | None) -> None:
    """Two nodes with a small pod each, and a gang that needs both nodes."""
    for name, ends in (("n1", 30), ("n2", 40)):
        world.add_node(name, cpu=4)
        own = ends if seconds is not None else None
        world.add_pod(f"old-{name}", lasting(own), cpu=2, node=name)
    put_group(world, "g", 2)
    add_members(world, GANG, "g", cpu=4)
    await world.until(10)


async def leave(world: World, at: dict[str, float], until: float) -> None:
    for name, seconds in at.items():
        await world.until(seconds)
        world.end_pod(name)
    await world.until(until)


def assert_started(world: World) -> None:
    """Check that the group starts when its delay is over: at most 10 s times the root of 2."""
    first, second = bound(world, *GANG)
    assert first is not None
    assert first == second
    assert 40 <= first <= 55


@pytest.mark.parametrize("config", [{}, {"podGroups": {"reserveAfterSeconds": 0}}], ids=str)
def test_by_default_small_pods_take_the_nodes_that_the_group_waits_for(
    config: dict[str, Any],
) -> None:
    async def scenario(world: World) -> None:
        await crowded(world, 30)
        world.add_pod("small", cpu=1)
        await world.until(12)
        assert list(bound(world, "small")) == [10]
        await leave(world, {"old-n1": 30, "old-n2": 40}, 100)
        assert list(bound(world, *GANG)) == [None, None]

    play(scenario, plugins=FIT, config=config)


@pytest.mark.parametrize("seconds", [30, None], ids=["known durations", "unknown durations"])
@scenario(plugins=FIT, config=ON)
async def test_small_pods_of_unknown_duration_wait_and_the_group_starts(
    world: World, seconds: float | None
) -> None:
    await crowded(world, seconds)
    world.add_pod("small", cpu=1)
    await world.until(39)
    assert list(bound(world, "small", *GANG)) == [None] * 3
    reserved = "2 node(s) kept for a group of pods that has waited long"
    assert message(world, "small") == f"0/2 nodes are available: {reserved}."
    await leave(world, {"old-n1": 39, "old-n2": 40}, 60)
    assert_started(world)
    for name in GANG:
        world.end_pod(name)
    await world.until(80)
    (when,) = bound(world, "small")
    assert when is not None
    assert when >= 60


@scenario(plugins=FIT, config=ON)
async def test_pods_that_end_in_time_are_placed_on_reserved_nodes(world: World) -> None:
    await crowded(world, 30)
    world.add_pod("short", lasting(25), cpu=1)
    world.add_pod("long", lasting(35), cpu=1)
    await world.until(12)
    assert list(bound(world, "short", "long")) == [10, None]
    await leave(world, {"old-n1": 30, "short": 35, "old-n2": 40}, 60)
    assert_started(world)


@scenario(plugins=FIT, config=ON)
async def test_more_important_pods_and_daemons_use_reserved_nodes(world: World) -> None:
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}

    await crowded(world, None)
    world.add_pod("important", cpu=1, priority=10)
    world.add_pod("daemon", {"ownerReferences": [daemon]}, cpu=1)
    await world.until(12)
    assert list(bound(world, "important", "daemon")) == [10, 10]


@scenario(plugins=FIT, config=ON)
async def test_other_nodes_are_free_for_pods_and_other_groups(world: World) -> None:
    await crowded(world, None)
    world.add_node("n3", cpu=3)
    put_group(world, "other", 2)
    add_members(world, ("o1", "o2"), "other", cpu=1)
    await world.until(20)
    assert {place[1] for name in ("o1", "o2") if (place := world.bound(name))} == {"n3"}
    put_group(world, "third", 2)
    add_members(world, ("t1", "t2"), "third", cpu=1)
    await world.until(30)
    assert list(bound(world, "t1", "t2")) == [None, None]


@scenario(plugins=FIT, config=ON)
async def test_a_deleted_group_releases_its_reservation(world: World) -> None:
    await crowded(world, None)
    world.add_pod("small", cpu=1)
    await world.until(20)
    assert list(bound(world, "small")) == [None]
    world.delete_pod("g1")
    await world.until(31)
    (when,) = bound(world, "small")
    assert when is not None
    assert 20 <= when <= 31


@scenario(plugins=FIT, config=ON)
async def test_a_deleted_reserved_node_is_replaced(world: World) -> None:
    await crowded(world, None)
    world.add_node("n3", cpu=4)
    world.add_pod("old-n3", cpu=4, priority=10)
    await world.until(20)
    world.delete_node("n1")
    world.end_pod("old-n2")
    await world.until(80)
    world.add_pod("small", cpu=1)
    await world.until(90)
    assert list(bound(world, "small")) == [None]
    world.end_pod("old-n3")
    await world.until(100)
    assert list(bound(world, *GANG)) == [90, 90]


# ---- durations of pods ----------------------------------------------------------------------


DURATION = "bayplan.dev/duration"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("30s", 30),
        ("1m30s", 90),
        ("250ms", 0.25),
        ("1.5h", 5400),
        (".5h", 1800),
    ],
)
def test_durations_have_the_syntax_of_scenarios(text: str, seconds: float) -> None:
    assert run_seconds(pod(annotations={DURATION: text})) == seconds


@pytest.mark.parametrize("text", ["", "-5", "soon", "5 s", "1e9", "s", "infinity"])
def test_an_invalid_duration_counts_as_unknown(text: str) -> None:
    assert run_seconds(pod(annotations={DURATION: text})) is None
    assert end_seconds(pod(annotations={DURATION: text}), ManualClock()) is None


def test_the_end_counts_from_the_start_and_is_never_in_the_past() -> None:
    clock = ManualClock()
    clock.advance_to(100)
    started = rfc3339(clock.epoch_seconds() - 40)
    running = pod(annotations={DURATION: "60"}, status={"startTime": started})
    assert end_seconds(running, clock) == 120
    clock.advance_to(500)
    assert end_seconds(running, clock) == 500
    assert end_seconds(pod(annotations={DURATION: "60"}), clock) == 560


# ---- reserved nodes in a cycle --------------------------------------------------------------


def restricted_cycle(within: frozenset[str] | None, *, is_reserved: bool) -> Any:
    reservations = Reservations(ManualClock(), 10.0, ExclusiveDomains(PodGroups(bool)))
    if is_reserved:
        key = GroupKey("x", "default", "g")
        reservations.current = Reservation(key, 0, frozenset({"n1"}), 100.0)
    nodes = SimpleNamespace(names=lambda: ["n1", "n2", "n3"])
    snapshot = SimpleNamespace(nodes=nodes)
    cycle: Any = SimpleNamespace(pod=pod("p"), within=within, snapshot=snapshot)
    cycle.restriction = OUTSIDE_OF_DOMAIN
    restrict_to_unreserved(cycle, reservations)
    return cycle


def test_without_a_reservation_nothing_changes() -> None:
    assert restricted_cycle(None, is_reserved=False).within is None


def test_reserved_nodes_are_excluded_from_all_nodes_and_from_a_domain() -> None:
    cycle = restricted_cycle(None, is_reserved=True)
    assert cycle.within == {"n2", "n3"}
    assert cycle.restriction == (RESERVATION_NAME, RESERVED, True)
    assert restricted_cycle(frozenset({"n1", "n3"}), is_reserved=True).within == {"n3"}
