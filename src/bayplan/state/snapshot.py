"""Snapshot: the cache on loan for one cycle, and trials over it.

Nothing is copied: a cycle is synchronous on one thread, so nothing changes under it. A trial
assumes or removes pods in place and puts everything back, unless it is committed.
"""

from types import TracebackType

import numpy as np

from bayplan.state.columns import Rows
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import Loan, NodeInfo, NodeView
from bayplan.state.pods import PodInfo


class NodeNotFound(KeyError):
    """There is no node of that name."""


class Snapshot:
    """What a scheduling cycle sees. Using it after `end` raises LoanEnded."""

    def __init__(self, table: NodeTable, loan: Loan) -> None:
        self._table = table
        self._loan = loan
        self.generation = table.log.generation

    @property
    def nodes(self) -> NodeView:
        """All nodes."""
        return NodeView(self._table, self._loan, self._table.alive_rows())

    @property
    def node_count(self) -> int:
        return self._table.node_count

    def node(self, name: str) -> NodeInfo:
        """Raises NodeNotFound."""
        row = self._table.row_of.get(name)
        if row is None or self._table.nodes[row] is None:
            raise NodeNotFound(name)
        return NodeInfo(self._table, self._loan, row)

    @property
    def rows_with_affinity(self) -> Rows:
        nodes = self.nodes
        return nodes.rows[np.flatnonzero(nodes.pods_with_affinity())]

    @property
    def rows_with_required_anti_affinity(self) -> Rows:
        nodes = self.nodes
        return nodes.rows[np.flatnonzero(nodes.pods_with_required_anti_affinity())]

    def trial(self) -> "Trial":
        """What-if: ``with snapshot.trial() as trial: trial.assume(pod, "n1") …``."""
        assert not self._loan.ended
        return Trial(self._table)

    def end(self) -> None:
        """Take the loan back: every view of it raises from now on."""
        self._loan.ended = True


class Trial:
    """Assumed placements and removals that are put back at the end, unless committed.

    Generations go forward only: putting back is one more change of each touched row.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._steps: list[tuple[bool, PodInfo]] = []  # (was it assumed?, pod)

    def assume(self, pod: PodInfo, node_name: str) -> PodInfo:
        """Count a pod on a node."""
        placed = pod.on_node(node_name)
        self._table.assign(placed)
        self._steps.append((True, placed))
        return placed

    def remove(self, pod: PodInfo) -> None:
        """Count a placed pod no longer."""
        self._table.unassign(pod)
        self._steps.append((False, pod))

    def commit(self) -> None:
        """Keep what was tried."""
        self._steps.clear()

    def undo(self) -> None:
        """Put back what was tried, last step first."""
        while self._steps:
            was_assumed, pod = self._steps.pop()
            if was_assumed:
                self._table.unassign(pod)
            else:
                self._table.assign(pod)

    def __enter__(self) -> "Trial":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()
