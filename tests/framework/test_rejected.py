"""Rejected nodes, counted."""

from collections.abc import Iterable

import numpy as np

from bayplan.framework.rejected import Rejected, RejectedNodes
from bayplan.framework.status import Code, Codes, Status, unresolvable, unschedulable
from bayplan.state.nodes import NodeView
from bayplan.testing import SampleCluster, node


class Told(RejectedNodes):
    def __init__(self, *found: Rejected) -> None:
        self._found = found
        #: How often somebody wanted to know the status of each.
        self.looks = 0

    def rejected(self) -> Iterable[Rejected]:
        return self._found

    def codes(self, nodes: NodeView, absent: Code) -> Codes:
        return np.full(len(nodes), absent, np.uint8)

    def statuses_among(self, nodes: NodeView) -> dict[str, Status]:
        self.looks += 1
        return {nodes.name(0): unschedulable("no")}


TOLD = Told(
    Rejected("A", Code.UNSCHEDULABLE, ("cpu", "memory"), 2),
    Rejected("A", Code.PENDING, ("cpu",), 3),
    Rejected("B", Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("port",), 1),
)


def test_every_reason_of_a_node_counts() -> None:
    assert TOLD.reason_counts() == {"cpu": 5, "memory": 2, "port": 1}


def test_instances_are_told_apart_by_what_they_wait_for() -> None:
    assert (TOLD.plugins(), TOLD.pending_plugins()) == ({"A", "B"}, {"A"})


def test_the_journal_counts_by_instance_code_and_reason() -> None:
    assert TOLD.reason_counts_by_plugin() == {
        ("A", "Pending", "cpu"): 3,
        ("A", "Unschedulable", "cpu"): 2,
        ("A", "Unschedulable", "memory"): 2,
        ("B", "UnschedulableAndUnresolvable", "port"): 1,
    }


def test_where_nobody_rejected_anything_nothing_is_counted() -> None:
    assert not Told().plugins() and not Told().reason_counts()


def test_the_status_of_each_node_is_found_when_somebody_looks() -> None:
    nodes, told = SampleCluster().add(node("n1"), node("n2")).lend().nodes, Told()
    found = told.node_to_status(nodes, unresolvable("left out"))
    assert found.codes(nodes).tolist() == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE] * 2
    assert told.looks == 0
    assert (found.get("n1"), found.get("n2")) == (unschedulable("no"), unresolvable("left out"))
    assert told.looks == 1
    assert told.node_to_status(nodes).get("n2") == unresolvable()
