"""Preemptions are counted by what attempts chose and by what victims were told."""

from typing import Any

from bayplan.api.objects import POD, Pod, decode
from bayplan.comparison.preemptions import Preemptions
from bayplan.journal import AttemptRecord
from bayplan.state.pods import PodInfo, pod_info
from tests.comparison.kit import pod

#: What it does not look at.
RESULT: Any = None


def attempt(nominated: str) -> AttemptRecord:
    return AttemptRecord(
        at_seconds=0.0,
        pod="default/p",
        uid="p",
        profile="default-scheduler",
        attempt=1,
        result="unschedulable",
        nominated_node=nominated,
    )


def told(name: str, condition: str, reason: str) -> PodInfo:
    content = pod(name)
    content["metadata"]["uid"] = name
    content["status"] = {"conditions": [{"type": condition, "status": "True", "reason": reason}]}
    found = decode(POD, content)
    assert isinstance(found, Pod)
    return pod_info(found)


def test_attempts_that_nominate_are_preemptions() -> None:
    metric = Preemptions()
    for node in ("n1", "", "n2"):
        metric.record(attempt(node))
    assert metric.values(RESULT) == {"preemptions": 2, "preemption_victims": 0}


def test_a_victim_is_counted_once_and_nobody_else_is() -> None:
    metric = Preemptions()
    victim = told("v", "DisruptionTarget", "PreemptionByScheduler")
    metric.pod(None, told("v", "PodScheduled", ""))
    metric.pod(victim, victim)
    metric.pod(victim, victim)
    metric.pod(None, told("drained", "DisruptionTarget", "EvictionByEvictionAPI"))
    metric.pod(victim, None)
    assert metric.values(RESULT) == {"preemptions": 0, "preemption_victims": 1}
