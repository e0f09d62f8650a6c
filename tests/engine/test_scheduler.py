"""Scheduler: events in, effects out, bugs, and the order of activeQ despite a failing plugin."""

from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.config import ConfigError, SchedulerConfig, config_from
from bayplan.engine.extenders.results import ConfiguredExtender
from bayplan.engine.scheduler import QueueOrder, Scheduler
from bayplan.framework.events import (
    KIND_OF_RESOURCE,
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord, DigestSink, Journal
from bayplan.plugins.registry import Registry
from bayplan.ports import EventType, ExtenderVerb, WatchEvent
from bayplan.queue.entry import State
from bayplan.testing import node, pod
from tests.engine.kit import Engine, waiting_pod
from tests.framework.answering import answering, made, scores
from tests.scenarios.world import Setup, config_dict

# ---- scheduler ------------------------------------------------------------------------------


def raising(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("it cannot be")


# ---- effects --------------------------------------------------------------------------------


def test_equal_inputs_make_equal_journals() -> None:
    def digest(seed: int) -> str:
        sink = DigestSink()
        config = config_from(config_dict(Setup(plugins=[("A", 1)])))
        registry = Registry()
        registry.add(answering("A", score=lambda state, pod, nodes: scores(*[1] * 8)(0, 0, 0)))
        scheduler = Scheduler(
            config, registry, ManualClock(), seed=seed, journal=Journal([sink]), raise_bugs=True
        )
        for number in range(8):
            scheduler.handle(WatchEvent(EventType.ADDED, "v1 Node", node(f"n{number}")))
        for number in range(20):
            scheduler.handle(WatchEvent(EventType.ADDED, "v1 Pod", waiting_pod(f"p{number}")))
        while scheduler.schedule_one():
            scheduler.take_effects()
        return sink.digest

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


# ---- time -----------------------------------------------------------------------------------


def test_the_next_deadline_is_the_earliest() -> None:
    plugin = answering(
        "A",
        filter_node=lambda state, pod, info: (
            Status(Code.ERROR, ("broken",)) if pod.name == "broken" else None
        ),
        permit=(Status(Code.WAIT), 0.5),
    )
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), waiting_pod("broken"))
    engine.run()
    backoff = engine.scheduler.next_deadline_seconds()
    assert backoff is not None
    assert 1 <= backoff <= 2
    engine.add(waiting_pod("waits"))
    engine.run()
    assert engine.scheduler.next_deadline_seconds() == 0.5
    engine.until(0.5)
    assert engine.scheduler.waiting_pods() == []


# ---- kinds and fields -----------------------------------------------------------------------


def test_a_scheduler_schedules_the_pods_of_its_profiles() -> None:
    engine = Engine()
    assert engine.scheduler.is_responsible_for("bayplan")
    assert not engine.scheduler.is_responsible_for("other")
    assert not engine.scheduler.is_responsible_for(None)
    default = Scheduler(SchedulerConfig(), Registry(), ManualClock())
    assert default.is_responsible_for(None)


def test_the_kinds_and_fields_that_plugins_declare_are_listed() -> None:
    one = answering(
        "One",
        score_node=1,
        kinds=("v1 Service",),
        fields=("Node.status.nodeInfo.kubeletVersion",),
    )
    other = answering(
        "Other", score_node=1, kinds=("v1 Secret", "v1 Service"), fields=("Pod.spec.priority",)
    )
    scheduler = Engine(plugins=[("One", 1), ("Other", 1)], classes=[one, other]).scheduler
    assert scheduler.kinds == ["v1 Secret", "v1 Service"]
    assert scheduler.declared_fields == {
        "v1 Node": ("status.nodeInfo.kubeletVersion",),
        "v1 Pod": ("spec.priority",),
    }


def test_kinds_with_registered_events_are_watched() -> None:
    events = [
        ClusterEventWithHint(ClusterEvent("example.com/v1 Quota", UPDATE)),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)),
        ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD)),
    ]
    plugin = answering("One", filter=[], events_to_register=events)
    scheduler = Engine(plugins=["One"], classes=[plugin]).scheduler
    assert scheduler.kinds == ["example.com/v1 Quota", "storage.k8s.io/v1 CSINode"]


def test_a_plugin_without_registered_events_watches_all_kinds() -> None:
    silent = answering("One", filter=[])
    expected = sorted(KIND_OF_RESOURCE.values())
    assert Engine(plugins=["One"], classes=[silent]).scheduler.kinds == expected
    extender = ConfiguredExtender("far", frozenset((ExtenderVerb.FILTER,)))
    assert Engine(extenders=[extender]).scheduler.kinds == expected
    assert Engine().scheduler.kinds == []


def test_unavailable_kinds_are_not_watched() -> None:
    one = answering("One", filter=[], events_to_register=[], kinds=("v1 Service", "v1 Secret"))
    registry = Registry()
    registry.add(one)
    config = config_from(config_dict(Setup(plugins=["One"])))
    absent = ("v1 Secret", "v1 Other")
    assert Scheduler(config, registry, ManualClock(), absent_kinds=absent).kinds == ["v1 Service"]


def test_events_are_registered_once_at_the_start() -> None:
    plugin = answering("A", filter_node=unschedulable("no"), events_to_register=[])
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), *(waiting_pod(f"p{number}") for number in range(100)))
    engine.run()
    assert plugin.calls.count(("A", "events_to_register")) == 1


def test_a_plugin_that_fails_in_setup_stops_the_start_and_is_named() -> None:
    for answers in (
        {"setup": raising, "filter": []},
        {"filter": [], "events_to_register": ZeroDivisionError("it cannot be")},
    ):
        with pytest.raises(ConfigError, match=r"Odd.*ZeroDivisionError: it cannot be"):
            Engine(plugins=["Odd"], classes=[answering("Odd", **answers)])


# ---- the end --------------------------------------------------------------------------------


def test_every_instance_is_closed_once() -> None:
    plugins = [
        answering("A", filter=[], score=None, close=ValueError("boom")),
        answering("B", reserve=None, close=None),
    ]
    engine = Engine(plugins=["A", "B"], classes=plugins)
    for _ in range(2):
        engine.scheduler.close()
    assert [plugin.calls.count((plugin.name, "close")) for plugin in plugins] == [1, 1]
    [text] = engine.texts()
    assert text.startswith('running Close plugin "A": ValueError: boom (')


def test_after_a_failed_start_the_started_plugins_are_closed() -> None:
    first = answering("First", filter=[], close=None)
    odd = answering("Odd", setup=raising, filter=[])
    with pytest.raises(ConfigError):
        Engine(plugins=["First", "Odd"], classes=[first, odd])
    assert first.calls == [("First", "close")]


# ---- bugs of Bayplan ------------------------------------------------------------------------


def test_a_bug_in_an_event_does_not_stop_a_live_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(raise_bugs=False)
    engine.add(node("n1"))
    monkeypatch.setattr("bayplan.engine.event_handlers.pod_info", raising)
    engine.add(waiting_pod("p"))
    assert engine.metric("bayplan_bugs_total") == 1
    assert any("ZeroDivisionError: it cannot be" in text for text in engine.texts())
    monkeypatch.undo()
    engine.add(waiting_pod("q"))
    assert engine.bound() == {"q": "n1"}
    # The next event of the pod adds it again.
    engine.update(waiting_pod("p"))
    assert engine.bound() == {"p": "n1"}


def test_a_queue_bug_during_an_event_does_not_stop_a_live_scheduler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(raise_bugs=False)
    monkeypatch.setattr(engine.scheduler.queue, "add", raising)
    engine.add(node("n1"), waiting_pod("p"))
    monkeypatch.undo()
    engine.update(waiting_pod("p", labels={"a": "b"}))
    assert engine.bound() == {"p": "n1"}


def test_a_bug_in_an_event_ends_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    monkeypatch.setattr("bayplan.engine.event_handlers.pod_info", raising)
    with pytest.raises(ZeroDivisionError):
        engine.add(waiting_pod())


def test_a_bug_in_one_timer_does_not_stop_the_other_timers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = answering("A", permit=(Status(Code.WAIT), 5.0))
    engine = Engine(plugins=["A"], classes=[plugin], raise_bugs=False)
    engine.add(node("n1"), waiting_pod())
    engine.run()
    monkeypatch.setattr(engine.scheduler.queue, "run_timers", raising)
    engine.until(5)
    assert engine.scheduler.waiting_pods() == []
    assert engine.metric("bayplan_bugs_total") == 1


def test_a_bug_in_the_shell_is_counted() -> None:
    live = Engine(raise_bugs=False)
    live.scheduler.bug("v1 Pod", ValueError("odd object"))
    assert live.metric("bayplan_bugs_total") == 1
    with pytest.raises(ValueError, match="odd object"):
        Engine().scheduler.bug("v1 Pod", ValueError("odd object"))


def test_an_event_that_a_plugin_submits_is_handled_after_its_cycle() -> None:
    def hands_in(state: Any, pod: Any, where: str) -> None:
        if pod.name == "p":
            engine.add(waiting_pod("q"))
            assert engine.state_of("q") is State.ABSENT

    plugin = answering("A", reserve=hands_in)
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), waiting_pod("p"))
    assert engine.bound() == {"p": "n1", "q": "n1"}
    records = [r.pod for r in engine.journal.records if isinstance(r, AttemptRecord)]
    assert records == ["default/p", "default/q"]


# ---- queue order ----------------------------------------------------------------------------


Failures = list[tuple[str, str, str]]


def order(key: Any, failures: Failures | None = None) -> QueueOrder:
    failure_list: Failures = [] if failures is None else failures

    def failed(queued: QueuedPodInfo, plugin: str, error: BaseException) -> None:
        failure_list.append((queued.pod.name, plugin, str(error)))

    return QueueOrder(made(answering("Sort", key=key)), failed)


def queued(name: str) -> QueuedPodInfo:
    return QueuedPodInfo(pod(name), 0.0)


def test_pods_are_sorted_by_their_keys() -> None:
    by_name = order(lambda each: each.pod.name)
    assert sorted(map(queued, "cab"), key=by_name)[0].pod.name == "a"


def test_a_pod_whose_key_fails_comes_last() -> None:
    def key(each: QueuedPodInfo) -> int:
        return {"a": 3, "b": 1}[each.pod.name]

    failures: Failures = []
    names = sorted(map(queued, "xab"), key=order(key, failures))
    assert [each.pod.name for each in names] == ["b", "a", "x"]
    assert failures == [("x", "Sort", "'x'")]


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        pytest.param(1, 2.5, True, id="int and float"),
        pytest.param((1, "a"), (0.5, "b"), True, id="tuples of equal types"),
        pytest.param(1, "a", False, id="a number and a text"),
        pytest.param((1, 2), (1, None), False, id="nested tuples of different types"),
        pytest.param((1,), (1, 2), False, id="tuples of different lengths"),
        pytest.param(1, None, False, id="None"),
    ],
)
def test_all_keys_must_have_one_type(first: Any, second: Any, fits: bool) -> None:
    keys, failures = {"a": first, "b": second}, Failures()
    by = order(lambda each: keys[each.pod.name], failures)
    assert by(queued("a")) == (0, first)
    assert by(queued("b")) == ((0, second) if fits else (1, 0))
    assert bool(failures) is not fits


def test_keys_without_an_order_are_refused() -> None:
    failures: Failures = []
    by = order(lambda each: object(), failures)
    assert [by(queued("a")), by(queued("b"))] == [(1, 0), (1, 0)]
    assert len(failures) == 2


def test_a_failing_queue_sort_stops_neither_the_queue_nor_the_pod() -> None:
    def key(each: QueuedPodInfo) -> int:
        if each.pod.name == "odd":
            raise ValueError("no idea")
        return each.sequence

    sort = answering("Sort", key=key)
    engine = Engine(classes=[sort], queue_sort="Sort")
    engine.add(waiting_pod("odd"), waiting_pod("even"))
    engine.run()
    records = engine.journal.records
    tried = [record.pod for record in records if isinstance(record, AttemptRecord)]
    assert tried == ["default/even", "default/odd"]
    assert any('running QueueSort plugin "Sort": ValueError: no idea' in t for t in engine.texts())
    assert engine.metric("bayplan_plugin_failures_total", plugin="Sort") >= 1
