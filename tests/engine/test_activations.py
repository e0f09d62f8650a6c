"""Activations: who is to be tried when. The way there and back stands in test_services."""

from bayplan.clock import ManualClock
from bayplan.engine.activations import Activations
from bayplan.testing import pod


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
    assert not found.any_asked_by(9.0)
    clock.advance_to(2.0)
    found.ask([a], 5.0)
    clock.advance_to(3.0)
    found.ask([a], 6.0)
    assert not found.any_asked_by(1.9)
    assert found.any_asked_by(2.0)
    clock.advance_to(6.0)
    found.take_due()
    assert not found.any_asked_by(6.0)
