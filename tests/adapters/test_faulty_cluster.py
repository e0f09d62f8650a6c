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
    GoneError,
    OutcomeUnknownError,
    PatchPodStatus,
    WatchDroppedError,
    WatchEvent,
)
from bayplan.sim.loop import run
from bayplan.state.pods import PodInfo, pod_info
from tests.adapters.faulty_cluster import FaultOptions, FaultyCluster
from tests.kit.manifests import pod
from tests.sim.fault_plan import drawn_faults

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


def test_options_follow_from_the_seed_and_print_as_one_line() -> None:
    assert drawn_faults(7) == drawn_faults(7)
    assert len({str(drawn_faults(seed)) for seed in range(20)}) == 20
    options = FaultOptions(seed=3, conflicts=0.1, slow_seconds=20.0, node_losses=2)
    assert str(options) == "seed=3 conflicts=0.1 slow_seconds=20 node_losses=2"


def test_each_fault_is_absent_in_some_seeds_and_present_in_others() -> None:
    sampled = [drawn_faults(seed) for seed in range(40)]
    for name in ("watch_drops", "gone_on_resume", "conflicts", "unknown_outcomes", "node_losses"):
        hits = sum(getattr(options, name) > 0 for options in sampled)
        assert 5 < hits < 35, name


def test_without_faults_calls_reach_the_inner_cluster_unchanged() -> None:
    async def scene(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
        info = created(inner)
        await cluster.bind(info, "n1")
        result = await cluster.get_pod("default", "web")
        assert result.spec.node_name == "n1"
        assert len((await cluster.list(POD)).objects) == 1
        assert not cluster.counts

    assert run_scene(scene) == 0.0


def test_a_conflict_changes_nothing() -> None:
    async def scene(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
        with pytest.raises(ConflictError):
            await cluster.bind(created(inner), "n1")
        assert (await inner.get_pod("default", "web")).spec.node_name is None
        assert cluster.counts == Counter(conflicts=1)

    run_scene(scene, conflicts=1.0)


def test_some_calls_with_an_unknown_outcome_are_carried_out() -> None:
    async def scene(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
        bound = 0
        for number in range(40):
            info = created(inner, f"p{number}")
            with pytest.raises(OutcomeUnknownError):
                await cluster.bind(info, "n1")
            bound += (await inner.get_pod("default", info.name)).spec.node_name == "n1"
        assert 8 < bound < 32

    run_scene(scene, unknown_outcomes=1.0)


def test_a_status_patch_or_a_deletion_may_get_no_answer() -> None:
    async def scene(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
        info = created(inner)
        patch = PatchPodStatus("default", "web", info.uid, None, "n1")
        with pytest.raises(OutcomeUnknownError):
            await cluster.patch_pod_status(patch)
        with pytest.raises(OutcomeUnknownError):
            await cluster.patch(POD, "default", "web", {"metadata": {"labels": {"a": "b"}}})
        with pytest.raises(OutcomeUnknownError):
            await cluster.delete_pod("default", "web", info.uid)

    run_scene(scene, unknown_outcomes=1.0)


def test_a_dropped_watch_loses_no_event() -> None:
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

    async def scene(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
        names = [f"p{number}" for number in range(30)]
        for name in names:
            inner.create(pod(name))
        events = await follow(cluster, len(names))
        assert [event.object.metadata.name for event in events] == names
        assert cluster.counts["watch_drops"] > 3

    run_scene(scene, watch_drops=0.3)


def test_a_watch_may_be_expired_and_its_events_delayed() -> None:
    async def expired(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
        with pytest.raises(GoneError):
            await anext(cluster.watch(POD, "0"))

    async def late(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
        inner.create(pod())
        await anext(cluster.watch(POD, "0"))

    run_scene(expired, gone_on_resume=1.0)
    assert run_scene(late, watch_lags=1.0, slow_seconds=3.0) > 0.0


def test_one_seed_gives_one_sequence_of_faults() -> None:
    def outcomes() -> list[str]:
        outcome_names: list[str] = []

        async def scene(inner: EmbeddedCluster, cluster: FaultyCluster) -> None:
            for number in range(50):
                info = created(inner, f"p{number}")
                try:
                    await cluster.bind(info, "n1")
                    outcome_names.append("bound")
                except (ConflictError, OutcomeUnknownError) as problem:
                    outcome_names.append(type(problem).__name__)

        run_scene(scene, conflicts=0.3, unknown_outcomes=0.3)
        return outcome_names

    assert outcomes() == outcomes()
    assert len(set(outcomes())) == 3
