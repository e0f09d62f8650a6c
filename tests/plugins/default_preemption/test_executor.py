"""The writes for one victim. Their order is tested in test_eviction.py.

Evictions that the attempt waits for: the writes, their order and the result.
"""

from typing import Any

import pytest

from bayplan.framework.preemption import EVICTING, PendingEvictions
from bayplan.plugins.default_preemption.executor import AwaitedEviction, is_preempted
from bayplan.ports import (
    ApiError,
    NotFoundError,
    ObjectReference,
    OutcomeUnknownError,
    PatchPodStatus,
)
from bayplan.testing import node, pod
from tests.kit.ports import RecordingPort
from tests.plugins.preemption_kit import Scene, scene

# ---- writes for one victim -------------------------------------------------------------------


HIGH = pod("p", cpu=3, priority=9)


def test_an_existing_condition_is_not_written_again() -> None:
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status: dict[str, Any] = {"conditions": [{**condition, "message": message}]}
    over = scene(node("n1", cpu=3), pod("v", cpu=3, node="n1", status=status))
    over.attempt(HIGH)
    port = over.perform()
    assert port.patches == [] and port.deleted == ["default/v"]


@pytest.mark.parametrize(
    ("terminating", "reason", "expected"),
    [
        (True, "PreemptionByScheduler", True),
        (True, "EvictionByEvictionAPI", False),
        (False, "PreemptionByScheduler", False),
    ],
)
def test_only_pods_that_are_deleted_for_a_preemption_count(
    terminating: bool, reason: str, expected: bool
) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    new_pod = pod("v", terminating=terminating, status={"conditions": [condition]})
    assert is_preempted(new_pod) is expected


# ---- awaited --------------------------------------------------------------------------------


GROUP = ObjectReference("scheduling.k8s.io/v1beta1 PodGroup", "default", "g", "uid-g")


def three_victims(*going: bool) -> Scene:
    """``going``: whether each pod is terminating already."""
    flags = going or (False,) * 3
    placed = [
        pod(f"v{index}", cpu=1, node="n1", priority=3 - index, terminating=flag)
        for index, flag in enumerate(flags)
    ]
    return scene(node("n1", cpu=3), *placed, gates={"SchedulerAsyncPreemption": False})


def begun(over: Scene) -> list[str]:
    """A list that gets the result when the eviction ends; the eviction has begun on return."""
    result = over.attempt(HIGH)
    expected = "preemption: found a potential placement for pod on node n1, preempting 3 victims"
    assert (result.nominated, result.message) == ("n1", expected)
    assert over.cluster.writes == []
    reports: list[str] = []
    evicting: PendingEvictions = result.cycle.state[EVICTING]
    assert isinstance(evicting, AwaitedEviction)
    evicting.start(reports.append)
    return reports


def test_all_victims_are_evicted_side_by_side() -> None:
    over = three_victims()
    result = begun(over)
    assert [key for key, _ in over.cluster.writes] == ["default/v0", "default/v1", "default/v2"]
    assert over.plugin.pre_enqueue(HIGH) is None
    port = over.perform(RecordingPort())
    assert (port.deleted, result) == (["default/v0", "default/v1", "default/v2"], [""])
    assert [event.regarding.name for event in over.cluster.emitted] == ["v0", "v1", "v2"]
    metrics = over.cluster.metrics
    duration = "scheduler_preemption_execution_duration_seconds_count"
    assert metrics.value(duration, preemptor="pod", result="success") == 1
    counted = "scheduler_preemption_goroutines_execution_total"
    assert metrics.value(counted, result="success") == 0


@pytest.mark.parametrize("problem", [None, ApiError(409, "Conflict", "no")])
def test_a_failed_loss_of_nominations_does_not_fail_the_preemption(
    problem: Exception | None,
) -> None:
    over, seen = three_victims(), list[tuple[str, list[str]]]()

    class Watching(RecordingPort):
        async def patch_pod_status(self, patch: PatchPodStatus) -> None:
            if patch.condition is None:
                seen.append((patch.name, list(result)))
                if problem is not None:
                    raise problem
            await super().patch_pod_status(patch)

    over.nominate(
        pod("low", priority=1, cpu=1, nominated_node="n1"),
        pod("high", priority=99, cpu=0, nominated_node="n1"),
    )
    result = begun(over)
    port = over.perform(Watching())
    assert len(port.deleted) == 3
    assert (seen, result) == ([("low", [])], [""])


@pytest.mark.parametrize("problem", [OutcomeUnknownError("no"), ApiError(500, "Error", "no")])
def test_a_failed_eviction_fails_the_attempt_and_nominations_stay(
    problem: Exception,
) -> None:
    over = three_victims()
    over.nominate(pod("low", priority=1, cpu=1, nominated_node="n1"))
    result = begun(over)
    port = over.perform(RecordingPort(v1=problem))
    assert result == ["preemption: no"]
    assert port.deleted == ["default/v0", "default/v2"]
    assert [patch.name for patch in port.patches if patch.condition is None] == []
    assert over.cluster.activated == []


def test_a_victim_that_is_deleted_already_is_not_a_failure() -> None:
    over = three_victims()
    result = begun(over)
    over.perform(RecordingPort(v0=NotFoundError("gone")))
    assert result == [""]


def test_a_group_waits_too_and_its_attempt_is_counted_when_it_ends() -> None:
    for problems, result, event_type in (
        (RecordingPort(), "Success", ""),
        (RecordingPort(v1=ApiError(403, "Forbidden", "no")), "Error", "pod group preemption: no"),
    ):
        over, events = three_victims(), list[str]()
        victims = list(over.cluster.cache.pods())
        evicting = over.plugin.evict_for_group(GROUP, [HIGH], ["n1"], victims)
        assert evicting is not None and over.cluster.writes == []
        evicting.start(events.append)
        assert events == []
        over.perform(problems)
        assert events == [event_type]
        name = "scheduler_workload_preemption_attempts_total"
        assert over.cluster.metrics.value(name, result=result) == 1
        name = "scheduler_preemption_execution_duration_seconds_count"
        assert over.cluster.metrics.value(name, preemptor="podgroup", result=result.lower()) == 1


def test_if_all_victims_are_terminating_the_attempt_does_not_wait() -> None:
    over = three_victims(True, True, True)
    assert begun(over) == [""]
    assert over.cluster.writes == []
