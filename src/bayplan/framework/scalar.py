"""A plugin written node by node, asked as if it were vectorised."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from bayplan.framework.answers import WrongNodeAnswer, checked
from bayplan.framework.interface import CycleState, ScalarFilterPlugin, ScalarScorePlugin
from bayplan.framework.status import Code, Rejection
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


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
