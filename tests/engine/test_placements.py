"""From a chosen node to a bound pod, and the rollback after a failure."""

from typing import Any

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.journal import BindingRecord
from bayplan.ports import BindPod, EmitEvent, ObjectReference, PatchPodStatus
from bayplan.queue.entry import State
from bayplan.testing import node
from tests.engine.kit import Engine, performed, uid, waiting_pod
from tests.framework.answering import Calls, answering
from tests.scenarios.world import PROFILE

WAIT = (Status(Code.WAIT), 10.0)
BROKEN = Status(Code.ERROR, ("broken",))
ROOM_FREED = ClusterEventWithHint(ClusterEvent(EventResource.POD, ActionType.DELETE))


def engine_with(**answers: Any) -> Engine:
    raise_bugs = answers.pop("raise_bugs", True)
    plugin = answering("A", **{"events_to_register": [], **answers})
    engine = Engine(plugins=["A"], classes=[plugin], raise_bugs=raise_bugs)
    engine.add(node("n1"))
    return engine


def records(engine: Engine) -> list[tuple[str, str, str]]:
    """(result, node, message) of each binding."""
    records = [r for r in engine.journal.records if isinstance(r, BindingRecord)]
    return [(record.result, record.node, record.message) for record in records]


# ---- bindings that succeed ------------------------------------------------------------------


def test_a_chosen_pod_is_assumed_before_it_is_bound() -> None:
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod(cpu=1, nominated_node="n1"))
    (effect,) = engine.run_for(BindPod)
    assert (effect.node_name, effect.pod.node_name) == ("n1", "n1")
    assert engine.placed_on("p") == "n1"
    assert engine.scheduler.cache.is_assumed(uid("p"))
    # It is not nominated any more, because it is assumed.
    assert engine.nominated_on("n1") == []
    assert engine.state_of("p") is State.ABSENT


def test_a_bound_pod_gets_an_event_and_is_counted_and_timed() -> None:
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    (effect,) = engine.run_for(BindPod)
    engine.clock.advance_to(2.5)
    engine.scheduler.binding_finished(performed(effect))
    assert engine.run() == [
        EmitEvent(
            ObjectReference("v1 Pod", "default", "p", uid("p")),
            "Normal",
            "Scheduled",
            "Binding",
            "Successfully assigned default/p to n1",
            PROFILE,
        )
    ]
    assert records(engine) == [("bound", "n1", "")]
    labels = {"result": "scheduled", "profile": PROFILE}
    assert engine.metric("scheduler_schedule_attempts_total", **labels) == 1
    assert engine.metric("scheduler_scheduling_attempt_duration_seconds_sum", **labels) == 2.5
    sli = "scheduler_pod_scheduling_sli_duration_seconds_sum"
    assert engine.metric(sli, attempts="1") == 2.5
    # The duration of the algorithm excludes the binding.
    assert engine.metric("scheduler_scheduling_algorithm_duration_seconds_count") == 1
    assert engine.metric("scheduler_scheduling_algorithm_duration_seconds_sum") == 0
    assert engine.scheduler.only_retries_wait


def test_a_pod_activated_only_by_the_flush_is_counted() -> None:
    opened: list[bool] = []
    engine = engine_with(
        filter_node=lambda *_: None if opened else unschedulable("closed"),
        events_to_register=[],
    )
    engine.add(waiting_pod())
    engine.run()
    opened.append(True)
    for minute in range(1, 12):
        engine.until(minute * 60.0)
        for effect in engine.run():
            if isinstance(effect, BindPod):
                engine.scheduler.binding_finished(performed(effect))
    assert engine.metric("scheduler_pod_scheduled_after_flush_total") == 1


def test_pods_to_activate_are_activated_after_the_cycle_and_after_the_binding() -> None:
    refused: dict[str, Any] = {}

    def stashes_again(state: CycleState, *_: Any) -> None:
        state.pods_to_activate.update(refused)

    def refuses_f(state: CycleState, pod: Any, info: Any) -> Status | None:
        if pod.name != "f":
            return None
        refused["default/f"] = pod
        return unschedulable("closed")

    def stashes(state: CycleState, pod: Any, where: str) -> tuple[None, float]:
        state.pods_to_activate.update(refused)
        return None, 0.0

    engine = engine_with(filter_node=refuses_f, permit=stashes, post_bind=stashes_again)
    engine.add(waiting_pod("f"))
    engine.run()
    engine.add(waiting_pod("l"))
    (effect,) = engine.run_for(BindPod)
    assert len(engine.attempts("f")) == 2
    # The stash was emptied. Pods that PostBind stashes are activated after a successful binding.
    performed(effect)
    engine.finish("l")
    engine.run()
    assert len(engine.attempts("f")) == 3


# ---- Reserve and Permit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({"reserve": unschedulable("no")}, id="Reserve"),
        pytest.param({"permit": (unschedulable("no"), 0.0), "reserve": None}, id="Permit"),
    ],
)
def test_a_rejection_at_the_end_of_the_cycle_unreserves_and_forgets_the_pod(
    answers: dict[str, Any],
) -> None:
    log: Calls = []
    plugin = answering("A", log, events_to_register=[], **answers)
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), waiting_pod(cpu=1))
    (event,) = (effect for effect in engine.run() if isinstance(effect, EmitEvent))
    assert event.note == "0/1 nodes are available: 1 no."
    assert log[-1] == ("A", "unreserve")
    assert engine.placed_on("p") == ""
    assert engine.blamed("p") == {"A"}
    (record,) = engine.attempts()
    assert (record.result, record.node, record.plugin) == ("unschedulable", "n1", "A")
    assert records(engine) == []


def test_a_rejection_in_the_cycle_activates_no_other_pod() -> None:
    """No other pod has seen the pod on its node."""
    engine = engine_with(
        reserve=lambda state, pod, where: unschedulable("no"), events_to_register=[ROOM_FREED]
    )
    engine.add(waiting_pod("p"), waiting_pod("q"))
    engine.run()
    assert [engine.state_of(name) for name in "pq"] == [State.UNSCHEDULABLE] * 2


def test_a_failed_unreserve_is_noted_and_the_pod_is_retried() -> None:
    engine = engine_with(reserve=BROKEN, unreserve=ValueError("boom"))
    engine.add(waiting_pod())
    engine.run()
    assert engine.state_of("p") is State.ERROR_BACKOFF
    message = 'running Unreserve plugin "A": ValueError: boom ('
    assert any(text.startswith(message) for text in engine.texts())
    assert engine.placed_on("p") == ""


def test_a_pod_at_permit_announces_its_node() -> None:
    engine = engine_with(permit=WAIT)
    engine.add(waiting_pod())
    (patch,) = engine.run()
    assert patch == PatchPodStatus("default", "p", uid("p"), None, "n1")
    assert [record.result for record in engine.attempts()] == ["waiting"]
    assert engine.state_of("p") is State.IN_FLIGHT
    assert not engine.scheduler.only_retries_wait
    assert engine.scheduler.next_deadline_seconds() == 10.0


def test_a_permit_timeout_activates_other_pods_but_not_the_pod_itself() -> None:
    engine = engine_with(
        permit=lambda state, pod, where: WAIT if pod.name == "p" else (unschedulable(), 0.0),
        events_to_register=[ROOM_FREED],
    )
    engine.add(waiting_pod("p"), waiting_pod("q"))
    engine.run()
    engine.until(10)
    assert engine.state_of("p") is State.UNSCHEDULABLE
    assert engine.state_of("q") is State.ACTIVE
    name = "scheduler_permit_wait_duration_seconds_sum"
    assert engine.metric(name, result="Unschedulable") == 10.0


def test_events_during_a_permit_wait_are_considered_after_the_rejection() -> None:
    added = ClusterEvent(EventResource.NODE, ActionType.ADD)
    engine = engine_with(permit=WAIT, events_to_register=[ClusterEventWithHint(added)])
    engine.add(waiting_pod())
    engine.run()
    engine.until(5)
    engine.add(node("n2"))
    engine.until(10)
    assert engine.state_of("p") in (State.ACTIVE, State.BACKOFF)


# ---- PreBindPreFlight -----------------------------------------------------------------------


def test_a_binding_with_pre_bind_work_announces_its_node() -> None:
    engine = engine_with(pre_bind=None)
    engine.add(waiting_pod())
    patch, bind = engine.run()
    assert patch == PatchPodStatus("default", "p", uid("p"), None, "n1")
    assert isinstance(bind, BindPod)


@pytest.mark.parametrize("answers", [{"permit": WAIT}, {"pre_bind": None}])
def test_without_the_gate_no_wait_and_no_binding_announces_a_node(answers: dict[str, Any]) -> None:
    log: Calls = []
    plugin = answering("A", log, events_to_register=[], **answers)
    engine = Engine(
        plugins=["A"], classes=[plugin], gates={"NominatedNodeNameForExpectation": False}
    )
    engine.add(node("n1"), waiting_pod())
    assert not engine.run_for(PatchPodStatus)
    assert engine.placed_on("p") == "n1"


@pytest.mark.parametrize("answer", [ValueError("boom"), unschedulable("boom")])
def test_a_failed_pre_bind_pre_flight_fails_the_binding(answer: Any) -> None:
    engine = engine_with(pre_bind=None, pre_bind_preflight=answer)
    engine.add(waiting_pod())
    assert not engine.run_for(BindPod)
    assert engine.state_of("p") is State.ERROR_BACKOFF
    assert engine.placed_on("p") == ""
    ((result, where, message),) = records(engine)
    assert (result, where) == ("failed", "n1")
    assert "PreBindPreFlight" in message
    assert "boom" in message


def test_a_pod_is_in_pre_bind_from_pre_flight_until_its_binding_ends() -> None:
    engine = engine_with(pre_bind=None)
    handle = engine.plugin("A").handle
    engine.add(waiting_pod())
    (bind,) = engine.run_for(BindPod)
    pre_bind = handle.pods_in_pre_bind[uid("p")]
    assert pre_bind.cancel("preempted by P")
    engine.scheduler.binding_finished(performed(bind))
    assert not handle.pods_in_pre_bind
    assert (engine.state_of("p"), engine.placed_on("p")) == (State.ERROR_BACKOFF, "")
    assert records(engine) == [("failed", "n1", 'running PreBind plugin "A": preempted by P')]


def test_a_pod_rejected_by_pre_bind_is_retried_after_a_backoff() -> None:
    """Only Permit and earlier extension points can find that a pod does not fit."""
    engine = engine_with(pre_bind=unschedulable("not now"))
    engine.add(waiting_pod())
    (bind,) = engine.run_for(BindPod)
    engine.scheduler.binding_finished(performed(bind))
    (patch,) = engine.patches()
    assert patch.condition is not None
    assert (patch.condition.reason, patch.condition.message) == ("Unschedulable", "not now")
    assert engine.state_of("p") is State.ERROR_BACKOFF


# ---- bindings that fail ---------------------------------------------------------------------


def test_an_outcome_of_an_unknown_binding_is_noted() -> None:
    engine = engine_with(filter_node=None)
    engine.finish("p")
    assert engine.texts() == ["a binding ended that was given up"]


def test_a_pod_confirmed_before_its_binding_failed_stays_placed() -> None:
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    engine.run()
    engine.update(waiting_pod(node="n1"))
    engine.finish("p", BROKEN)
    assert engine.placed_on("p") == "n1"


# ---- pods that are deleted meanwhile --------------------------------------------------------


def test_a_pod_deleted_during_its_binding_releases_its_resources_at_once() -> None:
    """The binding continues and fails, and leaves no state."""
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    engine.run()
    engine.delete(waiting_pod())
    assert engine.placed_on("p") == ""
    engine.finish("p", BROKEN)
    assert [type(effect) for effect in engine.run()] == [EmitEvent]
    assert engine.scheduler.cache.assumed_count == 0


def test_a_successful_binding_of_a_deleted_pod_leaves_no_state() -> None:
    """The pod was bound and deleted, and the watch missed the binding."""
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    engine.run()
    engine.delete(waiting_pod())
    engine.finish("p")
    assert engine.scheduler.cache.pods() == []
    engine.run()
    assert engine.scheduler.only_retries_wait


def test_a_pod_that_terminates_during_its_binding_releases_its_resources() -> None:
    engine = engine_with(
        filter_node=lambda state, pod, info: unschedulable("full") if info.pods else None,
        events_to_register=[ROOM_FREED],
    )
    engine.add(waiting_pod("p"), waiting_pod("q"))
    engine.run()
    engine.until(5)
    engine.update(waiting_pod("p", terminating=True))
    assert engine.placed_on("p") == ""
    assert engine.bound() == {"q": "n1"}


@pytest.mark.parametrize("how", ["deleted", "terminating", "bound by another"])
def test_a_pod_deleted_at_permit_stops_waiting(how: str) -> None:
    log: Calls = []
    plugin = answering("A", log, permit=WAIT, reserve=None, events_to_register=[])
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), node("n2"), waiting_pod())
    engine.run()
    chosen = engine.placed_on("p")
    other = "n2" if chosen == "n1" else "n1"
    if how == "deleted":
        engine.delete(waiting_pod())
    elif how == "terminating":
        engine.update(waiting_pod(terminating=True))
    else:
        engine.update(waiting_pod(node=other))
    assert engine.scheduler.waiting_pods() == []
    assert log[-1] == ("A", "unreserve")
    assert engine.placed_on("p") == (other if how == "bound by another" else "")
    assert not engine.run_for(BindPod)


# ---- bugs of Bayplan ------------------------------------------------------------------------


class Broken(Exception):
    """A bug of the engine."""


def raising(*_: Any, **__: Any) -> Any:
    raise Broken("it cannot be")


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("bayplan.engine.placements.BindingCycle", "a step after the cycle"),
        ("bayplan.engine.placements.PlacedPod", "a step while the cluster is lent"),
    ],
)
def test_a_bug_during_placement_fails_the_attempt_and_undoes_everything(
    where: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_with(filter_node=None, raise_bugs=False)
    engine.add(waiting_pod())
    monkeypatch.setattr(where, raising)
    assert not engine.run_for(BindPod)
    assert engine.metric("bayplan_bugs_total") == 1
    assert engine.state_of("p") is State.ERROR_BACKOFF
    assert any("Broken: it cannot be" in text for text in engine.texts())
    monkeypatch.undo()
    engine.until(3)
    assert engine.bound() == {"p": "n1"}


def test_a_bug_after_a_binding_does_not_lose_the_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_with(filter_node=None, raise_bugs=False)
    engine.add(waiting_pod())
    engine.run()
    monkeypatch.setattr("bayplan.engine.placements.FitError", raising)
    engine.finish("p", unschedulable("no"))
    assert engine.state_of("p") is State.ERROR_BACKOFF
    monkeypatch.undo()
    engine.until(3)
    assert engine.bound() == {"p": "n1"}


def test_a_bug_in_forget_does_not_lose_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_with(filter_node=None, raise_bugs=False)
    engine.add(waiting_pod())
    engine.run()
    monkeypatch.setattr(engine.scheduler.cache, "forget", raising)
    engine.finish("p", BROKEN)
    assert engine.state_of("p") is State.ERROR_BACKOFF
    assert engine.metric("bayplan_bugs_total") >= 1


def test_two_bugs_in_a_row_do_not_lose_the_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_with(filter_node=None, raise_bugs=False)
    engine.add(waiting_pod())
    monkeypatch.setattr("bayplan.engine.placements.BindingCycle", raising)
    monkeypatch.setattr(engine.scheduler.cache, "forget", raising)
    engine.run()
    assert engine.metric("bayplan_bugs_total") == 2
    assert engine.state_of("p") is State.ERROR_BACKOFF


def test_with_raise_bugs_a_bug_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    monkeypatch.setattr("bayplan.engine.placements.BindingCycle", raising)
    with pytest.raises(Broken):
        engine.run()
