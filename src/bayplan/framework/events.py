"""Changes in the cluster: ClusterEvent, ActionType, QueueingHint.

A plugin registers the events that may help the pods it rejects. The queue matches each event of the
cluster against the registered events. Upstream: framework/events.go and types.go, v1.37.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntFlag, StrEnum
from typing import Any, Final, cast

from bayplan.api.objects import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)


class ActionType(IntFlag):
    """The kinds of changes, as bits in upstream's order."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_POD_LABEL = 128
    UPDATE_POD_SCALE_DOWN = 256
    UPDATE_POD_TOLERATION = 512
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1024
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 2048
    #: A pod update with no special meaning; printed "Update".
    UPDATE_POD_OTHER = 4096
    UPDATE_NODE_DECLARED_FEATURE = 8192
    UPDATE_NODE_PREEMPTION_POLICY = 16384
    UPDATE_POD_SCALE_UP = 32768

    def __str__(self) -> str:
        return _ACTION_SPELLINGS.get(int(self)) or "|".join(
            _ACTION_SPELLINGS[int(bit)] for bit in self
        )


ALL: Final = ActionType(65535)
UPDATE: Final = ALL & ~(ActionType.ADD | ActionType.DELETE)

_ACTION_SPELLINGS: Final[dict[int, str]] = {
    1: "Add",
    2: "Delete",
    4: "UpdateNodeAllocatable",
    8: "UpdateNodeLabel",
    16: "UpdateNodeTaint",
    32: "UpdateNodeCondition",
    64: "UpdateNodeAnnotation",
    128: "UpdatePodLabel",
    256: "UpdatePodScaleDown",
    512: "UpdatePodToleration",
    1024: "UpdatePodSchedulingGatesEliminated",
    2048: "UpdatePodGeneratedResourceClaim",
    4096: "Update",
    8192: "UpdateNodeDeclaredFeature",
    16384: "UpdateNodePreemptionPolicy",
    32768: "UpdatePodScaleUp",
    int(UPDATE): "Update",
    int(ALL): "All",
}


class EventResource(StrEnum):
    """Resources of the default vocabulary. For a custom resource, write "group/Kind"."""

    POD = "Pod"  # only for registrations: covers the next three
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"  # TargetPod's name before Kubernetes 1.37
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    WILDCARD = "*"


_POD_PARTS: Final = frozenset(
    (
        EventResource.ASSIGNED_POD,
        EventResource.UNSCHEDULED_POD,
        EventResource.TARGET_POD,
        EventResource.UNSCHEDULABLE_POD,
    )
)
#: An update of the waiting pod itself.
OWN_UPDATES: Final = frozenset((EventResource.TARGET_POD, EventResource.UNSCHEDULABLE_POD))


def resource_of_kind(kind: str) -> str:
    """A kind's event resource: "storage.k8s.io/v1 CSINode" → "storage.k8s.io/CSINode"."""
    api_version, _, name = kind.partition(" ")
    group, slash, _ = api_version.partition("/")
    return f"{group}/{name}" if slash else name


#: The kinds whose changes are events of the default vocabulary, besides pods, nodes and groups of
#: pods, which every scheduler watches.
KIND_OF_RESOURCE: Final[Mapping[str, str]] = {
    resource_of_kind(kind): kind
    for kind in (
        PERSISTENT_VOLUME,
        PERSISTENT_VOLUME_CLAIM,
        CSI_NODE,
        CSI_DRIVER,
        VOLUME_ATTACHMENT,
        CSI_STORAGE_CAPACITY,
        STORAGE_CLASS,
        RESOURCE_CLAIM,
        RESOURCE_SLICE,
        DEVICE_CLASS,
    )
}


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A change in the cluster, or a change for which a plugin registers."""

    #: Such as "storage.k8s.io/CSINode"; a kind as in `Plugin.kinds` is converted.
    resource: str
    action: ActionType
    #: Replaces resource + action if upstream has a special label.
    special_label: str = ""
    #: The kind, if the resource was given as a kind; else "".
    kind: str = field(default="", init=False, compare=False)
    #: Whether it is every change of every resource.
    is_wildcard: bool = field(default=False, init=False, compare=False)
    #: As in metrics: "AssignedPodDelete".
    label: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        resource, action = cast("tuple[Any, Any]", (self.resource, self.action))
        if not isinstance(resource, str) or not isinstance(action, ActionType):
            raise TypeError(
                f"ClusterEvent({resource!r}, {action!r}); wanted "
                f"ClusterEvent(EventResource.NODE, ActionType.ADD), for example"
            )
        if " " in self.resource:
            object.__setattr__(self, "kind", self.resource)
            object.__setattr__(self, "resource", resource_of_kind(self.resource))
        is_wildcard = self.resource == EventResource.WILDCARD and self.action == ALL
        object.__setattr__(self, "is_wildcard", is_wildcard)
        object.__setattr__(self, "label", self.special_label or f"{self.resource}{self.action}")

    def match(self, incoming: "ClusterEvent") -> bool:
        """Whether this registered event covers an incoming one.

        An incoming wildcard matches only a wildcard registration. A general update does not match
        a registration for one special update: action bits must meet *and* the incoming action must
        not be larger than the registered one (fact of v1.37).
        """
        if self.is_wildcard:
            return True
        if incoming.is_wildcard or not self._covers(incoming.resource):
            return False
        # Only a registration for every update matches "other pod update".
        if incoming.action == ActionType.UPDATE_POD_OTHER:
            return (self.action & UPDATE) == UPDATE
        if incoming.action == UPDATE:
            return (self.action & UPDATE) == UPDATE
        return bool(self.action & incoming.action)

    def _covers(self, resource: str) -> bool:
        if self.resource in (EventResource.WILDCARD, resource):
            return True
        return self.resource == EventResource.POD and resource in _POD_PARTS


EVENT_ASSIGNED_POD_ADD: Final = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
EVENT_ASSIGNED_POD_UPDATE: Final = ClusterEvent(EventResource.ASSIGNED_POD, UPDATE)
EVENT_ASSIGNED_POD_DELETE: Final = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
EVENT_UNSCHEDULED_POD_ADD: Final = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
EVENT_UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(EventResource.UNSCHEDULED_POD, UPDATE)
EVENT_UNSCHEDULED_POD_DELETE: Final = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.DELETE)
EVENT_UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(
    EventResource.WILDCARD, ALL, "UnschedulableTimeout"
)
EVENT_FORCE_ACTIVATE: Final = ClusterEvent(EventResource.WILDCARD, ALL, "ForceActivate")

#: Labels of moves that no cluster event causes.
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF_Q: Final = "PopFromBackoffQ"


class QueueingHint(Enum):
    """Whether an event may make a rejected pod schedulable."""

    QUEUE_SKIP = "QueueSkip"
    QUEUE = "Queue"

    def __str__(self) -> str:
        return self.value


def queue_if(may_help: object) -> QueueingHint:
    return QueueingHint.QUEUE if may_help else QueueingHint.QUEUE_SKIP


#: (waiting pod, old object, new object): old is None for an add, new is None for a delete.
#: The pod is a PodInfo. Objects are PodInfo, Node, or the struct of their kind.
QueueingHintFn = Callable[[Any, Any, Any], QueueingHint]


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """An event for which a plugin registers. Without a hint every such event queues the pod."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None

    def __post_init__(self) -> None:
        event, hint = cast("tuple[Any, Any]", (self.event, self.hint))
        if not isinstance(event, ClusterEvent):
            raise TypeError(f"ClusterEventWithHint: event {event!r}; wanted a ClusterEvent")
        if hint is not None and not callable(hint):
            raise TypeError(f"ClusterEventWithHint: hint {hint!r}; wanted a function or None")


def matching(
    registered: Mapping[str, Sequence[ClusterEventWithHint]], incoming: ClusterEvent
) -> Mapping[str, Sequence[QueueingHintFn | None]]:
    """Plugin instance → its hints for an incoming event; None for a registration without a hint.
    Instances that did not register for such events are left out."""
    hints_of: dict[str, Sequence[QueueingHintFn | None]] = {}
    for instance, events in registered.items():
        hints = [each.hint for each in events if each.event.match(incoming)]
        if hints:
            hints_of[instance] = hints
    return hints_of


def default_events(kinds: Iterable[str] = ()) -> Sequence[ClusterEventWithHint]:
    """The events of a plugin that registers none: every change of every built-in resource and of
    the kinds that the plugin declares."""
    built_in = [r for r in EventResource if r not in _POD_PARTS and r is not EventResource.WILDCARD]
    resources: dict[str, None] = dict.fromkeys((*built_in, *map(resource_of_kind, kinds)))
    return [ClusterEventWithHint(ClusterEvent(resource, ALL)) for resource in resources]


def taint_events(
    after_node: QueueingHintFn, after_tolerations: QueueingHintFn
) -> Sequence[ClusterEventWithHint]:
    """The events of a plugin that compares the taints of nodes with the tolerations of a pod."""
    tainted = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
    tolerating = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_TOLERATION)
    return [
        ClusterEventWithHint(tainted, after_node),
        ClusterEventWithHint(tolerating, after_tolerations),
    ]
