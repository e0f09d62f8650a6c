"""The playing of a workload: order, times, and the end of the run."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import Pod, is_terminal
from bayplan.clock import ManualClock
from bayplan.durations import DURATION_ANNOTATION
from bayplan.objects.keys import object_key
from bayplan.sim.input.workload import (
    WHEN_DONE_ANNOTATION,
    Content,
    Step,
    Verb,
    Workload,
    create_step,
)
from bayplan.sim.loop import run, settled
from bayplan.sim.world.driver import QUIET_SECONDS_MAX, Driver
from bayplan.state.pods import pod_info
from tests.kit.manifests import node, pod

POD = "v1 Pod"


class ToyScheduler:
    """Binds pods in the order of their events, as long as n1 has a free slot."""

    def __init__(self, cluster: EmbeddedCluster, clock: ManualClock, slots: int) -> None:
        self._cluster = cluster
        self._clock = clock
        self._slots = slots
        self.log: list[str] = []

    async def run(self) -> None:
        listing = await self._cluster.list(POD)
        pods = {one.metadata.name: one for one in listing.objects}
        await self._place(pods)
        async for event in self._cluster.watch(POD, listing.resource_version):
            self.log.append(f"{self._clock.now():g} {event.type} {event.object.metadata.name}")
            pods[event.object.metadata.name] = event.object
            if event.type == "DELETED":
                del pods[event.object.metadata.name]
            await self._place(pods)

    async def _place(self, pods: dict[str, Any]) -> None:
        for _ in range(5):
            await asyncio.sleep(0)  # takes a few turns of the loop, but no virtual time
        bound_count = sum(bool(one.spec.node_name) for one in pods.values())
        for name, one in pods.items():
            if bound_count < self._slots and not one.spec.node_name:
                await self._cluster.bind(pod_info(one), "n1")
                pods[name] = await self._cluster.get_pod("default", name)
                bound_count += 1


class Played:
    """A run and its observable results."""

    def __init__(
        self,
        workload: Workload,
        *,
        slots: int = 100,
        only_retries_wait: Callable[[], bool] = lambda: True,
    ) -> None:
        self.clock = ManualClock()
        self.cluster = EmbeddedCluster(self.clock)
        self.times: dict[str, dict[str, float]] = {}
        self.cluster.observe(self._observe)
        self.scheduler = ToyScheduler(self.cluster, self.clock, slots)

        async def main() -> list[str]:
            driver = Driver(
                workload,
                self.cluster,
                self.clock,
                settle=settled,
                only_retries_wait=only_retries_wait,
            )
            running = asyncio.create_task(self.scheduler.run())
            await driver.play()
            running.cancel()
            return driver.refused

        self.refused = run(main(), self.clock)

    def _observe(self, before: Any, after: Any) -> None:
        pod = (after or before).object
        if not isinstance(pod, Pod):
            return
        times = self.times.setdefault(pod.metadata.name, {})
        if after is None:
            times["gone"] = self.clock.now()
        elif pod.spec.node_name:
            times.setdefault("bound", self.clock.now())
        if after is not None and is_terminal(pod):
            times.setdefault("ended", self.clock.now())

    def all(self, what: str) -> dict[str, float]:
        return {name: times[what] for name, times in self.times.items() if what in times}


def running_for(name: str, duration: str, **spec: Any) -> Content:
    return pod(name, annotations={DURATION_ANNOTATION: duration}, **spec)


def patch(at: float, name: str, content: Content, kind: str = POD) -> Step:
    key = object_key(kind, "default", name)
    return Step(at_seconds=at, verb=Verb.PATCH, key=key, content=content)


def delete(at: float, name: str, kind: str = POD) -> Step:
    return Step(at_seconds=at, verb=Verb.DELETE, key=object_key(kind, "default", name))


# ---- order and time -------------------------------------------------------------------------


def test_nodes_and_running_pods_are_created_first_and_then_pods_one_by_one() -> None:
    workload = Workload(initial=(node("n1"), pod("r", nodeName="n1"), pod("a"), pod("b")))
    played = Played(workload)
    expected = ["0 ADDED a", "0 MODIFIED a", "0 ADDED b", "0 MODIFIED b"]
    assert played.scheduler.log == expected
    assert played.all("bound") == {"r": 0.0, "a": 0.0, "b": 0.0}


def test_steps_happen_at_their_time_and_in_order() -> None:
    steps = (
        create_step(5, pod("a")),
        patch(5, "a", {"metadata": {"labels": {"x": "y"}}}),
        create_step(5, pod("b")),
        delete(7.25, "a"),
    )
    assert Played(Workload(steps=steps)).scheduler.log == [
        "5 ADDED a",
        "5 MODIFIED a",
        "5 MODIFIED a",
        "5 ADDED b",
        "5 MODIFIED b",
        "7.25 DELETED a",
    ]


def test_timers_of_one_moment_run_before_its_steps() -> None:
    """The consequences of a timer come first, too: a pending pod gets the slot of the ended one."""
    workload = Workload(
        initial=(running_for("a", "10s"), pod("waits")), steps=(create_step(10, pod("b")),)
    )
    log = Played(workload, slots=1).scheduler.log
    assert log[-3:] == ["10 DELETED a", "10 MODIFIED waits", "10 ADDED b"]


# ---- durations of pods ----------------------------------------------------------------------


def test_pods_that_end_release_capacity_for_pending_pods() -> None:
    initial = tuple(running_for(name, "30s") for name in "abc")
    played = Played(Workload(initial=initial), slots=1)
    assert played.all("bound") == {"a": 0.0, "b": 30.0, "c": 60.0}
    assert played.all("ended") == {"a": 30.0, "b": 60.0, "c": 90.0}
    assert played.all("gone") == {}
    assert played.clock.now() == 90.0


def test_a_pod_that_runs_at_the_start_ends() -> None:
    played = Played(Workload(initial=(running_for("r", "1m", nodeName="n1"),)))
    assert played.all("ended") == {"r": 60.0}


def test_a_pod_may_request_its_deletion_at_its_end() -> None:
    ends = {DURATION_ANNOTATION: "5s", WHEN_DONE_ANNOTATION: "delete"}
    slow = pod("slow", annotations=ends, terminationGracePeriodSeconds=3)
    played = Played(Workload(initial=(pod("a", annotations=ends), slow)))
    assert played.all("gone") == {"a": 5.0, "slow": 8.0}
    assert played.all("ended") == {}


def test_a_pod_deleted_before_its_end_does_not_end() -> None:
    workload = Workload(initial=(running_for("a", "1h"),), steps=(delete(3, "a"),))
    played = Played(workload)
    assert (played.all("gone"), played.all("ended")) == ({"a": 3.0}, {})
    assert played.clock.now() == 3.0


def test_the_end_of_a_deleted_pod_is_dropped() -> None:
    workload = Workload(
        initial=(running_for("a", "1h"),), steps=(delete(3, "a"),), until_seconds=2 * 3600
    )
    assert Played(workload).all("ended") == {}


def test_a_pod_of_the_same_name_has_its_own_duration() -> None:
    steps = (delete(3, "a"), create_step(4, running_for("a", "10s")))
    played = Played(Workload(initial=(running_for("a", "1h"),), steps=steps))
    assert played.all("ended") == {"a": 14.0}


def test_an_unreadable_duration_means_no_end() -> None:
    played = Played(Workload(initial=(running_for("a", "soon"),)))
    assert played.all("ended") == {}


# ---- jobs -----------------------------------------------------------------------------------

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "default", "uid": "u1"},
}
REFERENCE = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u1"}


def of_job(name: str) -> Content:
    return running_for(name, "10s", ownerReferences=[REFERENCE])


def test_a_deleted_job_creates_no_more_pods() -> None:
    workload = Workload(
        initial=(JOB, of_job("j1")),
        steps=(delete(5, "j", "batch/v1 Job"),),
        followers={"u1": (of_job("j2"),)},
    )
    assert Played(workload).all("bound") == {"j1": 0.0}


# ---- the end --------------------------------------------------------------------------------


def test_a_run_with_until_ends_exactly_then() -> None:
    steps = (create_step(5, pod("a")), create_step(20, pod("b")), create_step(20.5, pod("c")))
    played = Played(Workload(steps=steps, until_seconds=20))
    assert played.clock.now() == 20.0
    assert played.all("bound") == {"a": 5.0, "b": 20.0}


def test_the_run_waits_for_a_grace_period() -> None:
    initial = (pod("a", terminationGracePeriodSeconds=25),)
    played = Played(Workload(initial=initial, steps=(delete(5, "a"),)))
    assert played.all("gone") == {"a": 30.0}
    assert played.clock.now() == 30.0


def test_the_run_waits_for_a_busy_scheduler_while_it_has_timers() -> None:
    busy = [True]

    def only_retries_wait() -> bool:
        if busy:
            asyncio.get_running_loop().call_later(50, busy.clear)
        return not busy

    played = Played(Workload(initial=(pod("a"),)), only_retries_wait=only_retries_wait)
    assert played.clock.now() == 50.0


def test_the_run_does_not_wait_for_a_scheduler_without_timers() -> None:
    played = Played(Workload(initial=(pod("a"),)), only_retries_wait=lambda: False)
    assert played.clock.now() == 0.0


def test_a_scheduler_that_retries_forever_without_effect_is_stopped() -> None:
    def only_retries_wait() -> bool:
        asyncio.get_running_loop().call_later(100, [].clear)
        return False

    played = Played(Workload(initial=(pod("a"),)), only_retries_wait=only_retries_wait)
    assert played.clock.now() == QUIET_SECONDS_MAX


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            create_step(3, pod("a")),
            'at 3 s: create Pod default/a: pods "a" already exists',
        ),
        (delete(3, "b"), 'at 3 s: delete Pod default/b: pods "b" not found'),
        (
            patch(3, "a", {"spec": {"nodeName": "n2"}}),
            'at 3 s: patch Pod default/a: Pod "a" is invalid: spec.nodeName: found "n2"',
        ),
    ],
)
def test_a_step_refused_by_the_server_is_reported_and_the_run_continues(
    step: Step, message: str
) -> None:
    workload = Workload(initial=(pod("a"),), steps=(step, create_step(4, pod("z"))))
    played = Played(workload)
    assert [line[: len(message)] for line in played.refused] == [message]
    assert played.all("bound")["z"] == 4.0


def test_a_refused_initial_object_is_reported() -> None:
    played = Played(Workload(initial=(pod("a", priorityClassName="none"), pod("b"))))
    assert len(played.refused) == 1
    assert "no PriorityClass with name none was found" in played.refused[0]
    assert played.all("bound") == {"b": 0.0}
