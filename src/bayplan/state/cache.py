"""The cluster as the scheduler knows it: what the API reported, and pods that are assumed.

`Cache` holds the nodes and their pods. A pod is *assumed* on its node when the node is chosen,
*confirmed* when the API reports the pod as bound, and *forgotten* when binding fails. Assumed pods
never expire. Upstream: backend/cache.

`Snapshot` is the cache, lent to one cycle, and trials on it. Nothing is copied: a cycle is
synchronous on one thread, so the cache does not change during the cycle. A trial assumes or removes
pods in place and undoes its steps at the end, unless it is committed.

`ClusterView` is the cache with all other objects: devices, volumes and pod groups.
"""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, final

from bayplan.api.objects import Node
from bayplan.api.pod_groups import BUILT_IN_KINDS, PodGroupKinds
from bayplan.objects.object_store import ObjectStore
from bayplan.state.change_log import Facet
from bayplan.state.columns import INITIAL_CAPACITY, Rows
from bayplan.state.device_table import NEWEST_DEVICE_RULES, DeviceRules, Devices
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import Loan, LoanEnded, NodeInfo, NodeView
from bayplan.state.pod_group_trees import NO_GROUP_RULES, GroupRules, PodGroupTrees
from bayplan.state.pod_groups import PodGroups
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import RankedView
from bayplan.state.volumes import Volumes

# ---- snapshot -------------------------------------------------------------------------------


#: Counting fewer pods one by one is faster.
TOGETHER_MIN = 8

_LENT = "the cluster changes while it is lent"
_ENDED = "a snapshot is valid only within the cycle it was lent for"


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
        self._nodes: NodeView | None = None

    @property
    def nodes(self) -> NodeView:
        """All nodes. None comes or goes while the cluster is lent."""
        nodes = self._nodes
        if nodes is None or self._loan.ended:
            table = self._open()
            nodes = self._nodes = NodeView(table, self._loan, table.alive_rows())
        return nodes

    @property
    def node_count(self) -> int:
        # As `_open`, without a further call.
        if self._loan.ended:
            raise LoanEnded(_ENDED)
        return self._table.node_count

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
        return nodes.table.rows[nodes.pods.with_affinity() > 0]

    @property
    def rows_with_required_anti_affinity(self) -> Rows:
        nodes = self.nodes
        return nodes.table.rows[nodes.pods.with_required_anti_affinity() > 0]

    def rows_since(self, generation: int, facets: int) -> Rows:
        """Rows that changed after ``generation`` in one of ``facets``, or a superset."""
        return self._open().log.rows_since(generation, facets)

    def ranked_pods(self, nodes: NodeView) -> RankedView:
        """The pods of these nodes, the most important first."""
        table = self._open()
        table.ranked_pods.catch_up(table.log)
        return RankedView(table.ranked_pods, nodes.table.index)

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
            raise LoanEnded(_ENDED)
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


# ---- cache ----------------------------------------------------------------------------------


class Cache:
    """Nodes and placed pods; the only writer of the node table."""

    def __init__(self, capacity: int = INITIAL_CAPACITY) -> None:
        """``capacity``: how many nodes fit before the columns grow."""
        self.table = NodeTable(capacity)
        #: The placed pods, as counted; only this class writes.
        self.by_uid: dict[str, PodInfo] = {}
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
        return self.by_uid.get(uid)

    def pods(self) -> list[PodInfo]:
        return list(self.by_uid.values())

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    def assume(self, pod: PodInfo) -> None:
        """Count a pod on its node before the API confirms it.

        A cycle may call this and `forget` while the cluster is lent to it.
        """
        assert pod.uid not in self.by_uid, f"{pod!r} is already placed"
        self.table.assign(pod)
        self.by_uid[pod.uid] = pod
        self._assumed.add(pod.uid)

    def assume_all(self, pods: Sequence[PodInfo]) -> None:
        """As `assume` for each pod. Amounts are added to many rows at once."""
        self._count_all(pods)
        self._assumed.update([pod.uid for pod in pods])

    def forget(self, pod: PodInfo) -> None:
        """Remove an assumed pod. A pod that has been confirmed stays."""
        if pod.uid in self._assumed:
            self._assumed.discard(pod.uid)
            self._displace(pod.uid)

    def add_pod(self, pod: PodInfo) -> None:
        """The API reports a pod on a node, or a newer version of the pod. Confirms an assumed pod,
        on whichever node. The row of a placed pod changes only if a count changes."""
        # As `_check_not_lent`, without a call for each pod.
        assert self._loan is None or self._loan.ended, _LENT
        uid = pod.uid
        old = self.by_uid.get(uid)
        if old is not None:
            self._assumed.discard(uid)
            is_alike = (
                old.node_name == pod.node_name
                and (old.metadata.deletion_timestamp is None)
                == (pod.metadata.deletion_timestamp is None)
                and old.declared == pod.declared
            )
            if is_alike and old.shape is pod.shape:
                self.by_uid[uid] = pod
                row = self.table.row_of[pod.node_name]
                self.table.pods[row][uid] = pod
                if old.status.start_time != pod.status.start_time:
                    ranked_pods = self.table.ranked_pods
                    if ranked_pods.generation >= 0:
                        ranked_pods.note_start(row)
                return
            # The API server gives a pod labels of its node when it binds it.
            if is_alike and old.shape.differs_in_labels_alone(pod.shape):
                self.by_uid[uid] = pod
                self.table.relabel(old, pod)
                return
            self._displace(uid)
        self.table.assign(pod)
        self.by_uid[uid] = pod

    def add_pods(self, pods: Sequence[PodInfo]) -> None:
        """The API reports new pods on nodes, none of which is assumed."""
        self._check_not_lent()
        self._count_all(pods)

    def update_pod(self, pod: PodInfo) -> None:
        """Replace a placed pod by a newer version."""
        assert pod.uid in self.by_uid, f"{pod!r} is not placed"
        self.add_pod(pod)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """The API reports the deletion of a placed pod."""
        # As `_check_not_lent`, without a call for each pod.
        assert self._loan is None or self._loan.ended, _LENT
        self._assumed.discard(uid)
        return self._displace(uid) if uid in self.by_uid else None

    def _count_all(self, pods: Sequence[PodInfo]) -> None:
        by_uid = {pod.uid: pod for pod in pods}
        assert self.by_uid.keys().isdisjoint(by_uid), "a pod is already placed"
        self.table.assign_many(pods)
        self.by_uid.update(by_uid)

    def _displace(self, uid: str) -> PodInfo:
        pod = self.by_uid.pop(uid)
        self.table.unassign(pod)
        return pod

    # ---- lending --------------------------------------------------------------------------

    def lend(self) -> Snapshot:
        """Lend the cluster for one cycle; `Snapshot.end` gives it back."""
        # As `_check_not_lent`, without a call for each cycle.
        assert self._loan is None or self._loan.ended, _LENT
        self._loan_number += 1
        self._loan = Loan(self._loan_number)
        return Snapshot(self.table, self._loan, self._adopt)

    def _adopt(self, placed: Sequence[PodInfo]) -> None:
        """A trial was committed: its pods, already counted on nodes, become assumed."""
        for pod in placed:
            assert pod.uid not in self.by_uid, f"{pod!r} is already placed"
            self.by_uid[pod.uid] = pod
            self._assumed.add(pod.uid)

    def _check_not_lent(self) -> None:
        assert self._loan is None or self._loan.ended, _LENT


# ---- cluster view ---------------------------------------------------------------------------


@final
class ClusterView:
    """Nodes, placed pods, pod groups and all other objects of one cluster."""

    def __init__(
        self,
        is_ours: Callable[[str], bool],
        group_kinds: PodGroupKinds = BUILT_IN_KINDS,
        *,
        device_rules: DeviceRules = NEWEST_DEVICE_RULES,
        group_rules: GroupRules = NO_GROUP_RULES,
        cache: Cache | None = None,
        objects: ObjectStore[Any] | None = None,
    ) -> None:
        """``is_ours``: whether a scheduler name belongs to one of the profiles.

        ``device_rules``, ``group_rules``: see framework/cluster_rules.py.
        """
        self.cache = Cache() if cache is None else cache
        #: All objects but pods and nodes; these, too, where a plugin looks them up.
        self.objects = ObjectStore[Any]() if objects is None else objects
        #: The storage among ``objects``, with what is assumed of it.
        self.volumes = Volumes(self.cache.table, self.objects)
        self.devices = Devices(self.cache.table, self.objects, device_rules)
        self.pod_groups = PodGroups(is_ours, group_kinds)
        self.group_trees = PodGroupTrees(self.pod_groups, group_rules)
        self.cache.table.ranked_pods.members_outrank = group_rules.members_outrank
        #: The newest version of each pod that the API reported, by uid.
        self.pods: dict[str, PodInfo] = {}
        #: The snapshot that the present cycle reads; None between cycles.
        self.loan: Snapshot | None = None

    def lend(self) -> Snapshot:
        """Lend the cluster to a cycle."""
        self.loan = self.cache.lend()
        return self.loan

    def take_back(self) -> None:
        """End the loan, so that the cluster may change. Harmless if repeated."""
        if self.loan is not None:
            self.loan.end()
            self.loan = None

    def assume(self, placed: PodInfo) -> None:
        """Count a pod on its node before the API reports it there."""
        self.cache.assume(placed)
        if placed.shape.group_key is not None:
            self.pod_groups.assume(placed)

    def forget(self, placed: PodInfo) -> None:
        """Undo `assume`."""
        self.cache.forget(placed)
        if placed.shape.group_key is not None:
            self.pod_groups.forget(placed)
