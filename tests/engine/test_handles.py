"""Requests of plugins through their handles, during a turn and outside of it."""

from typing import Any

from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.ports import BindPod, EmitEvent
from bayplan.queue.entry import State
from bayplan.testing import node, pod
from tests.engine.kit import Engine, uid, waiting_pod
from tests.framework.answering import answering

NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)
WAIT = (Status(Code.WAIT), 60.0)


def permit_waits(*names: str) -> type[Any]:
    """A plugin whose Permit lets these pods wait."""
    return answering(
        "PermitWaits",
        permit=lambda state, pod, where: WAIT if pod.name in names else (None, 0.0),
        events_to_register=[],
    )


def test_rejecting_while_iterating_is_allowed() -> None:
    engine = Engine(plugins=["PermitWaits"], classes=[permit_waits("a", "b", "c")])
    engine.add(node("n1"), *map(waiting_pod, "abc"))
    engine.run()
    handle = engine.plugin("PermitWaits").handle
    for waiting in handle.waiting_pods():
        assert handle.reject_waiting_pod(waiting.pod.uid)
    assert handle.waiting_pods() == []
    assert [engine.state_of(name) for name in "abc"] == [State.UNSCHEDULABLE] * 3
    assert engine.blamed("a") == {"PermitWaits"}


def test_a_pod_rejected_during_a_cycle_is_removed_from_its_node_after_the_cycle() -> None:
    """The cluster does not change during a cycle."""
    seen: list[tuple[Any, ...]] = []

    def rejects(state: Any, pod: Any, where: str) -> Any:
        if pod.name == "q":
            handle = engine.plugin("PermitWaits").handle
            answers = [handle.reject_waiting_pod(uid("p")) for _ in range(2)]
            seen.append((*answers, dict(handle.snapshot.node("n1").requested)))
        return WAIT if pod.name == "p" else (None, 0.0)

    engine = Engine(plugins=["PermitWaits"], classes=[answering("PermitWaits", permit=rejects)])
    engine.add(node("n1"), waiting_pod("p", cpu=1))
    engine.run()
    engine.add(waiting_pod("q", cpu=2))
    assert engine.bound() == {"q": "n1"}
    assert seen == [(True, False, {"cpu": 3000})]
    assert engine.placed_on("p") == ""
    assert engine.state_of("p") is State.UNSCHEDULABLE


def test_a_pod_allowed_during_a_cycle_is_bound_after_the_cycle() -> None:
    def allows(state: Any, pod: Any, where: str) -> Any:
        if pod.name == "q":
            engine.plugin("PermitWaits").handle.waiting_pod(uid("p")).allow("PermitWaits")
            return unschedulable("not me"), 0.0
        return WAIT

    engine = Engine(plugins=["PermitWaits"], classes=[answering("PermitWaits", permit=allows)])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    engine.add(waiting_pod("q"))
    assert engine.bound() == {"p": "n1"}


def test_activating_the_pod_of_the_current_attempt_retries_it_at_once() -> None:
    activated: list[Any] = []

    def activates(state: Any, pod: Any, info: Any) -> Any:
        if activated:
            return None
        activated.append(pod)
        engine.plugin("Eager").handle.activate([pod])
        return unschedulable("first time")

    engine = Engine(
        plugins=["Eager"],
        classes=[answering("Eager", filter_node=activates, events_to_register=[])],
    )
    engine.add(node("n1"), waiting_pod("p"))
    assert engine.bound() == {"p": "n1"}
    assert [record.attempt for record in engine.attempts()] == [1, 2]


def test_a_delayed_activation_happens_at_its_time() -> None:
    def refuses(state: Any, pod_info: Any, info: Any) -> Any:
        engine.plugin("Later").handle.activate([pod_info, pod("made-up")], at_seconds=42.5)
        return unschedulable("not yet") if engine.clock.now() < 42.5 else None

    engine = Engine(
        plugins=["Later"],
        classes=[answering("Later", filter_node=refuses, events_to_register=[])],
    )
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    assert engine.scheduler.next_deadline_seconds() == 42.5
    engine.until(42.499)
    assert engine.bound() == {}
    engine.until(42.5)
    assert engine.bound() == {"p": "n1"}
    assert [record.at_seconds for record in engine.attempts()] == [0.0, 42.5]


def test_activating_from_a_queueing_hint_is_allowed() -> None:
    """The queue iterates over its unschedulable pods while it calls hints."""
    engine = Engine(plugins=["Fussy"], classes=[fussy()])
    engine.add(node("n1"), waiting_pod("p"), waiting_pod("q"))
    engine.run()
    engine.until(100)
    engine.add(node("n2"))
    assert {engine.state_of(name) for name in "pq"} == {State.ACTIVE}


def fussy() -> type[Any]:
    from_start: list[Any] = []

    def setup(self: Any) -> None:
        from_start.append(self)

    def hint(pod: Any, old: Any, new: Any) -> Any:
        plugin = from_start[0]
        plugin.handle.activate(plugin.refused)
        raise RuntimeError("and now this")

    def refuses(state: Any, pod: Any, info: Any) -> Any:
        from_start[0].refused.append(pod)
        return unschedulable("no")

    return answering(
        "Fussy",
        setup=setup,
        refused=[],
        filter_node=refuses,
        events_to_register=[ClusterEventWithHint(NODE_ADDED, hint)],
    )


def test_an_effect_outside_of_a_turn_wakes_the_shell() -> None:
    engine = Engine(plugins=["PermitWaits"], classes=[permit_waits("p")])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    woken: list[str] = []
    engine.scheduler.on_wake(lambda: woken.append("woken"))
    handle = engine.plugin("PermitWaits").handle
    handle.emit(handle.waiting_pods()[0].pod, "Normal", "Waits", "Waiting", "something")
    assert len(woken) == 1
    handle.waiting_pod(uid("p")).allow("PermitWaits")
    assert len(woken) == 2
    handle.activate([])
    assert len(woken) == 3
    effects = engine.scheduler.take_effects()
    assert [type(effect) for effect in effects] == [EmitEvent, BindPod]
