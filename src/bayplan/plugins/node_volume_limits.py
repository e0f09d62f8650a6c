"""NodeVolumeLimits: a node attaches no more volumes of a CSI driver than its CSINode allows.

The count includes the distinct volumes of the pods on a node, volumes that are being attached or
detached (VolumeAttachments), and the volumes of the pod. An in-tree volume counts for its CSI
driver if the node has a CSINode. The count per node and driver is a derived column. Only if the
count with all of the pod's volumes is too large does the plugin check which of them the node has
already. Upstream: plugins/nodevolumelimits, csi.go.

A placed pod is not counted if its claim belongs to another pod or no driver understands its disk;
upstream then fails the attempts of other pods with an error.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

import numpy as np

from bayplan.api import csi_migration
from bayplan.api.objects import namespaced_name
from bayplan.api.storage_objects import CSINode, PersistentVolumeClaim, VolumeAttachment
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    UPDATE,
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
    PreFilterPlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status, unresolvable
from bayplan.framework.types import PreFilterResult
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask, NodeMask
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.storage_infos import ClaimInfo
from bayplan.state.volumes import STORAGE_KINDS, claim_not_found

TOO_MANY: Final = "node(s) exceed max volume count"
NOT_INSTALLED: Final = "{} CSI driver is not installed on the node"
CLAIM_MISSING: Final = "looking up PVC {}: {}"
NO_CLAIM_NAME: Final = "PersistentVolumeClaim had no name"
NOT_OWNED: Final = "PVC {} was not created for pod {} (pod is not owner)"
NOT_TRANSLATED: Final = "converting volume({}) from inline to csi: {}"

_NO_LIMIT: Final = np.iinfo(np.int64).max


class _Volume(NamedTuple):
    """The identity of a volume; a volume that does not exist yet is identified by its claim."""

    driver: str
    handle: str
    exists: bool = True


_VolumeSet = dict[_Volume, None]


class DriverCount(NamedTuple):
    """The volumes of one CSI driver on one node."""

    driver: str
    limit: int
    attached_count: int
    #: Volumes of a pod that the node does not have yet.
    new_count: int


@final
class NodeVolumeLimits(PreFilterPlugin, FilterPlugin, EnqueueExtensions, SignPlugin):
    """Rejects nodes that could not attach a pod's volumes."""

    name = "NodeVolumeLimits"
    caching = Caching(
        facets=Facet.VOLUMES | Facet.STORAGE, facets_if_unconcerned=Facet(0), signs_template=True
    )
    kinds = STORAGE_KINDS
    ignores_resizes = True

    def setup(self) -> None:
        self._asks_for_drivers = self.handle.gates.enabled("VolumeLimitScaling")

    def concerns(self, shape: PodShape) -> bool:
        return bool(shape.volumes.claims or shape.volumes.migrated)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        volumes = pod.shape.volumes
        return None if volumes.claims or volumes.migrated else SKIP

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        """On nodes with a CSINode and on those without, the same volumes may count differently."""
        with_csi = nodes.derived(f"{self.name}.csi", Facet.VOLUMES, np.bool_, self._have_csi)
        for has_csi, selected in ((True, feasible & with_csi), (False, feasible & ~with_csi)):
            if selected.any():
                volumes = self._volumes_of(pod, has_csi=has_csi)
                if isinstance(volumes, Status):
                    yield Rejection(selected, volumes.code, volumes.reasons)
                elif volumes:
                    yield from self._rejections(volumes, nodes, selected)

    def _rejections(self, new: _VolumeSet, nodes: NodeView, selected: Mask) -> Iterable[Rejection]:
        """Rejects the nodes of ``selected`` that lack a driver or have too many volumes."""
        new_counts = Counter(volume.driver for volume in new)
        for driver in new_counts:
            lacking = selected & self._lacking(driver, nodes)
            yield nodes.reject(lacking, NOT_INSTALLED.format(driver))
            selected = selected & ~lacking
        over = np.zeros(len(nodes), np.bool_)
        for driver, count in new_counts.items():
            limits = self._column("limit", driver, nodes)
            counts = self._column("attached", driver, nodes) + count
            over |= selected & (limits >= 0) & (counts > limits)
        for position in np.flatnonzero(over).tolist():
            over[position] = self._is_over(nodes.info(position), new)
        yield nodes.reject(over, TOO_MANY)

    def counts_over_limit(self, pod: PodInfo, node: NodeInfo) -> list[DriverCount]:
        """The drivers of which the node would have too many volumes with the pod."""
        limits = _limits_of(self.handle.volumes.api.csi_node(node.name))
        volumes = self._volumes_of(pod, has_csi=bool(limits))
        if isinstance(volumes, Status):
            return []
        here, counts = self._used_on(node), self._counts_on(node)
        new_counts = Counter(volume.driver for volume in volumes if volume not in here)
        return [
            DriverCount(driver, limits[driver], counts[driver], new_count)
            for driver, new_count in sorted(new_counts.items())
            if counts[driver] + new_count > limits.get(driver, _NO_LIMIT)
        ]

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        csi_added = ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)
        csi_updated = ClusterEvent(EventResource.CSI_NODE, UPDATE)
        pod_gone = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
        claim_added = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        detached = ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)
        return [
            ClusterEventWithHint(csi_added),
            ClusterEventWithHint(csi_updated, _after_csi_node_updated),
            ClusterEventWithHint(pod_gone, _after_pod_gone),
            ClusterEventWithHint(claim_added, _after_claim_added),
            ClusterEventWithHint(detached, _after_detached),
        ]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """The disks, and the claims by name. A pod with an ephemeral volume is not signed, because
        the claim that is made for this volume belongs to no other pod."""
        volumes = pod.shape.volumes
        if volumes.has_ephemeral:
            return None
        names = tuple(volumes.claim_names())
        return (pod.namespace, names, volumes.migrated) if names or volumes.migrated else ()

    # ---- columns --------------------------------------------------------------------------

    def _have_csi(self, nodes: NodeView) -> Mask:
        volumes = self.handle.volumes
        return np.array(
            [volumes.api.csi_node(name) is not None for name in nodes.names()], np.bool_
        )

    def _lacking(self, driver: str, nodes: NodeView) -> Mask:
        """bool[nodes]: nodes that lack a driver that the pod needs."""
        csi_driver = self.handle.volumes.api.csi_driver(driver) if self._asks_for_drivers else None
        if csi_driver is None or not csi_driver.spec.prevent_pod_scheduling_if_missing:
            return np.zeros(len(nodes), np.bool_)
        return self._column("limit", driver, nodes) < 0

    def _column(self, what: str, driver: str, nodes: NodeView) -> Int64s:
        compute = self._limits if what == "limit" else self._attached_counts
        key = (self.name, what, driver)
        return nodes.derived(key, Facet.VOLUMES, np.int64, lambda view: compute(driver, view))

    def _limits(self, driver: str, nodes: NodeView) -> Int64s:
        """int64[nodes]: as many volumes of the driver may be attached; -1 where it is not."""
        csi_nodes = map(self.handle.volumes.api.csi_node, nodes.names())
        limits = [_limits_of(csi_node).get(driver, -1) for csi_node in csi_nodes]
        return np.array(limits, np.int64)

    def _attached_counts(self, driver: str, nodes: NodeView) -> Int64s:
        counts = (self._counts_on(info)[driver] for info in nodes.infos())
        return np.fromiter(counts, np.int64, len(nodes))

    # ---- one node -------------------------------------------------------------------------

    def _is_over(self, node: NodeInfo, new: _VolumeSet) -> bool:
        """Whether there are too many volumes when volumes that the node has already count once."""
        here, counts = self._used_on(node), self._counts_on(node)
        limits = _limits_of(self.handle.volumes.api.csi_node(node.name))
        more = Counter(volume.driver for volume in new if volume not in here)
        return any(counts[driver] + n > limits.get(driver, _NO_LIMIT) for driver, n in more.items())

    def _counts_on(self, node: NodeInfo) -> Counter[str]:
        """Driver → volumes that its pods use, or that are attached for no pod any more."""
        used = self._used_on(node)
        attached = map(self._attached, self.handle.volumes.api.attachments(node.name))
        left = {volume for volume in attached if volume is not None and volume not in used}
        return Counter(volume.driver for volume in (*used, *left))

    def _used_on(self, node: NodeInfo) -> _VolumeSet:
        has_csi = self.handle.volumes.api.csi_node(node.name) is not None
        used: _VolumeSet = {}
        for pod in node.pods:
            if pod.shape.volumes.has_any:
                used |= self._attachable_volumes(pod, has_csi=has_csi)
        return used

    def _attached(self, attachment: VolumeAttachment) -> _Volume | None:
        name = attachment.spec.source.persistent_volume_name
        volume = self.handle.volumes.api.volume(name) if name else None
        csi = volume.volume.spec.csi if volume is not None else None
        attacher = attachment.spec.attacher
        return _Volume(attacher, csi.volume_handle) if csi is not None and attacher else None

    # ---- one pod --------------------------------------------------------------------------

    def _volumes_of(self, pod: PodInfo, *, has_csi: bool) -> _VolumeSet | Status:
        """The volumes that a pod would attach; a Status if they cannot be determined."""
        volumes: _VolumeSet = {}
        for use in pod.shape.volumes.claims:
            name = pod.claim_name(use)
            if not name:
                return Status(Code.ERROR, (NO_CLAIM_NAME,))
            key = namespaced_name(pod.namespace, name)
            claim = self.handle.volumes.api.claim(key)
            if claim is None:
                return unresolvable(CLAIM_MISSING.format(key, claim_not_found(name)))
            if use.is_ephemeral and not claim.is_for(pod):
                return Status(Code.ERROR, (NOT_OWNED.format(key, pod.key),))
            volumes |= self._volume_of(claim, has_csi=has_csi)
        try:
            return volumes | _migrated(pod, has_csi=has_csi)
        except csi_migration.NotTranslated as problem:
            return Status(Code.ERROR, (str(problem),))

    def _attachable_volumes(self, pod: PodInfo, *, has_csi: bool) -> _VolumeSet:
        """The volumes that a placed pod has attached, as far as they can be determined."""
        volumes: _VolumeSet = {}
        for use in pod.shape.volumes.claims:
            key = namespaced_name(pod.namespace, pod.claim_name(use))
            claim = self.handle.volumes.api.claim(key)
            if claim is not None and (not use.is_ephemeral or claim.is_for(pod)):
                volumes |= self._volume_of(claim, has_csi=has_csi)
        try:
            return volumes | _migrated(pod, has_csi=has_csi)
        except csi_migration.NotTranslated:
            return volumes

    def _volume_of(self, claim: ClaimInfo, *, has_csi: bool) -> _VolumeSet:
        """The one volume of a claim; nothing where no CSI driver attaches it."""
        volume = self.handle.volumes.api.volume(claim.volume_name)
        if volume is None:
            return self._volume_to_come(claim, has_csi=has_csi)
        if volume.volume.spec.csi is None and not _is_counted(volume.plugin, has_csi=has_csi):
            return {}
        return _only(volume.csi_volume)

    def _volume_to_come(self, claim: ClaimInfo, *, has_csi: bool) -> _VolumeSet:
        """The storage class determines the driver of a volume that does not exist yet."""
        storage_class = self.handle.volumes.api.storage_class(claim.class_name)
        if not claim.class_name or storage_class is None:
            return {}
        driver = storage_class.provisioner
        plugin = csi_migration.BY_NAME.get(driver)
        if plugin is not None:
            driver = plugin.driver if _is_counted(plugin, has_csi=has_csi) else ""
        return {_Volume(driver, claim.key, exists=False): None} if driver else {}


def _migrated(pod: PodInfo, *, has_csi: bool) -> _VolumeSet:
    """Disks written into the pod that a driver attaches. Raises NotTranslated."""
    volumes: _VolumeSet = {}
    for volume in pod.shape.volumes.migrated:
        plugin = csi_migration.plugin_of(volume)
        if plugin is None or not _is_counted(plugin, has_csi=has_csi):
            continue
        try:
            csi = csi_migration.inline_volume(plugin, volume)
        except csi_migration.NotTranslated as problem:
            raise csi_migration.NotTranslated(NOT_TRANSLATED.format(volume.name, problem)) from None
        volumes[_Volume(csi.driver, csi.handle)] = None
    return volumes


def _is_counted(plugin: csi_migration.InTreePlugin | None, *, has_csi: bool) -> bool:
    """Upstream: isCSIMigrationOn."""
    return has_csi and plugin is not None and plugin.is_counted


def _only(csi: csi_migration.CSIVolume | None) -> _VolumeSet:
    if csi is None or not csi.driver or not csi.handle:
        return {}
    return {_Volume(csi.driver, csi.handle): None}


def _limits_of(csi_node: CSINode | None) -> Mapping[str, int]:
    """Driver → how many volumes; without a number, any number."""
    drivers = (csi_node.spec.drivers or ()) if csi_node is not None else ()
    limits: dict[str, int] = {}
    for driver in drivers:
        count = driver.allocatable.count if driver.allocatable is not None else None
        limits[driver.name] = _NO_LIMIT if count is None else count
    return limits


# ---- hints ---------------------------------------------------------------------------------


def _after_csi_node_updated(pod: PodInfo, old: CSINode, new: CSINode) -> QueueingHint:
    """QUEUE if some driver may attach more volumes than before; a missing number counts as 0."""
    before, after = _counts(old), _counts(new)
    grown = any(count > before.get(driver, 0) for driver, count in after.items())
    return queue_if(grown)


def _counts(csi_node: CSINode) -> dict[str, int]:
    counts = {
        driver.name: driver.allocatable.count if driver.allocatable is not None else None
        for driver in csi_node.spec.drivers or ()
    }
    return {name: count or 0 for name, count in counts.items()}


def _after_pod_gone(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    was_counted = bool(old.node_name or old.nominated_node_name)
    volumes = old.shape.volumes
    return queue_if(was_counted and (volumes.claims or volumes.migrated))


def _after_claim_added(pod: PodInfo, old: None, new: PersistentVolumeClaim) -> QueueingHint:
    key = namespaced_name(new.metadata.namespace, new.metadata.name)
    return queue_if(key in pod.claim_keys())


def _after_detached(pod: PodInfo, old: VolumeAttachment, new: None) -> QueueingHint:
    """QUEUE for any named claim, and for a disk of the same driver."""
    volumes = pod.shape.volumes
    if volumes.claim_names():
        return QueueingHint.QUEUE
    plugins = map(csi_migration.plugin_of, volumes.migrated)
    drivers = {plugin.driver for plugin in plugins if plugin is not None}
    return queue_if(old.spec.attacher in drivers)
