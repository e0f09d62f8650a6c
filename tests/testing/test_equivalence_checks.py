"""Plugins with false promises of equivalence, or with differing one-row forms, are detected."""

from typing import Any

import numpy as np
import pytest

from bayplan.framework.plugin import (
    Caching,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    RowFilter,
    RowScore,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.status import Code, Rejection, Status, unschedulable
from bayplan.framework.types import PreFilterResult, Verdict
from bayplan.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import CheckFailed, check_plugin
from bayplan.testing.cases import PluginSubject
from bayplan.testing.equivalence_checks import pre_state_serves_pods_of_one_template

# ---- promises of equivalence ----------------------------------------------------------------


class ByAmounts(ScalarFilterPlugin, ScalarScorePlugin):
    """Promises that it reads amounts only."""

    name = "ByAmounts"
    caching = Caching(
        facets=Facet.REQUESTED | Facet.ALLOCATABLE | Facet.LABELS | Facet.PODS, amounts_only=True
    )
    reads_labels = ""

    def filter_node(self, state: Any, pod: Any, node: NodeInfo) -> Status | None:
        is_full = node.amounts("pods").free < 1
        is_odd = self.reads_labels == "filter" and len(node.labels) % 2
        return unschedulable("no") if is_full or is_odd else None

    def score_node(self, state: Any, pod: Any, node: NodeInfo) -> int:
        return len(node.pods) + len(node.labels) * (self.reads_labels == "score")


class Prepares(PreFilterPlugin, PreScorePlugin, ScalarFilterPlugin, ScalarScorePlugin):
    """Promises that its notes are equal for all pods of a template."""

    name = "Prepares"
    caching = Caching(facets=Facet.REQUESTED | Facet.PODS, pre_state_per_template=True)
    reads = ""

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        state["seen"] = {
            "pod": sum(map(ord, pod.name)) % 7,
            "nodes": int(nodes.pods.counts().sum()) % 2,
            "": 0,
        }[self.reads]
        return None

    def pre_score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return None

    def filter_node(self, state: Any, pod: Any, node: NodeInfo) -> Status | None:
        return None

    def score_node(self, state: Any, pod: Any, node: NodeInfo) -> int:
        return int(state["seen"])


@pytest.mark.parametrize("plugin", [ByAmounts, Prepares, NodeResourcesFit, InterPodAffinity])
def test_correct_promises_pass(plugin: Any) -> None:
    check_plugin(plugin, clusters=5)


@pytest.mark.parametrize("form", ["filter", "score"])
def test_a_plugin_that_reads_more_than_amounts_is_detected(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ByAmounts, "reads_labels", form)
    with pytest.raises(CheckFailed, match="breaks the promise amounts_only"):
        check_plugin(ByAmounts)


@pytest.mark.parametrize("read", ["pod", "nodes"])
def test_state_that_depends_on_more_than_the_template_is_detected(
    read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Prepares, "reads", read)
    with pytest.raises(CheckFailed, match="breaks the promise pre_state_per_template"):
        ask_in_clusters(10)


class ByPin(PreFilterPlugin, ScalarFilterPlugin):
    """Promises that it answers for a pod that names its node as for any other pod."""

    name = "ByPin"
    caching = Caching(follows_pin=True)
    reads = ""

    def pre_filter(self, state: Any, pod: PodInfo, nodes: Any) -> Any:
        pin = pod.shape.pin
        return PreFilterResult(frozenset((pin.node_name,))) if pin and self.reads != "all" else None

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        return unschedulable("no") if self.reads == "pin" and pod.shape.pin else None


def test_a_plugin_that_answers_by_the_name_of_the_node_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_plugin(ByPin, clusters=3)
    check_plugin(NodeAffinity, clusters=3)
    for wrong in ("all", "pin"):
        monkeypatch.setattr(ByPin, "reads", wrong)
        with pytest.raises(CheckFailed, match="breaks the promise follows_pin"):
            check_plugin(ByPin, clusters=3)


def ask_in_clusters(count: int) -> None:
    subject = PluginSubject(Prepares, None, (), None, seed=1)
    for index in range(count):
        pre_state_serves_pods_of_one_template(subject, subject.scene(index))


# ---- one-row forms --------------------------------------------------------------------------


REASON = "too many pods"


class Fair(FilterPlugin, RowFilter, ScorePlugin, RowScore):
    """Has the same result in both forms."""

    name = "Fair"

    def filter(self, state: Any, pod: Any, nodes: NodeView, feasible: NodeMask) -> Any:
        yield Rejection(nodes.pods.counts() > 2, Code.UNSCHEDULABLE, (REASON,))

    def filter_row(self, state: Any, pod: Any, node: NodeInfo) -> Verdict:
        return ((Code.UNSCHEDULABLE, (REASON,)),) if len(node.pods) > 2 else ()

    def score(self, state: Any, pod: Any, nodes: NodeView) -> NodeScores:
        return np.minimum(nodes.pods.counts(), 100).astype(np.int64)

    def score_row(self, state: Any, pod: Any, node: NodeInfo) -> int:
        return min(len(node.pods), 100)


def planted(
    limit: int = 2,
    code: Code = Code.UNSCHEDULABLE,
    reasons: tuple[str, ...] = (REASON,),
    score_of_row: Any = 0,
) -> type[Plugin]:
    """A plugin whose forms for one row return these results."""

    class Planted(FilterPlugin, RowFilter, ScorePlugin, RowScore):
        name = "Planted"

        def filter(self, state: Any, pod: Any, nodes: NodeView, feasible: NodeMask) -> Any:
            yield Rejection(nodes.pods.counts() > 2, Code.UNSCHEDULABLE, (REASON,))

        def filter_row(self, state: Any, pod: Any, node: NodeInfo) -> Verdict:
            return ((code, reasons),) if len(node.pods) > limit else ()

        def score(self, state: Any, pod: Any, nodes: NodeView) -> NodeScores:
            return np.zeros(len(nodes), np.int64)

        def score_row(self, state: Any, pod: Any, node: NodeInfo) -> int:
            return score_of_row

    return Planted


def test_equivalent_one_row_forms_pass() -> None:
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
def test_differing_one_row_forms_are_detected(wrong: type[Plugin], words: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        check_plugin(wrong, clusters=3)
    assert words in str(failed.value)
