"""Queueing hints: which events may help which pods."""

from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    QueueingHint,
    QueueingHintFn,
)
from bayplan.framework.validation import described
from bayplan.queue.hints import Change, Hints, Strategy, strategy_of
from bayplan.testing import pod
from tests.queue.factories import (
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    Events,
    Hint,
    Recorder,
    on,
    queued,
)

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
ADDED = Change(NODE_ADD, None, "node")


def hints(events: Events, recorder: Recorder | None = None) -> Hints:
    return Hints(events, recorder or Recorder(), ManualClock().now)


def test_only_plugins_that_registered_for_an_event_are_interested() -> None:
    hint = Hint(QUEUE)
    table = hints({"Fit": [on(NODE_ADD, hint)], "Taint": [on(NODE_LABEL)], "Never": []})
    assert table.interested(NODE_ADD) == {"Fit": [hint]}
    assert table.interested(NODE_LABEL) == {"Taint": [None]}


@pytest.mark.parametrize(
    ("hint", "strategy"),
    [
        pytest.param(Hint(QUEUE), Strategy.AFTER_BACKOFF, id="Queue"),
        pytest.param(Hint(SKIP), Strategy.SKIP, id="Skip"),
        pytest.param(None, Strategy.AFTER_BACKOFF, id="no hint is always Queue"),
    ],
)
def test_the_hint_decides_whether_a_rejected_pod_is_activated(
    hint: Any, strategy: Strategy
) -> None:
    table = hints({"Fit": [on(NODE_ADD, hint)]})
    assert table.strategy(queued(rejected_by=["Fit"]), ADDED) is strategy


@pytest.mark.parametrize(
    ("new", "strategy"),
    [
        pytest.param(None, Strategy.AFTER_BACKOFF, id="without an object"),
        pytest.param(pod("p"), Strategy.AFTER_BACKOFF, id="about this pod"),
        pytest.param(pod("other"), Strategy.SKIP, id="about another pod"),
        pytest.param("a node", Strategy.SKIP, id="about another object"),
    ],
)
def test_a_wildcard_calls_no_hint(new: Any, strategy: Strategy) -> None:
    for event in (EVENT_UNSCHEDULABLE_TIMEOUT, EVENT_FORCE_ACTIVATE):
        change = Change(event, None, new)
        assert hints({}).strategy(queued(rejected_by=["Fit"]), change) is strategy


def test_a_hint_that_raises_counts_as_queue_and_is_reported() -> None:
    def boom(*_: Any) -> QueueingHint:
        raise ValueError("boom")

    recorder = Recorder()
    table = hints({"Fit": [on(NODE_ADD, boom)]}, recorder)
    assert table.strategy(queued(rejected_by=["Fit"]), ADDED) is Strategy.AFTER_BACKOFF
    assert recorder.failures == [("Fit", "NodeAdd", "boom")]


@pytest.mark.parametrize("answer", [None, True, "Queue"])
def test_an_invalid_hint_result_counts_as_queue_and_is_reported(answer: Any) -> None:
    recorder = Recorder()
    table = hints({"Fit": [on(NODE_ADD, Hint(answer))]}, recorder)
    assert table.helps("Fit", ADDED, pod())
    assert f"returned {described(answer)}; wanted a QueueingHint" in recorder.failures[0][2]


def test_the_duration_of_a_hint_is_reported_with_its_result() -> None:
    clock, recorder = ManualClock(), Recorder()

    def slow(answer: Any, seconds: float) -> QueueingHintFn:
        def hint(*_: Any) -> Any:
            clock.advance_to(clock.now() + seconds)
            return answer

        return hint

    events = {
        "Skips": [on(NODE_ADD, slow(SKIP, 0.5))],
        "Queues": [on(NODE_ADD, slow(QUEUE, 1.0))],
        "Fails": [on(NODE_ADD, slow("nonsense", 2.0))],
        "Without": [on(NODE_ADD)],
    }
    table = Hints(events, recorder, clock.now)
    for plugin in events:
        table.helps(plugin, ADDED, pod())
    assert recorder.hints == [
        ("Skips", "NodeAdd", "QueueSkip", 0.5),
        ("Queues", "NodeAdd", "Queue", 1.0),
        ("Fails", "NodeAdd", "Error", 2.0),
    ]


def test_a_hint_receives_the_pod_and_both_objects() -> None:
    received: list[Any] = []

    def hint(*arguments: Any) -> QueueingHint:
        received.extend(arguments)
        return SKIP

    one = queued("a", rejected_by=["Fit"])
    hints({"Fit": [on(NODE_ADD, hint)]}).strategy(one, Change(NODE_ADD, "old", "new"))
    assert received == [one.pod, "old", "new"]


def test_no_hint_is_called_once_the_result_is_final() -> None:
    hint = Hint(QUEUE)
    table = {PROFILE: hints({"Fit": [on(NODE_ADD, hint)]})}
    strategy_of(table, [queued(rejected_by=["Fit"])], [ADDED, ADDED])
    assert len(hint.calls) == 1


def test_a_change_has_the_uid_of_its_pod() -> None:
    one = pod("a")
    assert Change(EVENT_ASSIGNED_POD_DELETE, one, None).subject_uid == one.uid
    assert Change(EVENT_ASSIGNED_POD_DELETE, None, one).subject_uid == one.uid
    assert ADDED.subject_uid == ""
