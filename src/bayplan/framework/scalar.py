"""A plugin written node by node, asked as if it were vectorised."""

from collections.abc import Iterable

import numpy as np

from bayplan.framework.answers import checked
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
    """int64[nodes]; what is not made of whole numbers stays as it is, and is refused."""
    scores = np.array([plugin.score_node(state, pod, node) for node in nodes.infos()])
    return scores.astype(np.int64, copy=False) if scores.dtype.kind in "iu" else scores
