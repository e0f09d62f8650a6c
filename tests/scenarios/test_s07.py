"""S-07: how many rows are evaluated if many pods have equal signatures."""

from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from bayplan.api.objects import NODE
from bayplan.engine.reuse.cache import ResultCache
from bayplan.objects.keys import object_key
from bayplan.ports import PatchPodStatus
from bayplan.state.pods import PodInfo
from tests.scenarios.equal_pods import (
    COUNTING,
    EQUAL,
    FIT,
    IN_TURNS,
    PLAIN,
    add_equal,
    part_a,
    part_b,
    setup,
)
from tests.scenarios.world import PROFILE, World, play

HEARTBEAT_SECONDS = 10.0


class PartRun:
    """One run of a part: its evaluated rows, its bindings and its API requests."""

    def __init__(self, part: Callable[[World], Awaitable[None]], *, is_on: bool = True) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.rows: list[int] = []

        async def scene(world: World) -> None:
            listen(world, self.requests)
            await part(world)

        self.world = play(scene, setup(is_on=is_on))

    @property
    def evaluated_rows(self) -> int:
        return self.world.plugin(COUNTING).evaluated_rows

    @property
    def reuse(self) -> ResultCache:
        return self.world.scheduler.reuse(PROFILE)

    def places(self, names: list[str]) -> dict[str, str]:
        """Pod → node for these bound pods."""
        results = {name: self.world.bound(name) for name in names}
        assert None not in results.values()
        return {name: where[1] for name, where in results.items() if where is not None}

    @property
    def nominations(self) -> list[Any]:
        return [
            arguments
            for verb, arguments in self.requests
            if verb == "patch_pod_status" and arguments[0].nominated_node_name
        ]


def listen(world: World, requests: list[tuple[str, Any]]) -> None:
    """Record every request of the scheduler to the API."""
    bind = world.cluster.bind_now

    def noted_bind(pod: PodInfo, node_name: str) -> None:
        requests.append(("bind", (comparable(pod), node_name)))
        bind(pod, node_name)

    world.cluster.bind_now = noted_bind
    patch_status = world.cluster.patch_pod_status_now

    def noted_patch(patch: PatchPodStatus) -> None:
        requests.append(("patch_pod_status", (patch,)))
        patch_status(patch)

    world.cluster.patch_pod_status_now = noted_patch
    for verb in ("list", "get_pod", "patch", "delete_pod"):
        call = getattr(world.cluster, verb)

        async def noted(*args: Any, _verb: str = verb, _call: Any = call) -> Any:
            requests.append((_verb, tuple(map(comparable, args))))
            return await _call(*args)

        setattr(world.cluster, verb, noted)


def comparable(argument: Any) -> Any:
    return argument if isinstance(argument, PatchPodStatus | str | dict) else repr(argument)


# ---- parts A and E --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node_count", "evaluated_with_reuse", "evaluated_without_reuse", "per_node"),
    [(50, 69, 1000, 1), (5, 24, 100, 4)],
)
def test_each_further_pod_of_a_signature_evaluates_one_row(
    node_count: int, evaluated_with_reuse: int, evaluated_without_reuse: int, per_node: int
) -> None:
    on = PartRun(part_a(node_count))
    off = PartRun(part_a(node_count), is_on=False)
    assert (on.evaluated_rows, off.evaluated_rows) == (
        evaluated_with_reuse,
        evaluated_without_reuse,
    )
    assert on.places(EQUAL) == off.places(EQUAL)
    node_names = list(on.places(EQUAL).values())
    assert {node_names.count(name) for name in node_names} == {per_node}
    assert not on.reuse.dropped_counts


def test_evaluated_and_cached_rows_are_counted_for_each_plugin() -> None:
    on = PartRun(part_a(50))
    for name in (COUNTING, FIT):
        counts = on.reuse.row_counts()[name]
        assert counts.evaluated >= 69
        assert counts.cached >= 1000 - 69
    assert on.reuse.row_counts()[COUNTING].cached == 1000 - 69
    assert on.reuse.possible_count == 19


def test_without_reuse_nothing_is_cached_and_possible_reuse_is_counted() -> None:
    off = PartRun(part_a(50), is_on=False)
    assert {counts.cached for counts in off.reuse.row_counts().values()} == {0}
    assert off.reuse.possible_count == 19


def test_api_calls_are_equal_with_and_without_reuse() -> None:
    on, off = PartRun(part_a(50)), PartRun(part_a(50), is_on=False)
    assert on.requests == off.requests
    assert sum(verb == "bind" for verb, _ in on.requests) == 20
    assert on.nominations == []


# ---- parts B to D ---------------------------------------------------------------------------


def test_two_alternating_signatures_evaluate_two_rows_each() -> None:
    on, off = PartRun(part_b), PartRun(part_b, is_on=False)
    assert (on.evaluated_rows, off.evaluated_rows) == (136, 1000)
    assert on.places(IN_TURNS) == off.places(IN_TURNS)
    assert on.nominations == off.nominations == []
    assert on.requests == off.requests


def heartbeat(world: World, seconds: float) -> None:
    """Change only the times of the nodes' conditions."""
    for number in range(1, 51):
        stored = world.cluster.get(object_key(NODE, "", f"n{number}"))
        assert stored is not None
        status = stored.content["status"]
        beats = [
            {**each, "lastHeartbeatTime": f"2026-01-01T00:{seconds // 60:02.0f}:00Z"}
            for each in status["conditions"]
        ]
        world.cluster.update({**stored.content, "status": {**status, "conditions": beats}})


def beats(until_seconds: float) -> Iterator[float]:
    moment = HEARTBEAT_SECONDS
    while moment < until_seconds:
        yield moment
        moment += HEARTBEAT_SECONDS


def parts_b_to_d(evaluated_counts: list[int]) -> Callable[[World], Awaitable[None]]:
    """``evaluated_counts``: gets the total of evaluated rows before a11 and after a11, a12, a13."""

    async def scene(world: World) -> None:
        def note() -> None:
            evaluated_counts.append(world.plugin(COUNTING).evaluated_rows)

        await part_b(world)
        note()
        for moment in beats(600):
            await world.until(moment)
            heartbeat(world, moment)
            if moment == 300:
                world.add_pod("huge", cpu=50, scheduler_name=PLAIN)
        await world.until(600)
        add_equal(world, "a11")
        await world.until(700)
        note()
        places = {where for name in [*IN_TURNS, "a11"] if (where := world.bound(name))}
        empty = next(f"n{n}" for n in range(1, 51) if f"n{n}" not in {w[1] for w in places})
        world.change_node(empty, labels={"bad": "true"})
        await world.until(701)
        add_equal(world, "a12")
        await world.until(800)
        note()
        world.add_node("n51", cpu=4, memory="8Gi")
        await world.until(801)
        add_equal(world, "a13")
        await world.until(810)
        note()
        for name, at_seconds in (("a11", 600), ("a12", 701), ("a13", 801)):
            bound = world.bound(name)
            assert bound is not None
            assert bound[0] == at_seconds
            assert bound[1] != empty or name == "a11"
        assert "Insufficient cpu" in world.message("huge")

    return scene


def test_after_heartbeats_a_label_and_a_new_node_only_changed_rows_are_evaluated() -> None:
    calls: list[int] = []
    on = PartRun(parts_b_to_d(calls))
    assert [after - before for before, after in pairwise(calls)] == [2, 2, 2]
    off = PartRun(parts_b_to_d([]), is_on=False)
    names = [*IN_TURNS, "a11", "a12", "a13"]
    assert on.places(names) == off.places(names)
    assert on.requests == off.requests
