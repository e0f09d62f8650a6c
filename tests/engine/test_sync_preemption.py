"""Attempts that end when their evictions have ended."""

import asyncio
from typing import Any

from bayplan import ports
from bayplan.queue.entry import State
from bayplan.testing import api_pod, node
from tests.engine.kit import FAR, Engine, Far, uid, waiting_pod
from tests.kit.ports import RecordingPort

REFUSED = "0/1 nodes are available: 1 Insufficient cpu. preemption: "
MESSAGE = f"{REFUSED}found a potential placement for pod on node n1, preempting 1 victims"


def preempting(**options: Any) -> Engine:
    """A full node, after one attempt at a more important pod."""
    gates = {"SchedulerAsyncPreemption": False}
    plugins = ["NodeResourcesFit", "DefaultPreemption"]
    engine = Engine(plugins=plugins, gates=gates, **options)
    engine.add(node("n1", cpu=1), api_pod("low", cpu=1, node="n1"))
    engine.add(waiting_pod(cpu=1, priority=9, **FAR))
    return engine


def perform(
    engine: Engine, effects: list[ports.Perform], problem: Exception | None = None
) -> RecordingPort:
    port = RecordingPort(low=problem) if problem is not None else RecordingPort()
    for effect in effects:
        asyncio.run(effect.run(port))
    return port


def test_the_attempt_ends_when_all_evictions_are_done() -> None:
    engine = preempting()
    effects = engine.run()
    assert [type(effect) for effect in effects] == [ports.Perform]
    assert engine.state_of("p") is State.IN_FLIGHT
    assert not engine.scheduler.only_retries_wait
    assert engine.attempts() == []
    engine.clock.advance_to(2.0)
    port = perform(engine, [each for each in effects if isinstance(each, ports.Perform)])
    assert port.deleted == ["default/low"]
    (record,) = engine.attempts()
    assert (record.at_seconds, record.message, record.nominated_node) == (2.0, MESSAGE, "n1")
    (patch,) = engine.patches()
    assert patch.condition is not None
    assert (patch.condition.message, patch.nominated_node_name) == (MESSAGE, "n1")
    assert engine.state_of("p") is State.UNSCHEDULABLE


def test_a_failed_eviction_is_in_the_message_and_the_nomination_stays() -> None:
    engine = preempting()
    effects = engine.run_for(ports.Perform)
    perform(engine, effects, ports.ApiError(403, "Forbidden", "it is protected"))
    (record,) = engine.attempts()
    assert (record.message, record.nominated_node) == (f"{REFUSED}it is protected", "")
    (patch,) = engine.patches()
    assert patch.condition is not None
    assert (patch.condition.reason, patch.nominated_node_name) == ("Unschedulable", None)
    assert patch.condition.message == f"{REFUSED}it is protected"
    assert engine.nominated_on("n1") == []


def test_the_room_is_nominated_from_the_decision_on() -> None:
    engine = preempting()
    effects = engine.run_for(ports.Perform)
    assert engine.nominated_on("n1") == ["p"]
    engine.delete(api_pod("low", cpu=1, node="n1"))
    engine.add(waiting_pod("other", cpu=1))
    assert engine.run_for(ports.BindPod) == []
    perform(engine, effects)
    engine.until(5)
    assert engine.bound() == {"p": "n1"}


def test_nothing_is_written_to_a_pod_deleted_meanwhile() -> None:
    engine = preempting()
    effects = engine.run_for(ports.Perform)
    engine.delete(waiting_pod(cpu=1, priority=9, **FAR))
    perform(engine, effects)
    assert engine.patches() == []
    assert engine.state_of("p") is State.ABSENT
    assert engine.nominated_on("n1") == []
    assert engine.scheduler.only_retries_wait


def test_without_an_eviction_the_attempt_ends_at_once() -> None:
    engine = Engine(
        plugins=["NodeResourcesFit", "DefaultPreemption"],
        gates={"SchedulerAsyncPreemption": False},
    )
    engine.add(node("n1", cpu=1), api_pod("low", cpu=1, node="n1", terminating=True))
    engine.add(waiting_pod(cpu=1, priority=9))
    assert engine.run_for(ports.Perform) == []
    (record,) = engine.attempts()
    assert (record.message, record.nominated_node) == (MESSAGE, "n1")


def test_extenders_review_the_candidates_first() -> None:
    engine = preempting(extenders=[Far(verbs=frozenset((ports.ExtenderVerb.PREEMPT,)))])
    (ask,) = engine.run_for(ports.AskExtender)
    victims = {"n1": ports.NamedVictims((uid("low"),))}
    engine.scheduler.extender_answered(ask.token, ports.ExtenderAnswer(victims=victims))
    effects = engine.run_for(ports.Perform)
    assert engine.attempts() == []
    assert perform(engine, effects).deleted == ["default/low"]
    (record,) = engine.attempts()
    assert record.nominated_node == "n1"
