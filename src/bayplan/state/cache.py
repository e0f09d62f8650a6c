"""Cache: the nodes and placed pods of the cluster, including pods that are only assumed.

A pod is *assumed* on its node when the node is chosen, *confirmed* when the API reports the pod as
bound, and *forgotten* when binding fails. Assumed pods never expire. Upstream: backend/cache.
"""

from collections.abc import Sequence

from bayplan.api.objects import Node
from bayplan.state.change_log import Facet
from bayplan.state.columns import INITIAL_CAPACITY
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import Loan
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot


class Cache:
    """Nodes and placed pods; the only writer of the node table."""

    def __init__(self, capacity: int = INITIAL_CAPACITY) -> None:
        """``capacity``: how many nodes fit before the columns grow."""
        self.table = NodeTable(capacity)
        self._pods: dict[str, PodInfo] = {}
        self._assumed: set[str] = set()
        self._loan: Loan | None = None
        self._loan_number = 0

    # ---- nodes ----------------------------------------------------------------------------

    def node(self, name: str) -> Node | None:
        row = self.table.row_of.get(name)
        return self.table.nodes[row] if row is not None else None

    def add_node(self, node: Node) -> None:
        self._check_not_lent()
        self.table.add_node(node)

    def update_node(self, node: Node) -> Facet:
        self._check_not_lent()
        return self.table.update_node(node)

    def remove_node(self, name: str) -> None:
        self._check_not_lent()
        self.table.remove_node(name)

    # ---- pods -----------------------------------------------------------------------------

    def pod(self, uid: str) -> PodInfo | None:
        """The placed pod of this uid, as counted."""
        return self._pods.get(uid)

    def pods(self) -> list[PodInfo]:
        return list(self._pods.values())

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    def assume(self, pod: PodInfo) -> None:
        """Count a pod on its node before the API confirms it.

        A cycle may call this and `forget` while the cluster is lent to it.
        """
        assert pod.uid not in self._pods, f"{pod!r} is already placed"
        self.table.assign(pod)
        self._pods[pod.uid] = pod
        self._assumed.add(pod.uid)

    def forget(self, pod: PodInfo) -> None:
        """Remove an assumed pod. A pod that has been confirmed stays."""
        if pod.uid in self._assumed:
            self._assumed.discard(pod.uid)
            self._displace(pod.uid)

    def add_pod(self, pod: PodInfo) -> None:
        """The API reports a pod on a node. Confirms an assumed pod, on whichever node."""
        if pod.uid in self._pods:
            self.update_pod(pod)
            return
        self._check_not_lent()
        self._place(pod)

    def update_pod(self, pod: PodInfo) -> None:
        """Replace a placed pod by a newer version. Its row changes only if a count changes."""
        self._check_not_lent()
        old = self._pods.get(pod.uid)
        assert old is not None, f"{pod!r} is not placed"
        self._assumed.discard(pod.uid)
        if _counts_equally(old, pod):
            self._pods[pod.uid] = pod
            row = self.table.row_of[pod.node_name]
            self.table.pods[row][pod.uid] = pod
            if old.status.start_time != pod.status.start_time:
                self.table.ranked_pods.note_start(row)
            return
        self._displace(pod.uid)
        self._place(pod)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """The API reports the deletion of a placed pod."""
        self._check_not_lent()
        self._assumed.discard(uid)
        return self._displace(uid) if uid in self._pods else None

    def _place(self, pod: PodInfo) -> None:
        self.table.assign(pod)
        self._pods[pod.uid] = pod

    def _displace(self, uid: str) -> PodInfo:
        pod = self._pods.pop(uid)
        self.table.unassign(pod)
        return pod

    # ---- lending --------------------------------------------------------------------------

    def lend(self) -> Snapshot:
        """Lend the cluster for one cycle; `Snapshot.end` gives it back."""
        self._check_not_lent()
        self._loan_number += 1
        self._loan = Loan(self._loan_number)
        return Snapshot(self.table, self._loan, self._adopt)

    def _adopt(self, placed: Sequence[PodInfo]) -> None:
        """A trial was committed: its pods, already counted on nodes, become assumed."""
        for pod in placed:
            assert pod.uid not in self._pods, f"{pod!r} is already placed"
            self._pods[pod.uid] = pod
            self._assumed.add(pod.uid)

    def _check_not_lent(self) -> None:
        assert self._loan is None or self._loan.ended, "the cluster changes while it is lent"


def _counts_equally(one: PodInfo, other: PodInfo) -> bool:
    """Whether two versions of a placed pod contribute equally to their row."""
    return (
        one.shape is other.shape
        and one.node_name == other.node_name
        and one.is_terminating == other.is_terminating
        and one.declared == other.declared
    )
