"""Reserve, Permit, and the preflight of PreBind: what plugins say about the node that was chosen.

Upstream: runtime/framework.go, RunReservePluginsReserve, RunPermitPlugins and
RunPreBindPreFlights.
"""

from bayplan.framework.answers import WrongAnswer, as_error, checked, failure_of, told
from bayplan.framework.calls import Calls, NamedCalls, OnNode, Permit
from bayplan.framework.interface import MAX_PERMIT_TIMEOUT_SECONDS, CycleState
from bayplan.framework.status import SKIP, Code, Status, is_skip, is_success
from bayplan.framework.timing import Watched, timed_point
from bayplan.state.pods import PodInfo

#: What these points come to where nobody stands at them.
_STRAIGHT = (
    ("Reserve", Code.SUCCESS),
    ("Permit", Code.SUCCESS),
    ("PreBindPreFlight", Code.SKIP),
)


def goes_straight_to_bind(watched: Watched, calls: Calls) -> bool:
    """Whether nobody has anything to do at Reserve, Permit and PreBind, which then count as run."""
    if calls.reserve or calls.permit or calls.pre_bind_pre_flight:
        return False
    for point, code in _STRAIGHT:
        watched.stopwatches[point].idle(code)
    return True


@timed_point("Reserve")
def reserve(
    watched: Watched, calls: NamedCalls[OnNode], state: CycleState, pod: PodInfo, node_name: str
) -> Status | None:
    for name, ask in calls:
        try:
            status = checked(ask(state, pod, node_name))
        except BaseException as problem:  # noqa: BLE001
            return failure_of(name, "Reserve", problem)
        if status is not None and not is_success(status):
            return told(status, "Reserve", name)
    return None


@timed_point("Permit")
def permit(
    watched: Watched, calls: NamedCalls[Permit], state: CycleState, pod: PodInfo, node_name: str
) -> tuple[Status | None, dict[str, float]]:
    waits: dict[str, float] = {}
    for name, ask in calls:
        try:
            answer, timeout_seconds = ask(state, pod, node_name)
            status = checked(answer)
            if status is not None and status.code is Code.WAIT:
                waits[name] = _wait(timeout_seconds)
                continue
        except BaseException as problem:  # noqa: BLE001
            return failure_of(name, "Permit", problem), {}
        if status is not None and not is_success(status):
            return told(status, "Permit", name), {}
    return (Status(Code.WAIT) if waits else None), waits


@timed_point("PreBindPreFlight")
def pre_flights(
    watched: Watched, calls: NamedCalls[OnNode], state: CycleState, pod: PodInfo, node_name: str
) -> Status | None:
    busy = False
    for name, ask in calls:
        try:
            status = checked(ask(state, pod, node_name))
        except BaseException as problem:  # noqa: BLE001
            return failure_of(name, "PreBindPreFlight", problem)
        if is_skip(status):
            state.skip_pre_bind_plugins.add(name)
        elif status is None or status.code is Code.SUCCESS:
            busy = True
        else:
            return as_error(status, "PreBindPreFlight", name)
    return None if busy else SKIP


def _wait(timeout_seconds: float) -> float:
    """How long to wait at most. Raises WrongAnswer for what is no duration."""
    if not timeout_seconds >= 0:
        raise WrongAnswer(f"a time-out of {timeout_seconds}", "seconds, 0 or more")
    return min(timeout_seconds, MAX_PERMIT_TIMEOUT_SECONDS)
