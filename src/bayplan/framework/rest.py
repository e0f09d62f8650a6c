"""Filter and Score of some plugins, where what the others say is known."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from bayplan.framework.answers import failure_of
from bayplan.framework.cycle_state import AskFilter, CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.score_table import PluginScores
from bayplan.framework.scoring import ScoreCall
from bayplan.framework.status import Status
from bayplan.framework.timing import Watched, timed_point
from bayplan.state.columns import all_true
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


class KnownRejections(Protocol):
    """What some Filter plugins, told by their places, say of all nodes."""

    def reject(self, outcome: FilterOutcome, start: int, end: int) -> None: ...


@timed_point("Filter")
def filter_rest(
    watched: Watched,
    known: tuple[KnownRejections, int],
    asked: Iterable[tuple[int, str, AskFilter]],
    about: tuple[CycleState, PodInfo, NodeView],
) -> FilterOutcome:
    """Take in what is known, and ask the others, in the order of the profile, as long as nodes are
    left. ``known``: and of how many plugins; ``asked``: how many of those come before each."""
    state, pod, nodes = about
    outcome = FilterOutcome(nodes, all_true(len(nodes)))
    (rejections, count), start = known, 0
    for end, name, ask in asked:
        rejections.reject(outcome, start, end)
        if outcome.is_settled:
            return outcome
        outcome.ask(name, ask, state, pod)
        if outcome.is_settled:
            return outcome
        start = end
    rejections.reject(outcome, start, count)
    return outcome


@timed_point("Score")
def score_rest(
    watched: Watched, calls: Sequence[ScoreCall], state: CycleState, pod: PodInfo, nodes: NodeView
) -> list[PluginScores] | Status:
    """The columns of these alone."""
    columns: list[PluginScores] = []
    for call in calls:
        try:
            columns.append(call.column(state, pod, nodes))
        except BaseException as problem:  # noqa: BLE001
            return failure_of(call.name, "Score", problem)
    return columns
