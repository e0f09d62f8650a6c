"""NodeName: the node a pod names, or none."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.events import ActionType, QueueingHint
from bayplan.plugins.node_name import NodeName
from tests.kit.objects import node, pod
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


def test_a_pod_that_names_no_node_may_go_anywhere() -> None:
    nodes = lent(NODES)
    assert pre_filter_result(PLUGIN, pod(), nodes) is None
    assert rejected(PLUGIN, pod(), nodes) == {}


def test_a_pod_that_names_a_node_narrows_the_nodes_to_it() -> None:
    nodes = lent(NODES)
    assert pre_filter_result(PLUGIN, pod(nodeName="n2"), nodes) == {"n2"}
    assert rejected(PLUGIN, pod(nodeName="n2"), nodes) == unresolvable(["n1", "n3"], REASON)


def test_a_node_that_is_not_there_is_no_node() -> None:
    nodes = lent(NODES)
    assert pre_filter_result(PLUGIN, pod(nodeName="ghost"), nodes) == {"ghost"}
    assert rejected(PLUGIN, pod(nodeName="ghost"), nodes) == unresolvable(
        ["n1", "n2", "n3"], REASON
    )


@given(st.sampled_from(["", "n1", "n3", "ghost"]), st.lists(st.integers(0, 2), unique=True))
def test_some_nodes_are_answered_as_among_all(name: str, positions: list[int]) -> None:
    assert filter_is_row_wise(PLUGIN, pod(nodeName=name), lent(NODES), positions)


def test_only_a_new_node_can_be_the_one() -> None:
    assert registered(PLUGIN) == [("Node", "Add", False)]
    waiting = pod(nodeName="n9")
    assert hint(PLUGIN, ("Node", ActionType.ADD), waiting, None, node()) is QueueingHint.QUEUE
    assert hint(PLUGIN, ("Node", ActionType.UPDATE_NODE_LABEL), waiting, node(), node()) is None


def test_the_signature_is_the_name() -> None:
    assert PLUGIN.sign_pod(pod(nodeName="n1")) != PLUGIN.sign_pod(pod())
    assert PLUGIN.sign_pod(pod(nodeName="n1")) != PLUGIN.sign_pod(pod(nodeName="n2"))
    assert PLUGIN.sign_pod(pod("a", labels={"x": "1"})) == PLUGIN.sign_pod(pod("b", priority=5))
