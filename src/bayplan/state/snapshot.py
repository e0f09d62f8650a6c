"""Snapshot: the cache, lent to one cycle, and trials on it.

Nothing is copied: a cycle is synchronous on one thread, so the cache does not change during the
cycle. A trial assumes or removes pods in place and undoes its steps at the end, unless committed.
"""

from collections.abc import Callable, Sequence
from types import TracebackType

from bayplan.state.columns import Rows
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import Loan, LoanEnded, NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import RankedView


class NodeNotFound(KeyError):
    """There is no node of that name."""


class Snapshot:
    """The cluster as a scheduling cycle sees it. Using it after `end` raises LoanEnded."""

    def __init__(
        self, table: NodeTable, loan: Loan, adopt: Callable[[Sequence[PodInfo]], None]
    ) -> None:
        """``adopt``: called with the pods of a committed trial."""
        self._table = table
        self._adopt = adopt
        self._loan = loan
        self.generation = table.log.generation

    @property
    def nodes(self) -> NodeView:
        """All nodes."""
        table = self._open()
        return NodeView(table, self._loan, table.alive_rows())

    @property
    def node_count(self) -> int:
        return self._open().node_count

    def node(self, name: str) -> NodeInfo:
        """Raises NodeNotFound."""
        table = self._open()
        row = table.row_of.get(name)
        if row is None or table.nodes[row] is None:
            raise NodeNotFound(name)
        return NodeInfo(table, self._loan, row)

    @property
    def rows_with_affinity(self) -> Rows:
        nodes = self.nodes
        return nodes.rows[nodes.pods_with_affinity() > 0]

    @property
    def rows_with_required_anti_affinity(self) -> Rows:
        nodes = self.nodes
        return nodes.rows[nodes.pods_with_required_anti_affinity() > 0]

    def rows_since(self, generation: int, facets: int) -> Rows:
        """Rows that changed after ``generation`` in one of ``facets``, or a superset."""
        return self._open().log.rows_since(generation, facets)

    def ranked_pods(self, nodes: NodeView) -> RankedView:
        """The pods of these nodes, the most important first."""
        table = self._open()
        table.ranked_pods.catch_up(table.log)
        return RankedView(table.ranked_pods, nodes.rows)

    def is_pvc_used(self, key: str) -> bool:
        """Whether a placed pod names a claim ("namespace/name"). Upstream: StorageInfos."""
        return self.pvc_users(key) > 0

    def pvc_users(self, key: str) -> int:
        """How many volumes of placed pods name a claim ("namespace/name")."""
        return self._open().claim_users.named_count(key)

    def trial(self) -> "Trial":
        """What-if: ``with snapshot.trial() as trial: trial.assume(pod, "n1") …``."""
        return Trial(self._open(), self._adopt)

    def end(self) -> None:
        """End the loan: every view of it raises from now on."""
        self._loan.ended = True

    def _open(self) -> NodeTable:
        if self._loan.ended:
            raise LoanEnded("a snapshot is valid only within the cycle it was lent for")
        return self._table


class Trial:
    """Placements and removals that are undone at the end, unless committed.

    Generations go forward only: undoing a step is one more change of its row.
    """

    def __init__(self, table: NodeTable, adopt: Callable[[Sequence[PodInfo]], None]) -> None:
        self._table = table
        self._adopt = adopt
        #: (pod, None if it was assumed, else the uids on its node before the removal).
        self._steps: list[tuple[PodInfo, list[str] | None]] = []

    def assume(self, pod: PodInfo, node_name: str) -> PodInfo:
        """Count a pod on a node."""
        placed = pod.on_node(node_name)
        self._table.assign(placed)
        self._steps.append((placed, None))
        return placed

    def remove(self, pod: PodInfo) -> None:
        """Stop counting a placed pod."""
        table = self._table
        row = table.row_of.get(pod.node_name)
        uids = [] if row is None else list(table.pods[row])
        table.unassign(pod)
        self._steps.append((pod, uids))

    def commit(self) -> None:
        """Keep the placements: the cache counts these pods as assumed. A trial with removals cannot
        be committed, because only the API removes pods."""
        assert all(uids is None for _, uids in self._steps), "a trial that removes is not kept"
        placed = [pod for pod, _ in self._steps]
        self._steps.clear()
        self._adopt(placed)

    def undo_last(self) -> None:
        """Undo the last step."""
        self._put_back(*self._steps.pop())

    def undo(self) -> None:
        """Undo all steps, the last first."""
        while self._steps:
            self.undo_last()

    def _put_back(self, pod: PodInfo, uids: list[str] | None) -> None:
        if uids is None:
            self._table.unassign(pod)
        else:
            row = self._table.assign(pod)
            self._table.pods[row] = _in_order(self._table.pods[row], uids)

    def __enter__(self) -> "Trial":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()


def _in_order(pods: dict[str, PodInfo], uids: list[str]) -> dict[str, PodInfo]:
    """The same pods, with ``uids`` first: the order before the removal."""
    return {uid: pods[uid] for uid in uids if uid in pods} | pods
