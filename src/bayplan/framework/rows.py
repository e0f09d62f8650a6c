"""Filter and Score of one node: by a plugin's own one-row form, else by whatever it has.

Where one row changed since a plugin's answers were kept, an array of one costs as much as an array
of hundreds. A row-wise plugin answers the same either way.
"""

from collections.abc import Callable
from functools import partial

from bayplan.framework.answers import WrongAnswer, checked
from bayplan.framework.filtering import FILTER_CODES, FilterOutcome
from bayplan.framework.interface import (
    CycleState,
    FilterPlugin,
    RowFilter,
    RowScore,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
    Verdict,
)
from bayplan.framework.status import Code
from bayplan.state.columns import all_true
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo

AskRowFilter = Callable[[CycleState, PodInfo, NodeInfo], Verdict]
AskRowScore = Callable[[CycleState, PodInfo, NodeInfo], int]


def row_filter_of(plugin: FilterPlugin | ScalarFilterPlugin) -> AskRowFilter:
    """Why one node cannot take the pod. Raises WrongAnswer, and what the plugin raises."""
    if isinstance(plugin, RowFilter):
        return plugin.filter_row
    if isinstance(plugin, ScalarFilterPlugin):
        return partial(_by_node, plugin)
    return partial(_by_array, plugin)


def row_score_of(plugin: ScorePlugin | ScalarScorePlugin) -> AskRowScore:
    """The raw score of one node. Raises what the plugin raises."""
    if isinstance(plugin, RowScore):
        return plugin.score_row
    if isinstance(plugin, ScalarScorePlugin):
        return plugin.score_node
    return partial(_scored_by_array, plugin)


def verdicts_of(outcome: FilterOutcome) -> dict[int, Verdict]:
    """Position → why it was rejected, in the order it was told."""
    found: dict[int, Verdict] = {}
    for entry in outcome.entries:
        for index, position in enumerate(entry.positions.tolist()):
            told = (entry.code_at(index), entry.reasons)
            found[position] = (*found.get(position, ()), told)
    return found


def _by_node(
    plugin: ScalarFilterPlugin, state: CycleState, pod: PodInfo, node: NodeInfo
) -> Verdict:
    status = checked(plugin.filter_node(state, pod, node))
    if status is None or status.code is Code.SUCCESS:
        return ()
    if status.code not in FILTER_CODES:
        raise WrongAnswer(str(status.code), "a rejection")
    return ((status.code, status.reasons),)


def _by_array(plugin: FilterPlugin, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
    outcome = FilterOutcome(node.view, all_true(1))
    outcome.add(plugin.name, plugin.filter(state, pod, outcome.nodes, outcome.feasible))
    if outcome.error is not None:
        raise WrongAnswer(str(outcome.error), "a rejection")
    return verdicts_of(outcome).get(0, ())


def _scored_by_array(plugin: ScorePlugin, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
    return plugin.score(state, pod, node.view).item(0)
