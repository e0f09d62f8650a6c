"""Filter and Score of some plugins, where what the others say is known."""

from collections.abc import Callable, Iterable, Sequence

from bayplan.framework.answers import failure_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.score_table import PluginScores
from bayplan.framework.scoring import ScoreCall
from bayplan.framework.status import Status
from bayplan.framework.timing import Watched, timed_point
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


@timed_point("Filter")
def filter_rest(
    watched: Watched, steps: Iterable[Callable[[FilterOutcome], None]], outcome: FilterOutcome
) -> FilterOutcome:
    """Take in what is known, and ask the others, in the order of the profile, as long as nodes are
    left; returns the outcome it was given."""
    for step in steps:
        if outcome.is_settled:
            break
        step(outcome)
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
        except Exception as problem:  # noqa: BLE001
            return failure_of(call.name, "Score", problem)
    return columns
