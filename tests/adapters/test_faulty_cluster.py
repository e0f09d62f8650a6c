"""Faults are drawn by seed, printable and repeatable, and end in the calm phase."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import Pod
from bayplan.clock import ManualClock
from bayplan.ports import (
    ConflictError,
    OutcomeUnknownError,
    WatchDroppedError,
    WatchEvent,
)
from bayplan.sim.loop import run
from bayplan.state.pods import PodInfo, pod_info
from tests.adapters.faulty_cluster import FaultOptions, FaultyCluster
from tests.kit.manifests import pod
from tests.kit.scenes import scene_of

POD = "v1 Pod"
Scene = Callable[[EmbeddedCluster, FaultyCluster], Awaitable[None]]


def run_scene(scene: Scene, **options: float) -> float:
    """Run a scene with these faults; returns the time at its end."""
    clock = ManualClock()
    inner = EmbeddedCluster(clock)
    cluster = FaultyCluster(inner, replace(FaultOptions(seed=1), **options))

    async def main() -> None:
        await scene(inner, cluster)

    run(main(), clock)
    return clock.now()


def created(inner: EmbeddedCluster, name: str = "web") -> PodInfo:
    result = inner.create(pod(name)).object
    assert isinstance(result, Pod)
    return pod_info(result)


@scene_of(run_scene, 2, conflicts=1.0)
async def test_a_conflict_changes_nothing(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
    with pytest.raises(ConflictError):
        await cluster.bind(created(inner), "n1")
    assert (await inner.get_pod("default", "web")).spec.node_name is None
    assert cluster.counts == Counter(conflicts=1)


@scene_of(run_scene, 2, unknown_outcomes=1.0)
async def test_some_calls_with_an_unknown_outcome_are_carried_out(
    inner: EmbeddedCluster, cluster: FaultyCluster
) -> None:
    bound = 0
    for number in range(40):
        info = created(inner, f"p{number}")
        with pytest.raises(OutcomeUnknownError):
            await cluster.bind(info, "n1")
        bound += (await inner.get_pod("default", info.name)).spec.node_name == "n1"
    assert 8 < bound < 32


@scene_of(run_scene, 2, watch_drops=0.3)
async def test_a_dropped_watch_loses_no_event(
    inner: EmbeddedCluster, cluster: FaultyCluster
) -> None:
    async def follow(cluster: FaultyCluster, count: int) -> list[WatchEvent]:
        events: list[WatchEvent] = []
        while len(events) < count:
            version = events[-1].resource_version if events else "0"
            try:
                async for event in cluster.watch(POD, version):
                    events.append(event)
                    if len(events) == count:
                        break
            except WatchDroppedError:
                continue
        return events

    names = [f"p{number}" for number in range(30)]
    for name in names:
        inner.create(pod(name))
    events = await follow(cluster, len(names))
    assert [event.object.metadata.name for event in events] == names
    assert cluster.counts["watch_drops"] > 3
