"""One evaluation of one plugin."""

from typing import final

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreScorePlugin, ScalarScorePlugin
from bayplan.framework.status import SKIP, Status
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import (
    CheckFailed,
    PluginAnswer,
    SampleCluster,
    ask,
    cluster,
    node,
    plugin,
    pod,
)


def small() -> SampleCluster:
    return cluster([node("a", cpu=1), node("b", cpu=8), node("c", cpu=4)], [])


def test_a_result_is_indexed_by_node_name() -> None:
    sample = small()
    answer = ask(plugin(NodeResourcesFit, cluster=sample), pod(cpu=2), sample.lend().nodes)
    assert answer.rejections == {"a": "UnschedulableAndUnresolvable: Insufficient cpu"}
    assert sorted(answer.scores) == ["b", "c"]


def test_a_selection_of_nodes_can_be_evaluated() -> None:
    sample = small()
    instance = plugin(NodeResourcesFit, cluster=sample)
    nodes = sample.lend().nodes
    whole, part = ask(instance, pod(cpu=2), nodes), ask(instance, pod(cpu=2), nodes, [2, 0])
    assert part == whole.about(["a", "c"])


def test_a_rejection_by_pre_filter_ends_the_evaluation() -> None:
    sample = small()
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    answer = ask(plugin(NodeAffinity, cluster=sample), pod(affinity=affinity), sample.lend().nodes)
    assert answer == PluginAnswer("UnschedulableAndUnresolvable: pod affinity terms conflict")


def test_a_skip_is_reported() -> None:
    sample = small()
    answer = ask(plugin(NodeAffinity, cluster=sample), pod(), sample.lend().nodes)
    assert (answer.pre_filter, answer.pre_score, answer.scores) == ("Skip", "Skip", {})


def test_an_error_status_of_a_plugin_is_a_result() -> None:
    sample = small()
    terms = [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "?"}]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    answer = ask(plugin(NodeAffinity, cluster=sample), pod(affinity=affinity), sample.lend().nodes)
    assert answer.pre_score.startswith('Error: running PreScore plugin "NodeAffinity"')


@final
class Breaks(PreScorePlugin, ScalarScorePlugin):
    """Raises in Score."""

    name = "Breaks"

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        return SKIP if pod.name == "skip" else None

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        raise ZeroDivisionError(node.name)


def test_an_exception_fails_the_check_as_its_cause() -> None:
    sample = small()
    instance = plugin(Breaks, cluster=sample)
    assert ask(instance, pod("skip"), sample.lend().nodes).pre_score == "Skip"
    with pytest.raises(CheckFailed, match="ZeroDivisionError") as failed:
        ask(instance, pod("p"), sample.lend().nodes)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_the_first_difference_is_reported() -> None:
    one = PluginAnswer("", {"a": "Unschedulable: x"}, "", {"b": 1})
    other = PluginAnswer("", {}, "", {"b": 2})
    assert one.difference(one) == ""
    assert one.difference(other) == "rejections of node a: 'Unschedulable: x' or 'none'"
    assert PluginAnswer().difference(PluginAnswer("Skip")) == "pre_filter 'Success' or 'Skip'"


def test_raw_scores_are_reported() -> None:
    sample = cluster([node("a", taints=["spot:PreferNoSchedule"]), node("b")], [])
    answer = ask(plugin(TaintToleration, cluster=sample), pod(), sample.lend().nodes)
    assert answer.scores == {"a": 1, "b": 0}
