"""Echoes of the scheduler's own patches."""

from typing import Any

import pytest

from bayplan.api.objects import Condition
from bayplan.engine.outbox import PendingPatches
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.ports import PatchPodStatus
from bayplan.queue.entry import State
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.engine.kit import Engine, waiting_pod
from tests.framework.answering import answering

UID = "uid-default/p"


def condition(message: str) -> Condition:
    return Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)


def patch(message: str = "", nominated: str | None = None) -> PatchPodStatus:
    return PatchPodStatus("default", "p", UID, condition(message) if message else None, nominated)


def reported_pod(message: str = "", nominated: str = "", **options: Any) -> PodInfo:
    """The pod as the API reports it, with its own time stamp."""
    conditions: list[dict[str, Any]] = [{"type": "Ready", "status": "False"}]
    if message:
        conditions.append(
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        )
    status = {"conditions": conditions, **options.pop("status", {})}
    return pod("p", nominated_node=nominated, status=status, **options)


def writes(*patches: PatchPodStatus) -> PendingPatches:
    pending = PendingPatches()
    for each in patches:
        pending.note(each)
    return pending


@pytest.mark.parametrize(
    ("written", "old", "new"),
    [
        pytest.param([patch("no")], reported_pod(), reported_pod("no"), id="a condition"),
        pytest.param([patch("", "n1")], reported_pod(), reported_pod("", "n1"), id="a nomination"),
        pytest.param([patch("no", "")], reported_pod("", "n1"), reported_pod("no"), id="both"),
        pytest.param(
            [patch("yes"), patch("no")], reported_pod(), reported_pod("yes"), id="the first of two"
        ),
        pytest.param(
            [patch("yes"), patch("no")],
            reported_pod(),
            reported_pod("no"),
            id="two that were merged",
        ),
        pytest.param(
            [patch("no"), patch("", "n1")],
            reported_pod(),
            reported_pod("no", "n1"),
            id="two merged into both",
        ),
    ],
)
def test_an_update_with_only_the_schedulers_patch_is_an_echo(
    written: list[PatchPodStatus], old: PodInfo, new: PodInfo
) -> None:
    write_list = writes(*written)
    assert write_list.is_echo(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(reported_pod(), reported_pod("something else"), id="another condition"),
        pytest.param(reported_pod(), reported_pod("no", "n7"), id="another nomination, too"),
        pytest.param(reported_pod(), reported_pod("no", labels={"a": "b"}), id="a label, too"),
        pytest.param(
            reported_pod(), reported_pod("no", annotations={"a": "b"}), id="an annotation, too"
        ),
        pytest.param(
            reported_pod(), reported_pod("no", terminating=True), id="a deletion timestamp"
        ),
        pytest.param(
            reported_pod(),
            reported_pod("no", status={"resourceClaimStatuses": [{"name": "gpu"}]}),
            id="a generated claim",
        ),
    ],
)
def test_an_update_with_a_change_of_another_writer_is_not_an_echo(
    old: PodInfo, new: PodInfo
) -> None:
    written = writes(patch("no"))
    assert not written.is_echo(old, new)
    # The scheduler's own update may still arrive.
    assert written.is_echo(reported_pod(), reported_pod("no"))


def test_each_patch_has_one_echo() -> None:
    written = writes(patch("no"))
    assert written.is_echo(reported_pod(), reported_pod("no"))
    assert not written.is_echo(reported_pod(), reported_pod("no"))


def test_a_patch_without_an_echo_hides_no_update() -> None:
    written = writes(patch("lost"), patch("no"))
    assert written.is_echo(reported_pod(), reported_pod("no"))
    assert not written.is_echo(reported_pod("no"), reported_pod("no", "n1"))


def test_the_newest_nomination_counts_until_the_api_reports_it() -> None:
    result = writes(patch("", "n1"), patch("no"))
    assert result.nominated_node(reported_pod()) == "n1"
    assert result.is_echo(reported_pod(), reported_pod("", "n1"))
    assert result.nominated_node(reported_pod("", "n7")) == "n7"


def test_patches_of_a_deleted_pod_are_forgotten() -> None:
    result = writes(patch("", "n1"))
    result.forget(UID)
    result.forget(UID)
    assert result.nominated_node(reported_pod()) == ""


# ---- in a scheduler -------------------------------------------------------------------------


def refused_pod(**status: Any) -> Any:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 no.",
    }
    return waiting_pod(status={"conditions": [condition], **status})


def test_the_condition_of_a_refused_pod_does_not_activate_the_pod() -> None:
    engine = Engine(plugins=["A"], classes=[answering("A", filter_node=unschedulable("no"))])
    engine.add(node("n1"), waiting_pod())
    engine.run()
    engine.update(refused_pod())
    assert engine.state_of("p") is State.UNSCHEDULABLE
    queued = engine.scheduler.queue.find(UID)
    assert queued is not None
    assert len(queued.pod.status.conditions or ()) == 1
    # The next change of the status is made by another component.
    engine.update(refused_pod(resourceClaimStatuses=[{"name": "gpu"}]))
    assert engine.state_of("p") is State.BACKOFF


def test_echoes_that_arrive_at_permit_are_consumed() -> None:
    """Otherwise later updates would be taken for echoes."""
    plugin = answering("A", permit=(Status(Code.WAIT), 5.0))
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), waiting_pod())
    engine.run()
    engine.update(waiting_pod(nominated_node="n1"))
    engine.until(5)
    (patched,) = engine.patches()
    assert patched.nominated_node_name == ""
    assert patched.condition is not None
    message = patched.condition.message
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    engine.update(waiting_pod(status={"conditions": [{**condition, "message": message}]}))
    assert engine.state_of("p") is State.UNSCHEDULABLE
    engine.update(waiting_pod(nominated_node="n1"))
    assert engine.state_of("p") is not State.UNSCHEDULABLE
