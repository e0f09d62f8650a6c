"""Workloads as values."""

import msgspec

from bayplan.objects.keys import object_key
from bayplan.sim.input.workload import (
    Step,
    Verb,
    Workload,
    create_step,
    has_ended,
    is_pending_pod,
    is_pod,
)
from tests.kit.manifests import node, pod

PATCH = Step(
    at_seconds=2.5,
    verb=Verb.PATCH,
    key=object_key("v1 Pod", "default", "a"),
    content={"spec": {"schedulingGates": None}},
)
WHOLE = Workload(
    initial=(node("n1"), pod("r", nodeName="n1"), pod("a", schedulerName="other")),
    steps=(create_step(1, pod("b")), PATCH),
    until_seconds=60.0,
    followers={"uid": (pod("c"),)},
    ended_pods=("default/a", "default/b"),
    notes=("something was made up",),
)


def test_a_workload_can_be_written_and_read_back() -> None:
    encoded = msgspec.json.encode(WHOLE)
    assert msgspec.json.decode(encoded, type=Workload) == WHOLE


def test_all_pods_of_a_workload_are_counted() -> None:
    assert WHOLE.pod_count == 4
    assert Workload().pod_count == 0


def test_pending_pods_can_be_assigned_to_one_scheduler() -> None:
    mine = WHOLE.for_scheduler("mine")
    assert [c["spec"].get("schedulerName") for c in mine.initial] == [None, None, "mine"]
    assert mine.steps[0].content["spec"]["schedulerName"] == "mine"
    assert mine.steps[1] == PATCH
    assert mine.followers["uid"][0]["spec"]["schedulerName"] == "mine"
    assert (mine.until_seconds, mine.ended_pods, mine.notes) == (
        60.0,
        WHOLE.ended_pods,
        WHOLE.notes,
    )
    assert WHOLE.initial[2]["spec"]["schedulerName"] == "other"


def test_pods_are_classified_as_pending_running_or_ended() -> None:
    waiting, running, ended = pod(), pod(nodeName="n"), pod(status={"phase": "Failed"})
    assert [is_pod(one) for one in (waiting, running, node())] == [True, True, False]
    assert [is_pending_pod(one) for one in (waiting, running, node())] == [True, False, False]
    assert [has_ended(one) for one in (waiting, ended)] == [False, True]


def test_the_status_of_other_kinds_does_not_matter() -> None:
    assert not any(
        has_ended({**node(), "status": status}) for status in (True, {"phase": "Failed"})
    )
