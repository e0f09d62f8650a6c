"""What a binding and a status patch make of a pod."""

import pytest

from bayplan.adapters.pod_status import bound, patched, why_not_bindable
from bayplan.api.objects import PodCondition
from bayplan.ports import PatchPodStatus
from tests.adapters.manifests import Content, pod

NOW = "2026-01-01T00:00:05Z"
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW}


def test_a_bound_pod_runs_and_is_nominated_no_longer() -> None:
    before = pod(status={"phase": "Pending", "nominatedNodeName": "n2", "conditions": []})
    after = bound(before, "n1", NOW)
    assert after["spec"]["nodeName"] == "n1"
    assert after["status"] == {"phase": "Running", "conditions": [SCHEDULED]}
    assert before["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (pod(), None),
        (pod(nodeName="n1"), 'is already assigned to node "n1"'),
        (pod(deletionTimestamp=NOW), "is being deleted, cannot be assigned to a host"),
        (pod(schedulingGates=[{"name": "a"}]), "has non-empty .spec.schedulingGates"),
    ],
)
def test_why_a_pod_cannot_be_bound(content: Content, why: str | None) -> None:
    assert why_not_bindable(content) == why


def told(status: str, message: str | None = None) -> PatchPodStatus:
    condition = PodCondition(type="PodScheduled", status=status, message=message)
    return PatchPodStatus("default", "web", "", condition)


def test_a_condition_is_added_behind_the_others() -> None:
    ready = {"type": "Ready", "status": "False"}
    assert patched({"conditions": [ready]}, told("True"), NOW)["conditions"] == [ready, SCHEDULED]


def test_a_condition_that_turns_gets_a_new_time() -> None:
    old = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "before"}
    assert patched({"conditions": [old]}, told("True"), NOW)["conditions"] == [SCHEDULED]


def test_a_condition_that_stays_keeps_its_time_and_loses_its_old_words() -> None:
    old = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "old",
        "lastTransitionTime": "before",
    }
    (new,) = patched({"conditions": [old]}, told("False", message="new"), NOW)["conditions"]
    assert new == {
        "type": "PodScheduled",
        "status": "False",
        "message": "new",
        "lastTransitionTime": "before",
    }
