"""The parts of the queue: the heap, backoff delays, sizes, unschedulable pods and transitions."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.pod_groups import GroupKey
from bayplan.clock import ManualClock
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    QueueingHint,
)
from bayplan.queue.entry import Cause, Entry, QueuedPodGroupInfo, State
from bayplan.queue.hints import Change, Hints, Strategy
from bayplan.queue.settings import QueueProfile, QueueSettings
from bayplan.queue.sub_queues import (
    GROUP_ENTITY,
    NEVER,
    POD_ENTITY,
    Backoff,
    OrderedEntries,
    PreCheck,
    PreEnqueueCheck,
    Sizes,
    SubQueues,
    UnschedulablePods,
    looked_at_seconds,
)
from bayplan.state.pods import PodInfo
from tests.queue.factories import (
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    Events,
    Gate,
    Hint,
    Recorder,
    by_priority,
    by_shape,
    gate,
    on,
    queued,
    waiting_pod,
)

# ---- the heap -------------------------------------------------------------------------------


def entry(name: str, at: float = 0.0) -> Entry:
    return Entry(queued(name, at=at))


def by_time(entry: Entry) -> tuple[float, str]:
    return entry.queued.timestamp_seconds, entry.key


def drained(entries: OrderedEntries) -> list[str]:
    names: list[str] = []
    while (entry := entries.pop()) is not None:
        names.append(entry.queued.pod.name)
    return names


def test_entries_come_out_in_order_of_their_keys() -> None:
    entries = OrderedEntries(by_time)
    for name, at in (("b", 2), ("a", 1), ("c", 3)):
        entries.enter(entry(name, at))
    assert drained(entries) == ["a", "b", "c"]


def test_a_removed_entry_is_not_popped() -> None:
    entries = OrderedEntries(by_time)
    first, second = entry("a", 1), entry("b", 2)
    entries.enter(first)
    entries.enter(second)
    entries.leave(first)
    assert len(entries) == 1
    assert entries.first() == ((2, second.key), second)
    assert drained(entries) == ["b"]


def test_an_entry_that_enters_again_is_ordered_by_its_new_key() -> None:
    entries = OrderedEntries(by_time)
    moved, other = entry("a", 1), entry("b", 2)
    entries.enter(moved)
    entries.enter(other)
    moved.queued.timestamp_seconds = 3
    entries.enter(moved)
    assert len(entries) == 2
    assert drained(entries) == ["b", "a"]


def test_the_first_of_an_empty_heap_is_none() -> None:
    entries = OrderedEntries(by_time)
    assert entries.first() is None
    assert entries.pop() is None


def test_dead_items_of_removed_entries_are_removed() -> None:
    entries = OrderedEntries(by_time)
    stays = entry("stays", 0)
    entries.enter(stays)
    for number in range(1000):
        passing = entry(f"p{number}", number + 1)
        entries.enter(passing)
        entries.leave(passing)
    assert len(entries._row) + len(entries._heap) < 50
    assert drained(entries) == ["stays"]


def test_dead_items_of_an_entry_that_moves_often_are_removed() -> None:
    entries = OrderedEntries(by_time)
    moves = entry("moves")
    for number in range(1000):
        moves.queued.timestamp_seconds = 1000 - number
        entries.enter(moves)
    assert len(entries._row) + len(entries._heap) < 50
    assert drained(entries) == ["moves"]


Step = tuple[str, int, int]
steps = st.lists(
    st.tuples(st.sampled_from(["enter", "leave", "pop"]), st.integers(0, 30), st.integers(0, 10)),
    max_size=200,
)


@given(steps)
def test_ordered_entries_behave_as_a_sorted_dictionary(done: list[Step]) -> None:
    entries, model = OrderedEntries(by_time), dict[str, Entry]()
    all_entries = {number: entry(f"p{number:02}") for number in range(31)}
    for what, number, at in done:
        one = all_entries[number]
        if what == "enter":
            one.queued.timestamp_seconds = at
            entries.enter(one)
            model[one.key] = one
        elif what == "leave" and one.key in model:
            entries.leave(one)
            del model[one.key]
        elif what == "pop":
            expected = min(model.values(), key=by_time, default=None)
            assert entries.pop() is expected
            if expected is not None:
                del model[expected.key]
        assert len(entries) == len(model)
        assert set(entries) == set(model.values())


# ---- backoff --------------------------------------------------------------------------------


def backoff(now: float = 0.0, *, windows: bool = True, longest: float = 10.0) -> Backoff:
    settings = QueueSettings(by_priority, max_backoff_seconds=longest, pop_from_backoff_q=windows)
    return Backoff(settings, lambda: now)


def failed(*, rejections: int = 0, errors: int = 0, at: float = 0.0) -> Entry:
    one = queued(at=at)
    one.unschedulable_count, one.consecutive_errors_count = rejections, errors
    return Entry(one)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)]
)
def test_the_delay_doubles_up_to_the_maximum(failures: int, seconds: float) -> None:
    assert backoff().delay_seconds(failures) == seconds


def test_the_maximum_grows_with_the_square_root_of_the_size() -> None:
    assert backoff().delay_seconds(4, size=4) == 8
    assert backoff().delay_seconds(5, size=4) == 16
    assert backoff().delay_seconds(9, size=4) == 20
    assert backoff().delay_seconds(9, size=2) == 10 * math.sqrt(2)


@pytest.mark.parametrize(
    ("entry", "expires_at"),
    [
        pytest.param(failed(at=5), NEVER, id="never failed"),
        pytest.param(failed(rejections=3, at=5), 9, id="rejections count"),
        pytest.param(failed(rejections=3, errors=1, at=5), 6, id="after an error, errors count"),
    ],
)
def test_the_last_kind_of_failure_determines_the_backoff(entry: Entry, expires_at: float) -> None:
    assert backoff().expires_at_seconds(entry) == expires_at


def test_a_maximum_of_zero_means_no_delay() -> None:
    without = backoff(longest=0)
    assert without.expires_at_seconds(failed(rejections=7)) == NEVER
    assert not without.is_running(failed(rejections=7))


@pytest.mark.parametrize(
    ("windows", "now", "running"),
    [
        pytest.param(True, 1.2, True, id="windows: before its end"),
        pytest.param(True, 1.9, True, id="windows: in the window of its end"),
        pytest.param(True, 2.0, False, id="windows: in the next window"),
        pytest.param(False, 1.3, True, id="exact: before its end"),
        pytest.param(False, 1.5, True, id="exact: at its end"),
        pytest.param(False, 1.6, False, id="exact: after its end"),
    ],
)
def test_a_delay_runs_to_the_end_of_its_window_or_its_instant(
    windows: bool, now: float, running: bool
) -> None:
    assert backoff(now, windows=windows).is_running(failed(rejections=1, at=0.5)) is running


def test_expiries_are_truncated_to_whole_seconds_only_with_windows() -> None:
    entry = failed(rejections=2, at=0.75)
    assert backoff(windows=True).expires_at_seconds(entry) == 2
    assert backoff(windows=False).expires_at_seconds(entry) == 2.75


@pytest.mark.parametrize(("expires_at", "looked_at"), [(1.0, 2.0), (1.25, 2.0), (1.99, 2.0)])
def test_an_expired_delay_takes_effect_at_the_next_whole_second(
    expires_at: float, looked_at: float
) -> None:
    assert looked_at_seconds(expires_at) == looked_at


@given(
    windows=st.booleans(),
    rejections=st.integers(1, 9),
    at=st.integers(0, 4000).map(lambda n: n / 64),
)
def test_the_check_runs_at_the_first_whole_second_after_the_delay(
    windows: bool, rejections: int, at: float
) -> None:
    entry = failed(rejections=rejections, at=at)
    first = next(
        second
        for second in range(math.ceil(at), math.ceil(at) + 20)
        if not backoff(second, windows=windows).is_running(entry)
    )
    assert looked_at_seconds(backoff(windows=windows).expires_at_seconds(entry)) == first


# ---- sizes of the queues --------------------------------------------------------------------


def lone(name: str, state: State) -> Entry:
    entry = Entry(queued(name))
    entry.state = state
    return entry


def group_of(*names: str, state: State) -> Entry:
    members = {waiting_pod(name).uid: queued(name) for name in names}
    key = GroupKey("scheduling.x-k8s.io", "default", "g")
    entry = Entry(QueuedPodGroupInfo(waiting_pod(names[0]), 0.0, 1, key=key, members=members))
    entry.state = state
    return entry


def nonzero_counts(sizes: Sizes) -> dict[tuple[str, str], int]:
    return {at: count for at, count in sizes.entities().items() if count}


def test_a_group_counts_as_one_entity_and_as_its_number_of_pods() -> None:
    sizes = Sizes()
    group = group_of("a", "b", "c", state=State.ACTIVE)
    for entry in (group, lone("x", State.ACTIVE), lone("y", State.ERROR_BACKOFF)):
        sizes.change(entry, 1)
    assert sizes.pods() == {"active": 4, "backoff": 1, "unschedulable": 0, "gated": 0}
    assert nonzero_counts(sizes) == {
        ("active", "podgroup"): 1,
        ("active", "pod"): 1,
        ("backoff", "pod"): 1,
    }
    sizes.change(group, -1)
    assert nonzero_counts(sizes) == {("active", "pod"): 1, ("backoff", "pod"): 1}


def test_new_members_add_pods_and_no_entities() -> None:
    sizes = Sizes()
    sizes.change(group_of("a", "b", state=State.GATED), 1)
    sizes.grew(State.GATED, 3)
    assert sizes.pods()["gated"] == 5
    assert nonzero_counts(sizes) == {("gated", "podgroup"): 1}


def test_every_queue_is_reported_even_if_it_is_empty() -> None:
    queues = ("active", "backoff", "unschedulable", "gated")
    assert Sizes().entities() == {(q, e): 0 for q in queues for e in (POD_ENTITY, GROUP_ENTITY)}


# ---- unschedulable pods ---------------------------------------------------------------------


QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
ADDED = Change(NODE_ADD, None, "node")


@dataclass
class RejectedPods:
    """The unschedulable and gated entries of one profile."""

    events: Events
    sign: Callable[[str, PodInfo], Hashable | None] = by_shape
    recorder: Recorder = field(default_factory=Recorder)

    def __post_init__(self) -> None:
        profiles = {PROFILE: QueueProfile((), self.events, self.sign)}
        self.hints = Hints(self.events, self.recorder, ManualClock().now)
        settings = QueueSettings(by_priority)
        self.unschedulable = UnschedulablePods(
            profiles, {PROFILE: self.hints}, settings, self.recorder
        )

    def put(
        self, name: str, *rejected_by: str, shape: str = "s", gated_by: str = "", **queueing: Any
    ) -> Entry:
        one = queued(name, rejected_by=rejected_by, **queueing)
        one.pod = waiting_pod(name, labels={"shape": shape} if shape else {})
        one.sequence = sum(1 for _ in self.unschedulable) + 1
        one.gating_plugin = gated_by
        entry = Entry(one)
        entry.state = State.GATED if gated_by else State.UNSCHEDULABLE
        self.unschedulable.enter(entry)
        return entry

    def woken(self, change: Change, pre_check: PreCheck | None = None) -> list[str]:
        return [
            f"{entry.queued.pod.name} {strategy.name}"
            for entry, strategy in self.unschedulable.woken_by(change, pre_check)
        ]


def test_a_hint_is_called_once_for_pods_of_one_part() -> None:
    hint = Hint(QUEUE)
    rejected = RejectedPods({"Fit": [on(NODE_ADD, hint)]})
    for number in range(5):
        rejected.put(f"p{number}", "Fit", shape="same")
    assert len(rejected.woken(ADDED)) == 5
    assert hint.calls == ["p0"]


def test_a_hint_is_called_for_each_part() -> None:
    hint = Hint(lambda pod: QUEUE if pod.labels["shape"] == "s1" else SKIP)
    rejected = RejectedPods({"Fit": [on(NODE_ADD, hint)]})
    for number in range(6):
        rejected.put(f"p{number}", "Fit", shape=f"s{number % 3}")
    assert rejected.woken(ADDED) == ["p1 AFTER_BACKOFF", "p4 AFTER_BACKOFF"]
    assert hint.calls == ["p0", "p1", "p2"]


def test_a_hint_is_called_for_each_unsigned_pod() -> None:
    hint = Hint(SKIP)
    rejected = RejectedPods({"Fit": [on(NODE_ADD, hint)]})
    for number in range(3):
        rejected.put(f"p{number}", "Fit", shape="")
    assert rejected.woken(ADDED) == []
    assert hint.calls == ["p0", "p1", "p2"]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("answer", [QUEUE, SKIP])
def test_the_subject_of_an_event_is_evaluated_alone(number: int, answer: QueueingHint) -> None:
    subject = f"p{number}"
    other_answer = SKIP if answer is QUEUE else QUEUE
    hint = Hint(lambda pod: answer if pod.name == subject else other_answer)
    rejected = RejectedPods({"Fit": [on(EVENT_ASSIGNED_POD_DELETE, hint)]})
    entries = [rejected.put(f"p{each}", "Fit") for each in range(3)]
    change = Change(EVENT_ASSIGNED_POD_DELETE, entries[number].queued.pod, None)
    woken = {name.split()[0] for name in rejected.woken(change)}
    assert woken == ({subject} if answer is QUEUE else {"p0", "p1", "p2"} - {subject})
    assert len(hint.calls) == 2


def test_no_hint_is_called_for_events_of_other_plugins() -> None:
    hint = Hint(QUEUE)
    rejected = RejectedPods({"Fit": [on(NODE_ADD, hint)], "Taint": [on(NODE_LABEL)]})
    rejected.put("p", "Fit")
    assert rejected.woken(Change(NODE_LABEL, None, "node")) == []
    assert not hint.calls


def test_activated_pods_come_in_the_order_in_which_they_were_queued() -> None:
    rejected = RejectedPods({"Fit": [on(NODE_ADD)], "Taint": [on(NODE_ADD)]})
    rejected.put("a", "Taint", shape="2")
    rejected.put("b", "Fit", shape="1")
    rejected.put("c", "Fit", "Taint", shape="3")
    assert rejected.woken(ADDED) == ["a AFTER_BACKOFF", "b AFTER_BACKOFF", "c AFTER_BACKOFF"]


def test_a_pending_plugin_that_agrees_activates_at_once() -> None:
    rejected = RejectedPods({"Fit": [on(NODE_ADD)], "Claims": [on(NODE_ADD)]})
    rejected.put("a", "Fit", pending=["Claims"])
    rejected.put("b", "Fit")
    assert rejected.woken(ADDED) == ["a IMMEDIATELY", "b AFTER_BACKOFF"]


def test_a_gated_pod_receives_only_events_of_the_gating_plugin() -> None:
    rejected = RejectedPods({"Fit": [on(NODE_ADD), on(NODE_LABEL)], "Gate": [on(NODE_LABEL)]})
    rejected.put("a", "Fit", "Gate", gated_by="Gate")
    assert rejected.woken(ADDED) == []
    assert rejected.woken(Change(NODE_LABEL, None, "node")) == ["a AFTER_BACKOFF"]


def test_a_pre_check_excludes_pods() -> None:
    rejected = RejectedPods({"Fit": [on(NODE_ADD)]})
    rejected.put("a", "Fit")
    rejected.put("b", "Fit")
    assert rejected.woken(ADDED, lambda pod: pod.name == "b") == ["b AFTER_BACKOFF"]


def test_an_entry_that_left_is_absent() -> None:
    rejected = RejectedPods({"Fit": [on(NODE_ADD)]})
    entry = rejected.put("a", "Fit")
    rejected.unschedulable.leave(entry)
    assert rejected.woken(ADDED) == []
    assert rejected.unschedulable.next_flush_seconds() is None
    assert not any(rejected.unschedulable._index.values())


def test_an_entry_that_enters_again_is_indexed_only_under_its_new_part() -> None:
    hint = Hint(lambda pod: QUEUE if pod.labels["shape"] == "new" else SKIP)
    rejected = RejectedPods({"Fit": [on(NODE_ADD, hint)]})
    entry = rejected.put("a", "Fit", shape="old")
    entry.queued.pod = waiting_pod("a", labels={"shape": "new"})
    rejected.unschedulable.enter(entry)
    assert rejected.woken(ADDED) == ["a AFTER_BACKOFF"]
    assert hint.calls == ["a"]


def test_a_wildcard_activates_all_pods_except_those_the_pre_check_excludes() -> None:
    rejected = RejectedPods({})
    rejected.put("a", "Fit")
    rejected.put("b", "Gate", gated_by="Gate")
    timeout = Change(EVENT_UNSCHEDULABLE_TIMEOUT, None, None)
    woken = rejected.unschedulable.woken_by_wildcard(timeout)
    assert [entry.queued.pod.name for entry, _ in woken] == ["a", "b"]
    woken = rejected.unschedulable.woken_by_wildcard(timeout, lambda pod: pod.name == "b")
    assert [entry.queued.pod.name for entry, _ in woken] == ["b"]


@pytest.mark.parametrize("part", [["a list"], {"a": "dict"}])
def test_a_part_that_is_not_hashable_is_reported_and_the_hint_called_for_the_pod(part: Any) -> None:
    rejected = RejectedPods({"Fit": [on(NODE_ADD)]}, sign=lambda plugin, pod: part)
    rejected.put("a", "Fit")
    assert rejected.woken(ADDED) == ["a AFTER_BACKOFF"]
    assert [failure[:2] for failure in rejected.recorder.failures] == [("Fit", "SignPod")]


@pytest.mark.parametrize(
    ("since", "flush"),
    [
        pytest.param(0, 330, id="exactly five minutes is not longer"),
        pytest.param(0.5, 330, id="between two checks"),
        pytest.param(29.5, 330, id="just before a check"),
        pytest.param(30, 360, id="at a check"),
    ],
)
def test_the_flush_runs_at_the_first_check_after_more_than_five_minutes(
    since: float, flush: float
) -> None:
    rejected = RejectedPods({})
    entry = rejected.put("a", "Fit", at=since)
    assert rejected.unschedulable.next_flush_seconds() == flush
    assert rejected.unschedulable.first_overdue(flush - 0.5) is None
    assert rejected.unschedulable.first_overdue(flush) is entry


PLUGINS = ("Fit", "Spread", "Claims", "Gate")
CHANGES = [
    Change(event, None, subject)
    for event in (NODE_ADD, NODE_LABEL, EVENT_ASSIGNED_POD_DELETE)
    for subject in ("node", waiting_pod("p0"), waiting_pod("p3"))
]
ANSWERS = (QUEUE, SKIP)

rejected_pods = st.lists(
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
    """A hint that answers by part, except for the pod itself; None without answers."""

    def hint(waiting: PodInfo, old: Any, new: Any) -> QueueingHint:
        if of_itself is not None and isinstance(new, PodInfo) and new.uid == waiting.uid:
            return of_itself
        return of_shape.get(waiting.labels.get("shape", ""), SKIP)

    return hint if of_shape else None


def activated_one_by_one(rejected: RejectedPods, change: Change, pre_check: PreCheck) -> list[str]:
    """The specification: try every entry, as upstream does."""
    woken: list[str] = []
    for entry in rejected.unschedulable:
        one = entry.queued
        ignores_event = one.gating_plugin and one.gating_plugin not in rejected.hints.interested(
            change.event
        )
        strategy = rejected.hints.strategy(one, change)
        if not ignores_event and pre_check(one.pod) and strategy is not Strategy.SKIP:
            woken.append(f"{one.pod.name} {strategy.name}")
    return woken


@given(
    pods=rejected_pods,
    registered=registrations,
    change=st.sampled_from(CHANGES),
    left_out=st.sets(st.integers(0, 11)),
)
def test_the_index_gives_the_same_result_as_a_call_for_each_pod(
    pods: list[dict[str, Any]],
    registered: dict[str, list[tuple[Any, dict[str, QueueingHint], QueueingHint | None]]],
    change: Change,
    left_out: set[int],
) -> None:
    events = {
        plugin: [on(event, hint_of(of_shape, of_itself)) for event, of_shape, of_itself in each]
        for plugin, each in registered.items()
    }
    rejected = RejectedPods(events)
    for number, each in enumerate(pods):
        rejected.put(
            f"p{number}",
            *each["rejected_by"],
            shape=each["shape"],
            gated_by=each["gated_by"],
            pending=each["pending"],
        )
    names = {f"p{number}" for number in left_out}

    def pre_check(waiting: PodInfo) -> bool:
        return waiting.name not in names

    assert rejected.woken(change, pre_check) == activated_one_by_one(rejected, change, pre_check)


# ---- transitions between the queues ---------------------------------------------------------


class Setting:
    """The queues of one profile, at a time that the test sets."""

    def __init__(self, *gates: Gate, windows: bool = True) -> None:
        self.now, self.recorder = 0.0, Recorder()
        profiles = {PROFILE: QueueProfile(gates, {}, by_shape)}
        settings = QueueSettings(by_priority, pop_from_backoff_q=windows)
        admission = PreEnqueueCheck(profiles, self.recorder, pop_from_backoff_q=windows)
        unschedulable = UnschedulablePods(profiles, {}, settings, self.recorder)
        self.sub_queues = SubQueues(
            settings, lambda: self.now, self.recorder, admission, unschedulable=unschedulable
        )

    def put(
        self, name: str, state: State, *, priority: int = 0, at: float = 0.0, failures: int = 1
    ) -> Entry:
        """An entry that has just returned and is moved to ``state``."""
        one = queued(name, rejected_by=["Fit"], at=at)
        one.pod = waiting_pod(name, priority=priority)
        one.unschedulable_count = failures
        one.sequence = sum(1 for _ in self.sub_queues) + 1
        entry = Entry(one)
        entry.state = State.IN_FLIGHT
        causes = {
            State.ACTIVE: Cause.WOKEN,
            State.BACKOFF: Cause.WOKEN_EARLY,
            State.ERROR_BACKOFF: Cause.ERRED,
            State.UNSCHEDULABLE: Cause.REJECTED,
        }
        self.sub_queues.move(entry, causes[state], "test")
        return entry

    def popped(self) -> list[str]:
        names: list[str] = []
        while (entry := self.sub_queues.pop()) is not None:
            names.append(entry.queued.pod.name)
        return names


def test_activeq_is_ordered_by_queue_sort_and_then_by_arrival() -> None:
    setting = Setting()
    for name, priority, at in (("low", 0, 0), ("b", 5, 2), ("a", 5, 1), ("b2", 5, 2)):
        setting.put(name, State.ACTIVE, priority=priority, at=at)
    assert setting.popped() == ["a", "b", "b2", "low"]


def test_the_backoffq_is_popped_from_when_activeq_is_empty() -> None:
    setting = Setting()
    setting.put("waits", State.BACKOFF)
    setting.put("ready", State.ACTIVE)
    assert setting.popped() == ["ready", "waits"]
    assert setting.recorder.incoming_counts["active", "PopFromBackoffQ"] == 1


def test_without_windows_the_backoffq_is_never_popped_from() -> None:
    setting = Setting(windows=False)
    setting.put("waits", State.BACKOFF)
    assert not setting.sub_queues.has_ready
    assert setting.popped() == []


def test_the_error_backoffq_is_never_popped_from() -> None:
    setting = Setting()
    setting.put("erred", State.ERROR_BACKOFF)
    assert not setting.sub_queues.has_ready
    assert setting.popped() == []


def test_within_a_window_the_order_is_that_of_activeq() -> None:
    setting = Setting()
    setting.put("next window", State.BACKOFF, priority=9, at=1.1)
    setting.put("low", State.BACKOFF, at=0.1)
    setting.put("high", State.BACKOFF, priority=5, at=0.9)
    assert setting.popped() == ["high", "low", "next window"]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [pytest.param(True, "high", id="by priority"), pytest.param(False, "low", id="by expiry")],
)
def test_delays_that_end_in_one_window_are_ordered_by_priority_and_exact_ones_by_expiry(
    windows: bool, expected: str
) -> None:
    setting = Setting(windows=windows)
    setting.put("low", State.BACKOFF, at=0.1)
    setting.put("high", State.BACKOFF, priority=5, at=0.9)
    first = setting.sub_queues.first_backoff_over(2.0)
    assert first is not None
    assert first.queued.pod.name == expected


def test_errors_are_ordered_by_expiry_regardless_of_priority() -> None:
    setting = Setting()
    setting.put("early", State.ERROR_BACKOFF, at=0.1)
    setting.put("late", State.ERROR_BACKOFF, priority=5, at=1.1)
    first = setting.sub_queues.first_backoff_over(9.0)
    assert first is not None
    assert first.queued.pod.name == "early"


def test_no_delay_ends_before_its_check() -> None:
    setting = Setting()
    setting.put("waits", State.BACKOFF, at=0.5)
    assert setting.sub_queues.first_backoff_over(1.99) is None
    assert setting.sub_queues.next_deadline_seconds() == 2.0


@pytest.mark.parametrize(
    ("states", "deadline"),
    [
        pytest.param([], None, id="an empty queue"),
        pytest.param([State.ACTIVE], None, id="a ready pod has no deadline"),
        pytest.param([State.UNSCHEDULABLE], 330.0, id="the flush"),
        pytest.param(
            [State.UNSCHEDULABLE, State.ERROR_BACKOFF], 2.0, id="the earlier of two deadlines"
        ),
    ],
)
def test_the_next_deadline_is_that_of_a_waiting_pod(
    states: list[State], deadline: float | None
) -> None:
    setting = Setting()
    for number, state in enumerate(states):
        setting.put(f"p{number}", state)
    assert setting.sub_queues.next_deadline_seconds() == deadline


def test_a_refused_move_ends_in_the_gated_state() -> None:
    setting = Setting(gate())
    entry = setting.put("a", State.ACTIVE)
    assert entry.state is State.GATED
    assert setting.sub_queues.sizes.pods() == {
        "active": 0,
        "backoff": 0,
        "unschedulable": 0,
        "gated": 1,
    }
    assert setting.recorder.incoming_counts == {("unschedulable", "test"): 1}


@pytest.mark.parametrize(("anew", "count"), [(False, 1), (True, 2)])
def test_an_entry_that_stays_unschedulable_is_counted_only_after_an_attempt(
    anew: bool, count: int
) -> None:
    setting = Setting(gate())
    entry = setting.put("a", State.ACTIVE)
    setting.sub_queues.move(entry, Cause.WOKEN, "test", anew=anew)
    assert setting.recorder.incoming_counts == {("unschedulable", "test"): count}


def test_the_first_time_in_activeq_is_preserved() -> None:
    setting = Setting()
    setting.now = 3.0
    entry = setting.put("a", State.ACTIVE)
    assert entry.queued.initial_attempt_seconds == 3.0
    setting.sub_queues.pop()
    setting.now = 8.0
    setting.sub_queues.move(entry, Cause.WOKEN, "test")
    assert entry.queued.initial_attempt_seconds == 3.0


def test_a_flushed_pod_that_is_gated_no_longer_counts_as_flushed() -> None:
    setting = Setting(gate())
    entry = setting.put("a", State.UNSCHEDULABLE)
    entry.queued.was_flushed = True
    setting.sub_queues.move(entry, Cause.WOKEN, "test")
    assert not entry.queued.was_flushed


def test_a_changed_priority_changes_the_position() -> None:
    setting = Setting()
    entry = setting.put("a", State.ACTIVE, priority=1)
    setting.put("b", State.ACTIVE, priority=2)
    entry.queued.pod = waiting_pod("a", priority=3)
    setting.sub_queues.refresh(entry)
    assert setting.popped() == ["a", "b"]


def test_an_update_keeps_the_position() -> None:
    setting = Setting()
    entry = setting.put("a", State.ACTIVE)
    setting.put("b", State.ACTIVE)
    setting.sub_queues.refresh(entry)
    assert setting.popped() == ["a", "b"]


def test_counts_and_listing_agree() -> None:
    setting: Any = Setting()
    states = [State.ACTIVE, State.BACKOFF, State.ERROR_BACKOFF, State.UNSCHEDULABLE]
    entries = [setting.put(f"p{number}", state) for number, state in enumerate(states)]
    assert setting.sub_queues.sizes.pods() == {
        "active": 1,
        "backoff": 2,
        "unschedulable": 1,
        "gated": 0,
    }
    assert list(setting.sub_queues) == entries
    for entry in entries:
        setting.sub_queues.move(entry, Cause.DELETED, "")
    assert not any(setting.sub_queues.sizes.pods().values())
