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
    QueueingHint,
)
from bayplan.queue.entry import (
    Entry,
    QueuedPodGroupInfo,
    State,
    Trigger,
    group_entry,
    pod_entry,
)
from bayplan.queue.hints import Change, Hints, Strategy
from bayplan.queue.settings import QueueProfile, QueueSettings
from bayplan.queue.sub_queues import (
    GROUP_ENTITY,
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
from bayplan.testing import pod
from tests.queue.factories import (
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    Events,
    Gate,
    Recorder,
    by_priority,
    by_shape,
    on,
    queued,
)

# ---- the heap -------------------------------------------------------------------------------


def entry(name: str, at: float = 0.0) -> Entry:
    return pod_entry(queued(name, at=at))


def by_time(entry: Entry) -> tuple[float, str]:
    return entry.queued.timestamp_seconds, entry.key


def drained(entries: OrderedEntries) -> list[str]:
    names: list[str] = []
    while (entry := entries.pop()) is not None:
        names.append(entry.queued.pod.name)
    return names


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


def test_a_pod_alone_gets_its_key_when_another_one_comes() -> None:
    keyed: list[str] = []

    def key(entry: Entry) -> tuple[float, str]:
        keyed.append(entry.queued.pod.name)
        return by_time(entry)

    entries = OrderedEntries(key)
    entries.enter(entry("alone", 3))
    assert drained(entries) == ["alone"]
    assert keyed == []
    for name, at in (("late", 3), ("early", 1)):
        entries.enter(entry(name, at))
    assert keyed == ["late", "early"]
    assert drained(entries) == ["early", "late"]


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
    return pod_entry(one)


def test_the_maximum_grows_with_the_square_root_of_the_size() -> None:
    assert backoff().delay_seconds(4, size=4) == 8
    assert backoff().delay_seconds(5, size=4) == 16
    assert backoff().delay_seconds(9, size=4) == 20
    assert backoff().delay_seconds(9, size=2) == 10 * math.sqrt(2)


def test_expiries_are_truncated_to_whole_seconds_only_with_windows() -> None:
    entry = failed(rejections=2, at=0.75)
    assert backoff(windows=True).expires_at_seconds(entry) == 2
    assert backoff(windows=False).expires_at_seconds(entry) == 2.75


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
    entry = pod_entry(queued(name))
    entry.state = state
    return entry


def group_of(*names: str, state: State) -> Entry:
    members = {pod(name).uid: queued(name) for name in names}
    key = GroupKey("scheduling.x-k8s.io", "default", "g")
    entry = group_entry(QueuedPodGroupInfo(pod(names[0]), 0.0, 1, key=key, members=members), 0.0, 1)
    entry.state = state
    return entry


def nonzero_counts(sizes: Sizes) -> dict[tuple[str, str], int]:
    return {at: count for at, count in sizes.entities().items() if count}


def test_a_group_counts_as_one_entity_and_as_its_number_of_pods() -> None:
    sizes = Sizes()
    group = group_of("a", "b", "c", state=State.ACTIVE)
    for entry in (group, lone("x", State.ACTIVE), lone("y", State.ERROR_BACKOFF)):
        sizes.change(entry, 1)
    assert dict(sizes.pod_counts) == {"active": 4, "backoff": 1, "unschedulable": 0, "gated": 0}
    assert nonzero_counts(sizes) == {
        ("active", "podgroup"): 1,
        ("active", "pod"): 1,
        ("backoff", "pod"): 1,
    }
    sizes.change(group, -1)
    assert nonzero_counts(sizes) == {("active", "pod"): 1, ("backoff", "pod"): 1}


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
        one.pod = pod(name, labels={"shape": shape} if shape else {})
        one.sequence = sum(1 for _ in self.unschedulable) + 1
        one.gating_plugin = gated_by
        entry = pod_entry(one)
        entry.state = State.GATED if gated_by else State.UNSCHEDULABLE
        self.unschedulable.enter(entry)
        return entry

    def woken(self, change: Change, pre_check: PreCheck | None = None) -> list[str]:
        return [
            f"{entry.queued.pod.name} {strategy.name}"
            for entry, strategy in self.unschedulable.woken_by(change, pre_check)
        ]


@pytest.mark.parametrize("part", [["a list"], {"a": "dict"}])
def test_a_part_that_is_not_hashable_is_reported_and_the_hint_called_for_the_pod(part: Any) -> None:
    rejected = RejectedPods({"Fit": [on(NODE_ADD)]}, sign=lambda plugin, pod: part)
    rejected.put("a", "Fit")
    assert rejected.woken(ADDED) == ["a AFTER_BACKOFF"]
    assert [failure[:2] for failure in rejected.recorder.failures] == [("Fit", "SignPod")]


PLUGINS = ("Fit", "Spread", "Claims", "Gate")
CHANGES = [
    Change(event, None, subject)
    for event in (NODE_ADD, NODE_LABEL, EVENT_ASSIGNED_POD_DELETE)
    for subject in ("node", pod("p0"), pod("p3"))
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
            settings, lambda: self.now, admission, unschedulable=unschedulable
        )

    def put(
        self, name: str, state: State, *, priority: int = 0, at: float = 0.0, failures: int = 1
    ) -> Entry:
        """An entry that has just returned and is moved to ``state``."""
        one = queued(name, rejected_by=["Fit"], at=at)
        one.pod = pod(name, priority=priority)
        one.unschedulable_count = failures
        one.sequence = sum(1 for _ in self.sub_queues) + 1
        entry = pod_entry(one)
        entry.state = State.IN_FLIGHT
        causes = {
            State.ACTIVE: Trigger.WOKEN,
            State.BACKOFF: Trigger.WOKEN_EARLY,
            State.ERROR_BACKOFF: Trigger.ERRED,
            State.UNSCHEDULABLE: Trigger.REJECTED,
        }
        self.sub_queues.move(entry, causes[state], "test")
        return entry

    def popped(self) -> list[str]:
        names: list[str] = []
        while (entry := self.sub_queues.pop()) is not None:
            names.append(entry.queued.pod.name)
        return names


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
