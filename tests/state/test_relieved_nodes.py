"""Nodes as they would be without some of their pods."""

from collections.abc import Callable

import numpy as np
import pytest

from bayplan.state.cache import Cache
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeView
from bayplan.state.relieved_nodes import NotRelieved, Relief, RelievedNodeView
from bayplan.state.resources import Bundle
from bayplan.testing import node, pod


def relieved() -> NodeView:
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
    return RelievedNodeView(nodes, Relief(ranked, leaving))


def test_amounts_are_those_without_the_pods_that_leave() -> None:
    nodes = relieved()
    assert nodes.requested("cpu").tolist() == [0, 2000, 1000]
    assert nodes.pod_counts().tolist() == [0, 2, 1]
    assert nodes.allocatable("cpu").tolist() == [4000, 4000, 4000]


def test_short_is_who_has_too_little_left_then() -> None:
    nodes = relieved()
    short = nodes.short("cpu", 3000)
    assert short is not None and short.tolist() == [False, True, False]
    assert nodes.short("cpu", 2000) is None
    few = nodes.short("pods", 2)
    assert few is not None and few.tolist() == [False, True, False]


def test_a_selection_is_relieved_of_the_same() -> None:
    nodes = relieved().take([2, 0])
    assert nodes.names() == ["n3", "n1"]
    assert nodes.requested("cpu").tolist() == [1000, 0]
    assert nodes.take(np.array([False, True])).requested("cpu").tolist() == [0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda nodes: nodes.info(0),
        lambda nodes: list(nodes.infos()),
        lambda nodes: nodes.info_of_row(0),
        lambda nodes: nodes.usage(Bundle(("cpu",), (1,)), scored=True),
        lambda nodes: nodes.non_zero_milli_cpu(),
        lambda nodes: nodes.non_zero_memory_bytes(),
        lambda nodes: nodes.derived("k", Facet.REQUESTED, np.int64, lambda view: np.zeros(3)),
    ],
)
def test_what_is_not_known_of_such_nodes_is_refused(ask: Callable[[NodeView], object]) -> None:
    with pytest.raises(NotRelieved):
        ask(relieved())
