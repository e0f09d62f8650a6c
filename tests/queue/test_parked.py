"""Parked entries: the index gives what asking each pod by itself gives."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.clock import ManualClock
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    QueueingHint,
)
from bayplan.queue.entry import Entry
from bayplan.queue.hints import Change, Hints, Strategy
from bayplan.queue.parked import Parked, PreCheck
from bayplan.queue.settings import QueueProfile, QueueSettings
from bayplan.queue.transitions import State
from bayplan.state.pods import PodInfo
from tests.queue.factories import (
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    Events,
    Hint,
    Recorder,
    by_priority,
    by_shape,
    on,
    pod,
    queued,
)

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
ADDED = Change(NODE_ADD, None, "node")


@dataclass
class Park:
    """Parked entries of one profile."""

    events: Events
    sign: Callable[[str, PodInfo], Hashable | None] = by_shape
    recorder: Recorder = field(default_factory=Recorder)

    def __post_init__(self) -> None:
        profiles = {PROFILE: QueueProfile((), self.events, self.sign)}
        self.hints = Hints(self.events, self.recorder, ManualClock().now)
        settings = QueueSettings(by_priority)
        self.parked = Parked(profiles, {PROFILE: self.hints}, settings, self.recorder)

    def put(
        self, name: str, *rejected_by: str, shape: str = "s", gated_by: str = "", **queueing: Any
    ) -> Entry:
        one = queued(name, rejected_by=rejected_by, **queueing)
        one.pod = pod(name, labels={"shape": shape} if shape else {})
        one.sequence = sum(1 for _ in self.parked) + 1
        one.gating_plugin = gated_by
        entry = Entry(one)
        entry.state = State.GATED if gated_by else State.UNSCHEDULABLE
        self.parked.enter(entry)
        return entry

    def woken(self, change: Change, pre_check: PreCheck | None = None) -> list[str]:
        return [
            f"{entry.queued.pod.name} {strategy.name}"
            for entry, strategy in self.parked.woken_by(change, pre_check)
        ]


def test_a_hint_is_asked_once_for_pods_of_one_part() -> None:
    hint = Hint(QUEUE)
    park = Park({"Fit": [on(NODE_ADD, hint)]})
    for number in range(5):
        park.put(f"p{number}", "Fit", shape="same")
    assert len(park.woken(ADDED)) == 5
    assert hint.asked == ["p0"]


def test_each_part_is_asked_by_itself() -> None:
    hint = Hint(lambda pod: QUEUE if pod.labels["shape"] == "s1" else SKIP)
    park = Park({"Fit": [on(NODE_ADD, hint)]})
    for number in range(6):
        park.put(f"p{number}", "Fit", shape=f"s{number % 3}")
    assert park.woken(ADDED) == ["p1 AFTER_BACKOFF", "p4 AFTER_BACKOFF"]
    assert hint.asked == ["p0", "p1", "p2"]


def test_pods_that_are_not_signed_are_asked_one_by_one() -> None:
    hint = Hint(SKIP)
    park = Park({"Fit": [on(NODE_ADD, hint)]})
    for number in range(3):
        park.put(f"p{number}", "Fit", shape="")
    assert park.woken(ADDED) == []
    assert hint.asked == ["p0", "p1", "p2"]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("says", [QUEUE, SKIP])
def test_the_pod_an_event_is_about_is_asked_by_itself_and_for_itself_only(
    number: int, says: QueueingHint
) -> None:
    subject = f"p{number}"
    others = SKIP if says is QUEUE else QUEUE
    hint = Hint(lambda pod: says if pod.name == subject else others)
    park = Park({"Fit": [on(EVENT_ASSIGNED_POD_DELETE, hint)]})
    entries = [park.put(f"p{each}", "Fit") for each in range(3)]
    change = Change(EVENT_ASSIGNED_POD_DELETE, entries[number].queued.pod, None)
    woken = {name.split()[0] for name in park.woken(change)}
    assert woken == ({subject} if says is QUEUE else {"p0", "p1", "p2"} - {subject})
    assert len(hint.asked) == 2


def test_nobody_is_asked_about_an_event_of_other_plugins() -> None:
    hint = Hint(QUEUE)
    park = Park({"Fit": [on(NODE_ADD, hint)], "Taint": [on(NODE_LABEL)]})
    park.put("p", "Fit")
    assert park.woken(Change(NODE_LABEL, None, "node")) == []
    assert not hint.asked


def test_the_woken_come_in_the_order_they_were_queued() -> None:
    park = Park({"Fit": [on(NODE_ADD)], "Taint": [on(NODE_ADD)]})
    park.put("a", "Taint", shape="2")
    park.put("b", "Fit", shape="1")
    park.put("c", "Fit", "Taint", shape="3")
    assert park.woken(ADDED) == ["a AFTER_BACKOFF", "b AFTER_BACKOFF", "c AFTER_BACKOFF"]


def test_a_content_pending_plugin_wakes_at_once() -> None:
    park = Park({"Fit": [on(NODE_ADD)], "Claims": [on(NODE_ADD)]})
    park.put("a", "Fit", pending=["Claims"])
    park.put("b", "Fit")
    assert park.woken(ADDED) == ["a IMMEDIATELY", "b AFTER_BACKOFF"]


def test_a_gated_pod_hears_only_events_of_the_plugin_that_gates_it() -> None:
    park = Park({"Fit": [on(NODE_ADD), on(NODE_LABEL)], "Gate": [on(NODE_LABEL)]})
    park.put("a", "Fit", "Gate", gated_by="Gate")
    assert park.woken(ADDED) == []
    assert park.woken(Change(NODE_LABEL, None, "node")) == ["a AFTER_BACKOFF"]


def test_a_pre_check_leaves_pods_out() -> None:
    park = Park({"Fit": [on(NODE_ADD)]})
    park.put("a", "Fit")
    park.put("b", "Fit")
    assert park.woken(ADDED, lambda pod: pod.name == "b") == ["b AFTER_BACKOFF"]


def test_an_entry_that_left_is_not_found() -> None:
    park = Park({"Fit": [on(NODE_ADD)]})
    entry = park.put("a", "Fit")
    park.parked.leave(entry)
    assert park.woken(ADDED) == []
    assert park.parked.next_flush_seconds() is None
    assert not any(park.parked._index.values())


def test_an_entry_that_enters_again_is_found_under_its_new_part_only() -> None:
    hint = Hint(lambda pod: QUEUE if pod.labels["shape"] == "new" else SKIP)
    park = Park({"Fit": [on(NODE_ADD, hint)]})
    entry = park.put("a", "Fit", shape="old")
    entry.queued.pod = pod("a", labels={"shape": "new"})
    park.parked.enter(entry)
    assert park.woken(ADDED) == ["a AFTER_BACKOFF"]
    assert hint.asked == ["a"]


def test_a_wildcard_wakes_everyone_but_whom_the_pre_check_leaves_out() -> None:
    park = Park({})
    park.put("a", "Fit")
    park.put("b", "Gate", gated_by="Gate")
    timeout = Change(EVENT_UNSCHEDULABLE_TIMEOUT, None, None)
    woken = park.parked.woken_by_wildcard(timeout)
    assert [entry.queued.pod.name for entry, _ in woken] == ["a", "b"]
    woken = park.parked.woken_by_wildcard(timeout, lambda pod: pod.name == "b")
    assert [entry.queued.pod.name for entry, _ in woken] == ["b"]


@pytest.mark.parametrize("part", [["a list"], {"a": "dict"}])
def test_a_part_that_cannot_be_kept_is_reported_and_the_pod_asked_by_itself(part: Any) -> None:
    park = Park({"Fit": [on(NODE_ADD)]}, sign=lambda plugin, pod: part)
    park.put("a", "Fit")
    assert park.woken(ADDED) == ["a AFTER_BACKOFF"]
    assert [failure[:2] for failure in park.recorder.failures] == [("Fit", "SignPod")]


@pytest.mark.parametrize(
    ("since", "flush"),
    [
        pytest.param(0, 330, id="exactly five minutes is not longer"),
        pytest.param(0.5, 330, id="between two looks"),
        pytest.param(29.5, 330, id="just before a look"),
        pytest.param(30, 360, id="at a look"),
    ],
)
def test_the_flush_comes_at_the_first_look_after_more_than_five_minutes(
    since: float, flush: float
) -> None:
    park = Park({})
    entry = park.put("a", "Fit", at=since)
    assert park.parked.next_flush_seconds() == flush
    assert park.parked.first_overdue(flush - 0.5) is None
    assert park.parked.first_overdue(flush) is entry


PLUGINS = ("Fit", "Spread", "Claims", "Gate")
CHANGES = [
    Change(event, None, subject)
    for event in (NODE_ADD, NODE_LABEL, EVENT_ASSIGNED_POD_DELETE)
    for subject in ("node", pod("p0"), pod("p3"))
]
ANSWERS = (QUEUE, SKIP)

parked_pods = st.lists(
    st.fixed_dictionaries(
        {
            "rejected_by": st.sets(st.sampled_from(PLUGINS)),
            "pending": st.sets(st.sampled_from(PLUGINS)),
            "shape": st.sampled_from(["", "s1", "s2"]),
            "gated_by": st.sampled_from(["", "", "Gate"]),
        }
    ).filter(lambda each: each["rejected_by"] or each["pending"]),
    max_size=12,
)
registrations = st.dictionaries(
    st.sampled_from(PLUGINS),
    st.lists(
        st.tuples(
            st.sampled_from([NODE_ADD, NODE_LABEL, EVENT_ASSIGNED_POD_DELETE]),
            st.dictionaries(st.sampled_from(["", "s1", "s2"]), st.sampled_from(ANSWERS)),
            st.sampled_from([None, *ANSWERS]),
        ),
        max_size=3,
    ),
)


def hint_of(of_shape: dict[str, QueueingHint], of_itself: QueueingHint | None) -> Any:
    """Follows from the part, but for the pod itself. No answers at all: no hint."""

    def hint(waiting: PodInfo, old: Any, new: Any) -> QueueingHint:
        if of_itself is not None and isinstance(new, PodInfo) and new.uid == waiting.uid:
            return of_itself
        return of_shape.get(waiting.labels.get("shape", ""), SKIP)

    return hint if of_shape else None


def asked_one_by_one(park: Park, change: Change, pre_check: PreCheck) -> list[str]:
    """The specification: walk all of them, as upstream does."""
    woken: list[str] = []
    for entry in park.parked:
        one = entry.queued
        is_deaf = one.gating_plugin and one.gating_plugin not in park.hints.interested(change.event)
        strategy = park.hints.strategy(one, change)
        if not is_deaf and pre_check(one.pod) and strategy is not Strategy.SKIP:
            woken.append(f"{one.pod.name} {strategy.name}")
    return woken


@given(
    pods=parked_pods,
    registered=registrations,
    change=st.sampled_from(CHANGES),
    left_out=st.sets(st.integers(0, 11)),
)
def test_the_index_answers_as_if_each_pod_were_asked_by_itself(
    pods: list[dict[str, Any]],
    registered: dict[str, list[tuple[Any, dict[str, QueueingHint], QueueingHint | None]]],
    change: Change,
    left_out: set[int],
) -> None:
    events = {
        plugin: [on(event, hint_of(of_shape, of_itself)) for event, of_shape, of_itself in each]
        for plugin, each in registered.items()
    }
    park = Park(events)
    for number, each in enumerate(pods):
        park.put(
            f"p{number}",
            *each["rejected_by"],
            shape=each["shape"],
            gated_by=each["gated_by"],
            pending=each["pending"],
        )
    names = {f"p{number}" for number in left_out}

    def pre_check(waiting: PodInfo) -> bool:
        return waiting.name not in names

    assert park.woken(change, pre_check) == asked_one_by_one(park, change, pre_check)
