"""VolumeZone: a volume with zone or region labels fits nodes with the same labels.

The labels of the volumes behind a pod's bound claims are looked up once per attempt; each is then
compared with a column of the nodes' labels. A node without any such label fits every volume:
clusters of one zone have no such labels. Upstream: plugins/volumezone.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple, final

import numpy as np

from bayplan.api.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER
from bayplan.api.objects import namespaced_name
from bayplan.api.selectors import EXISTS, IN, Requirement
from bayplan.api.storage_objects import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
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
from bayplan.state.columns import Mask, NodeMask
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.storage_infos import ClaimInfo
from bayplan.state.volumes import (
    STORAGE_KINDS,
    claim_not_found,
    class_not_found,
    volume_not_found,
)

NO_ZONE: Final = "node(s) had no available volume zone"
NO_CLAIM_NAME: Final = "PersistentVolumeClaim had no name"
NOTHING_NAMED: Final = "PersistentVolumeClaim had no pv name and storageClass name"
NO_BINDING_MODE: Final = 'VolumeBindingMode not set for StorageClass "{}"'
NO_VOLUME_NAME: Final = "PersistentVolume had no name"

_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
#: A node may have only the newer of two labels.
_NEWER: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class _Topology(NamedTuple):
    """A label of a volume, with the values that a node may have for it."""

    key: str
    values: tuple[str, ...]


@final
class VolumeZone(PreFilterPlugin, FilterPlugin, EnqueueExtensions, SignPlugin):
    """Rejects nodes in zones other than those of the pod's volumes."""

    name = "VolumeZone"
    caching = Caching(
        facets=Facet.LABELS | Facet.STORAGE, facets_if_unconcerned=Facet(0), signs_template=True
    )
    kinds = STORAGE_KINDS
    ignores_resizes = True

    def concerns(self, shape: PodShape) -> bool:
        return bool(shape.volumes.claims)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        topologies: list[_Topology] = []
        for name in pod.shape.volumes.claim_names():
            topologies_of_volume = self._topologies_of(pod, name)
            if isinstance(topologies_of_volume, Status):
                return topologies_of_volume
            topologies += topologies_of_volume
        if not topologies:
            return SKIP
        state[self.instance_name] = topologies
        return None

    def _topologies_of(self, pod: PodInfo, claim_name: str) -> Sequence[_Topology] | Status:
        """Of the volume that a claim is bound to; none while it waits for its first consumer."""
        if not claim_name:
            return unresolvable(NO_CLAIM_NAME)
        claim = self.handle.volumes.api.claim(namespaced_name(pod.namespace, claim_name))
        if claim is None:
            return unresolvable(claim_not_found(claim_name))
        if not claim.volume_name:
            return self._unbound(claim) or ()
        volume = self.handle.volumes.api.volume(claim.volume_name)
        if volume is None:
            return unresolvable(volume_not_found(claim.volume_name))
        return _topologies(volume.volume)

    def _unbound(self, claim: ClaimInfo) -> Status | None:
        """Only a claim that waits for its first consumer may be unbound."""
        if not claim.class_name:
            return unresolvable(NOTHING_NAMED)
        storage_class = self.handle.volumes.api.storage_class(claim.class_name)
        if storage_class is None:
            return unresolvable(class_not_found(claim.class_name))
        mode = storage_class.volume_binding_mode
        if mode is None:
            return unresolvable(NO_BINDING_MODE.format(claim.class_name))
        return None if mode == WAIT_FOR_FIRST_CONSUMER else unresolvable(NO_VOLUME_NAME)

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        topologies: Sequence[_Topology] = state[self.instance_name]
        matching = np.ones(len(nodes), np.bool_)
        for topology in dict.fromkeys(topologies):
            matching &= _within(topology, nodes)
        labelled = np.zeros(len(nodes), np.bool_)
        for key in _LABELS:
            labelled |= nodes.labels.matching(Requirement(key, EXISTS))
        yield Rejection(labelled & ~matching, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_ZONE,))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node_changed = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        written = ActionType.ADD | UPDATE
        claim = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, written)
        volume = ClusterEvent(EventResource.PERSISTENT_VOLUME, written)
        class_added = ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD)
        return [
            ClusterEventWithHint(class_added, _after_class_added),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, node_changed)),
            ClusterEventWithHint(claim, _after_claim),
            ClusterEventWithHint(volume, _after_volume),
        ]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """The claims by name; a change of their volumes is a change of storage."""
        names = pod.shape.volumes.claim_names()
        return (pod.namespace, tuple(names)) if names else ()


# ---- labels --------------------------------------------------------------------------------


def _topologies(volume: PersistentVolume) -> list[_Topology]:
    """The topology labels of a volume; a label with an empty part is ignored."""
    labels = volume.metadata.labels or {}
    topologies: list[_Topology] = []
    for key in _LABELS:
        parts = [part.strip() for part in labels.get(key, "").split(ZONE_DELIMITER)]
        if all(parts):
            topologies.append(_Topology(key, tuple(sorted(set(parts)))))
    return topologies


def _within(topology: _Topology, nodes: NodeView) -> Mask:
    """bool[nodes]: nodes whose label, or the newer label that replaces it, has one of the
    values."""
    satisfying = nodes.labels.matching(Requirement(topology.key, IN, topology.values))
    newer = _NEWER.get(topology.key)
    if newer is None:
        return satisfying
    older = nodes.labels.matching(Requirement(topology.key, EXISTS))
    return satisfying | (~older & nodes.labels.matching(Requirement(newer, IN, topology.values)))


# ---- hints ---------------------------------------------------------------------------------


def _after_class_added(pod: PodInfo, old: None, new: StorageClass) -> QueueingHint:
    """Only to claims that wait for their first consumer a new class is of any help."""
    return queue_if(new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def _after_claim(
    pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    return queue_if(pod.names_claim(new.metadata))


def _after_volume(
    pod: PodInfo, old: PersistentVolume | None, new: PersistentVolume
) -> QueueingHint:
    """QUEUE if the volume is new, or its zone has changed."""
    return queue_if(old is None or _topologies(old) != _topologies(new))
