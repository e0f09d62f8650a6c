"""VolumeRestrictions: volumes that two pods may not share.

Some disks (GCE, EBS, iSCSI, Ceph RBD) allow one pod per node, or only readers. A ReadWriteOncePod
claim allows one pod in the whole cluster: its users are counted, and the count is updated in a
what-if. The result for such a claim does not depend on one node, so the plugin has scope cluster,
and runs only for pods with such volumes. Upstream: plugins/volumerestrictions.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from bayplan.api.objects import namespaced_name
from bayplan.api.storage_objects import READ_WRITE_ONCE_POD, PersistentVolumeClaim, Volume
from bayplan.framework.cycle_state import Cloneable, CycleState
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
)
from bayplan.framework.plugin import (
    Caching,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Rejection, Status, unresolvable
from bayplan.framework.types import PreFilterResult
from bayplan.state.change_log import Facet
from bayplan.state.columns import Mask, NodeMask
from bayplan.state.node_table import named_claims
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.volumes import STORAGE_KINDS, claim_not_found

DISK_CONFLICT: Final = "node(s) had no available disk"
CLAIM_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


@dataclass(slots=True)
class _Notes(Cloneable):
    #: The pod's ReadWriteOncePod claims, and how many volumes of placed pods name one of them.
    claims: frozenset[str]
    user_count: int

    def clone(self) -> "_Notes":
        return _Notes(self.claims, self.user_count)

    def count(self, pod: PodInfo, times: int) -> None:
        self.user_count += times * sum(key in self.claims for key in named_claims(pod))


@final
class VolumeRestrictions(
    PreFilterPlugin, PreFilterExtensions, FilterPlugin, EnqueueExtensions, SignPlugin
):
    """Rejects nodes with pods whose volumes conflict with the pod's."""

    name = "VolumeRestrictions"
    scope = "cluster"
    caching = Caching(facets=Facet.VOLUMES | Facet.STORAGE, signs_template=True)
    kinds = STORAGE_KINDS
    ignores_resizes = True

    def concerns(self, shape: PodShape) -> bool:
        return shape.volumes.has_any

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        volumes = pod.shape.volumes
        if not volumes.has_any:
            return SKIP
        claims: set[str] = set()
        for name in volumes.claim_names():
            claim = self.handle.volumes.api.claim(namespaced_name(pod.namespace, name))
            if claim is None:
                return unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in (claim.claim.spec.access_modes or ()):
                claims.add(claim.key)
        users = sum(map(self.handle.snapshot.pvc_users, claims))
        if not users and not volumes.exclusive:
            return SKIP
        state[self.instance_name] = _Notes(frozenset(claims), users)
        return None

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        notes: _Notes = state[self.instance_name]
        notes.count(added, 1)
        return None

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        notes: _Notes = state[self.instance_name]
        notes.count(removed, -1)
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        notes: _Notes = state[self.instance_name]
        taken = _disks_taken(pod.shape.volumes.exclusive, nodes)
        yield nodes.reject(taken, DISK_CONFLICT)
        if notes.user_count > 0:
            yield nodes.reject(~taken, CLAIM_IN_USE)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_gone = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
        node_added = ClusterEvent(EventResource.NODE, ActionType.ADD)
        claim_added = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        return [
            ClusterEventWithHint(pod_gone, _after_pod_gone),
            ClusterEventWithHint(node_added),
            ClusterEventWithHint(claim_added, _after_claim_added),
        ]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """Disks, and the claims by their names."""
        volumes = pod.shape.volumes
        names = volumes.claim_names()
        return (pod.namespace, tuple(names), volumes.exclusive) if volumes.has_any else ()


# ---- disks ---------------------------------------------------------------------------------


def _disks_taken(disks: Sequence[Volume], nodes: NodeView) -> Mask:
    """bool[nodes]: nodes with a pod whose disk conflicts with one of the pod's."""
    taken = np.zeros(len(nodes), np.bool_)
    if not disks:
        return taken
    key = "VolumeRestrictions.exclusive"
    used = nodes.derived(key, Facet.VOLUMES, np.bool_, _uses_disks)
    for position in np.flatnonzero(used).tolist():
        pods = nodes.info(position).pods
        taken[position] = any(_clash(disks, pod.shape.volumes.exclusive) for pod in pods)
    return taken


def _uses_disks(nodes: NodeView) -> Mask:
    uses_disks = (any(pod.shape.volumes.exclusive for pod in info.pods) for info in nodes.infos())
    return np.fromiter(uses_disks, np.bool_, len(nodes))


def disks_conflict(pod: PodInfo, other: PodInfo) -> bool:
    """Whether two pods cannot be on one node because of their disks."""
    return _clash(pod.shape.volumes.exclusive, other.shape.volumes.exclusive)


def _clash(disks: Iterable[Volume], used: Sequence[Volume]) -> bool:
    return any(_conflict(one, other) for one in disks for other in used)


def _conflict(one: Volume, other: Volume) -> bool:
    """Upstream: isVolumeConflict."""
    gce, ebs = one.gce_persistent_disk, one.aws_elastic_block_store
    iscsi, rbd = one.iscsi, one.rbd
    other_gce, other_ebs = other.gce_persistent_disk, other.aws_elastic_block_store
    if gce and other_gce and gce.pd_name == other_gce.pd_name:
        return not (gce.read_only and other_gce.read_only)
    if ebs and other_ebs and ebs.volume_id == other_ebs.volume_id:
        return True
    if iscsi and other.iscsi and iscsi.iqn == other.iscsi.iqn:
        return not (iscsi.read_only and other.iscsi.read_only)
    if rbd and other.rbd and (rbd.pool, rbd.image) == (other.rbd.pool, other.rbd.image):
        shared = set(rbd.monitors or ()) & set(other.rbd.monitors or ())
        return bool(shared) and not (rbd.read_only and other.rbd.read_only)
    return False


# ---- hints ---------------------------------------------------------------------------------


def _after_pod_gone(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """QUEUE if the deleted pod shares a disk or a claim with this pod."""
    if old.namespace != pod.namespace:
        return QueueingHint.QUEUE_SKIP
    own, freed = pod.shape.volumes, old.shape.volumes
    if _clash(own.exclusive, freed.exclusive):
        return QueueingHint.QUEUE
    shared = set(own.claim_names()) & set(freed.claim_names())
    return queue_if(shared)


def _after_claim_added(pod: PodInfo, old: None, new: PersistentVolumeClaim) -> QueueingHint:
    return queue_if(pod.names_claim(new.metadata))
