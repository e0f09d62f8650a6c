"""Evictions: the writes, their order, and when the pod is tried again."""

import pytest

from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.engine.binding import PodInPreBind
from bayplan.engine.waiting import PodWaitingOnPermit
from bayplan.framework.status import Code, Status
from bayplan.ports import ApiError, NotFoundError, OutcomeUnknownError
from bayplan.testing import node, pod
from tests.kit.ports import RecordingPort
from tests.plugins.preemption_kit import Scene, scene

HIGH = pod("p", cpu=3, priority=9)


def three_victims() -> Scene:
    placed = [pod(f"v{index}", cpu=1, node="n1", priority=3 - index) for index in range(3)]
    over = scene(node("n1", cpu=3), *placed)
    assert over.attempt(HIGH).nominated == "n1"
    return over


def test_victims_get_a_condition_and_the_last_one_is_deleted_last() -> None:
    over = three_victims()
    port = over.perform(RecordingPort())
    assert port.writes == [f"{verb} v{index}" for index in range(3) for verb in ("patch", "delete")]
    condition = port.patches[0].condition
    assert condition is not None
    assert (condition.type, condition.status) == ("DisruptionTarget", "True")
    assert condition.reason == "PreemptionByScheduler"
    expected = "default-scheduler: preempting to accommodate a higher priority pod"
    assert condition.message == expected
    assert [event.regarding.name for event in over.cluster.emitted] == ["v0", "v1", "v2"]
    event = over.cluster.emitted[0]
    assert (event.type, event.reason, event.action) == ("Normal", "Preempted", "Preempting")
    assert event.note == f"Preempted by pod {HIGH.uid} on node n1"


def test_the_last_victim_is_deleted_after_all_other_victims() -> None:
    over = three_victims()
    assert [key for key, _ in over.cluster.writes] == ["default/v0", "default/v1"]


def test_after_a_failed_eviction_the_last_victim_stays_and_the_pod_is_tried_again() -> None:
    over = three_victims()
    port = over.perform(RecordingPort(v1=ApiError(403, "Forbidden", "no")))
    assert port.deleted == ["default/v0"]
    assert over.cluster.activated == [HIGH]
    assert over.plugin.pre_enqueue(HIGH) is None
    metrics = over.cluster.metrics
    counted = "scheduler_preemption_goroutines_execution_total"
    assert metrics.value(counted, result="error") == 1


@pytest.mark.parametrize("problem", [OutcomeUnknownError("?"), ApiError(500, "Error", "no")])
def test_after_a_failed_last_eviction_the_pod_is_tried_again(problem: Exception) -> None:
    over = three_victims()
    over.perform(RecordingPort(v2=problem))
    assert over.cluster.activated == [HIGH] and over.plugin.pre_enqueue(HIGH) is None


def test_a_victim_that_is_deleted_already_is_not_a_failure() -> None:
    over = three_victims()
    over.perform(RecordingPort(v0=NotFoundError("gone")))
    assert over.cluster.activated == []
    assert [event.regarding.name for event in over.cluster.emitted] == ["v1", "v2"]


def test_a_preemptor_that_was_rejected_meanwhile_is_tried_again() -> None:
    over = three_victims()
    assert over.plugin.pre_enqueue(HIGH) is not None
    over.perform()
    assert over.cluster.activated == [HIGH]


def test_a_victim_that_waits_at_permit_returns_to_the_queue() -> None:
    over = scene(node("n1", cpu=3), pod("v", cpu=3, node="n1"))
    ended: list[Status | None] = []
    waiting_pod = PodWaitingOnPermit(
        pod("v"), "n1", 0.0, {"Other": 9.0}, lambda _, status: ended.append(status)
    )
    over.cluster.waiting.hold(waiting_pod)
    over.attempt(HIGH)
    port = over.perform()
    assert port.deleted == []
    assert [s.message for s in ended if s is not None] == ["waiting on permit for pod: preempted"]
    assert [s.code for s in ended if s is not None] == [Code.ERROR]
    assert over.cluster.emitted[0].note.endswith("on node n1 (in kube-scheduler memory).")
    assert over.cluster.activated == [HIGH]


def test_a_victim_in_pre_bind_returns_to_the_queue() -> None:
    over = scene(node("n1", cpu=3), pod("v", cpu=3, node="n1"))
    victim = PodInPreBind()
    over.cluster.pods_in_pre_bind[pod("v").uid] = victim
    over.attempt(HIGH)

    class EndingPort(RecordingPort):
        async def sleep(self, seconds: float) -> None:
            assert not over.cluster.activated
            victim.end()

    port = over.perform(EndingPort())
    assert (port.deleted, victim.cause) == ([], "preempted by DefaultPreemption")
    assert over.cluster.emitted[0].note.endswith("on node n1 (in kube-scheduler memory).")
    assert over.cluster.activated == [HIGH]


def test_a_victim_whose_pre_bind_has_ended_is_deleted() -> None:
    over = scene(node("n1", cpu=3), pod("v", cpu=3, node="n1"))
    victim = PodInPreBind()
    over.cluster.pods_in_pre_bind[pod("v").uid] = victim
    assert victim.mark_prebound()
    over.attempt(HIGH)
    assert over.perform().deleted == ["default/v"]
    assert over.cluster.emitted[0].note == f"Preempted by pod {HIGH.uid} on node n1"


def test_victims_with_a_deletion_timestamp_are_not_evicted_again() -> None:
    going = pod("v", cpu=3, node="n1", terminating=True)
    over = scene(node("n1", cpu=3), going)
    assert over.attempt(HIGH).nominated == "n1"
    assert over.cluster.writes == [] and over.plugin.pre_enqueue(HIGH) is None


def test_pods_of_lower_priority_lose_their_nomination_to_the_node() -> None:
    over = scene(node("n1", cpu=3), pod("v", cpu=3, node="n1"))
    over.nominate(
        pod("low", priority=1, cpu=1, nominated_node="n1"),
        pod("high", priority=99, cpu=0, nominated_node="n1"),
    )
    over.attempt(HIGH)
    port = over.perform()
    cleared = [(p.name, p.nominated_node_name) for p in port.patches if p.condition is None]
    assert cleared == [("low", "")]


# ---- in older versions -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code", "note", "activated"),
    [
        (KubernetesVersion.V1_35, Code.UNSCHEDULABLE, "on node n1", False),
        (KubernetesVersion.V1_36, Code.ERROR, "(in kube-scheduler memory).", False),
        (NEWEST, Code.ERROR, "(in kube-scheduler memory).", True),
    ],
)
def test_a_victim_at_permit_is_rejected_before_1_36(
    version: KubernetesVersion, code: Code, note: str, activated: bool
) -> None:
    over = scene(node("n1", cpu=3), pod("v", cpu=3, node="n1"), kubernetes=version)
    ended: list[Status | None] = []
    victim = PodWaitingOnPermit(
        pod("v"), "n1", 0.0, {"Other": 9.0}, lambda _, status: ended.append(status)
    )
    over.cluster.waiting.hold(victim)
    over.attempt(HIGH)
    assert over.perform().deleted == []
    assert [status.code for status in ended if status is not None] == [code]
    assert over.cluster.emitted[0].note.endswith(note)
    assert over.cluster.activated == [HIGH] * activated


def test_a_victim_in_pre_bind_is_deleted_before_1_36() -> None:
    version = KubernetesVersion.V1_35
    over = scene(node("n1", cpu=3), pod("v", cpu=3, node="n1"), kubernetes=version)
    victim = over.cluster.pods_in_pre_bind[pod("v").uid] = PodInPreBind()
    over.attempt(HIGH)
    assert over.perform().deleted == ["default/v"]
    assert victim.cause == ""
