"""What is said of groups: have, need, how many would fit, and why the next does not."""

from math import inf

from bayplan.engine.reservations import Reservation
from bayplan.state.pod_groups import GroupState

_TEENS = range(11, 14)
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def not_found(state: GroupState) -> str:
    """Pods name a group that has no object."""
    return (
        f"group {state.key}: PodGroup not found in {state.key.api_group} "
        f"(current pods number: {state.here_count})"
    )


def short_of_members(state: GroupState) -> str:
    """Fewer members than the minimum."""
    here, wanted = state.here_count, state.min_member
    return (
        f"group {state.key}: {here} of {wanted} members are here "
        f"(current pods number: {here}, minMember of group: {wanted})"
    )


def waiting_for(state: GroupState) -> str:
    """Why a group is not tried."""
    return not_found(state) if state.group is None else short_of_members(state)


def too_few_fit(state: GroupState, fit_count: int, nth: int, pod: str, why: str) -> str:
    """``fit_count``: members that hold a node or could have; ``nth`` in order, counted likewise,
    is the first that could not."""
    return (
        f"group {state.key}: {fit_count} of {state.min_member} members fit; "
        f"the {ordinal(nth)}, {pod}: {why}"
    )


def no_domain(state: GroupState, why: str) -> str:
    """The topology that it requires leaves no node."""
    return f"group {state.key}: 0 of {state.min_member} members fit: {why}"


def short_of_resources(state: GroupState, lacking: list[str]) -> str:
    """minResources is more than all nodes have free together, or makes no sense."""
    said = ", ".join(lacking)
    if not said.startswith("spec."):
        said = f"minResources are not free in the cluster: {said}"
    return f"group {state.key}: {said}"


def kept_for(state: GroupState, held: Reservation, now_seconds: float) -> str:
    """Nodes are reserved."""
    count = len(held.nodes)
    nodes = f"{count} node{'s' * (count != 1)}"
    when = "once room is free"
    if held.start_seconds != inf:
        when = f"in {held.start_seconds - now_seconds:g} s"
    return f"group {state.key}: {nodes} kept for it, expected to start {when}"


def ordinal(count: int) -> str:
    ending = "th" if count % 100 in _TEENS else _ENDINGS.get(count % 10, "th")
    return f"{count}{ending}"
