"""Attempts: from a popped pod to an effect."""

from typing import Any

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Code, Status, unresolvable, unschedulable
from bayplan.framework.types import Nomination, PreFilterResult
from bayplan.journal import AttemptRecord
from bayplan.ports import (
    AskExtender,
    BindPod,
    EmitEvent,
    ExtenderAnswer,
    ExtenderVerb,
    NamedVictims,
)
from bayplan.queue.entry import State
from bayplan.state.pods import pod_info
from bayplan.testing import api_pod, node
from tests.engine.kit import FAR, Engine, Far, engine_with, performed, uid, waiting_pod
from tests.framework.answering import answering
from tests.scenarios.world import PROFILE

# ---- which pods are tried -------------------------------------------------------------------


def test_a_pod_that_is_being_deleted_is_skipped_with_an_event() -> None:
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod(terminating=True))
    (event,) = engine.run()
    assert isinstance(event, EmitEvent)
    assert event.note == "skip schedule deleting pod: default/p"
    assert (event.reason, event.action, event.type) == ("FailedScheduling", "Scheduling", "Warning")
    assert engine.state_of("p") is State.ABSENT
    assert engine.attempts() == []


def test_a_pod_that_already_counts_on_a_node_is_skipped() -> None:
    """An update during the attempt added the pod to the queue again."""
    engine = engine_with(filter_node=None)
    engine.add(waiting_pod())
    engine.run()
    engine.scheduler.queue.add(pod_info(waiting_pod()))
    assert engine.run() == []
    assert len(engine.attempts()) == 1
    assert engine.state_of("p") is State.ABSENT


# ---- state of one attempt -------------------------------------------------------------------


def test_plugins_of_one_attempt_share_the_cycle_state_and_the_next_attempt_starts_empty() -> None:
    seen: list[Any] = []

    def writes(state: CycleState, pod: Any, nodes: Any) -> None:
        seen.append("k" in state)
        state["k"] = "written"

    def reads(state: CycleState, pod: Any, nodes: Any) -> Any:
        seen.append(state["k"])
        return nodes.allocatable("none")

    def deletes(state: CycleState, pod: Any, where: str) -> Status | None:
        del state["k"]
        return Status(Code.ERROR, ("once",)) if len(seen) == 2 else None

    def misses(state: CycleState, pod: Any, where: str, port: Any) -> None:
        seen.append(state["k"])

    a = answering("A", pre_filter=writes)
    b = answering("B", score=reads)
    c = answering("C", reserve=deletes)
    d = answering("D", pre_bind=misses)
    engine = Engine(plugins=["A", ("B", 1), "C", "D"], classes=[a, b, c, d])
    engine.add(node("n1"), node("n2"), waiting_pod())
    engine.run()
    engine.until(3)
    (effect,) = engine.run_for(BindPod)
    assert seen == [False, "written", False, "written"]
    status = performed(effect).status
    assert status is not None
    assert status.message.startswith("running PreBind plugin \"D\": StateNotFound: 'k' (")


def test_a_tenth_of_the_attempts_records_durations_and_each_run_records_the_same_ones() -> None:
    def recorded(seed: int) -> float:
        plugin = answering("Counted", pre_filter=None)
        engine = Engine(plugins=["Counted"], classes=[plugin], seed=seed)
        engine.add(node("n1", pods=2000))
        for number in range(1000):
            engine.add(waiting_pod(f"p{number}"))
        engine.run()
        return engine.metric(
            "scheduler_plugin_execution_duration_seconds_count",
            plugin="Counted",
            extension_point="PreFilter",
            status="Success",
        )

    first = recorded(1)
    assert 70 <= first <= 130
    assert recorded(1) == first
    assert recorded(2) != first


def test_every_attempt_reports_the_durations_of_its_extension_points() -> None:
    engine = engine_with(filter_node=None)
    engine.add(*(waiting_pod(f"p{number}") for number in range(20)))
    engine.run()
    name = "scheduler_framework_extension_point_duration_seconds_count"
    for point in ("PreFilter", "Filter", "Reserve", "Permit", "PreBindPreFlight"):
        status = "Skip" if point == "PreBindPreFlight" else "Success"
        labels = {"extension_point": point, "status": status, "profile": PROFILE}
        assert engine.metric(name, **labels) == 20


# ---- without a node -------------------------------------------------------------------------


def test_without_nodes_the_pod_waits_for_no_plugin() -> None:
    engine = Engine(plugins=["A"], classes=[answering("A", post_filter=(None, None))])
    engine.add(waiting_pod(nominated_node="n9"))
    (patch,) = engine.patches()
    assert patch.condition is not None
    assert patch.condition.message == "no nodes available to schedule pods"
    assert (patch.condition.reason, patch.nominated_node_name) == ("Unschedulable", "")
    assert engine.blamed("p") == set()
    assert engine.plugin("A").calls == []


def test_the_post_filter_message_ends_the_sentence_for_each_code() -> None:
    for answer in (
        unschedulable("seen"),
        Status(Code.SUCCESS, ("seen",)),
        Status(Code.ERROR, ("seen",)),
    ):
        engine = engine_with(filter_node=unschedulable("no"), post_filter=(None, answer))
        engine.add(waiting_pod())
        assert engine.notes() == ["0/1 nodes are available: 1 no. seen"]


def test_post_filter_runs_after_a_pre_filter_rejection() -> None:
    seen: list[Any] = []

    def looks(state: Any, pod: Any, statuses: Any) -> tuple[Nomination | None, Status | None]:
        seen.append(statuses.get("n1"))
        return None, unschedulable()

    engine = engine_with(pre_filter=unresolvable("never"), post_filter=looks)
    engine.add(waiting_pod())
    assert engine.notes() == ["0/1 nodes are available: never."]
    assert seen == [unresolvable("never").with_plugin("A")]
    assert engine.blamed("p") == {"A"}


def test_post_filter_runs_without_candidates_if_pre_filters_have_no_common_node() -> None:
    seen: list[Any] = []

    def looks(state: Any, pod: Any, statuses: Any) -> tuple[Nomination | None, Status | None]:
        seen.append(statuses)
        return None, unschedulable()

    plugins = [
        answering("A", pre_filter=PreFilterResult(frozenset({"n1"}))),
        answering("B", pre_filter=PreFilterResult(frozenset({"n2"}))),
        answering("C", post_filter=looks),
    ]
    engine = Engine(plugins=["A", "B", "C"], classes=plugins)
    engine.add(node("n1"), node("n2"), waiting_pod())
    message = "node(s) didn't satisfy plugin(s) [A B] simultaneously"
    assert engine.notes() == [f"0/2 nodes are available: {message}."]
    (statuses,) = seen
    assert statuses.nodes_for_status_code(["n1", "n2"], Code.UNSCHEDULABLE) == []
    assert statuses.get("n1") == unresolvable(message)
    assert engine.blamed("p") == {"A", "B"}


def test_post_filter_does_not_run_after_an_error() -> None:
    engine = engine_with(filter_node=ValueError("boom"), post_filter=(None, None))
    engine.add(waiting_pod())
    engine.run()
    assert ("A", "post_filter") not in engine.plugin("A").calls


def test_an_exception_in_post_filter_ends_the_message_with_the_plugin_name() -> None:
    engine = engine_with(filter_node=unschedulable("no"), post_filter=ValueError("boom"))
    engine.add(waiting_pod())
    (note,) = engine.notes()
    assert note.startswith(
        '0/1 nodes are available: 1 no. running PostFilter plugin "A": ValueError: boom ('
    )
    assert engine.state_of("p") is State.UNSCHEDULABLE


# ---- attempts that wait for an extender -----------------------------------------------------


def engine_with_extender(**options: Any) -> Engine:
    plugin = answering("A", filter_node=None, events_to_register=[])
    engine = Engine(plugins=["A"], classes=[plugin], extenders=[Far()], **options)
    engine.add(node("n1"), node("n2"))
    return engine


def question(engine: Engine) -> AskExtender:
    (ask,) = engine.run_for(AskExtender)
    return ask


def test_a_pod_is_pending_while_its_extender_call_runs() -> None:
    engine = engine_with_extender()
    engine.add(waiting_pod(**FAR))
    ask = question(engine)
    assert (ask.extender, ask.verb, ask.pod.name) == ("far", "filter", "p")
    assert sorted(ask.node_names) == ["n1", "n2"]
    assert engine.state_of("p") is State.IN_FLIGHT
    assert not engine.scheduler.only_retries_wait
    assert engine.attempts() == []


def test_an_answer_with_an_unknown_token_is_ignored() -> None:
    engine = engine_with_extender()
    engine.add(waiting_pod(**FAR))
    ask = question(engine)
    answer = ExtenderAnswer(node_names=frozenset({"n2"}))
    for token in (ask.token, ask.token, 99):
        engine.scheduler.extender_answered(token, answer)
    assert list(engine.bound()) == ["p"]


@pytest.mark.parametrize("how", ["deleted", "bound by another"])
def test_a_pod_deleted_during_its_extender_call_is_dropped(how: str) -> None:
    engine = engine_with_extender()
    engine.add(waiting_pod(**FAR))
    ask = question(engine)
    if how == "deleted":
        engine.delete(waiting_pod(**FAR))
    else:
        engine.update(waiting_pod(node="n1", **FAR))
    engine.scheduler.extender_answered(ask.token, ExtenderAnswer(node_names=frozenset({"n2"})))
    assert engine.run() == []
    assert engine.state_of("p") is State.ABSENT
    assert engine.placed_on("p") == ("" if how == "deleted" else "n1")
    assert engine.scheduler.only_retries_wait


@pytest.mark.parametrize("verb", [ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE])
def test_a_node_that_gets_room_during_an_extender_call_is_tried_next(verb: ExtenderVerb) -> None:
    far = Far(verbs=frozenset((verb,)))
    engine = Engine(plugins=["NodeUnschedulable", "NodeResourcesFit"], extenders=[far])
    names = ("n1", "n2")
    engine.add(*(node(name, cpu=4) for name in names), node("n3", cpu=4, unschedulable=True))
    engine.add(waiting_pod(cpu=3, **FAR))
    call = question(engine)
    assert sorted(call.node_names) == ["n1", "n2"]
    engine.add(*(api_pod(f"on-{name}", node=name, cpu=2) for name in names))
    engine.update(node("n3", cpu=4))
    engine.scheduler.extender_answered(call.token, ExtenderAnswer(node_names=frozenset(names)))
    assert engine.blamed("p") == {"NodeResourcesFit", "Extender"}
    engine.until(2.0)
    if verb is ExtenderVerb.PRIORITIZE:
        assert engine.bound() == {"p": "n3"}
    else:
        assert question(engine).node_names == ("n3",)


def test_without_a_feasible_node_after_the_extender_any_event_helps() -> None:
    engine = engine_with_extender()
    engine.add(waiting_pod(**FAR))
    ask = question(engine)
    refusal = {"n1": "licence missing", "n2": "licence missing"}
    engine.scheduler.extender_answered(ask.token, ExtenderAnswer(failed=refusal))
    assert engine.notes() == ["0/2 nodes are available: 2 licence missing."]
    assert engine.blamed("p") == {"Extender"}
    (record,) = engine.attempts()
    assert [(r.plugin, r.reason, r.nodes) for r in record.rejections] == [
        ("Extender", "licence missing", 2)
    ]
    engine.put("storage.k8s.io/v1 StorageClass", {"metadata": {"name": "fast"}})
    assert engine.state_of("p") is State.BACKOFF


def test_a_missing_answer_is_an_error_of_its_attempt() -> None:
    engine = engine_with_extender()
    engine.add(waiting_pod(**FAR))
    ask = question(engine)
    engine.scheduler.extender_answered(ask.token, ExtenderAnswer(error="connection refused"))
    (patch,) = engine.patches()
    assert patch.condition is not None
    assert patch.condition.reason == "SchedulerError"
    assert patch.condition.message == "connection refused"
    assert engine.blamed("p") == set()
    assert engine.state_of("p") is State.ERROR_BACKOFF


def test_an_attempt_that_waits_at_post_filter_counts_once() -> None:
    verbs = frozenset((ExtenderVerb.PREEMPT,))
    engine = Engine(plugins=["NodeResourcesFit", "DefaultPreemption"], extenders=[Far(verbs=verbs)])
    engine.add(node("n1", cpu=1), api_pod("low", cpu=1, node="n1"))
    engine.add(waiting_pod(cpu=1, priority=9, **FAR))
    ask = question(engine)
    assert (ask.verb, ask.node_names) == ("preempt", ("n1",))
    assert [victim.name for victim in ask.victims["n1"].pods] == ["low"]
    assert engine.state_of("p") is State.IN_FLIGHT
    assert engine.attempts() == [] and engine.metric("scheduler_preemption_attempts_total") == 0
    victims = {"n1": NamedVictims((uid("low"),))}
    engine.scheduler.extender_answered(ask.token, ExtenderAnswer(victims=victims))
    engine.run()
    (record,) = engine.attempts()
    assert (record.nominated_node, record.attempt) == ("n1", 1)
    assert engine.metric("scheduler_preemption_attempts_total") == 1


def test_a_bug_while_a_cycle_continues_does_not_lose_the_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_with_extender(raise_bugs=False)
    engine.add(waiting_pod(**FAR))
    ask = question(engine)
    monkeypatch.setattr("bayplan.engine.extenders.round.applied", raising)
    engine.scheduler.extender_answered(ask.token, ExtenderAnswer())
    assert engine.state_of("p") is State.ERROR_BACKOFF
    assert engine.metric("bayplan_bugs_total") == 1


# ---- bugs of Bayplan ------------------------------------------------------------------------


def raising(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("it cannot be")


def test_a_bug_in_the_cycle_fails_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = answering("A", score_node=0)
    engine = Engine(plugins=[("A", 1)], classes=[plugin], raise_bugs=False)
    engine.add(node("n1"), node("n2"), waiting_pod())
    monkeypatch.setattr("bayplan.engine.schedule_one.choose", raising)
    (patch,) = engine.patches()
    assert patch.condition is not None
    assert patch.condition.reason == "SchedulerError"
    assert patch.condition.message == "bug in the scheduler: ZeroDivisionError: it cannot be"
    assert engine.metric("bayplan_bugs_total") == 1
    assert any("Traceback" in text for text in engine.texts())
    assert engine.state_of("p") is State.ERROR_BACKOFF
    monkeypatch.undo()
    # The snapshot was returned, so the cluster may change, and the pod is tried again.
    engine.add(node("n3"))
    engine.until(3)
    assert list(engine.bound()) == ["p"]


def test_a_pod_that_fails_does_not_block_other_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = answering("A", score_node=0)
    engine = Engine(plugins=[("A", 1)], classes=[plugin], raise_bugs=False)
    engine.add(node("n1"), node("n2"), waiting_pod("p"))
    monkeypatch.setattr("bayplan.engine.schedule_one.choose", raising)
    engine.run()
    monkeypatch.undo()
    engine.add(waiting_pod("q"))
    assert list(engine.bound()) == ["q"]
    results = [r.result for r in engine.journal.records if isinstance(r, AttemptRecord)]
    assert results == ["scheduled"]
