"""SchedulingGates: gated pods, and the event that admits them."""

from bayplan.framework.events import UPDATE, ActionType, QueueingHint
from bayplan.framework.status import Code
from bayplan.plugins.scheduling_gates import SchedulingGates
from bayplan.testing import pod
from tests.plugins.row_kit import NO_HANDLE, hint, registered

PLUGIN = SchedulingGates(None, NO_HANDLE)


def test_a_pod_without_gates_may_enter() -> None:
    assert PLUGIN.pre_enqueue(pod()) is None
    assert PLUGIN.pre_enqueue(pod(gates=[])) is None


def test_a_gated_pod_waits_for_all_its_gates_in_their_order() -> None:
    status = PLUGIN.pre_enqueue(pod(gates=["b/c", "a"]))
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("waiting for scheduling gates: [b/c a]",)


def test_the_removal_of_its_gates_admits_a_pod() -> None:
    assert registered(PLUGIN) == [("TargetPod", "UpdatePodSchedulingGatesEliminated", True)]
    gated, free = pod(gates=["a"]), pod()
    eliminated = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    assert hint(PLUGIN, ("TargetPod", eliminated), free, gated, free) is QueueingHint.QUEUE
    assert hint(PLUGIN, ("AssignedPod", eliminated), free, gated, free) is None
    assert hint(PLUGIN, ("TargetPod", UPDATE), free, gated, free) is None
