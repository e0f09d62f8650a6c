"""Domain rules give each node the verdict and the score that the plugin gives it.

Here each node is a cell, and the counts come from the node table. How nodes with equal counts are
one cell is tested in tests/engine/ranking/test_node_cells.py.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

from bayplan.api.objects import HOSTNAME_LABEL, SERVICE
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.domain_rules import CellCounts, DomainRules
from bayplan.framework.filtering import FilterOutcome
from bayplan.plugins.inter_pod_affinity.domain_rules import AffinityDomainRules
from bayplan.plugins.pod_topology_spread.constraints import HARD, SOFT, PodTopologySpreadArgs
from bayplan.plugins.pod_topology_spread.domain_rules import SpreadDomainRules
from bayplan.state.cache import Snapshot
from bayplan.state.columns import Floats, all_true
from bayplan.state.domain_counts import PodSet
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from tests.plugins import affinity_kit, spread_kit
from tests.plugins.affinity_kit import AffinityCluster
from tests.plugins.spread_kit import (
    SpreadCluster,
    app_pod,
    constraint,
    labelled_node,
    lent,
    spreading,
    zoned,
)


class NodesAsCells(CellCounts):
    """All nodes, each of which is a cell."""

    def __init__(self, rules: DomainRules, nodes: NodeView) -> None:
        self._rules = rules
        self._nodes = nodes

    def _labels(self, key: str) -> np.ndarray[Any, Any]:
        return self._nodes.labels.ids(key)

    def of_cells(self, index: int) -> Floats:
        key, pods, rows = self._rules.counts[index]
        labels = self._labels(key)
        if rows is not None:
            assert isinstance(pods, PodSet)
            counted = self._nodes.pods.matching(pods) * self._nodes.table.mask(rows)
            return np.bincount(labels, counted).take(labels).astype(np.float64)
        by_value = self._nodes.pods.by_domain(pods, key)
        if by_value is None:
            return np.zeros(len(self._nodes))
        return by_value.take(labels)

    def of_domains(self, index: int) -> Floats:
        key, _, rows = self._rules.counts[index]
        places = np.arange(len(self._nodes))
        if rows is not None:
            places = places[self._nodes.table.mask(rows)]
        _, first = np.unique(self._labels(key)[places], return_index=True)
        return self.of_cells(index)[places[first]]

    @property
    def node_count(self) -> int:
        return len(self._nodes)

    def domain_count(self, topology_key: str) -> int:
        return len(set(self._labels(topology_key).tolist()))

    def total(self, index: int) -> float:
        return float(self.of_domains(index).sum())


def compare(plugin: Any, pod: PodInfo, nodes: NodeView) -> DomainRules | None:
    """Raises AssertionError where rules and plugin differ; None: there are no rules."""
    state = CycleState()
    filters = plugin.pre_filter(state, pod, nodes) is None
    scores = plugin.pre_score(state, pod, nodes) is None
    rules: DomainRules | None = plugin.domain_rules(pod, nodes)
    if rules is None:
        return None
    keys = {count.topology_key for count in rules.counts} | set(rules.topology_keys)
    if any((nodes.labels.ids(key) < 0).any() for key in keys):
        return None
    cells = NodesAsCells(rules, nodes)
    totals = [cells.total(index) for index in range(len(rules.counts))]
    assert (rules.filters(totals), rules.scores(totals)) == (filters, scores)
    if filters:
        by_rules, by_plugin = (FilterOutcome(nodes, all_true(len(nodes))) for _ in range(2))
        by_rules.add("P", rules.rejections(cells))
        by_plugin.add("P", plugin.filter(state, pod, nodes, all_true(len(nodes))))
        assert by_rules.statuses() == by_plugin.statuses()
    if scores:
        raw = plugin.score(state, pod, nodes)
        assert rules.raw_scores(cells).tolist() == raw.tolist()
        assert rules.normalized(raw).tolist() == plugin.normalize(state, pod, raw).tolist()
    return rules


@pytest.mark.parametrize("action", [HARD, SOFT])
def test_spreading_by_counts_equals_spreading_by_nodes(action: str) -> None:
    compared_count = 0

    @given(spread_kit.drawn_clusters(), spread_kit.drawn_pods(action))
    def check(snapshot: Snapshot, pod: PodInfo) -> None:
        nonlocal compared_count
        compared_count += compare(spreading(), pod, snapshot.nodes) is not None

    check()
    assert compared_count > 0


@given(affinity_kit.drawn_worlds(), affinity_kit.drawn_pods("new"))
def test_affinity_by_counts_equals_affinity_by_nodes(world: AffinityCluster, pod: PodInfo) -> None:
    rules = compare(world.plugin(), pod, world.lend().nodes)
    assume(rules is not None)
    assert isinstance(rules, AffinityDomainRules)


def rules_in(snapshot: Snapshot, *constraints: dict[str, Any], **options: Any) -> object:
    pod = app_pod(spread=list(constraints), **options)
    return spreading().domain_rules(pod, snapshot.nodes)


def test_spreading_has_rules_where_every_node_counts() -> None:
    assert isinstance(rules_in(zoned(a=1, b=2), constraint()), SpreadDomainRules)


def test_pods_without_constraints_have_rules() -> None:
    """They stand beside those of another plugin."""
    assert isinstance(rules_in(zoned(a=1, b=2)), SpreadDomainRules)


def test_default_constraints_whose_label_no_node_has_add_nothing() -> None:
    hosts = [labelled_node(name, labels={HOSTNAME_LABEL: name}) for name in ("n1", "n2")]
    world = SpreadCluster().put(SERVICE, "s", {"app": "web"})
    pod = app_pod(labels={"app": "web"})
    rules = spreading(PodTopologySpreadArgs(), world).domain_rules(pod, lent(hosts).nodes)
    assert isinstance(rules, SpreadDomainRules)
    assert [count.topology_key for count in rules.counts] == [HOSTNAME_LABEL]


def test_spreading_has_no_rules_where_a_node_lacks_the_label() -> None:
    nodes = [labelled_node("n1", zone="a"), labelled_node("n2")]
    assert rules_in(lent(nodes), constraint()) is None


def test_spreading_that_honors_taints_has_no_rules() -> None:
    assert rules_in(zoned(a=1, b=2), constraint(nodeTaintsPolicy="Honor")) is None


def test_soft_spreading_over_hosts_has_no_rules_where_two_nodes_share_a_hostname() -> None:
    key = "kubernetes.io/hostname"
    nodes = [labelled_node("n1"), labelled_node("n2", labels={key: "n1"})]
    assert rules_in(lent(nodes), constraint(key, SOFT)) is None
    assert rules_in(lent(nodes), constraint(key, HARD)) is not None
