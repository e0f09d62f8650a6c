"""Planted plugins whose results depend on forbidden inputs."""

from collections.abc import Iterable
from typing import final

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    Caching,
    FilterPlugin,
    PreFilterPlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.status import Code, Rejection, Status, unschedulable
from bayplan.framework.types import PreFilterResult
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from tests.testing.broken_plugins import RanksNodes, WritesColumns, failure_of


def test_a_score_that_depends_on_the_selection_is_detected() -> None:
    message = failure_of(RanksNodes)
    assert message.startswith("RanksNodes: says something else through nodes.take(rows): scores of")
    assert 'scope = "cluster"' in message


def test_writing_to_a_column_is_detected() -> None:
    assert "WritesColumns: writes to a column of the nodes" in failure_of(WritesColumns)


@final
class BreaksTheSeal(ScorePlugin):
    """Makes a column writable and writes to it."""

    name = "BreaksTheSeal"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        counts = nodes.pods.counts()
        if counts.base is not None:
            counts.flags.writeable = True
            counts += 1
        return np.zeros(len(nodes), np.int64)


def test_writing_to_a_column_by_force_is_detected() -> None:
    message = failure_of(BreaksTheSeal)
    assert "writes to a column of the nodes (resources.pod_counts)" in message


@final
class WritesTheMask(FilterPlugin):
    """Writes to the mask of feasible nodes."""

    name = "WritesTheMask"

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        feasible &= nodes.pods.counts() < 2
        yield Rejection(~feasible, Code.UNSCHEDULABLE, ("two are enough",))


def test_writing_to_the_mask_is_detected() -> None:
    assert "filter writes to the mask it is handed" in failure_of(WritesTheMask)


@final
class TooHigh(ScalarScorePlugin):
    """Returns a score above 100."""

    name = "TooHigh"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 40 * len(node.labels)


def test_a_score_out_of_range_is_detected() -> None:
    assert 'plugin "TooHigh" returns an invalid score' in failure_of(TooHigh)


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


@final
class WaitsInFilter(ScalarFilterPlugin):
    """Returns Wait from Filter."""

    name = "WaitsInFilter"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Status(Code.WAIT)


def test_a_wait_from_filter_is_detected() -> None:
    assert "filter_node returned a rejection with Wait" in failure_of(WaitsInFilter)


@final
class ReadsTaintsInSecret(ScalarFilterPlugin):
    """Declares the facet of labels and reads taints."""

    name = "ReadsTaintsInSecret"
    caching = Caching(facets=Facet.LABELS)

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return unschedulable("tainted") if node.taints else None


def test_an_undeclared_facet_is_detected_and_named() -> None:
    message = failure_of(ReadsTaintsInSecret)
    assert "the answer changed when only TAINTS of the node changed: rejections of node" in message
    assert message.endswith("write caching = Caching(facets=…) with TAINTS")


@final
class CountsPodsInSecret(ScalarScorePlugin):
    """Declares the facet of labels and counts pods."""

    name = "CountsPodsInSecret"
    caching = Caching(facets=Facet.LABELS)

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return min(len(node.pods), 100)


def test_an_undeclared_read_of_pods_is_detected() -> None:
    assert "caching = Caching(facets=…) with REQUESTED, PODS" in failure_of(CountsPodsInSecret)


@final
class ReadsAnAnnotation(ScalarScorePlugin):
    """Reads an annotation whose key occurs nowhere else."""

    name = "ReadsAnAnnotation"
    caching = Caching(facets=Facet.LABELS)

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.annotations.get("test.org/price") == "7" else 0


def test_keys_that_only_the_plugin_uses_are_drawn() -> None:
    assert "caching = Caching(facets=…) with ANNOTATIONS" in failure_of(ReadsAnAnnotation)


@final
class ReadsADeclaredField(ScalarScorePlugin):
    """Reads a field that it declares, without the facet of declared fields."""

    name = "ReadsADeclaredField"
    caching = Caching(facets=Facet.LABELS)
    fields = ("Node.status.nodeInfo.osImage",)

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.node.declared.get("status.nodeInfo.osImage") == "7" else 0


def test_declared_fields_are_drawn() -> None:
    assert "caching = Caching(facets=…) with DECLARED" in failure_of(ReadsADeclaredField)


@final
class ReadsAllNodes(ScalarScorePlugin):
    """Reads all nodes to score each of them."""

    name = "ReadsAllNodes"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        labels = [other.labels.get("disktype") for other in self.handle.snapshot.nodes.infos()]
        return min(labels.count("ssd"), 100)


def test_a_read_of_other_nodes_is_detected() -> None:
    message = failure_of(ReadsAllNodes)
    assert "changed its answer about one node when LABELS of another (node-" in message
    assert 'it must say scope = "cluster"' in message


@final
class CountsCalls(ScalarScorePlugin):
    """Scores with the number of its calls."""

    name = "CountsCalls"

    def setup(self) -> None:
        self._call_count = 0

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        self._call_count += 1
        return self._call_count % 100


def test_a_result_that_depends_on_earlier_calls_is_detected() -> None:
    assert "says something else when it is asked again" in failure_of(CountsCalls)


@final
class StoresInShape(ScorePlugin):
    """Stores a value with the pod's shape that depends on the cluster."""

    name = "StoresInShape"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        count = len(set(nodes.all().taints.set_ids().tolist()))
        count_of_shape = pod.shape.once("StoresInShape", lambda shape: count)
        return np.full(len(nodes), count_of_shape, np.int64)


def test_a_shape_that_stores_foreign_data_is_detected() -> None:
    assert "StoresInShape: says something else" in failure_of(StoresInShape)


@final
class RankingInvalid(ScorePlugin):
    """Reads a derived column that depends on more facets than it declares."""

    name = "OutOfDate"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return nodes.derived("OutOfDate", Facet.LABELS, np.int64, _taint_counts)


def _taint_counts(nodes: NodeView) -> NodeScores:
    return np.array([len(info.taints) for info in nodes.infos()], np.int64)


def test_a_derived_column_that_lacks_a_facet_is_detected() -> None:
    assert "list all facets that the column follows from" in failure_of(RankingInvalid)


@final
class CountsTooEarly(PreFilterPlugin, FilterPlugin):
    """Counts pods in PreFilter and has no AddPod and RemovePod."""

    name = "CountsTooEarly"
    scope = "cluster"

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        state["counts"] = {info.name: len(info.pods) for info in nodes.infos()}
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        full = np.array([state["counts"][name] > 1 for name in nodes.names()])
        yield Rejection(full, Code.UNSCHEDULABLE, ("two are enough",))


def test_a_state_that_ignores_what_ifs_is_detected() -> None:
    assert "implement PreFilterExtensions" in failure_of(CountsTooEarly)
