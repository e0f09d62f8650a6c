"""S-03: when a pod is tried again."""

from collections.abc import Callable

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.plugin import (
    EnqueueExtensions,
    PermitPlugin,
    ReservePlugin,
    ScalarFilterPlugin,
)
from bayplan.framework.status import Status, unschedulable
from bayplan.objects.keys import Content
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from tests.scenarios.world import World, play, scenario

FIT = "NodeResourcesFit"
STORAGE_CLASS_ADDED = ClusterEventWithHint(
    ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD)
)


# ---- parts A and B: a rejected pod waits for an event, and for its backoff ------------------


async def a_full_node(world: World) -> None:
    """p does not fit while r exists; at 0.3 s a label changes, at 0.5 s r is deleted."""
    world.add_node("n1", cpu=4, memory="8Gi")
    world.add_pod("r", cpu=3, memory="1Gi", node="n1")
    await world.until(0)
    world.add_pod("p", cpu=2, memory="1Gi")
    await world.until(0)
    assert world.attempt_times("p") == [0.0]
    await world.until(0.3)
    world.change_node("n1", labels={"colour": "blue"})
    await world.until(0.4)
    assert len(world.attempts("p")) == 1
    await world.until(0.5)
    world.delete_pod("r")
    await world.until(3)


def test_a_backoff_runs_to_its_end() -> None:
    world = play(a_full_node, plugins=[FIT])
    bound = world.bound("p")
    assert bound is not None
    assert 1.0 <= bound[0] <= 2.0
    assert [record.attempt for record in world.attempts("p")] == [1, 2]
    assert world.incoming("ScheduleAttemptFailure") == {"unschedulable": 1}
    assert world.incoming("AssignedPodDelete") == {"backoff": 1}
    assert world.incoming("BackoffComplete") == {"active": 1}


def test_an_idle_scheduler_pops_pods_from_backoff() -> None:
    """The gate SchedulerPopFromBackoffQ."""
    world = play(a_full_node, plugins=[FIT], gates={"SchedulerPopFromBackoffQ": True})
    assert world.bound("p") == (0.5, "n1")
    assert world.incoming("ScheduleAttemptFailure") == {"unschedulable": 1}
    assert world.incoming("BackoffComplete") == {}


def test_the_waiting_time_counts_from_the_first_entry() -> None:
    world = play(a_full_node, plugins=[FIT])
    bound = world.bound("p")
    assert bound is not None
    name = "scheduler_pod_scheduling_sli_duration_seconds"
    assert world.metric(f"{name}_sum", attempts="2") == bound[0]
    assert world.metric(f"{name}_count", attempts="2") == 1
    assert world.metric("scheduler_pod_scheduling_attempts_sum") == 2


# ---- part C: gates --------------------------------------------------------------------------


def without_gate(name: str) -> Callable[[Content], None]:
    def change(pod: Content) -> None:
        gates = pod["spec"].pop("schedulingGates")
        left = [gate for gate in gates if gate["name"] != name]
        if left:
            pod["spec"]["schedulingGates"] = left

    return change


@scenario(plugins=["SchedulingGates", FIT])
async def test_a_gated_pod_is_tried_when_its_last_gate_is_removed(world: World) -> None:
    def gated(world: World) -> float:
        return world.metric("scheduler_pending_pods", queue="gated")

    world.add_node("n1", cpu=4, memory="8Gi")
    world.add_pod("g", cpu=1, memory="1Gi", gates=["x", "y"])
    await world.until(0)
    assert gated(world) == 1
    await world.until(5)
    world.change_pod("g", without_gate("y"))
    await world.until(9.9)
    assert gated(world) == 1
    assert world.attempts("g") == []
    await world.until(10)
    world.change_pod("g", without_gate("x"))
    await world.until(10)
    assert gated(world) == 0
    assert world.bound("g") == (10.0, "n1")
    (record,) = world.attempts("g")
    assert record.attempt == 1


# ---- part D: activation ---------------------------------------------------------------------


class Chain(ScalarFilterPlugin, PermitPlugin, EnqueueExtensions):
    """Rejects followers until a leader has passed Permit, which activates the followers."""

    name = "Chain"
    #: Whether a leader activates the follower f.
    stashes = True

    def setup(self) -> None:
        self.is_open = False
        self.refused: dict[str, PodInfo] = {}

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if self.is_open or pod.labels.get("role") != "follower":
            return None
        self.refused[pod.key] = pod
        return unschedulable("closed")

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        if pod.labels.get("role") == "leader":
            self.is_open = True
            if self.stashes:
                state.pods_to_activate["default/f"] = self.refused["default/f"]
        return None, 0.0

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [STORAGE_CLASS_ADDED]


async def a_follower_and_a_leader(world: World) -> None:
    world.add_node("n1", cpu=4, memory="8Gi")
    world.add_pod("f", labels={"role": "follower"})
    await world.until(0)
    assert world.message("f") == "0/1 nodes are available: 1 closed."
    await world.until(0.4)
    world.add_pod("l", labels={"role": "leader"})
    await world.until(0.4)


def test_a_pod_to_activate_is_tried_when_the_activating_cycle_succeeds() -> None:
    """The pod is activated although its backoff lasts until 1 s."""
    world = play(a_follower_and_a_leader, plugins=["Chain"], classes=[Chain])
    assert world.bound("l") == (0.4, "n1")
    assert world.bound("f") == (0.4, "n1")
    assert world.incoming("ForceActivate") == {"active": 1}


@scenario(plugins=["Chain"], classes=[Chain])
async def test_without_an_activation_the_pod_waits_for_the_flush(world: World) -> None:
    world.plugin("Chain").stashes = False
    await a_follower_and_a_leader(world)
    await world.until(300)
    assert world.bound("f") is None
    assert len(world.attempts("f")) == 1
    await world.until(331)
    bound = world.bound("f")
    assert bound is not None
    assert 300 < bound[0] <= 331


class Opener(ReservePlugin):
    """Requests the activation of earlier pods, and then fails the cycle."""

    name = "Opener"

    def setup(self) -> None:
        self.reserved_before: dict[str, PodInfo] = {}

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        state.pods_to_activate |= self.reserved_before
        self.reserved_before[pod.key] = pod
        return unschedulable("not now")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


@scenario(plugins=["Opener"], classes=[Opener])
async def test_an_activation_in_a_failed_cycle_has_no_effect(world: World) -> None:
    world.add_node("n1", cpu=4, memory="8Gi")
    world.add_pod("one")
    await world.until(0)
    world.add_pod("two")
    await world.until(0.9)
    assert world.attempt_times("one") == [0.0]
    assert world.incoming("ForceActivate") == {}


# ---- part E: the flush ----------------------------------------------------------------------


class Never(ScalarFilterPlugin, EnqueueExtensions):
    """Rejects every pod."""

    name = "Never"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return unschedulable("never")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [STORAGE_CLASS_ADDED]


@scenario(plugins=["Never"], classes=[Never])
async def test_no_pod_waits_forever_for_an_event(world: World) -> None:
    world.add_node("n1", cpu=4, memory="8Gi")
    world.add_pod("z")
    await world.until(331)
    first, second = world.attempt_times("z")
    assert first == 0.0
    assert 300 < second <= 331
    assert world.incoming("UnschedulableTimeout") == {"active": 1}
