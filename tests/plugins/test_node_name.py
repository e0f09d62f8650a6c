"""NodeName: the node that a pod names. NodeNameOrder: the smallest name among equal nodes."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.events import ActionType, QueueingHint
from bayplan.plugins.node_name import NodeName
from bayplan.testing import node, pod
from tests.engine.kit import Engine, waiting_pod
from tests.plugins.row_kit import (
    NO_HANDLE,
    filter_is_row_wise,
    hint,
    lent,
    pre_filter_result,
    registered,
    rejected,
    unresolvable,
)

PLUGIN = NodeName(None, NO_HANDLE)
REASON = "node(s) didn't match the requested node name"
NODES = [node("n1"), node("n2"), node("n3")]


def test_a_pod_that_names_a_node_narrows_the_nodes_to_it() -> None:
    nodes = lent(NODES)
    assert pre_filter_result(PLUGIN, pod(node="n2"), nodes) == {"n2"}
    assert rejected(PLUGIN, pod(node="n2"), nodes) == unresolvable(["n1", "n3"], REASON)


def test_an_unknown_node_name_leaves_no_node() -> None:
    nodes = lent(NODES)
    assert pre_filter_result(PLUGIN, pod(node="ghost"), nodes) == {"ghost"}
    assert rejected(PLUGIN, pod(node="ghost"), nodes) == unresolvable(["n1", "n2", "n3"], REASON)


@given(st.sampled_from(["", "n1", "n3", "ghost"]), st.lists(st.integers(0, 2), unique=True))
def test_selected_nodes_have_the_same_results_as_among_all_nodes(
    name: str, positions: list[int]
) -> None:
    assert filter_is_row_wise(PLUGIN, pod(node=name), lent(NODES), positions)


def test_only_a_new_node_can_help() -> None:
    assert registered(PLUGIN) == [("Node", "Add", False)]
    waiting = pod(node="n9")
    assert hint(PLUGIN, ("Node", ActionType.ADD), waiting, None, node()) is QueueingHint.QUEUE
    assert hint(PLUGIN, ("Node", ActionType.UPDATE_NODE_LABEL), waiting, node(), node()) is None


# ---- NodeNameOrder --------------------------------------------------------------------------


TIE_BREAK = {"enabled": [{"name": "NodeNameOrder"}]}


def test_among_equal_nodes_the_smallest_name_is_taken_whatever_the_seed() -> None:
    for seed in range(5):
        profile = {"plugins": {"multiPoint": _MULTI_POINT, "tieBreak": TIE_BREAK}}
        engine = Engine(seed=seed, profile=profile)
        engine.add(node("c"), node("a"), node("b"), waiting_pod())
        assert engine.bound() == {"p": "a"}
        (record,) = engine.attempts()
        assert (record.tied_count, record.tied_index) == (1, 0)
        [step] = record.tie_break
        assert (step.key, step.equal_count, step.left_count) == ("NodeNameOrder", 3, 1)
        assert record.scores[0].node == "a"


_MULTI_POINT = {
    "disabled": [{"name": "*"}],
    "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}],
}


def test_the_signature_is_the_name() -> None:
    assert PLUGIN.sign_pod(pod(node="n1")) != PLUGIN.sign_pod(pod())
    assert PLUGIN.sign_pod(pod(node="n1")) != PLUGIN.sign_pod(pod(node="n2"))
    assert PLUGIN.sign_pod(pod("a", labels={"x": "1"})) == PLUGIN.sign_pod(pod("b", priority=5))
