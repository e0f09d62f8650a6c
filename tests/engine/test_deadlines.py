"""Deadlines: each key's time comes once.

Activations: which pods are tried when. Handles are in test_handles.
"""

from bayplan.clock import ManualClock
from bayplan.engine.deadlines import Activations, Deadlines
from bayplan.testing import pod

# ---- deadlines ------------------------------------------------------------------------------


def test_a_key_is_taken_when_its_time_has_come_and_only_once() -> None:
    deadlines = Deadlines[str]()
    deadlines["a"] = 10.0
    deadlines["b"] = 5.0
    assert deadlines.next_seconds() == 5.0
    assert deadlines.take_due(9.999) == ["b"]
    assert deadlines.take_due(10.0) == ["a"]
    assert deadlines.take_due(10.0) == []
    assert deadlines.next_seconds() is None


def test_those_that_are_due_together_go_in_the_order_in_which_they_came() -> None:
    deadlines = Deadlines[str]()
    for key, at in (("late", 3.0), ("early", 1.0), ("never", 9.0)):
        deadlines[key] = at
    assert deadlines.take_due(4.0) == ["late", "early"]


def test_one_that_is_removed_or_set_anew_has_no_other_time() -> None:
    deadlines = Deadlines[str]()
    deadlines["a"] = 10.0
    deadlines["a"] = 20.0
    assert deadlines.next_seconds() == 20.0
    assert "a" in deadlines
    del deadlines["a"]
    assert "a" not in deadlines
    assert deadlines.next_seconds() is None


# ---- activations ----------------------------------------------------------------------------


def test_each_is_taken_at_the_time_requested_last() -> None:
    clock = ManualClock()
    activations, a, b = Activations(clock), pod("a"), pod("b")
    activations.add([a, b], 5.0)
    activations.add([b], 7.0)
    clock.advance_to(5.0)
    assert activations.take_due() == [a.uid]
    clock.advance_to(7.0)
    assert activations.take_due() == [b.uid]
    assert activations.take_due() == []


def test_it_knows_since_when_somebody_waits() -> None:
    clock = ManualClock()
    activations, a = Activations(clock), pod("a")
    assert not activations.any_requested_by(9.0)
    clock.advance_to(2.0)
    activations.add([a], 5.0)
    clock.advance_to(3.0)
    activations.add([a], 6.0)
    assert not activations.any_requested_by(1.9)
    assert activations.any_requested_by(2.0)
    clock.advance_to(6.0)
    activations.take_due()
    assert not activations.any_requested_by(6.0)
