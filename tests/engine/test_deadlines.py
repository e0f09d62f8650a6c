"""Deadlines: each key's time comes once.

Activations: who is to be tried when. The way there and back stands in test_services.
"""

from bayplan.clock import ManualClock
from bayplan.engine.deadlines import Activations, Deadlines
from bayplan.testing import pod

# ---- deadlines ------------------------------------------------------------------------------


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


# ---- activations ----------------------------------------------------------------------------


def test_each_is_taken_at_the_time_asked_for_last() -> None:
    clock = ManualClock()
    found, a, b = Activations(clock), pod("a"), pod("b")
    found.ask([a, b], 5.0)
    found.ask([b], 7.0)
    clock.advance_to(5.0)
    assert found.take_due() == [a.uid]
    clock.advance_to(7.0)
    assert found.take_due() == [b.uid]
    assert found.take_due() == []


def test_it_knows_since_when_somebody_waits() -> None:
    clock = ManualClock()
    found, a = Activations(clock), pod("a")
    assert not found.any_requested_by(9.0)
    clock.advance_to(2.0)
    found.ask([a], 5.0)
    clock.advance_to(3.0)
    found.ask([a], 6.0)
    assert not found.any_requested_by(1.9)
    assert found.any_requested_by(2.0)
    clock.advance_to(6.0)
    found.take_due()
    assert not found.any_requested_by(6.0)
