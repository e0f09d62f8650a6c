"""One-row forms that say something else are found."""

from typing import Any

import numpy as np
import pytest

from bayplan.framework.interface import (
    FilterPlugin,
    Plugin,
    RowFilter,
    RowScore,
    ScorePlugin,
    Verdict,
)
from bayplan.framework.status import Code, Rejection
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.testing import CheckFailed, check_plugin

REASON = "too many pods"


class Fair(FilterPlugin, RowFilter, ScorePlugin, RowScore):
    """Says the same either way."""

    name = "Fair"

    def filter(self, state: Any, pod: Any, nodes: NodeView, feasible: NodeMask) -> Any:
        yield Rejection(nodes.pod_counts() > 2, Code.UNSCHEDULABLE, (REASON,))

    def filter_row(self, state: Any, pod: Any, node: NodeInfo) -> Verdict:
        return ((Code.UNSCHEDULABLE, (REASON,)),) if len(node.pods) > 2 else ()

    def score(self, state: Any, pod: Any, nodes: NodeView) -> NodeScores:
        return np.minimum(nodes.pod_counts(), 100).astype(np.int64)

    def score_row(self, state: Any, pod: Any, node: NodeInfo) -> int:
        return min(len(node.pods), 100)


def planted(
    limit: int = 2,
    code: Code = Code.UNSCHEDULABLE,
    reasons: tuple[str, ...] = (REASON,),
    score_of_row: Any = 0,
) -> type[Plugin]:
    """A plugin whose one-row forms say this."""

    class Planted(FilterPlugin, RowFilter, ScorePlugin, RowScore):
        name = "Planted"

        def filter(self, state: Any, pod: Any, nodes: NodeView, feasible: NodeMask) -> Any:
            yield Rejection(nodes.pod_counts() > 2, Code.UNSCHEDULABLE, (REASON,))

        def filter_row(self, state: Any, pod: Any, node: NodeInfo) -> Verdict:
            return ((code, reasons),) if len(node.pods) > limit else ()

        def score(self, state: Any, pod: Any, nodes: NodeView) -> NodeScores:
            return np.zeros(len(nodes), np.int64)

        def score_row(self, state: Any, pod: Any, node: NodeInfo) -> int:
            return score_of_row

    return Planted


def test_forms_that_agree_pass() -> None:
    check_plugin(Fair, clusters=3)
    check_plugin(planted(), clusters=3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (planted(limit=1), "filter_row says of node"),
        (planted(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE), "filter_row says of node"),
        (planted(reasons=(REASON, "really")), "filter_row says of node"),
        (planted(score_of_row=1), "score_row gives node"),
        (planted(score_of_row=np.int64(0)), "score_row gives node"),
    ],
)
def test_forms_that_differ_are_found(wrong: type[Plugin], words: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        check_plugin(wrong, clusters=3)
    assert words in str(failed.value)
