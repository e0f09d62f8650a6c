"""Plugins that say more of what is alike than is so are found."""

from typing import Any

import pytest

from bayplan.framework.interface import (
    PreFilterPlugin,
    PreScorePlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
)
from bayplan.framework.status import Status, unschedulable
from bayplan.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo
from bayplan.testing import CheckFailed, check_plugin
from bayplan.testing.alike_checks import prepared_once_for_all_alike
from bayplan.testing.scenes import Subject


class ByAmounts(ScalarFilterPlugin, ScalarScorePlugin):
    """Says that amounts are all it looks at."""

    name = "ByAmounts"
    follows_amounts = True
    facets = Facet.REQUESTED | Facet.ALLOCATABLE | Facet.LABELS | Facet.PODS
    reads_labels = ""

    def filter_node(self, state: Any, pod: Any, node: NodeInfo) -> Status | None:
        is_full = node.amounts("pods").free < 1
        is_odd = self.reads_labels == "filter" and len(node.labels) % 2
        return unschedulable("no") if is_full or is_odd else None

    def score_node(self, state: Any, pod: Any, node: NodeInfo) -> int:
        return len(node.pods) + len(node.labels) * (self.reads_labels == "score")


class Prepares(PreFilterPlugin, PreScorePlugin, ScalarFilterPlugin, ScalarScorePlugin):
    """Says that what it notes is good for all pods of a template."""

    name = "Prepares"
    prepares_alike = True
    facets = Facet.REQUESTED | Facet.PODS
    reads = ""

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> Any:
        state["seen"] = {
            "pod": sum(map(ord, pod.name)) % 7,
            "nodes": int(nodes.pod_counts().sum()) % 2,
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
def test_what_is_so_passes(plugin: Any) -> None:
    check_plugin(plugin, clusters=5)


@pytest.mark.parametrize("form", ["filter", "score"])
def test_who_reads_more_than_amounts_is_found(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByAmounts, "reads_labels", form)
    with pytest.raises(CheckFailed, match="do not say follows_amounts"):
        check_plugin(ByAmounts)


@pytest.mark.parametrize("read", ["pod", "nodes"])
def test_notes_that_follow_from_more_than_the_template_are_found(
    read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Prepares, "reads", read)
    with pytest.raises(CheckFailed, match="not say prepares_alike"):
        ask_in_clusters(10)


def ask_in_clusters(count: int) -> None:
    subject = Subject(Prepares, None, (), None, seed=1)
    for index in range(count):
        prepared_once_for_all_alike(subject, subject.scene(index))
