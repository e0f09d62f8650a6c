"""Nodes as they would be without some of their pods: each accessor answers so, or refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayplan.api.selectors import NodeTerm, Requirement, Selector
from bayplan.state.cache import Cache
from bayplan.state.change_log import Facet
from bayplan.state.domain_counts import PodSet
from bayplan.state.host_ports import HostPort
from bayplan.state.nodes import NodeView
from bayplan.state.placed_terms import TermKind
from bayplan.state.pods import PodInfo
from bayplan.state.resources import Bundle
from bayplan.state.victim_overlay import NotInOverlay, VictimAmounts, without_victims
from bayplan.testing import node, pod


def overlay() -> NodeView:
    """n1 without its one pod, n2 with its two, n3 without one of two."""
    cache = Cache()
    for index, cpus in enumerate(((2,), (1, 1), (1, 2)), start=1):
        cache.add_node(node(f"n{index}", cpu=4, pods=3))
        for number, cpu in enumerate(cpus):
            cache.add_pod(pod(f"p{index}{number}", cpu=cpu, node=f"n{index}", priority=-number))
    snapshot = cache.lend()
    nodes, ranked = snapshot.nodes, snapshot.ranked_pods(snapshot.nodes)
    leaving = np.zeros(ranked.priorities.shape, np.bool_)
    leaving[0, 0] = leaving[2, 1] = True
    return without_victims(nodes, VictimAmounts(ranked, leaving))


def test_amounts_are_those_without_the_pods_that_leave() -> None:
    nodes = overlay()
    assert nodes.requested("cpu").tolist() == [0, 2000, 1000]
    assert nodes.pod_counts().tolist() == [0, 2, 1]
    assert nodes.allocatable("cpu").tolist() == [4000, 4000, 4000]


def test_short_is_who_has_too_little_left_then() -> None:
    nodes = overlay()
    short = nodes.short("cpu", 3000)
    assert short is not None and short.tolist() == [False, True, False]
    assert nodes.short("cpu", 2000) is None
    few = nodes.short("pods", 2)
    assert few is not None and few.tolist() == [False, True, False]


def test_a_selection_is_without_the_same_victims() -> None:
    nodes = overlay().take([2, 0])
    assert nodes.names() == ["n3", "n1"]
    assert nodes.requested("cpu").tolist() == [1000, 0]
    assert nodes.take(np.array([False, True])).requested("cpu").tolist() == [0]


# ---- every accessor --------------------------------------------------------------------------

_ZONE = Requirement("zone", "In", ("a",))
_WEB = pod("example", labels={"app": "web"})
_PODS = PodSet(None, Selector())


def _zeros(view: NodeView) -> Any:
    return np.zeros(len(view), np.int64)


#: How each public name of NodeView is called here; a new accessor needs an entry.
CALLS: dict[str, Callable[[NodeView], Any]] = {
    "all": lambda nodes: nodes.all().requested("cpu"),
    "allocatable": lambda nodes: nodes.allocatable("cpu"),
    "any_unschedulable": lambda nodes: nodes.any_unschedulable,
    "cluster_node_count": lambda nodes: nodes.cluster_node_count,
    "conflicting_ports": lambda nodes: nodes.conflicting_ports([HostPort("0.0.0.0", "TCP", 80)]),
    "derived": lambda nodes: nodes.derived("k", Facet.LABELS, np.int64, _zeros),
    "draw_order": lambda nodes: nodes.draw_order(),
    "holds_terms": lambda nodes: nodes.holds_terms([TermKind.REQUIRED_ANTI_AFFINITY]),
    "image": lambda nodes: getattr(nodes.image("app:1"), "size_bytes", None),
    "info": lambda nodes: nodes.info(0).requested,
    "info_of_row": lambda nodes: nodes.info_of_row(0).requested,
    "infos": lambda nodes: [info.requested for info in nodes.infos()],
    "label_ids": lambda nodes: nodes.label_ids("zone"),
    "label_values": lambda nodes: list(nodes.label_values("zone")),
    "lacks_label": lambda nodes: nodes.lacks_label("zone"),
    "mask_of_rows": lambda nodes: nodes.mask_of_rows([1]),
    "matching_pods": lambda nodes: nodes.matching_pods(_PODS),
    "matching_term": lambda nodes: nodes.matching_term(NodeTerm((_ZONE,), (), None)),
    "name": lambda nodes: nodes.name(0),
    "name_drawn": lambda nodes: nodes.name_drawn(np.ones(3, np.bool_), 3, 1),
    "names": lambda nodes: nodes.names(),
    "node": lambda nodes: nodes.node(0).metadata.name,
    "non_zero_memory_bytes": lambda nodes: nodes.non_zero_memory_bytes(),
    "non_zero_milli_cpu": lambda nodes: nodes.non_zero_milli_cpu(),
    "placed_terms": lambda nodes: len(nodes.placed_terms(TermKind.REQUIRED_ANTI_AFFINITY)),
    "pod_counts": lambda nodes: nodes.pod_counts(),
    "pods_by_domain": lambda nodes: nodes.pods_by_domain(None, "zone"),
    "pods_with_affinity": lambda nodes: nodes.pods_with_affinity(),
    "pods_with_required_anti_affinity": lambda nodes: nodes.pods_with_required_anti_affinity(),
    "position": lambda nodes: nodes.position("n2"),
    "positions": lambda nodes: nodes.positions(["n2"]),
    "reject": lambda nodes: nodes.reject(np.array([1]), "no").positions,
    "requested": lambda nodes: nodes.requested("cpu"),
    "resource_names": lambda nodes: nodes.resource_names(),
    "rows": lambda nodes: nodes.rows,
    "satisfying": lambda nodes: nodes.satisfying(_ZONE),
    "selection": lambda nodes: np.arange(3)[nodes.selection],
    "short": lambda nodes: nodes.short("cpu", 3000),
    "taint_set_ids": lambda nodes: nodes.taint_set_ids(),
    "taint_sets": lambda nodes: list(nodes.taint_sets()),
    "take": lambda nodes: nodes.take([0]).requested("cpu"),
    "terms_about": lambda nodes: nodes.terms_about(TermKind.REQUIRED_ANTI_AFFINITY, _WEB.shape),
    "unschedulable": lambda nodes: nodes.unschedulable(),
    "usage": lambda nodes: nodes.usage(Bundle(("cpu",), (1,)), scored=True),
}


def test_every_accessor_is_tried() -> None:
    assert set(CALLS) == {name for name in dir(NodeView) if not name.startswith("_")}


@pytest.mark.parametrize("name", CALLS)
def test_an_accessor_answers_as_if_the_victims_were_gone_or_refuses(name: str) -> None:
    call, (before, victims) = CALLS[name], rich_cluster()
    snapshot = before.lend()
    nodes, ranked = snapshot.nodes, snapshot.ranked_pods(snapshot.nodes)
    view = without_victims(nodes, VictimAmounts(ranked, ranked.priorities < 5))
    try:
        answer = plain(call(view))
    except NotInOverlay:
        return
    with snapshot.trial() as trial:
        for victim in victims:
            trial.remove(victim)
        assert answer == plain(call(nodes))


REFUSED = {
    "all",
    "conflicting_ports",
    "holds_terms",
    "info",
    "info_of_row",
    "infos",
    "matching_pods",
    "non_zero_memory_bytes",
    "non_zero_milli_cpu",
    "placed_terms",
    "pods_by_domain",
    "pods_with_affinity",
    "pods_with_required_anti_affinity",
    "terms_about",
    "usage",
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_depends_on_pods_otherwise_is_refused(name: str) -> None:
    with pytest.raises(NotInOverlay, match=f"NodeView.{name} "):
        CALLS[name](overlay())


def test_derived_values_that_depend_on_pods_are_refused() -> None:
    with pytest.raises(NotInOverlay):
        overlay().derived("k", Facet.PODS, np.int64, _zeros)


def test_other_names_are_missing_as_anywhere() -> None:
    with pytest.raises(AttributeError, match="requestedd"):
        getattr(overlay(), "requestedd")  # noqa: B009


def plain(answer: Any) -> Any:
    return answer.tolist() if isinstance(answer, np.ndarray) else answer


def rich_cluster() -> tuple[Cache, list[PodInfo]]:
    """Three nodes that differ, each with a pod to evict and the second with one that stays."""
    cache, victims = Cache(), []
    for index in range(1, 4):
        options: Any = {"labels": {"zone": "ab"[index % 2]}, "images": {"app:1": 1000 * index}}
        cache.add_node(node(f"n{index}", cpu=4, pods=3, unschedulable=index == 3, **options))
        victim = pod(
            f"v{index}",
            cpu=1,
            priority=0,
            labels={"app": "web"},
            node=f"n{index}",
            host_ports=(80,),
        )
        cache.add_pod(victim)
        victims.append(victim)
    cache.add_pod(pod("stays", cpu=1, priority=9, node="n2"))
    return cache, victims
