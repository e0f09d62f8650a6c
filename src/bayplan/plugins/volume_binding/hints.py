"""Which changes of storage may help a pod that VolumeBinding rejected."""

from collections.abc import Sequence

from bayplan.api.objects import namespaced_name
from bayplan.api.storage_objects import (
    MIGRATED_PLUGINS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.state.pods import PodInfo
from bayplan.state.storage_infos import CapacityInfo


def registered_events() -> Sequence[ClusterEventWithHint]:
    """Upstream: EventsToRegister of volumebinding."""
    written = ActionType.ADD | UPDATE
    claim = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, written)
    capacity = ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, written)
    node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    return [
        ClusterEventWithHint(ClusterEvent(EventResource.STORAGE_CLASS, written), _after_class),
        ClusterEventWithHint(claim, _after_claim),
        ClusterEventWithHint(ClusterEvent(EventResource.PERSISTENT_VOLUME, written)),
        ClusterEventWithHint(node),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_NODE, written), _after_csi_node),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_DRIVER, UPDATE), _after_driver),
        ClusterEventWithHint(capacity, _after_capacity),
    ]


def _worth(it: bool) -> QueueingHint:
    return QueueingHint.QUEUE if it else QueueingHint.QUEUE_SKIP


def _after_class(pod: PodInfo, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    """Of a class only the topologies can change."""
    if old is None:
        return QueueingHint.QUEUE
    return _worth((old.allowed_topologies or ()) != (new.allowed_topologies or ()))


def _after_claim(
    pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    key = namespaced_name(new.metadata.namespace, new.metadata.name)
    return _worth(key in pod.claim_keys())


def _after_csi_node(pod: PodInfo, old: CSINode | None, new: CSINode) -> QueueingHint:
    return _worth(old is None or _migrated(old) != _migrated(new))


def _migrated(csi_node: CSINode) -> str:
    return (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "")


def _after_driver(pod: PodInfo, old: CSIDriver, new: CSIDriver) -> QueueingHint:
    """Worth it where capacity is not asked about any more. Upstream looks at inline volumes."""
    is_used = new.metadata.name in pod.shape.volumes.inline_drivers
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return _worth(is_used and stopped)


def _after_capacity(
    pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity
) -> QueueingHint:
    """Worth it where larger volumes can be made than before."""
    if old is None:
        return QueueingHint.QUEUE
    before, after = CapacityInfo(old).volume_bytes_max, CapacityInfo(new).volume_bytes_max
    return _worth(after is not None and (before is None or after > before))
