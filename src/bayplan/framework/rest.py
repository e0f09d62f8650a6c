"""Filter and Score of some plugins, where what the others say is known."""

from collections.abc import Sequence

from bayplan.framework.answers import failure_of
from bayplan.framework.calls import NamedCalls
from bayplan.framework.cycle_state import AskFilter, CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.score_table import PluginScores
from bayplan.framework.scoring import ScoreCall
from bayplan.framework.status import Status
from bayplan.framework.timing import Watched, timed_point
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


@timed_point("Filter")
def filter_rest(
    watched: Watched,
    calls: NamedCalls[AskFilter],
    state: CycleState,
    pod: PodInfo,
    outcome: FilterOutcome,
) -> FilterOutcome:
    """Ask these, too, about the nodes that are left; returns the outcome it was given."""
    for name, ask in calls:
        if outcome.is_settled:
            break
        outcome.ask(name, ask, state, pod)
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
