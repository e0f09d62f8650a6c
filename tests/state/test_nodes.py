"""NodeView and NodeInfo. Rows F-038 to F-041 and F-043 of the checklist, for the package state."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL, NodeSelectorTerm
from bayplan.api.selectors import EVERYTHING, NodeTerm, Requirement, node_term
from bayplan.state.cache import Cache
from bayplan.state.change_log import Facet
from bayplan.state.domain_counts import PodSet
from bayplan.state.host_ports import HostPort
from bayplan.state.node_accessors import LoanEnded
from bayplan.state.nodes import REPLACED, NodeView
from bayplan.state.placed_terms import TermKind
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.kit.accessors import accessors
from tests.state.affinity_terms import PREFERRED, REQUIRED, term, weighted

WEB = {"app": "web"}
ALL_PODS = PodSet(None, EVERYTHING)


def cache_of(*names: str, pods: tuple[PodInfo, ...] = ()) -> Cache:
    cache = Cache()
    for name in names:
        cache.add_node(node(name, zone=f"zone-{name}"))
    for each in pods:
        cache.add_pod(each)
    return cache


def view_of(*names: str, pods: tuple[PodInfo, ...] = ()) -> NodeView:
    return cache_of(*names, pods=pods).lend().nodes


def holed_view(*names: str, hole: int, pods: tuple[PodInfo, ...] = ()) -> NodeView:
    """The same nodes with an unused row before position ``hole``."""
    cache = Cache()
    for index, name in enumerate(names):
        if index == hole:
            cache.add_node(node("gone"))
        cache.add_node(node(name, zone=f"zone-{name}"))
    for each in pods:
        cache.add_pod(each)
    cache.remove_node("gone")
    return cache.lend().nodes


# ---- selecting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("view", [view_of("a", "b", "c"), holed_view("a", "b", "c", hole=1)])
@pytest.mark.parametrize(
    ("positions", "names"),
    [
        pytest.param([2, 0], ["c", "a"], id="positions in any order"),
        pytest.param([], [], id="an empty list"),
        pytest.param(np.array([1]), ["b"], id="an array"),
        pytest.param(np.array([True, False, True]), ["a", "c"], id="a mask"),
        pytest.param(np.zeros(3, np.bool_), [], id="a mask of nothing"),
    ],
)
def test_take_selects_by_position(
    view: NodeView, positions: "np.ndarray | list[int]", names: list[str]
) -> None:
    taken = view.take(positions)
    assert (len(taken), taken.names()) == (len(names), names)
    assert taken.allocatable("cpu").tolist() == [4000] * len(names)
    assert [info.name for info in taken.infos()] == names


def test_a_name_that_only_pods_refer_to_is_no_node() -> None:
    view = view_of("a", pods=(pod("p", node="ghost"),))
    assert view.names() == ["a"]
    assert (view.position("ghost"), view.positions(["ghost", "a"]).tolist()) == (None, [0])
    assert view.pods.matching(ALL_PODS).tolist() == [0]


def test_the_draw_order_is_the_same_with_holes_and_in_selections() -> None:
    names = ["a", "b", "c", "d", "e"]
    full, holed = view_of(*names), holed_view(*names, hole=3)
    order = [full.name(position) for position in full.table.draw_order()]
    assert [holed.name(position) for position in holed.table.draw_order()] == order
    some = holed.take([4, 0, 2])
    drawn = [some.name(position) for position in some.table.draw_order()]
    assert drawn == [name for name in order if name in ("e", "a", "c")]
    every = np.ones(3, np.bool_)
    assert [some.table.name_drawn(every, 3, index) for index in range(3)] == drawn
    tied = np.array([True, False, True])
    assert [some.table.name_drawn(tied, 2, index) for index in range(2)] == [
        n for n in drawn if n != "a"
    ]


# ---- columns are read-only and on loan ---------------------------------------------------------


@pytest.mark.parametrize("view", [view_of("a", "b"), holed_view("a", "b", hole=1)])
def test_no_column_can_be_written(view: NodeView) -> None:
    columns = (
        view.allocatable("cpu"),
        view.labels.ids(ZONE_LABEL),
        view.taints.set_ids(),
        view.pods.matching(ALL_PODS),
        view.table.rows,
        view.take([1, 0]).table.rows,
        view.derived("k", Facet.REQUESTED, np.int64, lambda nodes: nodes.requested("cpu")),
    )
    for column in columns:
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_a_view_raises_after_its_loan_has_ended() -> None:
    snapshot = cache_of("a").lend()
    view, info = snapshot.nodes, snapshot.node("a")
    snapshot.end()
    questions = (
        lambda: view.allocatable("cpu"),
        lambda: view.take([0]),
        view.names,
        lambda: view.table.rows,
        lambda: view.pods.matching(ALL_PODS),
        lambda: view.table.node_count,
        lambda: info.name,
        lambda: info.pods,
    )
    for question in questions:
        with pytest.raises(LoanEnded):
            question()


# ---- labels and terms --------------------------------------------------------------------------


def test_label_ids_lead_to_values_and_are_negative_where_absent() -> None:
    cache = cache_of("a", "b")
    cache.add_node(node("c", labels={"rack": "r1"}))
    view = cache.lend().nodes
    ids = view.labels.ids("rack").tolist()
    assert ids[:2] == [-1, -1]
    assert view.labels.values("rack")[ids[2]] == "r1"
    assert [info.label_id("rack") for info in view.infos()] == ids


def test_a_term_is_matched_by_labels_and_by_name() -> None:
    view = view_of("a", "b", "c")
    labels = (Requirement(ZONE_LABEL, "In", ("zone-a", "zone-b")),)
    names = (Requirement("metadata.name", "NotIn", ("a",)),)
    assert view.labels.matching_term(NodeTerm(labels, names)).tolist() == [False, True, False]
    assert view.labels.matching_term(NodeTerm((), names)).tolist() == [False, True, True]
    assert not view.labels.matching_term(node_term(NodeSelectorTerm())).any()
    assert not view.labels.matching_term(NodeTerm(error="bad")).any()


# ---- pods --------------------------------------------------------------------------------------


@given(
    used=st.lists(st.tuples(st.sampled_from(["", "10.0.0.1", "0.0.0.0"]), st.booleans())),
    requested=st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"]),
)
def test_a_host_port_conflicts_with_equal_and_with_all_addresses(
    used: list[tuple[str, bool]], requested: str
) -> None:
    """F-039: an empty address is 0.0.0.0, an empty protocol TCP, a port of 0 is none."""
    pods = tuple(
        pod(
            f"p{index}",
            node="a",
            host_ports=[{"hostIP": ip, "hostPort": 80, "protocol": "UDP" * udp}],
        )
        for index, (ip, udp) in enumerate(used)
    )
    view = view_of("a", "b", pods=(*pods, pod("none", node="b", host_ports=[{"hostPort": 0}])))
    everywhere = ("", "0.0.0.0")
    taken = any(
        not udp and (ip == requested or ip in everywhere or requested in everywhere)
        for ip, udp in used
    )
    assert view.pods.conflicting_ports([HostPort(requested, "TCP", 80)]).tolist() == [taken, False]
    assert not view.pods.conflicting_ports([HostPort(requested, "TCP", 81)]).any()


# ---- images ------------------------------------------------------------------------------------


def test_an_image_has_the_number_of_its_nodes() -> None:
    """F-040: its size is that of the first node; it is absent after the last node is removed."""
    cache = Cache()
    cache.add_node(node("a", images={"i": 600}))
    cache.add_node(node("b"))
    cache.update_node(node("b", images={"i": 700}))
    snapshot = cache.lend()
    image = snapshot.nodes.image("i")
    assert image is not None
    assert (image.size_bytes, image.node_count) == (600, 2)
    assert snapshot.nodes.table.mask(image.rows_array()).tolist() == [True, True]
    snapshot.end()
    cache.remove_node("a")
    cache.remove_node("b")
    assert cache.lend().nodes.image("i") is None


# ---- NodeInfo ----------------------------------------------------------------------------------


def test_a_pod_without_requests_counts_with_defaults_in_scores() -> None:
    """F-041; assumed pods are included."""
    cache = cache_of("a")
    cache.assume(pod("p", node="a"))
    info = cache.lend().node("a")
    assert info.requested == {}
    assert info.non_zero_requested == {"cpu": 100, "memory": 200 << 20}
    assert [each.name for each in info.pods] == ["p"]


def test_a_node_info_has_the_fields_of_upstreams_node_info() -> None:
    away = {"podAntiAffinity": {REQUIRED: [term(WEB)]}}
    near = {"podAffinity": {PREFERRED: [weighted(1, term(WEB))]}}
    cache = Cache()
    cache.add_node(node("a", images={"i": 600}, unschedulable=True))
    cache.add_pod(pod("p", node="a", requests={"cpu": "1500m"}, host_ports=[{"hostPort": 80}]))
    cache.add_pod(pod("q", node="a", affinity=away))
    cache.add_pod(pod("r", node="a", affinity=near))
    info = cache.lend().node("a")
    assert info.labels == {HOSTNAME_LABEL: "a"}
    assert (info.unschedulable, info.taints) == (True, ())
    assert info.requested == {"cpu": 1500}
    assert info.allocatable == {"cpu": 4000, "memory": 16 << 30, "pods": 110}
    assert info.used_ports == {HostPort("0.0.0.0", "TCP", 80)}
    assert {name: image.size_bytes for name, image in info.image_states.items()} == {"i": 600}


def test_a_node_info_shows_name_pods_requested_and_allocatable() -> None:
    cache = cache_of("a", pods=(pod("p", node="a", requests={"cpu": 1}),))
    shown = repr(cache.lend().node("a"))
    for part in ("a: pods [default/p]", "requested={'cpu': 1000}", "'cpu': 4000"):
        assert part in shown


# ---- old names and the reference ---------------------------------------------------------------


#: Arguments of the old accessors that take any.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "conflicting_ports": ([HostPort("0.0.0.0", "TCP", 80)],),
    "holds_terms": ([TermKind.PREFERRED_AFFINITY],),
    "label_ids": (ZONE_LABEL,),
    "label_values": (ZONE_LABEL,),
    "lacks_label": (ZONE_LABEL,),
    "mask_of_rows": ([0],),
    "matching_pods": (ALL_PODS,),
    "matching_term": (NodeTerm(error="bad"),),
    "name_drawn": (np.ones(2, np.bool_), 2, 0),
    "node": (0,),
    "placed_terms": (TermKind.PREFERRED_AFFINITY,),
    "pods_by_domain": (None, ZONE_LABEL),
    "satisfying": (Requirement(ZONE_LABEL, "Exists"),),
    "short": ("cpu", 5000),
    "terms_about": (TermKind.PREFERRED_AFFINITY, pod(labels=WEB).shape),
}
PROPERTIES = {"any_unschedulable", "cluster_node_count", "rows", "selection"}


@pytest.mark.parametrize("name", REPLACED)
def test_an_old_accessor_answers_with_a_warning_that_names_the_new_one(name: str) -> None:
    nodes = view_of("a", "b", pods=(pod("p", node="a", requests={"cpu": 1}),))
    with pytest.warns(DeprecationWarning, match="; write nodes") as warned:
        value = getattr(nodes, name)
    (warning,) = warned
    assert f"NodeView.{name} " in str(warning.message) and warning.filename == __file__
    written = str(warning.message).partition("; write ")[2]
    if name == "usage":
        return  # a bundle has no short repr; compare the function and the name
    arguments = ARGUMENTS.get(name, ())
    replaced = eval(written, {"nodes": nodes, "position": 0})
    if name not in PROPERTIES:
        value = value(*arguments)
    if name not in PROPERTIES | {"node"} and not written.endswith(")"):
        replaced = replaced(*arguments)
    assert repr(value) == repr(replaced)


def test_the_reference_in_the_docs_lists_each_accessor_once() -> None:
    text = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
    table = text.partition("### Accessors of `NodeView`")[2]
    listed = re.findall(r"^\| `([\w.]+)", table, re.MULTILINE)
    assert sorted(listed) == accessors()


@pytest.mark.parametrize("view", [view_of("a", "b", "c"), holed_view("a", "b", "c", hole=0)])
def test_nodes_are_looked_up_by_name(view: NodeView) -> None:
    assert [view.position(name) for name in ("a", "c", "ghost", "gone")] == [0, 2, None, None]
    assert view.positions(["c", "ghost", "a", "c", "gone"]).tolist() == [0, 2]
    assert view.take([2, 1]).position("c") == 0
    assert view.take([2, 1]).position("a") is None
    assert view.take([2, 1]).positions(["a", "b"]).tolist() == [1]


def test_a_selection_can_be_selected_again_and_all_returns_the_whole_view() -> None:
    view = holed_view("a", "b", "c", "d", hole=2)
    again = view.take([3, 1, 0]).take([2, 0])
    assert again.names() == ["a", "d"]
    assert again.all().names() == ["a", "b", "c", "d"]
