"""The runner: reflectors, the inbox, effects, and failures of the API server."""

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan import ports
from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.api.objects import NODE, POD, Condition, Unstructured
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PermitPlugin, PostBindPlugin
from bayplan.framework.status import Code, Status
from bayplan.journal import Journal, MemorySink, NoteRecord
from bayplan.plugins.registry import Registry
from bayplan.runner import CHECK_AGAIN_SECONDS, Reflector, Runner, check_cache
from bayplan.sim.loop import run, settled
from bayplan.sim.world.checkers import differences
from bayplan.state.pods import PodInfo, pod_info
from bayplan.status_patches import (
    RETRY_SECONDS_MAX,
    RETRY_SECONDS_MIN,
    STATUS_PATCH_TRIES,
    PodPatches,
)
from bayplan.testing import api_pod
from tests.framework.answering import answering
from tests.kit.extenders import FakeExtender
from tests.kit.ports import ReplacedCalls
from tests.kit.scripted_cluster import END, ScriptedCluster
from tests.scenarios.world import PROFILE, Setup, World, config_dict, play, scenario

BUSY = ports.ApiError(503, "ServiceUnavailable", "busy")


# ---- the reflector, against a scripted server -----------------------------------------------


def pod_at_version(name: str, version: int = 1, uid: str = "") -> Any:
    pod = api_pod(name, uid=uid or f"uid-{name}")
    return with_version(pod, str(version))


def with_version(pod: Any, version: str) -> Any:
    return replace(pod, metadata=replace(pod.metadata, resource_version=version))


def event(kind: ports.EventType, api_object: Any) -> ports.WatchEvent:
    return ports.WatchEvent(kind, POD, api_object, api_object.metadata.resource_version)


ADDED, MODIFIED, DELETED = ports.EventType.ADDED, ports.EventType.MODIFIED, ports.EventType.DELETED


@dataclass
class Delivery:
    """The events that a reflector delivered, as (type, name, uid)."""

    events: list[tuple[str, str, str]]
    requests: list[tuple[float, str]]
    failures: list[str]


def reflect(lists: list[Any], events: list[Any], seconds: float = 1.0) -> Delivery:
    delivery = Delivery([], [], [])

    def deliver(events: Any) -> None:
        for each in events:
            meta = each.object.metadata
            delivery.events.append((str(each.type), meta.name, meta.uid))

    async def main() -> None:
        server: Any = ScriptedCluster({POD: lists}, {POD: events})
        reflector = Reflector(
            server,
            POD,
            deliver,
            lambda kind, problem: delivery.failures.append(f"{kind}: {problem}"),
        )
        task = asyncio.get_running_loop().create_task(reflector.run())
        await asyncio.sleep(seconds)
        task.cancel()
        delivery.requests = server.requests

    run(main(), ManualClock())
    return delivery


def test_a_reflector_lists_and_then_watches_from_that_version() -> None:
    result = reflect(
        [[pod_at_version("a"), pod_at_version("b")]], [event(MODIFIED, pod_at_version("a", 11))]
    )
    assert result.events == [
        ("ADDED", "a", "uid-a"),
        ("ADDED", "b", "uid-b"),
        ("MODIFIED", "a", "uid-a"),
    ]
    assert [what for _, what in result.requests[:2]] == ["list", "watch 10"]


def test_a_dropped_watch_resumes_from_the_last_event() -> None:
    events = [event(ADDED, pod_at_version("a", 12)), ports.WatchDroppedError("gone")]
    result = reflect([[]], events)
    assert result.requests == [(0.0, "list"), (0.0, "watch 10"), (RETRY_SECONDS_MIN, "watch 12")]


def test_a_dropped_watch_resumes_from_a_bookmark_which_is_not_delivered() -> None:
    bookmark = ports.WatchEvent(ports.EventType.BOOKMARK, POD, None, "17")
    result = reflect([[]], [bookmark, ports.WatchDroppedError("cut")])
    assert result.events == []
    assert [what for _, what in result.requests] == ["list", "watch 10", "watch 17"]


def test_a_watch_that_ends_normally_resumes_at_a_slow_rate() -> None:
    events = [
        event(ADDED, pod_at_version("a", 12)),
        END,
        event(MODIFIED, pod_at_version("a", 13)),
        END,
    ]
    result = reflect([[]], events)
    assert [what for _, what in result.requests] == ["list", "watch 10", "watch 12", "watch 13"]
    assert result.requests[2][0] == RETRY_SECONDS_MIN


def test_after_gone_the_reflector_relists_and_delivers_the_changes() -> None:
    before = [
        pod_at_version("same"),
        pod_at_version("changed"),
        pod_at_version("deleted"),
        pod_at_version("replaced", uid="old"),
    ]
    after = [
        pod_at_version("same"),
        pod_at_version("changed", 5),
        pod_at_version("replaced", 6, uid="new"),
        pod_at_version("new"),
    ]
    result = reflect([before, after], [ports.GoneError("too old")])
    assert result.events[4:] == [
        ("DELETED", "deleted", "uid-deleted"),
        ("MODIFIED", "changed", "uid-changed"),
        ("DELETED", "replaced", "old"),
        ("MODIFIED", "replaced", "new"),
        ("ADDED", "new", "uid-new"),
    ]


def test_another_object_under_the_same_name_replaces_the_previous_one() -> None:
    result = reflect(
        [[pod_at_version("a", uid="one")]], [event(ADDED, pod_at_version("a", 12, uid="two"))]
    )
    assert result.events == [("ADDED", "a", "one"), ("DELETED", "a", "one"), ("ADDED", "a", "two")]


def test_a_deletion_of_an_undelivered_object_is_not_delivered() -> None:
    result = reflect([[]], [event(DELETED, pod_at_version("a", 12))])
    assert result.events == []


def test_an_object_missing_from_a_listing_is_delivered_as_deleted_metadata() -> None:
    objects: list[Any] = []

    async def main() -> None:
        server: Any = ScriptedCluster(
            {POD: [[pod_at_version("a")], []]}, {POD: [ports.GoneError("too old")]}
        )
        reflector = Reflector(
            server, POD, lambda events: objects.extend(e.object for e in events), print
        )
        task = asyncio.get_running_loop().create_task(reflector.run())
        await asyncio.sleep(1)
        task.cancel()

    run(main(), ManualClock())
    assert isinstance(objects[1], Unstructured)
    assert objects[1].metadata == pod_at_version("a").metadata


def test_a_busy_server_is_retried_with_growing_delays() -> None:
    result = reflect([BUSY], [], seconds=60.0)
    times = [when for when, _ in result.requests]
    gaps = [round(later - sooner, 6) for sooner, later in pairwise(times)]
    assert gaps[:4] == [0.1, 0.2, 0.4, 0.8]
    assert gaps[-1] == RETRY_SECONDS_MAX


@pytest.mark.parametrize("end", [END, ports.WatchDroppedError("cut"), ports.GoneError("too old")])
def test_watches_that_end_without_an_event_are_retried_with_growing_delays(end: Any) -> None:
    """As with a proxy that ends them, or a server that forgets each version at once."""
    heard = event(ADDED, pod_at_version("a", 12))
    result = reflect([[]], [*[end] * 4, heard, end, end], seconds=60.0)
    times = [when for when, what in result.requests if what.startswith("watch")]
    gaps = [round(later - sooner, 6) for sooner, later in pairwise(times)]
    assert gaps == [0.1, 0.2, 0.4, 0.8, RETRY_SECONDS_MIN, 0.1]


def test_an_answer_resets_the_retry_delay() -> None:
    events = [event(ADDED, pod_at_version("a", 12)), BUSY]
    result = reflect([BUSY, BUSY, []], events)
    assert [what for _, what in result.requests] == ["list", "list", "list", "watch 10", "watch 12"]
    assert result.requests[4][0] - result.requests[3][0] == pytest.approx(0.1)


def test_an_unexpected_failure_is_reported_and_the_reflector_continues() -> None:
    result = reflect([[pod_at_version("a")]], [ValueError("odd object")])
    assert result.failures == ["v1 Pod: odd object"]
    assert [what for _, what in result.requests] == ["list", "watch 10", "list", "watch 10"]
    assert result.events == [("ADDED", "a", "uid-a")]


# ---- status patches -------------------------------------------------------------------------


class Api:
    """Takes patches; each answer is used once, and success afterwards."""

    def __init__(self, answers: list[Any] | None = None, seconds: float = 0.0) -> None:
        self.answers = answers or []
        self.seconds = seconds
        self.written: list[tuple[float, str, str | None]] = []
        self.tries = 0
        #: The error of each patch that was given up.
        self.dropped: list[str] = []

    async def patch_pod_status(self, patch: ports.PatchPodStatus) -> None:
        self.tries += 1
        answer = self.answers.pop(0) if self.answers else None
        await asyncio.sleep(self.seconds)
        if answer is not None:
            raise answer
        now = asyncio.get_running_loop().time()
        message = patch.condition.message or "" if patch.condition is not None else ""
        self.written.append((round(now, 6), message, patch.nominated_node_name))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def patch_with(message: str, nominated: str | None = None, uid: str = "u") -> ports.PatchPodStatus:
    condition = Condition(type="PodScheduled", status="False", message=message)
    return ports.PatchPodStatus("default", "p", uid, condition if message else None, nominated)


def write_patches(api: Api, scene: Callable[[PodPatches], Awaitable[None]]) -> Api:
    async def main() -> None:
        port: Any = api
        await scene(PodPatches(port, lambda _, problem: api.dropped.append(str(problem))))
        await settled()
        await asyncio.sleep(100)

    run(main(), ManualClock())
    return api


def send(patches: PodPatches, patch: ports.PatchPodStatus) -> None:
    if patches.add(patch):
        asyncio.get_running_loop().create_task(patches.write(patch.uid))


def test_patches_of_one_pod_are_sent_in_turn_and_the_newest_wins() -> None:
    async def scene(patches: PodPatches) -> None:
        send(patches, patch_with("first", "n1"))
        await asyncio.sleep(1)
        send(patches, patch_with("second"))
        send(patches, patch_with("third"))
        send(patches, patch_with("other", uid="v"))

    api = write_patches(Api(seconds=3.0), scene)
    assert api.written == [(3.0, "first", "n1"), (4.0, "other", None), (6.0, "third", None)]


@pytest.mark.parametrize(
    "failure", [ports.ConflictError("changed"), ports.OutcomeUnknownError("no answer")]
)
def test_a_failed_patch_is_retried_merged_with_newer_patches(
    failure: Exception,
) -> None:
    async def scene(patches: PodPatches) -> None:
        send(patches, patch_with("first", "n1"))
        await asyncio.sleep(0.01)
        send(patches, patch_with("second"))

    api = write_patches(Api([failure]), scene)
    assert api.written == [(RETRY_SECONDS_MIN, "second", "n1")]


def test_a_newer_nomination_replaces_an_older_one() -> None:
    async def scene(patches: PodPatches) -> None:
        send(patches, patch_with("first", "n1"))
        await asyncio.sleep(0.01)
        send(patches, patch_with("", ""))

    api = write_patches(Api([BUSY]), scene)
    assert api.written == [(RETRY_SECONDS_MIN, "first", "")]


def test_a_patch_is_dropped_after_some_tries() -> None:
    async def scene(patches: PodPatches) -> None:
        send(patches, patch_with("first"))

    api = write_patches(Api([BUSY] * 10), scene)
    assert (api.tries, api.written, api.dropped) == (STATUS_PATCH_TRIES, [], ["busy"])

    async def again(patches: PodPatches) -> None:
        send(patches, patch_with("first"))
        await asyncio.sleep(10)
        send(patches, patch_with("second"))

    api = write_patches(Api([BUSY] * STATUS_PATCH_TRIES), again)
    assert [message for _, message, _ in api.written] == ["second"]
    assert api.dropped == ["busy"]


def test_a_patch_of_a_deleted_pod_is_dropped() -> None:
    async def scene(patches: PodPatches) -> None:
        send(patches, patch_with("first"))

    assert write_patches(Api([ports.NotFoundError("gone")] * 9), scene).tries == 1


def test_a_binding_waits_only_for_the_current_patch_request_of_its_pod() -> None:
    settled_at: list[float] = []

    async def scene(patches: PodPatches) -> None:
        send(patches, patch_with("refused", "n1"))
        await asyncio.sleep(1)
        send(patches, patch_with("refused again"))
        await patches.settle("u")
        settled_at.append(asyncio.get_running_loop().time())
        await patches.settle("nobody")

    api = write_patches(Api([BUSY], seconds=3.0), scene)
    assert settled_at == [3.0]
    # The nomination is written, and the message of the refusal is dropped.
    assert [(message, where) for _, message, where in api.written] == [("", "n1")]


# ---- the runner -----------------------------------------------------------------------------


class Waits(PermitPlugin):
    name = "Waits"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Any:
        return Status(Code.WAIT), 60.0


def test_an_allow_outside_of_any_call_takes_effect_at_once() -> None:
    async def scene(world: World) -> None:
        world.add_node("n1")
        world.add_pod("p")
        await world.until(7)
        waiting = world.waiting("p")
        assert waiting is not None
        waiting.allow("Waits")
        await world.until(7)

    assert play(scene, plugins=["Waits"], classes=[Waits]).bound("p") == (7.0, "n1")


class Wakes(PostBindPlugin):
    """Emits an event and then stays in PostBind for 100 seconds."""

    name = "Wakes"

    async def post_bind(self, state: CycleState, pod: PodInfo, node_name: str, port: Any) -> None:
        self.handle.emit(pod, "Normal", "Started", "Starting", "sleeping for 100 s")
        await port.sleep(100)


@scenario(plugins=["Wakes"], classes=[Wakes])
async def test_an_event_that_a_plugin_emits_in_post_bind_is_written_at_once(world: World) -> None:
    world.add_node("n1")
    world.add_pod("p")
    await world.until(1)
    assert world.events("p", "Started") == ["sleeping for 100 s"]
    assert world.events("p", "Scheduled") == []
    await world.until(100)
    assert world.events("p", "Scheduled") != []


# ---- runs against a cluster whose calls may fail ----------------------------------------------

NODE_MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
POD_MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"schedulerName": PROFILE, "containers": [{"name": "c", "image": "app"}]},
}
SERVICE_MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "default"},
}


@dataclass
class Outcome:
    """The state after a run of some seconds."""

    scheduler: Scheduler
    cluster: EmbeddedCluster
    notes: list[str]
    #: Names of the tasks that still exist after the run.
    open_tasks: list[str]

    @property
    def node_name(self) -> str:
        (stored,) = self.cluster.objects(POD)
        return stored.content["spec"].get("nodeName", "")

    @property
    def bug_count(self) -> float:
        return self.scheduler.metrics.value("bayplan_bugs_total")


def run_scheduler(
    seconds: float = 1.0,
    calls: Mapping[str, Any] | None = None,
    prepare: Callable[[Scheduler], None] = lambda scheduler: None,
    **options: Any,
) -> Outcome:
    """Run a scheduler with one node and one pod. ``options``: fields of Setup."""
    clock, journal, setup = ManualClock(), MemorySink(), Setup(**options)
    registry = Registry()
    for each in setup.classes:
        registry.add(each)
    scheduler = Scheduler(
        config_from(config_dict(setup)),
        registry,
        clock,
        journal=Journal([journal]),
        raise_bugs=setup.raise_bugs,
    )
    prepare(scheduler)
    cluster = EmbeddedCluster(clock)
    for content in (SERVICE_MANIFEST, NODE_MANIFEST, POD_MANIFEST):
        cluster.create(content)
    result = Outcome(scheduler, cluster, [], [])

    async def main() -> None:
        port: Any = ReplacedCalls(cluster, **(calls or {}))
        task = asyncio.get_running_loop().create_task(Runner(scheduler, port).run())
        await asyncio.wait([task], timeout=seconds)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        mine = asyncio.current_task()
        result.open_tasks = [each.get_name() for each in asyncio.all_tasks() if each is not mine]

    run(main(), clock)
    result.notes = [r.text for r in journal.records if isinstance(r, NoteRecord)]
    return result


def failing(problem: Exception) -> Any:
    async def call(*_: Any) -> None:
        raise problem

    return call


def test_kinds_that_plugins_read_are_listed_before_the_first_attempt() -> None:
    counts: list[int] = []
    handles: list[Any] = []

    def setup(self: Any) -> None:
        handles.append(self.handle)

    def looks(state: Any, pod: Any, info: Any) -> None:
        counts.append(len(handles[0].objects("v1 Service").list()))

    plugin = answering("Looks", setup=setup, filter_node=looks, kinds=("v1 Service",))
    assert run_scheduler(plugins=["Looks"], classes=[plugin]).node_name == "n1"
    assert counts == [1]


@pytest.mark.parametrize("problem", [BUSY, ports.OutcomeUnknownError("no answer")])
def test_events_that_cannot_be_written_are_dropped(problem: Exception) -> None:
    result = run_scheduler(calls={"create_event": failing(problem)})
    assert (result.cluster.objects(EVENT), result.bug_count, result.node_name) == ([], 0, "n1")


def test_an_unexpected_exception_in_a_call_ends_a_simulation() -> None:
    with pytest.raises(ValueError, match="what is this"):
        run_scheduler(calls={"create_event": failing(ValueError("what is this"))})


def test_an_unexpected_exception_in_a_call_is_counted_by_a_live_scheduler() -> None:
    calls = {"create_event": failing(ValueError("what is this"))}
    result = run_scheduler(calls=calls, raise_bugs=False)
    assert (result.bug_count, result.node_name) == (1, "n1")
    assert any("what is this" in note for note in result.notes)


def test_a_binding_cycle_that_raises_does_not_lose_the_pod() -> None:
    """No binding cycle should raise. After one that does, the pod is tried again."""
    failures = [ValueError("what is this")]

    def prepare(scheduler: Scheduler) -> None:
        take = scheduler.take_effects

        def spoiled() -> list[Any]:
            return [spoil(effect) for effect in take()]

        scheduler.take_effects = spoiled

    def spoil(effect: Any) -> Any:
        if isinstance(effect, ports.BindPod) and failures:
            return ports.BindPod(effect.pod, effect.node_name, failing(failures.pop()))
        return effect

    result = run_scheduler(seconds=3.0, prepare=prepare, raise_bugs=False)
    assert (result.bug_count, result.node_name) == (1, "n1")


def test_a_call_cancelled_before_it_began_leaves_no_unawaited_coroutine() -> None:
    """Python warns about a coroutine that is never awaited; pytest turns warnings into errors."""

    async def never() -> None: ...

    call, clock = never(), ManualClock()

    async def main() -> None:
        runner = World(Setup(), clock).runner
        runner._spawn(call)
        await runner._stop()

    run(main(), clock)
    assert inspect.getcoroutinestate(call) == inspect.CORO_CLOSED


def check_report(*, is_delivered: bool) -> list[str]:
    """The report of a check that begins before the scheduler receives the event of a node.

    ``is_delivered``: the event arrives during the check.
    """

    async def main() -> list[str]:
        clock = ManualClock()
        cluster = EmbeddedCluster(clock)
        scheduler = Scheduler(config_from(config_dict(Setup())), Registry(), clock)
        stored = cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        checking = asyncio.get_running_loop().create_task(check_cache(scheduler, cluster))
        await asyncio.sleep(CHECK_AGAIN_SECONDS / 2)
        if is_delivered:
            scheduler.handle(ports.WatchEvent(ports.EventType.ADDED, NODE, stored.object))
        return await checking

    return run(main(), ManualClock())


def test_a_check_finds_objects_that_the_scheduler_does_not_know() -> None:
    assert check_report(is_delivered=False) == ["node n1 is in the API and not in the cache"]


def test_a_check_does_not_report_changes_in_transit() -> None:
    assert check_report(is_delivered=True) == []


def test_cancelling_the_runner_cancels_its_tasks() -> None:
    result = run_scheduler(plugins=["Wakes"], classes=[Wakes])
    assert (result.node_name, result.open_tasks) == ("n1", [])


@pytest.mark.parametrize("turns", range(6))
def test_a_cancellation_together_with_an_item_is_not_lost(turns: int) -> None:
    """The runner waits for a deadline. The cancellation comes at each step between the item's
    arrival and its receiver."""
    clock = ManualClock()
    scheduler = Scheduler(config_from(config_dict(Setup())), Registry(), clock)
    cluster = EmbeddedCluster(clock)
    cluster.create(POD_MANIFEST)

    async def main() -> bool:
        task = asyncio.get_running_loop().create_task(Runner(scheduler, cluster).run())
        await settled()
        # A pod that fits on no node has a deadline for its next attempt.
        assert scheduler.next_deadline_seconds() is not None
        cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "full"}})
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await settled()
        return task.cancelled()

    assert run(main(), clock)


# ---- pause, resume and drain ----------------------------------------------------------------


@scenario()
async def test_a_paused_runner_receives_events_and_tries_no_pod(world: World) -> None:
    world.runner.pause()
    world.add_node("n1")
    world.add_pod("p")
    await world.until(400)
    assert world.attempts("p") == []
    assert not differences(world.scheduler, world.cluster)
    world.runner.resume()
    await world.until(400)
    assert world.bound("p") == (400, "n1")


@scenario()
async def test_a_pod_that_another_scheduler_bound_is_not_tried(world: World) -> None:
    world.runner.pause()
    world.add_node("n1")
    world.add_pod("p")
    await world.until(1)
    await world.cluster.bind(pod_info(api_pod("p", uid=world.uid("p"))), "n1")
    await world.until(2)
    world.runner.resume()
    await world.until(3)
    assert world.attempts("p") == []


class SlowBinding:
    """Delays bindings until ``may_bind``; passes every other call to the cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.may_bind = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self.may_bind.wait()
        await self._cluster.bind(pod, node_name)


def test_a_runner_is_drained_when_bindings_have_ended_and_their_events_are_written() -> None:
    clock, registry = ManualClock(), Registry()
    scheduler = Scheduler(config_from(config_dict(Setup())), registry, clock)
    cluster = EmbeddedCluster(clock)
    for content in (SERVICE_MANIFEST, NODE_MANIFEST, POD_MANIFEST):
        cluster.create(content)

    async def main() -> None:
        slow = SlowBinding(cluster)
        port: Any = slow
        runner = Runner(scheduler, port)
        running = asyncio.get_running_loop().create_task(runner.run())
        await settled()
        assert runner.is_synced
        runner.pause()
        drained = asyncio.get_running_loop().create_task(runner.drained())
        await settled()
        assert not drained.done()
        assert scheduler.metrics.value("scheduler_goroutines", operation="binding") == 1
        slow.may_bind.set()
        await drained
        # The sample also exists while no binding runs.
        assert (
            scheduler.metrics.registry.get_sample_value(
                "scheduler_goroutines", {"operation": "binding"}
            )
            == 0
        )
        (event,) = cluster.objects(EVENT)
        assert event.content["reason"] == "Scheduled"
        running.cancel()

    run(main(), clock)


def test_a_runner_that_has_not_read_all_kinds_has_nothing_to_drain() -> None:
    clock = ManualClock()
    cluster = EmbeddedCluster(clock)
    cluster.create(NODE_MANIFEST)

    async def list_without_pods(kind: str) -> ports.Listing:
        if kind == POD:
            await asyncio.Event().wait()
        return await cluster.list(kind)

    async def main() -> None:
        port: Any = ReplacedCalls(cluster, list=list_without_pods)
        runner = Runner(Scheduler(config_from(config_dict(Setup())), Registry(), clock), port)
        running = asyncio.get_running_loop().create_task(runner.run())
        await settled()
        runner.pause()
        draining = asyncio.get_running_loop().create_task(runner.drained())
        await settled()
        assert draining.done()
        running.cancel()

    run(main(), clock)


# ---- extenders ------------------------------------------------------------------------------


far = partial(FakeExtender, selects=lambda pod: pod.name.startswith("far"))


def two_nodes_and(*pods: str) -> Callable[[World], Awaitable[None]]:
    async def scene(world: World) -> None:
        for name in ("n1", "n2"):
            world.add_node(name)
        for name in pods:
            world.add_pod(name)
        await world.until(10)

    return scene


def test_other_pods_are_bound_during_an_extender_call() -> None:
    calls: list[ports.AskExtender] = []

    async def ask(effect: ports.AskExtender) -> ports.ExtenderAnswer:
        calls.append(effect)
        await asyncio.sleep(2)
        return ports.ExtenderAnswer(node_names=frozenset({"n2"}))

    world = play(two_nodes_and("far", "near"), extenders=[far()], asks={"far": ask})
    assert world.bound("far") == (2.0, "n2")
    bound = world.bound("near")
    assert bound is not None
    assert bound[0] == 0.0
    assert [(effect.pod.name, effect.verb) for effect in calls] == [("far", "filter")]


def test_a_node_that_changed_during_an_extender_call_is_evaluated_again() -> None:
    """S-16, part F: at 1 s n2 leaves the tier that the pod selects."""

    async def ask(effect: ports.AskExtender) -> ports.ExtenderAnswer:
        await asyncio.sleep(2)
        return ports.ExtenderAnswer(node_names=frozenset({"n1", "n2"}))

    async def scene(world: World) -> None:
        for name in ("n1", "n2", "n3"):
            world.add_node(name, labels={"tier": "a"})
        world.add_pod("far", node_selector={"tier": "a"})
        await world.until(1)
        world.change_node("n2", labels={"tier": "b"})
        await world.until(3)

    world = play(scene, plugins=["NodeAffinity"], extenders=[far()], asks={"far": ask})
    assert world.bound("far") == (2.0, "n1")


def test_an_attempt_continues_with_every_event_that_came_before_it() -> None:
    """The answer and the pod's deletion arrive at the same time, the answer first."""
    worlds: list[World] = []

    async def ask(effect: ports.AskExtender) -> ports.ExtenderAnswer:
        await asyncio.sleep(2)
        worlds[0].delete_pod("far")
        return ports.ExtenderAnswer(node_names=frozenset({"n1", "n2"}))

    async def scene(world: World) -> None:
        worlds.append(world)
        world.add_node("n1")
        world.add_node("n2")
        world.add_pod("far")
        await world.until(3)

    world = play(scene, extenders=[far()], asks={"far": ask})
    assert world.attempts("far") == []


@pytest.mark.parametrize(
    ("asks", "message"),
    [
        pytest.param({}, "extender far: it is not connected", id="no call function"),
        pytest.param(
            {"far": failing(OSError("refused"))},
            "extender far: OSError: refused",
            id="the call raises",
        ),
    ],
)
def test_an_extender_call_always_gets_an_answer(asks: Any, message: str) -> None:
    world = play(two_nodes_and("far"), extenders=[far()], asks=asks)
    assert world.bound("far") is None
    assert (world.reason("far"), world.message("far")) == ("SchedulerError", message)
    first, second, *_ = world.attempt_times("far")
    assert first == 0
    assert 1 <= second <= 2


def test_an_ignorable_extender_that_does_not_answer_is_skipped() -> None:
    world = play(two_nodes_and("far"), extenders=[far(ignorable=True)], asks={})
    bound = world.bound("far")
    assert bound is not None
    assert bound[0] == 0.0


def test_a_kind_that_is_watched_later_is_listed() -> None:
    """Members of a group wait until the scheduler watches the kind of the group."""
    kind = "scheduling.x-k8s.io/v1alpha1 PodGroup"
    clock = ManualClock()
    setup = Setup(plugins=["NodeResourcesFit"])
    scheduler = Scheduler(
        config_from(config_dict(setup)), Registry(), clock, pod_group_kinds=(), raise_bugs=True
    )
    cluster = EmbeddedCluster(clock)
    for content in (NODE_MANIFEST, POD_MANIFEST):
        cluster.create(content)
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    meta = {"name": "member", "namespace": "default", "labels": label}
    cluster.create({**POD_MANIFEST, "metadata": meta})
    group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1}}
    cluster.create({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", **group})

    def node_of(name: str) -> str | None:
        return next(
            stored.content["spec"].get("nodeName")
            for stored in cluster.objects(POD)
            if stored.content["metadata"]["name"] == name
        )

    async def main() -> None:
        runner = Runner(scheduler, cluster)
        task = asyncio.get_running_loop().create_task(runner.run())
        await asyncio.wait([task], timeout=5)
        assert node_of("member") is None
        assert scheduler.awaited_api_groups == {"scheduling.x-k8s.io"}
        runner.follow(kind)
        await asyncio.wait([task], timeout=5)
        assert node_of("member") is not None
        assert not scheduler.awaited_api_groups
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(main(), clock)
