"""A pod whose attempt failed: requeue, event, condition, nomination."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.objects import Condition
from bayplan.engine.failures import CLEAR_NOMINATION
from bayplan.framework.events import default_events
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.framework.types import NominatingMode, Nomination
from bayplan.ports import EmitEvent, ObjectReference, PatchPodStatus
from bayplan.queue.entry import State
from bayplan.testing import node
from tests.engine.kit import Engine, engine_with, uid, waiting_pod
from tests.framework.answering import answering
from tests.scenarios.world import PROFILE

NO = "0/1 nodes are available: 1 no."
BROKEN = Status(Code.ERROR, ("broken",))


#: The start time of a ManualClock.
BEGINNING = "2026-01-01T00:00:00Z"


def condition(reason: str, message: str, since: str | None = BEGINNING) -> Condition:
    """``since``: the transition time; None means that the condition was False before."""
    return Condition(
        type="PodScheduled",
        status="False",
        reason=reason,
        message=message,
        last_transition_time=since,
    )


@pytest.mark.parametrize(
    ("answer", "reason", "message", "result", "state"),
    [
        pytest.param(
            unschedulable("no"),
            "Unschedulable",
            NO,
            "unschedulable",
            State.UNSCHEDULABLE,
            id="a rejection waits for an event",
        ),
        pytest.param(
            BROKEN,
            "SchedulerError",
            'running "A" filter plugin: broken',
            "error",
            State.ERROR_BACKOFF,
            id="an error waits out its delay",
        ),
    ],
)
def test_a_failed_pod_is_requeued_with_event_and_condition(
    answer: Status, reason: str, message: str, result: str, state: State
) -> None:
    engine = engine_with(filter_node=answer)
    engine.add(waiting_pod())
    event, patch = engine.run()
    assert event == EmitEvent(
        ObjectReference("v1 Pod", "default", "p", uid("p")),
        "Warning",
        "FailedScheduling",
        "Scheduling",
        message,
        PROFILE,
    )
    assert patch == PatchPodStatus("default", "p", uid("p"), condition(reason, message))
    assert engine.state_of("p") is state
    labels = {"result": result, "profile": PROFILE}
    assert engine.metric("scheduler_schedule_attempts_total", **labels) == 1
    assert engine.metric("scheduler_scheduling_attempt_duration_seconds_count", **labels) == 1
    assert engine.metric("scheduler_scheduling_algorithm_duration_seconds_count") == 1


def test_the_event_names_the_newest_version_of_the_pod() -> None:
    """The series of an event is about one version: see adapters.live.event_writer."""
    engine = engine_with(filter_node=unschedulable("no"))
    for version in ("7", "8"):
        pod = waiting_pod()
        engine.update(replace(pod, metadata=replace(pod.metadata, resource_version=version)))
    event, _ = engine.run()
    assert isinstance(event, EmitEvent)
    assert event.regarding.resource_version == "8"


@pytest.mark.parametrize(
    ("status", "since"),
    [
        pytest.param("False", None, id="a condition that stays False keeps its time"),
        pytest.param("True", BEGINNING, id="a condition that becomes False gets the current time"),
    ],
)
def test_the_condition_has_transition_time_and_generation(status: str, since: str | None) -> None:
    engine = engine_with(filter_node=unschedulable("no"))
    old = {"type": "PodScheduled", "status": status, "reason": "Other", "message": "other"}
    pod = waiting_pod(status={"conditions": [old]})
    engine.add(replace(pod, metadata=replace(pod.metadata, generation=3)))
    [patch] = engine.patches()
    assert patch.condition is not None
    assert patch.condition == replace(condition("Unschedulable", NO, since), observed_generation=3)


def test_a_condition_that_the_pod_already_has_is_not_written() -> None:
    engine = engine_with(filter_node=unschedulable("no"))
    old = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO}
    engine.add(waiting_pod(status={"conditions": [old]}))
    assert engine.patches() == []


def test_the_rejecting_plugins_are_those_of_the_last_attempt() -> None:
    answers = iter([unschedulable("no"), BROKEN])
    engine = engine_with(filter_node=lambda *_: next(answers))
    engine.add(waiting_pod())
    engine.run()
    assert engine.blamed("p") == {"A"}
    engine.until(331)
    engine.run()
    assert engine.blamed("p") == set()


def test_a_pod_deleted_during_its_attempt_gets_an_event() -> None:
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    engine.run()
    engine.delete(waiting_pod())
    engine.finish("p", Status(Code.ERROR, ("pods p not found",)))
    (event,) = engine.run()
    assert isinstance(event, EmitEvent)
    assert (event.regarding.uid, event.note) == (uid("p"), "pods p not found")
    assert engine.state_of("p") is State.ABSENT


def test_a_pod_recreated_during_its_attempt_gets_no_event() -> None:
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    engine.run()
    engine.delete(waiting_pod())
    engine.add(waiting_pod(uid="another"))
    engine.finish("p", Status(Code.ERROR, ("pods p not found",)))
    assert not [effect for effect in engine.run() if isinstance(effect, EmitEvent)]


def test_a_failed_binding_of_a_pod_that_is_bound_writes_nothing() -> None:
    """The binding had no answer in time, but the API performed it."""
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    engine.run()
    engine.update(waiting_pod(node="n1"))
    engine.finish("p", Status(Code.ERROR, ("outcome unknown",)))
    assert engine.run() == []
    assert engine.placed_on("p") == "n1"
    assert engine.state_of("p") is State.ABSENT


def test_a_failed_pod_returns_to_the_queue_in_its_newest_version() -> None:
    def renames(*_: Any) -> Status:
        engine.update(waiting_pod(labels={"v": "2"}))
        return unschedulable("no")

    engine = engine_with(filter_node=renames)
    engine.add(waiting_pod(labels={"v": "1"}))
    engine.run()
    queued = engine.scheduler.queue.find(uid("p"))
    assert queued is not None
    assert queued.pod.labels == {"v": "2"}


def test_the_same_condition_is_not_written_again() -> None:
    engine = engine_with(filter_node=unschedulable("no"))
    engine.add(
        waiting_pod(
            status={
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": NO,
                    }
                ]
            }
        )
    )
    (effect,) = engine.run()
    assert isinstance(effect, EmitEvent)


# ---- nominations ----------------------------------------------------------------------------


def test_without_post_filter_a_rejected_pod_loses_its_nomination() -> None:
    engine = engine_with(filter_node=unschedulable("no"))
    engine.add(waiting_pod(nominated_node="n1"))
    (patch,) = engine.patches()
    assert (patch.nominated_node_name, engine.nominated_on("n1")) == ("", [])


def test_an_attempt_that_ends_in_an_error_clears_the_nomination() -> None:
    """schedule_one.go, schedulingAlgorithm: clearNominatedNode."""
    engine = engine_with(filter_node=BROKEN)
    engine.add(waiting_pod(nominated_node="n1"))
    (patch,) = engine.patches()
    assert (patch.nominated_node_name, engine.nominated_on("n1")) == ("", [])


def test_a_nomination_that_the_api_has_not_reported_yet_can_be_cleared() -> None:
    answers = iter([Nomination(NominatingMode.OVERRIDE, "n1"), CLEAR_NOMINATION])
    engine = engine_with(
        filter_node=unschedulable("no"),
        post_filter=lambda *_: (next(answers), unschedulable()),
        events_to_register=default_events(),
    )
    engine.add(waiting_pod())
    assert [patch.nominated_node_name for patch in engine.patches()] == ["n1"]
    engine.until(3)
    engine.add(node("n2"))
    assert [patch.nominated_node_name for patch in engine.patches()] == [""]


def test_pods_rejected_by_the_same_plugins_share_one_set_of_names() -> None:
    never = answering("Never", filter_node=unschedulable("no"))
    engine = Engine(plugins=["Never"], classes=[never])
    engine.add(node("n1"), waiting_pod("a"), waiting_pod("b"))
    engine.run()
    one, other = (engine.scheduler.queue.find(uid(name)) for name in "ab")
    assert one is not None
    assert other is not None
    assert one.unschedulable_plugins == {"Never"}
    assert one.unschedulable_plugins is other.unschedulable_plugins
    assert one.pending_plugins is other.pending_plugins
