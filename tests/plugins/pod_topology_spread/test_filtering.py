"""Hard constraints: compared with a plain rule, under what-ifs, and by examples."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL
from bayplan.framework.filtering import FilterOutcome
from bayplan.plugins.pod_topology_spread.constraints import HARD, Constraint
from bayplan.plugins.pod_topology_spread.filtering import (
    NO_LABEL,
    TOO_SKEWED,
    HardSpread,
    hard_spread,
)
from bayplan.state.cache import Snapshot
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from tests.plugins.spread_kit import (
    app_pod,
    constraint,
    drawn_clusters,
    drawn_placed,
    drawn_pods,
    labelled_node,
    lent,
    plainly_counted,
    plainly_has_all,
    plainly_included,
    rules,
    zoned,
)

SKEWED = ("Unschedulable", TOO_SKEWED)
UNLABELLED = ("UnschedulableAndUnresolvable", NO_LABEL)


def counted(waiting: PodInfo, nodes: NodeView) -> HardSpread:
    return hard_spread(rules().hard(waiting).constraints, waiting, nodes)


def verdicts(spread: HardSpread, waiting: PodInfo, nodes: NodeView) -> dict[str, tuple[str, str]]:
    """Rejected node → (code, reason)."""
    outcome = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
    outcome.add("spread", spread.rejections(waiting, nodes))
    statuses = outcome.node_to_status(outcome.nodes).for_each_explicit_node()
    return {name: (str(status.code), status.message) for name, status in statuses}


def rejected(snapshot: Snapshot, *spread: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Names of the nodes that Filter rejects for a pod with app=a."""
    waiting = app_pod(spread=spread, **fields)
    return verdicts(counted(waiting, snapshot.nodes), waiting, snapshot.nodes)


# ---- the plain rule ------------------------------------------------------------------


def plainly_rejected(
    constraints: Sequence[Constraint], info: NodeInfo, infos: list[NodeInfo], waiting: PodInfo
) -> tuple[str, str] | None:
    for each in constraints:
        if each.topology_key not in info.labels:
            return UNLABELLED
        domains: Counter[str] = Counter()
        for other in infos:
            if plainly_has_all(constraints, other) and plainly_included(each, other, waiting):
                domains[other.labels[each.topology_key]] += plainly_counted(each, other, waiting)
        lowest = min(domains.values(), default=0) if len(domains) >= each.min_domains else 0
        itself = each.selector.matches(waiting.labels)
        if domains[info.labels[each.topology_key]] + itself - lowest > each.max_skew:
            return SKEWED
    return None


@given(drawn_clusters(), drawn_pods(HARD))
def test_all_nodes_at_once_have_the_same_results_as_each_node_by_the_plain_rule(
    snapshot: Snapshot, waiting: PodInfo
) -> None:
    nodes, infos = snapshot.nodes, list(snapshot.nodes.infos())
    constraints, spread = rules().hard(waiting).constraints, counted(waiting, snapshot.nodes)
    expected = {i.name: plainly_rejected(constraints, i, infos, waiting) for i in infos}
    expected = {name: value for name, value in expected.items() if value is not None}
    assert verdicts(spread, waiting, nodes) == expected
    alone = [verdicts(spread, waiting, nodes.take([at])) for at in range(len(nodes))]
    assert {name: value for one in alone for name, value in one.items()} == expected


@given(drawn_clusters(), drawn_pods(HARD), st.data())
def test_updated_counts_equal_a_new_count(
    snapshot: Snapshot, waiting: PodInfo, data: st.DataObject
) -> None:
    constraints, nodes = rules().hard(waiting).constraints, snapshot.nodes
    original = counted(waiting, nodes)
    before, what_if = verdicts(original, waiting, nodes), original.clone()
    with snapshot.trial() as trial:
        coming = data.draw(drawn_placed(len(nodes)))
        removed = [each for info in nodes.infos() for each in info.pods if data.draw(st.booleans())]
        for each in filter(counts_in_a_what_if(constraints), removed):
            what_if.change(waiting, each, snapshot.node(each.node_name), -1)
            trial.remove(each)
        for number, each in enumerate(filter(counts_in_a_what_if(constraints), coming)):
            twin = app_pod(f"new-{number}", namespace=each.namespace, labels=each.labels)
            placed = trial.assume(twin, each.node_name)
            what_if.change(waiting, placed, snapshot.node(each.node_name), 1)
        assert verdicts(what_if, waiting, nodes) == verdicts(
            counted(waiting, nodes), waiting, nodes
        )
    assert verdicts(original, waiting, nodes) == before


def counts_in_a_what_if(constraints: Sequence[Constraint]) -> Any:
    """Without pods that upstream counts differently before and after; see the examples below."""
    empty = any(each.selector.is_everything for each in constraints)
    return lambda each: not each.is_terminating and not empty


# ---- examples --------------------------------------------------------------------------------


def test_nodes_that_share_a_hostname_are_one_domain() -> None:
    """Like nodes with another equal label. Only scoring counts hostnames by node."""
    shared = {HOSTNAME_LABEL: "same"}
    nodes = [
        labelled_node("a", labels=shared),
        labelled_node("b", labels=shared),
        labelled_node("c"),
    ]
    snapshot = lent(nodes, [app_pod("x", "a")])
    assert rejected(snapshot, constraint(HOSTNAME_LABEL)) == {"a": SKEWED, "b": SKEWED}


def test_an_empty_cluster_has_no_rejections() -> None:
    assert rejected(lent([]), constraint()) == {}


# ---- what-ifs --------------------------------------------------------------------------------


def changed(step: int, other: PodInfo, waiting: PodInfo, snapshot: Snapshot) -> dict[str, Any]:
    """The results after one pod is added to or removed from its node in the notes only."""
    spread = counted(waiting, snapshot.nodes).clone()
    spread.change(waiting, other, snapshot.node(other.node_name), step)
    return verdicts(spread, waiting, snapshot.nodes)


def test_changes_of_a_clone_do_not_affect_the_original() -> None:
    snapshot, waiting = zoned(a=1, b=0), app_pod(spread=[constraint()])
    original = counted(waiting, snapshot.nodes)
    one, other = original.clone(), original.clone()
    one.change(waiting, app_pod("a0", "in-a"), snapshot.node("in-a"), -1)
    assert verdicts(one, waiting, snapshot.nodes) == {}
    assert verdicts(other, waiting, snapshot.nodes) == {"in-a": SKEWED}
    later = one.clone()
    one.change(waiting, app_pod("x", "in-b"), snapshot.node("in-b"), 1)
    assert verdicts(one, waiting, snapshot.nodes) == {"in-b": SKEWED}
    assert verdicts(later, waiting, snapshot.nodes) == {}
    one.change(waiting, app_pod("a0", "in-a"), snapshot.node("in-a"), 1)
    assert verdicts(one, waiting, snapshot.nodes) == {}
    original.change(waiting, app_pod("x", "in-b"), snapshot.node("in-b"), 1)
    assert verdicts(original, waiting, snapshot.nodes) == {}
    assert verdicts(other, waiting, snapshot.nodes) == {"in-a": SKEWED}


def test_in_a_what_if_a_pod_being_deleted_counts_although_it_did_not_before() -> None:
    """A fact of v1.37.0: its removal is subtracted although it was not counted."""
    snapshot = lent(
        [labelled_node("a", zone="z1"), labelled_node("b", zone="z2")], [app_pod("x", "a")]
    )
    waiting = app_pod(spread=[constraint()])
    gone = app_pod("gone", "a", terminating=True)
    assert changed(-1, gone, waiting, snapshot) == {}


def test_a_domain_that_appears_after_the_count_is_empty() -> None:
    """A cycle that waits for an extender continues, and a node was added meanwhile."""
    snapshot, waiting = zoned(a=1, b=1), app_pod(spread=[constraint(minDomains=3)])
    spread = counted(waiting, snapshot.nodes)
    later = lent([labelled_node(f"in-{zone}", zone=zone) for zone in "abcd"])
    nodes = later.nodes
    assert verdicts(spread, waiting, nodes) == {"in-a": SKEWED, "in-b": SKEWED}
    assert nodes.labels.values(ZONE_LABEL) == ["a", "b", "c", "d"]
    spread.change(waiting, app_pod("x", "in-d"), later.node("in-d"), 1)
    assert verdicts(spread, waiting, nodes) == {}, "the notes do not include c"


def test_a_new_domain_may_be_the_fullest_after_a_what_if_with_negative_counts() -> None:
    """An empty selector counts no pods at first, so a removal makes the count negative."""
    snapshot, waiting = zoned(a=1, b=1), app_pod(spread=[constraint(labelSelector={})])
    spread = counted(waiting, snapshot.nodes)
    spread.change(waiting, app_pod("a0", "in-a"), snapshot.node("in-a"), -1)
    later = lent(
        [
            labelled_node("in-a", zone="a"),
            labelled_node("in-b", zone="b"),
            labelled_node("in-c", zone="c"),
        ]
    )
    assert verdicts(spread, waiting, later.nodes) == {"in-b": SKEWED, "in-c": SKEWED}
