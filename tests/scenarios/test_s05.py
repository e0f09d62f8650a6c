"""S-05: Reserve, Permit, Bind."""

from collections.abc import Sequence
from typing import Any

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.plugin import (
    BindPlugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from bayplan.framework.status import SKIP, Code, Status, unschedulable
from bayplan.ports import BindPort
from bayplan.state.pods import PodInfo
from tests.framework.answering import answering
from tests.scenarios.world import World, play, scenario

FIT = "NodeResourcesFit"
Log = list[tuple[str, str]]


# ---- parts A to C: Permit -------------------------------------------------------------------


def on(resource: EventResource, action: ActionType) -> list[ClusterEventWithHint]:
    return [ClusterEventWithHint(ClusterEvent(resource, action))]


def holding(plugin_name: str, seconds: float) -> type[Any]:
    """A plugin that lets pod p wait; all other pods pass."""

    def permit(state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        return (Status(Code.WAIT), seconds) if pod.name == "p" else (None, 0.0)

    events = on(EventResource.STORAGE_CLASS, ActionType.ADD)
    return answering(plugin_name, permit=permit, events_to_register=events)


A, B = holding("A", 5.0), holding("B", 8.0)
PERMITS = {"plugins": [FIT, "A", "B"], "classes": [A, B]}


async def p_and_then_q(world: World) -> None:
    world.add_node("n1", cpu=4, memory="8Gi")
    world.add_pod("p", cpu=3, memory="1Gi")
    await world.until(0)
    world.add_pod("q", cpu=2, memory="1Gi")
    await world.until(0)


def allow(world: World, plugin: str) -> None:
    waiting = world.waiting("p")
    assert waiting is not None
    waiting.allow(plugin)


@scenario(**PERMITS)
async def test_a_pod_at_permit_keeps_its_node_until_the_last_plugin_times_out(world: World) -> None:
    """Part A."""
    await p_and_then_q(world)
    await world.until(2)
    allow(world, "A")
    await world.until(3)
    waiting = world.waiting("p")
    assert waiting is not None
    assert waiting.pending_plugins == ["B"]
    await world.until(7.9)
    assert world.requested("n1") == 3000
    assert world.message("q") == "0/1 nodes are available: 1 Insufficient cpu."
    await world.until(8)
    assert world.waiting("p") is None
    assert world.unschedulable_plugins("p") == {"B"}
    assert world.bound("p") is None
    first = world.attempts("p")[0]
    assert (first.at_seconds, first.result) == (0.0, "waiting")
    assert first.message == "waits at Permit for A, B"
    assert "rejected due to timeout after waiting 8s at plugin B" in world.message("p")
    assert world.bound("q") == (8.0, "n1")
    assert world.incoming("AssignedPodDelete") == {"active": 1}


@scenario(**PERMITS)
async def test_the_first_deadline_counts_if_no_plugin_allows(world: World) -> None:
    await p_and_then_q(world)
    await world.until(5)
    assert world.unschedulable_plugins("p") == {"A"}
    assert "rejected due to timeout after waiting 5s at plugin A" in world.message("p")
    assert world.bound("q") == (5.0, "n1")


@scenario(**PERMITS)
async def test_a_pod_is_bound_when_the_last_plugin_allows_it(world: World) -> None:
    """Part B."""
    await p_and_then_q(world)
    assert world.nominated("p") == "n1"
    await world.until(2)
    allow(world, "A")
    await world.until(3)
    allow(world, "B")
    await world.until(3)
    assert world.bound("p") == (3.0, "n1")
    assert world.bound("q") is None
    waits = "scheduler_permit_wait_duration_seconds"
    assert world.metric(f"{waits}_count", result="Success") == 1
    assert world.metric(f"{waits}_sum", result="Success") == 3.0
    attempts = "scheduler_scheduling_attempt_duration_seconds_sum"
    assert world.metric(attempts, result="scheduled", profile="bayplan") == 3.0


@scenario(**PERMITS)
async def test_a_waiting_pod_is_rejected_once(world: World) -> None:
    """Part C."""
    await p_and_then_q(world)
    await world.until(2)
    handle, uid = world.plugin("A").handle, world.uid("p")
    answers = [handle.reject_waiting_pod(uid), handle.reject_waiting_pod(uid)]
    assert answers == [True, False]
    await world.until(2)
    assert world.unschedulable_plugins("p") == {"A"}
    assert world.bound("q") == (2.0, "n1")
    assert world.bound("p") is None
    # The nomination of p is cleared.
    assert world.nominated("p") == ""


Refuses = answering("Refuses", permit=(unschedulable("not this one"), 0.0))


@scenario(plugins=[FIT, "A", "Refuses"], classes=[A, Refuses])
async def test_a_rejection_wins_over_a_wait(world: World) -> None:
    await p_and_then_q(world)
    assert world.waiting("p") is None
    assert world.requested("n1") == 0
    assert world.message("p") == "0/1 nodes are available: 1 not this one."


@scenario(**PERMITS)
async def test_a_pod_deleted_at_permit_releases_its_node_at_once(world: World) -> None:
    await p_and_then_q(world)
    await world.until(2)
    world.delete_pod("p")
    await world.until(2)
    assert world.bound("q") == (2.0, "n1")
    # As upstream, an event reports the attempt that the deletion ended.
    (text,) = world.events("p", "FailedScheduling")
    assert "the pod is being deleted" in text


# ---- part D: Reserve ------------------------------------------------------------------------


def test_a_failed_reserve_is_undone_in_reverse_order() -> None:
    log: Log = []
    answers = iter([unschedulable("no stock")])

    def reserving(name: str, reserve: Any = None) -> type[Any]:
        events = on(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
        return answering(name, log, reserve=reserve, events_to_register=events)

    async def scene(world: World) -> None:
        world.add_node("n1", cpu=4, memory="8Gi")
        world.add_pod("p", cpu=3, memory="1Gi")
        await world.until(0)
        assert [each for each in log if each[1] != "events_to_register"] == [
            ("R1", "reserve"),
            ("R2", "reserve"),
            ("R3", "unreserve"),
            ("R2", "unreserve"),
            ("R1", "unreserve"),
        ]
        log.clear()
        assert world.message("p") == "0/1 nodes are available: 1 no stock."
        assert world.requested("n1") == 0
        await world.until(2)
        world.change_node("n1", labels={"colour": "blue"})
        await world.until(2)

    classes = [reserving("R1"), reserving("R2", lambda *_: next(answers, None)), reserving("R3")]
    world = play(scene, plugins=[FIT, "R1", "R2", "R3"], classes=classes)
    assert world.bound("p") == (2.0, "n1")
    assert log == [("R1", "reserve"), ("R2", "reserve"), ("R3", "reserve")]


# ---- part E: Bind ---------------------------------------------------------------------------


def binding(plugin_name: str, log: Log, *, skips: bool) -> type[BindPlugin]:
    class Binds(BindPlugin):
        name = plugin_name

        async def bind(
            self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
        ) -> Status | None:
            log.append((self.name, node_name))
            if skips:
                return SKIP
            await port.bind(pod, node_name)
            return None

    return Binds


def recording_post_bind(log: Log, *, raises: bool = False) -> type[PostBindPlugin]:
    class Tells(PostBindPlugin):
        name = "Tells"

        async def post_bind(
            self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
        ) -> None:
            written = await port.get_pod(pod.namespace, pod.name)
            log.append(("Tells", f"{node_name}, bound to {written.spec.node_name}"))
            if raises:
                raise RuntimeError("nobody listens")

    return Tells


async def one_pod(world: World) -> None:
    world.add_node("n1", cpu=4, memory="8Gi")
    world.add_pod("p", cpu=3, memory="1Gi")
    await world.until(0)


def test_the_first_binder_that_does_not_skip_binds() -> None:
    log: Log = []
    classes = [
        binding("B1", log, skips=True),
        binding("B2", log, skips=False),
        recording_post_bind(log),
    ]
    binders = ["B1", "B2", "DefaultBinder"]
    world = play(one_pod, plugins=[FIT, "Tells"], classes=classes, binders=binders)
    assert world.bound("p") == (0.0, "n1")
    # A call of DefaultBinder would have caused a conflict.
    assert log == [("B1", "n1"), ("B2", "n1"), ("Tells", "n1, bound to n1")]
    assert world.events("p", "Scheduled") == ["Successfully assigned default/p to n1"]


def test_a_pod_that_every_binder_skips_is_not_bound() -> None:
    log: Log = []
    classes = [binding("B1", log, skips=True), binding("B2", log, skips=True)]

    async def scene(world: World) -> None:
        await one_pod(world)
        assert world.requested("n1") == 0
        await world.until(2)

    world = play(scene, plugins=[FIT], classes=classes, binders=["B1", "B2"])
    assert world.bound("p") is None
    assert world.reason("p") == "SchedulerError"
    assert "no bind plugin took pod default/p" in world.message("p")
    first, second = world.attempt_times("p")
    assert first == 0.0
    assert 1 <= second <= 2


def test_an_exception_in_post_bind_changes_nothing() -> None:
    log: Log = []
    world = play(one_pod, plugins=[FIT, "Tells"], classes=[recording_post_bind(log, raises=True)])
    assert world.bound("p") == (0.0, "n1")
    assert len(log) == 1
    assert any("nobody listens" in note for note in world.notes("default/p"))
    assert world.metric("bayplan_plugin_failures_total", plugin="Tells") == 1


# ---- PreBind --------------------------------------------------------------------------------


def preparing(log: Log, answers: Sequence[Status | Exception | None]) -> type[PreBindPlugin]:
    """A plugin that returns the next of `answers` after one second."""
    unused_answers = list(answers)

    class Prepares(PreBindPlugin, ReservePlugin):
        name = "Prepares"

        def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
            return None

        def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
            log.append(("unreserve", node_name))

        async def pre_bind(
            self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
        ) -> Status | None:
            await port.sleep(1.0)
            log.append(("pre_bind", node_name))
            answer = unused_answers.pop(0) if unused_answers else None
            if isinstance(answer, Exception):
                raise answer
            return answer

    return Prepares


@pytest.mark.parametrize(
    ("answer", "reason", "message", "blamed"),
    [
        pytest.param(
            unschedulable("no disk"),
            "Unschedulable",
            "no disk",
            set(),
            id="a rejection blames no plugin and is retried after a backoff",
        ),
        pytest.param(
            OSError("no disk"),
            "SchedulerError",
            'running PreBind plugin "Prepares": OSError: no disk',
            set(),
            id="an exception is an error",
        ),
    ],
)
def test_a_failed_pre_bind_undoes_the_placement(
    answer: Status | Exception, reason: str, message: str, blamed: set[str]
) -> None:
    log: Log = []

    async def scene(world: World) -> None:
        await one_pod(world)
        # PreBind takes time, so that the node is nominated.
        assert world.nominated("p") == "n1"
        assert world.requested("n1") == 3000
        await world.until(1)
        assert world.reason("p") == reason
        assert world.message("p").startswith(message)
        assert log == [("pre_bind", "n1"), ("unreserve", "n1")]
        assert world.requested("n1") == 0
        assert world.unschedulable_plugins("p") == blamed
        assert world.nominated("p") == ""
        await world.until(5)

    world = play(scene, plugins=[FIT, "Prepares"], classes=[preparing(log, [answer])])
    bound = world.bound("p")
    assert bound is not None
    # The backoff lasts until 2 s, the flush runs within a second, and PreBind takes a second.
    assert 3 <= bound[0] <= 4
