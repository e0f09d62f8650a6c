"""Cycles of pods that may not go to nodes kept for a group."""

from bayplan.engine.cycle import Cycle
from bayplan.engine.reservations import RESERVATION_NAME, RESERVED, Reservations, allowed_nodes


def keep_off_reserved(cycle: Cycle, reservations: Reservations) -> None:
    """Have a cycle look at the nodes that its pod may go to."""
    barred = reservations.barred_for(cycle.pod)
    if barred:
        cycle.within = allowed_nodes(cycle.snapshot, cycle.within, barred)
        cycle.within_because = (RESERVATION_NAME, RESERVED)
