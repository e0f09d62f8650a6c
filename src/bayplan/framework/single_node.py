"""A plugin written node by node, asked as if it were vectorised.

Filter and Score of one node: by a plugin's own one-row form, else by whatever it has.

Where one row changed since a plugin's answers were kept, an array of one costs as much as an array
of hundreds. A row-wise plugin answers the same either way.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FILTER_CODES, FilterOutcome
from bayplan.framework.plugin import (
    FilterPlugin,
    RowFilter,
    RowScore,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.status import Code, Rejection
from bayplan.framework.types import Verdict
from bayplan.framework.validation import WrongAnswer, WrongNodeAnswer, checked
from bayplan.state.columns import NodeMask, NodeScores, all_true
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

# ---- scalar ---------------------------------------------------------------------------------


def filter_nodes(
    plugin: ScalarFilterPlugin,
    state: CycleState,
    pod: PodInfo,
    nodes: NodeView,
    feasible: NodeMask,
) -> Iterable[Rejection]:
    """One rejection per distinct (code, reasons); an Error ends the asking, as upstream's does."""
    rejected: dict[tuple[Code, tuple[str, ...]], list[int]] = {}
    for position in np.flatnonzero(feasible).tolist():
        status = checked(plugin.filter_node(state, pod, nodes.info(position)))
        if status is None or status.code is Code.SUCCESS:
            continue
        rejected.setdefault((status.code, status.reasons), []).append(position)
        if status.code is Code.ERROR:
            break
    for (code, reasons), positions in rejected.items():
        yield Rejection(np.array(positions, np.intp), code, reasons)


def score_nodes(
    plugin: ScalarScorePlugin, state: CycleState, pod: PodInfo, nodes: NodeView
) -> NodeScores:
    """int64[nodes]. Raises WrongNodeAnswer for a score that is not a whole number."""
    answers = [plugin.score_node(state, pod, node) for node in nodes.infos()]
    scores = np.array(answers)
    if answers and scores.dtype.kind not in "iu":
        raise WrongNodeAnswer(plugin.score_node, _first_wrong(answers), "an int from 0 to 100")
    return scores.astype(np.int64, copy=False)


def _first_wrong(answers: list[Any]) -> Any:
    """The first answer that is not a whole number of 64 bits."""
    return next((one for one in answers if np.array(one).dtype.kind not in "iu"), answers[0])


# ---- rows -----------------------------------------------------------------------------------


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
