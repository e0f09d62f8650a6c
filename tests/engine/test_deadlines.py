"""Deadlines: each key's time comes once."""

from bayplan.clock import ManualClock
from bayplan.engine.deadlines import Deadlines


def test_a_key_is_taken_when_its_time_has_come_and_only_once() -> None:
    clock = ManualClock()
    deadlines = Deadlines[str](clock)
    deadlines.set("a", 10.0)
    deadlines.set("b", 5.0)
    assert deadlines.next_seconds() == 5.0
    clock.advance_to(9.999)
    assert deadlines.take_due() == ["b"]
    clock.advance_to(10.0)
    assert deadlines.take_due() == ["a"]
    assert deadlines.take_due() == []
    assert deadlines.next_seconds() is None


def test_those_that_are_due_together_go_in_the_order_in_which_they_came() -> None:
    clock = ManualClock()
    deadlines = Deadlines[str](clock)
    for key, at in (("late", 3.0), ("early", 1.0), ("never", 9.0)):
        deadlines.set(key, at)
    clock.advance_to(4.0)
    assert deadlines.take_due() == ["late", "early"]


def test_one_that_is_forgotten_or_set_anew_has_no_other_time() -> None:
    deadlines = Deadlines[str](ManualClock())
    deadlines.set("a", 10.0)
    deadlines.set("a", 20.0)
    assert deadlines.next_seconds() == 20.0
    assert "a" in deadlines
    deadlines.forget("a")
    deadlines.forget("a")
    assert "a" not in deadlines
    assert deadlines.next_seconds() is None
