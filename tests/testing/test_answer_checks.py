"""Planted plugins whose results depend on forbidden inputs."""

from itertools import count
from typing import Any, final

import numpy as np
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Caching, Plugin, ScalarScorePlugin, ScorePlugin
from bayplan.framework.status import Code, Rejection, Status, unschedulable
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from tests.framework.answering import answering
from tests.testing.broken_plugins import RanksNodes, WritesColumns, failure_of

#: Declares that a result depends on labels of the node.
OF_LABELS = Caching(facets=Facet.LABELS)
_numbers = count()


def breaks_the_seal(state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
    """Make a column writable and write to it."""
    counts = nodes.pods.counts()
    if counts.base is not None:
        counts.flags.writeable = True
        counts += 1
    return np.zeros(len(nodes), np.int64)


def writes_the_mask(state: CycleState, pod: PodInfo, nodes: NodeView, feasible: Any) -> Any:
    feasible &= nodes.pods.counts() < 2
    yield Rejection(~feasible, Code.UNSCHEDULABLE, ("two are enough",))


def of_taints(state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
    return unschedulable("tainted") if node.taints else None


@final
class ReadsAllNodes(ScalarScorePlugin):
    """Reads all nodes to score each of them."""

    name = "ReadsAllNodes"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        labels = [other.labels.get("disktype") for other in self.handle.snapshot.nodes.infos()]
        return min(labels.count("ssd"), 100)


def stores_in_shape(state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
    """Store a value with the pod's shape that depends on the cluster."""
    set_count = len(set(nodes.all().taints.set_ids().tolist()))
    count_of_shape = pod.shape.once("StoresInShape", lambda shape: set_count)
    return np.full(len(nodes), count_of_shape, np.int64)


def from_a_derived_column(state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
    """Read a derived column that depends on more facets than it declares."""
    return nodes.derived("OutOfDate", Facet.LABELS, np.int64, _taint_counts)


def _taint_counts(nodes: NodeView) -> NodeScores:
    return np.array([len(info.taints) for info in nodes.infos()], np.int64)


def counts_too_early(state: CycleState, pod: PodInfo, nodes: NodeView) -> None:
    state["counts"] = {info.name: len(info.pods) for info in nodes.infos()}


def of_early_counts(state: CycleState, pod: PodInfo, nodes: NodeView, feasible: Any) -> Any:
    full = np.array([state["counts"][name] > 1 for name in nodes.names()])
    yield Rejection(full, Code.UNSCHEDULABLE, ("two are enough",))


def scoring(score_node: Any, **members: Any) -> type[Plugin]:
    return answering("Scores", score_node=score_node, **members)


WRONG = [
    pytest.param(
        RanksNodes,
        ("RanksNodes: says something else through nodes.take(rows): scores", 'scope = "cluster"'),
        id="a score depends on the selection",
    ),
    pytest.param(
        WritesColumns, ("WritesColumns: writes to a column of the nodes",), id="writes to a column"
    ),
    pytest.param(
        answering("BreaksTheSeal", score=breaks_the_seal),
        ("writes to a column of the nodes (resources.pod_counts)",),
        id="writes to a column by force",
    ),
    pytest.param(
        answering("WritesTheMask", filter=writes_the_mask),
        ("filter writes to the mask it is handed",),
        id="writes to the mask",
    ),
    pytest.param(
        answering("TooHigh", score_node=lambda state, pod, node: 40 * len(node.labels)),
        ('plugin "TooHigh" returns an invalid score',),
        id="a score is out of range",
    ),
    pytest.param(
        answering("WaitsInFilter", filter_node=Status(Code.WAIT)),
        ("filter_node returned a rejection with Wait",),
        id="Filter returns Wait",
    ),
    pytest.param(
        answering("ReadsTaints", filter_node=of_taints, caching=OF_LABELS),
        (
            "the answer changed when only TAINTS of the node changed: rejections of node",
            "write caching = Caching(facets=…) with TAINTS",
        ),
        id="a facet is not declared",
    ),
    pytest.param(
        scoring(lambda state, pod, node: min(len(node.pods), 100), caching=OF_LABELS),
        ("caching = Caching(facets=…) with REQUESTED, PODS",),
        id="a read of pods is not declared",
    ),
    pytest.param(
        scoring(
            lambda state, pod, node: 100 * (node.annotations.get("test.org/price") == "7"),
            caching=OF_LABELS,
        ),
        ("caching = Caching(facets=…) with ANNOTATIONS",),
        id="an annotation has a key that occurs nowhere else",
    ),
    pytest.param(
        scoring(
            lambda state, pod, node: (
                100 * (node.node.declared.get("status.nodeInfo.osImage") == "7")
            ),
            caching=OF_LABELS,
            fields=("Node.status.nodeInfo.osImage",),
        ),
        ("caching = Caching(facets=…) with DECLARED",),
        id="a declared field is read without its facet",
    ),
    pytest.param(
        ReadsAllNodes,
        (
            "changed its answer about one node when LABELS of another (node-",
            'it must say scope = "cluster"',
        ),
        id="other nodes are read",
    ),
    pytest.param(
        scoring(lambda *_: next(_numbers) % 100),
        ("says something else when it is asked again",),
        id="the result depends on earlier calls",
    ),
    pytest.param(
        answering("StoresInShape", score=stores_in_shape),
        ("StoresInShape: says something else",),
        id="a shape stores foreign data",
    ),
    pytest.param(
        answering("OutOfDate", score=from_a_derived_column),
        ("list all facets that the column follows from",),
        id="a derived column lacks a facet",
    ),
    pytest.param(
        answering("TooEarly", pre_filter=counts_too_early, filter=of_early_counts, scope="cluster"),
        ("implement PreFilterExtensions",),
        id="a state ignores what-ifs",
    ),
]


@pytest.mark.parametrize(("plugin_class", "words"), WRONG)
def test_a_forbidden_input_or_result_is_detected(
    plugin_class: type[Plugin], words: tuple[str, ...]
) -> None:
    message = failure_of(plugin_class)
    assert [text for text in words if text not in message] == [], message


@final
class FloatScores(ScorePlugin):
    """Returns scores that are not whole numbers."""

    name = "FloatScores"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return nodes.pods.counts() / 2  # pyright: ignore[reportReturnType]


def test_scores_of_another_type_are_detected() -> None:
    line = FloatScores.score.__code__.co_firstlineno
    message = failure_of(FloatScores)
    assert "score returned float64[9]; wanted int64[9]" in message
    assert f"at test_answer_checks.py:{line}" in message
