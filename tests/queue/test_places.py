"""Moves between places, and the order in which entries leave them."""

from typing import Any

import pytest

from bayplan.queue.admission import Admission
from bayplan.queue.entry import Entry
from bayplan.queue.parked import Parked
from bayplan.queue.places import Places
from bayplan.queue.settings import QueueProfile, QueueSettings
from bayplan.queue.transitions import Cause, State
from tests.queue.factories import PROFILE, Gate, Recorder, by_priority, by_shape, gate, pod, queued


class Setting:
    """Places of one profile at a time that the test sets."""

    def __init__(self, *gates: Gate, windows: bool = True) -> None:
        self.now, self.recorder = 0.0, Recorder()
        profiles = {PROFILE: QueueProfile(gates, {}, by_shape)}
        settings = QueueSettings(by_priority, pop_from_backoff_q=windows)
        admission = Admission(profiles, self.recorder, pop_from_backoff_q=windows)
        parked = Parked(profiles, {}, settings, self.recorder)
        self.places = Places(settings, lambda: self.now, self.recorder, admission, parked)

    def put(
        self, name: str, state: State, *, priority: int = 0, at: float = 0.0, failures: int = 1
    ) -> Entry:
        """An entry that just came back, taken to ``state``."""
        one = queued(name, rejected_by=["Fit"], at=at)
        one.pod = pod(name, priority=priority)
        one.unschedulable_count = failures
        one.sequence = sum(1 for _ in self.places) + 1
        entry = Entry(one)
        entry.state = State.IN_FLIGHT
        causes = {
            State.ACTIVE: Cause.WOKEN,
            State.BACKOFF: Cause.WOKEN_EARLY,
            State.ERROR_BACKOFF: Cause.ERRED,
            State.UNSCHEDULABLE: Cause.REJECTED,
        }
        self.places.move(entry, causes[state], "test")
        return entry

    def popped(self) -> list[str]:
        names: list[str] = []
        while (entry := self.places.pop()) is not None:
            names.append(entry.queued.pod.name)
        return names


def test_activeq_is_in_the_order_of_queue_sort_then_first_come_first_served() -> None:
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
    assert not setting.places.has_ready
    assert setting.popped() == []


def test_the_error_backoffq_is_never_popped_from() -> None:
    setting = Setting()
    setting.put("erred", State.ERROR_BACKOFF)
    assert not setting.places.has_ready
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
def test_delays_of_one_second_end_in_one_order(windows: bool, expected: str) -> None:
    setting = Setting(windows=windows)
    setting.put("low", State.BACKOFF, at=0.1)
    setting.put("high", State.BACKOFF, priority=5, at=0.9)
    first = setting.places.first_backoff_over(2.0)
    assert first is not None
    assert first.queued.pod.name == expected


def test_errors_are_in_order_of_their_expiry_whatever_their_priority() -> None:
    setting = Setting()
    setting.put("early", State.ERROR_BACKOFF, at=0.1)
    setting.put("late", State.ERROR_BACKOFF, priority=5, at=1.1)
    first = setting.places.first_backoff_over(9.0)
    assert first is not None
    assert first.queued.pod.name == "early"


def test_no_delay_is_over_before_its_look() -> None:
    setting = Setting()
    setting.put("waits", State.BACKOFF, at=0.5)
    assert setting.places.first_backoff_over(1.99) is None
    assert setting.places.next_deadline_seconds() == 2.0


@pytest.mark.parametrize(
    ("states", "deadline"),
    [
        pytest.param([], None, id="nobody waits"),
        pytest.param([State.ACTIVE], None, id="the ready wait for no clock"),
        pytest.param([State.UNSCHEDULABLE], 330.0, id="the flush"),
        pytest.param([State.UNSCHEDULABLE, State.ERROR_BACKOFF], 2.0, id="the earlier one"),
    ],
)
def test_the_next_deadline_is_that_of_whoever_waits(
    states: list[State], deadline: float | None
) -> None:
    setting = Setting()
    for number, state in enumerate(states):
        setting.put(f"p{number}", state)
    assert setting.places.next_deadline_seconds() == deadline


def test_a_refused_move_ends_among_the_gated() -> None:
    setting = Setting(gate())
    entry = setting.put("a", State.ACTIVE)
    assert entry.state is State.GATED
    assert setting.places.sizes.pods() == {
        "active": 0,
        "backoff": 0,
        "unschedulable": 0,
        "gated": 1,
    }
    assert setting.recorder.incoming_counts == {("unschedulable", "test"): 1}


@pytest.mark.parametrize(("anew", "count"), [(False, 1), (True, 2)])
def test_an_entry_that_stays_parked_is_counted_only_when_it_was_taken_up(
    anew: bool, count: int
) -> None:
    setting = Setting(gate())
    entry = setting.put("a", State.ACTIVE)
    setting.places.move(entry, Cause.WOKEN, "test", anew=anew)
    assert setting.recorder.incoming_counts == {("unschedulable", "test"): count}


def test_the_first_time_in_activeq_is_kept() -> None:
    setting = Setting()
    setting.now = 3.0
    entry = setting.put("a", State.ACTIVE)
    assert entry.queued.initial_attempt_seconds == 3.0
    setting.places.pop()
    setting.now = 8.0
    setting.places.move(entry, Cause.WOKEN, "test")
    assert entry.queued.initial_attempt_seconds == 3.0


def test_a_pod_that_was_flushed_and_then_held_back_no_longer_counts_as_flushed() -> None:
    setting = Setting(gate())
    entry = setting.put("a", State.UNSCHEDULABLE)
    entry.queued.was_flushed = True
    setting.places.move(entry, Cause.WOKEN, "test")
    assert not entry.queued.was_flushed


def test_a_changed_priority_changes_the_place_in_line() -> None:
    setting = Setting()
    entry = setting.put("a", State.ACTIVE, priority=1)
    setting.put("b", State.ACTIVE, priority=2)
    entry.queued.pod = pod("a", priority=3)
    setting.places.refresh(entry)
    assert setting.popped() == ["a", "b"]


def test_a_change_does_not_cost_the_place_in_line() -> None:
    setting = Setting()
    entry = setting.put("a", State.ACTIVE)
    setting.put("b", State.ACTIVE)
    setting.places.refresh(entry)
    assert setting.popped() == ["a", "b"]


def test_counts_and_listing_agree() -> None:
    setting: Any = Setting()
    kept = [State.ACTIVE, State.BACKOFF, State.ERROR_BACKOFF, State.UNSCHEDULABLE]
    entries = [setting.put(f"p{number}", state) for number, state in enumerate(kept)]
    assert setting.places.sizes.pods() == {
        "active": 1,
        "backoff": 2,
        "unschedulable": 1,
        "gated": 0,
    }
    assert list(setting.places) == entries
    for entry in entries:
        setting.places.move(entry, Cause.DELETED, "")
    assert not any(setting.places.sizes.pods().values())
