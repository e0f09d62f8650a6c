"""Nodes as they would be without some of their pods: each accessor answers so or refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayplan.api.selectors import NodeTerm, Requirement, Selector
from bayplan.state.amounts_overlay import NotInOverlay, VictimAmounts, without_victims
from bayplan.state.cache import Cache
from bayplan.state.change_log import Facet
from bayplan.state.domain_counts import PodSet
from bayplan.state.host_ports import HostPort
from bayplan.state.nodes import GROUPS, NodeView
from bayplan.state.placed_terms import TermKind
from bayplan.state.pods import PodInfo
from bayplan.state.resources import Bundle
from bayplan.testing import node, pod
from tests.kit.accessors import accessors


def overlay() -> NodeView:
    """n1 without its one pod, n2 with its two, n3 without one of two."""
    cache = Cache()
    for index, cpus in enumerate(((2,), (1, 1), (1, 2)), start=1):
        cache.add_node(node(f"n{index}", cpu=4, pods=3))
        for number, cpu in enumerate(cpus):
            cache.add_pod(pod(f"p{index}{number}", cpu=cpu, node=f"n{index}", priority=-number))
    snapshot = cache.lend()
    nodes, ranked = snapshot.nodes, snapshot.ranked_pods(snapshot.nodes)
    victim_mask = np.zeros(ranked.priorities.shape, np.bool_)
    victim_mask[0, 0] = victim_mask[2, 1] = True
    return without_victims(nodes, VictimAmounts(ranked, victim_mask))


def test_amounts_are_those_without_the_victims() -> None:
    nodes = overlay()
    assert nodes.requested("cpu").tolist() == [0, 2000, 1000]
    assert nodes.pods.counts().tolist() == [0, 2, 1]
    assert nodes.allocatable("cpu").tolist() == [4000, 4000, 4000]


def test_insufficient_counts_the_amounts_that_the_victims_free() -> None:
    nodes = overlay()
    insufficient = nodes.resources.insufficient("cpu", 3000)
    assert insufficient is not None and insufficient.tolist() == [False, True, False]
    assert nodes.resources.insufficient("cpu", 2000) is None
    few = nodes.resources.insufficient("pods", 2)
    assert few is not None and few.tolist() == [False, True, False]


def test_a_selection_of_the_overlay_has_the_same_victims() -> None:
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


#: An example call of each accessor. A new accessor needs an entry.
CALLS: dict[str, Callable[[NodeView], Any]] = {
    "all": lambda nodes: nodes.all().requested("cpu"),
    "allocatable": lambda nodes: nodes.allocatable("cpu"),
    "taints.any_unschedulable": lambda nodes: nodes.taints.any_unschedulable(),
    "table.node_count": lambda nodes: nodes.table.node_count,
    "pods.conflicting_ports": lambda nodes: nodes.pods.conflicting_ports(
        [HostPort("0.0.0.0", "TCP", 80)]
    ),
    "derived": lambda nodes: nodes.derived("k", Facet.LABELS, np.int64, _zeros),
    "table.draw_order": lambda nodes: nodes.table.draw_order(),
    "pods.any_affinity_terms": lambda nodes: nodes.pods.any_affinity_terms(
        [TermKind.REQUIRED_ANTI_AFFINITY]
    ),
    "image": lambda nodes: getattr(nodes.image("app:1"), "size_bytes", None),
    "info": lambda nodes: nodes.info(0).requested,
    "info_of_row": lambda nodes: nodes.info_of_row(0).requested,
    "infos": lambda nodes: [info.requested for info in nodes.infos()],
    "labels.ids": lambda nodes: nodes.labels.ids("zone"),
    "labels.names_by_value": lambda nodes: dict(nodes.labels.names_by_value("zone")),
    "labels.values": lambda nodes: list(nodes.labels.values("zone")),
    "labels.any_missing": lambda nodes: nodes.labels.any_missing("zone"),
    "table.mask": lambda nodes: nodes.table.mask([1]),
    "pods.matching": lambda nodes: nodes.pods.matching(_PODS),
    "labels.matching_term": lambda nodes: nodes.labels.matching_term(NodeTerm((_ZONE,), (), None)),
    "name": lambda nodes: nodes.name(0),
    "table.first_drawn": lambda nodes: nodes.table.first_drawn(np.ones(3, np.bool_), 2),
    "table.drawn_among": lambda nodes: nodes.table.drawn_among(np.array([0, 2], np.intp), 1),
    "table.name_drawn": lambda nodes: nodes.table.name_drawn(np.ones(3, np.bool_), 3, 1),
    "names": lambda nodes: nodes.names(),
    "not_placed": lambda nodes: nodes.not_placed([[_WEB]] * len(nodes)),
    "resources.non_zero_requested": lambda nodes: nodes.resources.non_zero_requested("memory"),
    "pods.affinity_terms": lambda nodes: len(
        nodes.pods.affinity_terms(TermKind.REQUIRED_ANTI_AFFINITY)
    ),
    "pods.counts": lambda nodes: nodes.pods.counts(),
    "pods.by_domain": lambda nodes: nodes.pods.by_domain(None, "zone"),
    "pods.with_affinity": lambda nodes: nodes.pods.with_affinity(),
    "pods.with_required_anti_affinity": lambda nodes: nodes.pods.with_required_anti_affinity(),
    "take_rows": lambda nodes: nodes.take_rows(lambda: np.array([0])).requested("cpu"),
    "position": lambda nodes: nodes.position("n2"),
    "positions": lambda nodes: nodes.positions(["n2"]),
    "reject": lambda nodes: nodes.reject(np.array([1]), "no").positions,
    "requested": lambda nodes: nodes.requested("cpu"),
    "resources.names": lambda nodes: nodes.resources.names(),
    "table.rows": lambda nodes: nodes.table.rows,
    "labels.matching": lambda nodes: nodes.labels.matching(_ZONE),
    "table.index": lambda nodes: np.arange(3)[nodes.table.index],
    "resources.insufficient": lambda nodes: nodes.resources.insufficient("cpu", 3000),
    "taints.set_ids": lambda nodes: nodes.taints.set_ids(),
    "taints.sets": lambda nodes: list(nodes.taints.sets()),
    "take": lambda nodes: nodes.take([0]).requested("cpu"),
    "pods.affinity_terms_selecting": lambda nodes: nodes.pods.affinity_terms_selecting(
        TermKind.REQUIRED_ANTI_AFFINITY, _WEB.shape
    ),
    "taints.unschedulable": lambda nodes: nodes.taints.unschedulable(),
    "resources.usage": lambda nodes: nodes.resources.usage(Bundle(("cpu",), (1,)), scored=True),
}


def test_every_accessor_of_the_view_and_its_groups_has_an_example_call() -> None:
    assert set(CALLS) == set(accessors())


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
    "take_rows",
    "all",
    "pods.conflicting_ports",
    "pods.any_affinity_terms",
    "info",
    "info_of_row",
    "infos",
    "pods.matching",
    "resources.non_zero_requested",
    "pods.affinity_terms",
    "pods.by_domain",
    "pods.with_affinity",
    "pods.with_required_anti_affinity",
    "pods.affinity_terms_selecting",
    "resources.usage",
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_accessors_that_depend_on_pods_in_another_way_are_refused(name: str) -> None:
    with pytest.raises(NotInOverlay, match=rf"NodeView\.{name} "):
        CALLS[name](overlay())


def test_an_old_name_of_an_accessor_is_passed_on_or_refused_like_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"nodes\.labels\.ids"):
        assert getattr(overlay(), "label_ids")("zone").tolist() == [-1] * 3  # noqa: B009
    refused = pytest.raises(NotInOverlay, match=r"NodeView\.pods\.matching ")
    with pytest.warns(DeprecationWarning, match=r"nodes\.pods\.matching"), refused:
        getattr(overlay(), "matching_pods")  # noqa: B009


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_an_unlisted_accessor_of_a_group_is_refused(
    group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GROUPS[group], "new_accessor", lambda group: 1, raising=False)
    with pytest.raises(NotInOverlay, match=f"{group}.new_accessor"):
        getattr(getattr(overlay(), group), "new_accessor")  # noqa: B009


def test_derived_values_that_depend_on_pods_are_refused() -> None:
    with pytest.raises(NotInOverlay):
        overlay().derived("k", Facet.PODS, np.int64, _zeros)


def test_an_unknown_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="requestedd"):
        getattr(overlay(), "requestedd")  # noqa: B009


def plain(answer: Any) -> Any:
    return answer.tolist() if isinstance(answer, np.ndarray) else answer


def rich_cluster() -> tuple[Cache, list[PodInfo]]:
    """Three different nodes, each with a victim; the second one has another pod, too."""
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
