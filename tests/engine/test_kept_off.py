"""Cycles of pods that may not go to reserved nodes."""

from types import SimpleNamespace
from typing import Any

from bayplan.api.pod_groups import GroupKey
from bayplan.clock import ManualClock
from bayplan.engine.cycle import OUTSIDE_DOMAIN
from bayplan.engine.kept_off import keep_off_reserved
from bayplan.engine.reservations import RESERVATION_NAME, RESERVED, Reservation, Reservations
from bayplan.testing import pod


def looked_at(within: frozenset[str] | None, *, is_held: bool) -> Any:
    reservations = Reservations(ManualClock(), 10.0)
    if is_held:
        key = GroupKey("x", "default", "g")
        reservations.held = Reservation(key, 0, frozenset({"n1"}), 100.0)
    nodes = SimpleNamespace(names=lambda: ["n1", "n2", "n3"])
    snapshot = SimpleNamespace(nodes=nodes)
    cycle: Any = SimpleNamespace(pod=pod("p"), within=within, snapshot=snapshot)
    cycle.within_because = ("", OUTSIDE_DOMAIN)
    keep_off_reserved(cycle, reservations)
    return cycle


def test_without_a_reservation_nothing_changes() -> None:
    assert looked_at(None, is_held=False).within is None


def test_reserved_nodes_are_left_out_of_all_and_of_a_domain() -> None:
    cycle = looked_at(None, is_held=True)
    assert cycle.within == {"n2", "n3"}
    assert cycle.within_because == (RESERVATION_NAME, RESERVED)
    assert looked_at(frozenset({"n1", "n3"}), is_held=True).within == {"n3"}
