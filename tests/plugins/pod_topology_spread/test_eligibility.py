"""The nodes that count, all at once and one by one."""

import pytest
from hypothesis import given

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL
from bayplan.plugins.pod_topology_spread.constraints import HARD
from bayplan.plugins.pod_topology_spread.eligibility import Topology, counts_node
from bayplan.state.cache import Snapshot
from bayplan.state.pods import PodInfo
from tests.plugins.spread_kit import (
    app_pod,
    constraint,
    drawn_clusters,
    drawn_pods,
    labelled_node,
    lent,
    plainly_has_all,
    plainly_included,
    rules,
)


def included(snapshot: Snapshot, waiting: PodInfo) -> list[str] | None:
    """Names of the nodes that the only constraint counts; None means all nodes, without a mask."""
    (constraint,) = rules().hard(waiting).constraints
    nodes = snapshot.nodes
    mask = Topology(waiting, nodes).included(constraint)
    return None if mask is None else nodes.take(mask).names()


@given(drawn_clusters(), drawn_pods(HARD))
def test_eligibility_equals_the_plain_rules(snapshot: Snapshot, waiting: PodInfo) -> None:
    constraints, nodes = rules().hard(waiting).constraints, snapshot.nodes
    topology = Topology(waiting, nodes)
    complete = topology.complete(constraints)
    expected = [plainly_has_all(constraints, info) for info in nodes.infos()]
    assert expected == ([True] * len(nodes) if complete is None else complete.tolist())
    for each in constraints:
        mask = topology.included(each)
        expected = [plainly_included(each, info, waiting) for info in nodes.infos()]
        assert expected == ([True] * len(nodes) if mask is None else mask.tolist())
        assert expected == [counts_node(waiting.shape, each, info) for info in nodes.infos()]


def test_later_taints_and_other_clusters_are_evaluated_again() -> None:
    waiting = app_pod(spread=[constraint(nodeTaintsPolicy="Honor")])
    assert included(lent([labelled_node("a"), labelled_node("b", taints=["k"])]), waiting) == ["a"]
    assert included(lent([labelled_node("a", taints=["l"]), labelled_node("b")]), waiting) == ["b"]
    assert included(lent([labelled_node(n, taints=[n]) for n in "abc"]), waiting) == []


@pytest.mark.parametrize("key", [ZONE_LABEL, HOSTNAME_LABEL])
def test_an_empty_label_is_present(key: str) -> None:
    snapshot = lent([labelled_node("a", labels={key: ""}), labelled_node("b", labels={key: None})])
    topology = Topology(app_pod(), snapshot.nodes)
    assert topology.slots(key).tolist() == [1, 0]
    assert topology.slot_count(key) == 2
