"""What a plugin may use: the handle of its instance, and what the handle gives access to.

A plugin reads `self.handle`. Upstream: framework.Handle (k8s.io/kube-scheduler/framework, v1.37).
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from bayplan.api.device_objects import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from bayplan.api.object_meta import resource_of
from bayplan.clock import Clock
from bayplan.config.feature_gates import FeatureGates
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Status
from bayplan.framework.types import Nomination
from bayplan.metrics import SchedulerMetrics
from bayplan.ports import BindPort, EmitEvent, ExtenderVerb, ObjectReference, pod_reference
from bayplan.state.cache import ClusterView, Snapshot
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.columns import NodeMask
from bayplan.state.device_table import AllocatedDevices, CountsByRow
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.volumes import STORAGE_KINDS, Volumes

# ---- filters ------------------------------------------------------------------------------------


class Verdicts(Protocol):
    """The result of the Filters for a view: a `framework.filtering.FilterOutcome`."""

    nodes: NodeView
    feasible: NodeMask
    #: A status that ends the attempt.
    error: Status | None

    def reason_counts(self) -> Counter[str]: ...
    def statuses(self) -> dict[str, Status]: ...


@dataclass(frozen=True, slots=True)
class FilterKey:
    """A key for cached Filter results: pods with equal keys get equal results per row."""

    key: Hashable
    #: The facets of a row that the results depend on, as the bits of a `Facet`.
    facet_bits: int = field(compare=False)
    #: The lists of objects that the results depend on, one per kind; a change makes a new list.
    objects: Sequence[Sequence[Any]] = field(compare=False)


class FilterRunner(Protocol):
    """Runs Filters for plugins that try placements, such as preemption."""

    def nominated_ahead(self, pod: PodInfo) -> Mapping[str, Sequence[PodInfo]]:
        """By node name: the pods nominated there whose room this pod must not take."""
        ...

    def follows_added_pods(self, state: CycleState, pod: PodInfo) -> bool:
        """Whether a Filter may depend on nominated pods through more than amounts."""
        ...

    def only_amounts_matter(self, state: CycleState) -> bool:
        """Whether pods on a node affect the Filters only through amounts of resources. If so,
        `filter_overlay` can evaluate the node without some of its pods."""
        ...

    def filter_key(self, state: CycleState, pod: PodInfo) -> FilterKey | None:
        """The pod's key; None if a Filter is not signed, or reuse is off."""
        ...

    def filter_overlay(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, reading: Facet = ALL_FACETS
    ) -> Verdicts:
        """Evaluate an `AmountsOverlay` with those Filters that read any of these facets."""
        ...

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        """Filter one node twice, with the pods nominated to it and without."""
        ...

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None: ...


# ---- devices ------------------------------------------------------------------------------------


class ResourceClaimTracker(Protocol):
    """ResourceClaims of the API, and those that are being allocated."""

    @property
    def allocated(self) -> AllocatedDevices:
        """Devices that are taken, including those of claims in flight; always current.

        Upstream: ListAllAllocatedDevices, GatherAllocatedState.
        """
        ...

    def get(self, namespace: str, name: str) -> ResourceClaim | None: ...

    def list(self, namespace: str | None = None) -> Sequence[ResourceClaim]:
        """All, or those of one namespace, in order of their keys."""
        ...

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """The allocation of a claim in flight, by uid; None if it is not in flight. `get` does not
        return this allocation."""
        ...

    def put_in_flight(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Take these devices for a claim whose allocation is not written yet. Pods of a group that
        share the allocation all call this.

        `remove_in_flight` gives them back, unless the API has reported the allocation.
        Upstream: SignalClaimPendingAllocation.
        """
        ...

    def remove_in_flight(self, uid: str, allocation: AllocationResult) -> bool:
        """Undo one `put_in_flight`. False if this allocation is not in flight, or stays so because
        other pods share it.

        Upstream: MaybeRemoveClaimPendingAllocation.
        """
        ...

    def assume(self, claim: ResourceClaim) -> bool:
        """Assume the result of a write: `get` and `list` return it until the watch has caught up.

        False if the claim is another one or newer by now. Upstream: AssumeClaimAfterAPICall.
        """
        ...

    def restore(self, namespace: str, name: str) -> None:
        """Drop an assumed claim. Upstream: AssumedClaimRestore."""
        ...


class ResourceSliceLister(Protocol):
    """The devices of the cluster."""

    @property
    def revision(self) -> int:
        """Increases with every change of a slice or a taint rule."""
        ...

    def list_with_device_taint_rules(self) -> Sequence[ResourceSlice]:
        """All slices by name, with the taints that DeviceTaintRules add."""
        ...


class DeviceClassLister(Protocol):
    """Device classes."""

    def get(self, name: str) -> DeviceClass | None: ...
    def list(self) -> Sequence[DeviceClass]: ...

    def behind(self, resource: str) -> DeviceClass | None:
        """The class that stands for an extended resource, or None. Upstream: GetDeviceClass."""
        ...


class SharedDRAManager(Protocol):
    """Access to devices. All plugins see the same claims in flight. Upstream: SharedDRAManager."""

    @property
    def resource_claims(self) -> ResourceClaimTracker: ...
    @property
    def resource_slices(self) -> ResourceSliceLister: ...
    @property
    def device_classes(self) -> DeviceClassLister: ...

    def counts(self, resource: str) -> CountsByRow | None:
        """COUNTS [rows]: how many devices stand for a resource on a node, and how many are taken.

        None if no class stands for the resource. Always current: a change is logged as a change of
        what the node offers (`Facet.ALLOCATABLE`), or of its labels.
        """
        ...


# ---- extenders ----------------------------------------------------------------------------------


class Extender(Protocol):
    """An extender as plugins and the engine see it. Upstream: fwk.Extender.

    Calls to extenders are effects (ports.AskExtender), so the protocol has no method for them.
    """

    @property
    def name(self) -> str: ...
    @property
    def verbs(self) -> frozenset[ExtenderVerb]:
        """The supported verbs. Upstream: IsFilter, IsPrioritizer, IsBinder, SupportsPreemption."""
        ...

    @property
    def weight(self) -> int:
        """The weight of its scores."""
        ...

    @property
    def ignorable(self) -> bool:
        """Whether an attempt continues when the extender fails."""
        ...

    def is_interested(self, pod: PodInfo) -> bool: ...


# ---- handle -------------------------------------------------------------------------------------


class WaitingPod(Protocol):
    """A pod held at Permit."""

    @property
    def pod(self) -> PodInfo: ...
    @property
    def node_name(self) -> str: ...
    @property
    def pending_plugins(self) -> list[str]:
        """Instances that have not allowed it yet, sorted."""
        ...

    def allow(self, plugin: str) -> None:
        """One plugin agrees; when all have, the pod goes on to binding."""
        ...

    def reject(self, plugin: str, message: str) -> None:
        """Ends the wait: the pod is unschedulable by ``plugin``."""
        ...

    def preempt(self, plugin: str, message: str) -> bool:
        """Ends the wait with an error, so that the pod is tried again after a backoff. False: the
        wait was over."""
        ...


class PodInPreBind(Protocol):
    """A pod whose PreBind plugins run, or have run. Upstream: framework.PodInPreBind."""

    def cancel(self, message: str) -> bool:
        """The binding fails with this message, and the pod is tried again. False: PreBind has
        ended, and the binding goes on."""
        ...

    async def ended(self, port: BindPort) -> None:
        """Wait until PreBind has ended, also where it has not begun yet. Does not raise."""
        ...


class PodNominator(Protocol):
    """Nominated pods and their nodes. Upstream: framework.PodNominator."""

    def add_nominated_pod(self, pod: PodInfo, nomination: Nomination | None = None) -> None: ...
    def delete_nominated_pod_if_exists(self, pod: PodInfo) -> None: ...
    def update_nominated_pod(self, old: PodInfo, new: PodInfo) -> None: ...
    def nominated_pods_for_node(self, node_name: str) -> list[PodInfo]: ...

    def nominated_ahead(self, pod: PodInfo) -> Mapping[str, Sequence[PodInfo]]:
        """By node name: other pods of equal or higher priority that are nominated there."""
        ...

    def nominated_node(self, pod: PodInfo) -> str:
        """The nominated node of a pod; "": none."""
        ...

    def nominated_nodes(self) -> list[str]:
        """Nodes that some pod is nominated to, sorted."""
        ...


class Objects(Protocol):
    """Read-only lister of one kind, always up to date."""

    def list(self, namespace: str | None = None) -> Sequence[Any]:
        """All, or those of one namespace, in order of their keys."""
        ...

    def get(self, name: str, namespace: str | None = None) -> Any | None: ...


#: Writes something through the port; see `Handle.perform`.
Write = Callable[[BindPort], Awaitable[None]]


class UndeclaredKind(KeyError):
    """A plugin looks up a kind that it does not declare in `kinds`."""

    def __init__(self, kind: str, plugin: str) -> None:
        super().__init__(undeclared(kind, plugin))


def undeclared(kind: str, plugin: str) -> str:
    """The message: what the plugin must declare, and which RBAC rule the cluster needs."""
    group = kind.partition(" ")[0].rpartition("/")[0]
    return (
        f'plugin {plugin} asks for objects of "{kind}", which it does not declare: '
        f"add it to the class attribute `kinds`; in a cluster the scheduler also needs the rule "
        f'apiGroups ["{group}"], resources ["{resource_of(kind)}"], verbs ["list", "watch"], '
        f"which `bayplan config rbac` then prints"
    )


class SnapshotNotLent(RuntimeError):
    """A plugin read the snapshot outside a scheduling cycle."""

    def __init__(self, plugin: str) -> None:
        super().__init__(
            f"plugin {plugin} read handle.snapshot outside a scheduling cycle: it is lent from "
            f"PreFilter to Permit only; hints and PreEnqueue read handle.objects(kind)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HandleServices:
    """The parts and actions of one scheduler that all its handles use."""

    seed: int
    gates: FeatureGates
    clock: Clock
    metrics: SchedulerMetrics
    cluster: ClusterView
    devices: SharedDRAManager
    nominator: PodNominator
    extenders: Iterable[Extender]
    #: The pods at Permit, by uid.
    waiting: Mapping[str, WaitingPod]
    #: The pods that PreBind plugins work for, by uid.
    pods_in_pre_bind: Mapping[str, PodInPreBind]
    #: Makes what runs the Filters of the handle's profile.
    filter_runner: Callable[["Handle"], FilterRunner]
    #: See `Handle.make`. Gets the name, the args, and the handle of the plugin that makes the part.
    make_plugin: Callable[[str, Any, "Handle"], Any]
    #: Gets the pods, and the time of the scheduler's clock in seconds; None: at once.
    activate: Callable[[Iterable[PodInfo], float | None], None]
    #: Gets the pod and the event about it.
    emit: Callable[[PodInfo, EmitEvent], None]
    #: Gets the subject of the note about a refusal, the write, and the instance that writes.
    perform: Callable[[str, Write, str], None]


@final
class Handle:
    """What the instance of a plugin may use besides its arguments."""

    def __init__(
        self,
        services: HandleServices,
        profile_name: str,
        instance_name: str,
        kinds: Sequence[str],
    ) -> None:
        """``kinds``: those that the plugin declares."""
        self._services = services
        self._kinds = kinds
        self.profile_name = profile_name
        self.instance_name = instance_name
        self.seed = services.seed
        self.gates = services.gates
        #: What the version of kube-scheduler does that is answered as.
        self.behaviour = services.gates.behaviour
        #: The scheduler's metrics, shared by all plugins.
        self.metrics = services.metrics
        #: In the order in which they are called.
        self.extenders: Sequence[Extender] = tuple(services.extenders)
        self.nominator = services.nominator
        self.devices = services.devices
        #: By uid: pods that are being bound and that some PreBind plugin works for.
        self.pods_in_pre_bind = services.pods_in_pre_bind
        #: Pod groups of all kinds with their members; read-only.
        self.pod_groups = services.cluster.pod_groups
        #: The CompositePodGroups above them; read-only.
        self.group_trees = services.cluster.group_trees
        self.runner = services.filter_runner(self)
        #: The plugins that `make` returned, in order: see framework/calls.py.
        self.made: list[Any] = []

    @property
    def now_seconds(self) -> float:
        """The scheduler's clock: virtual in a simulation."""
        return self._services.clock.now()

    @property
    def epoch_seconds(self) -> float:
        """The time of the calendar in seconds since 1970, for time stamps in API objects."""
        return self._services.clock.epoch_seconds()

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot of the cluster. Valid in a scheduling cycle only; raises SnapshotNotLent at
        other times."""
        snapshot = self._services.cluster.loan
        if snapshot is None:
            raise SnapshotNotLent(self.instance_name)
        return snapshot

    def objects(self, kind: str) -> Objects:
        """Lister of a kind that the plugin declares in `kinds`, e.g. "v1 Service".

        Pods and nodes are available, too, in the API's version; pods as PodInfo. Raises
        UndeclaredKind.
        """
        if kind not in self._kinds:
            raise UndeclaredKind(kind, self.instance_name)
        return self._services.cluster.objects.of(kind)

    @property
    def volumes(self) -> Volumes:
        """Claims, volumes and classes, with assumed versions; for plugins whose `kinds` contain
        `STORAGE_KINDS`. Also valid outside of a scheduling cycle. Raises UndeclaredKind."""
        for kind in STORAGE_KINDS:
            if kind not in self._kinds:
                raise UndeclaredKind(kind, self.instance_name)
        return self._services.cluster.volumes

    def activate(self, pods: Iterable[PodInfo], at_seconds: float | None = None) -> None:
        """Move these pods to activeQ. A pod in an attempt moves after the attempt; an unknown pod
        is ignored.

        ``at_seconds``: move the pods at this time of the scheduler's clock.
        """
        self._services.activate(pods, at_seconds)

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """Pods held at Permit, ordered by uid."""
        waiting = self._services.waiting
        return [waiting[uid] for uid in sorted(waiting)]

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        return self._services.waiting.get(uid)

    def reject_waiting_pod(self, uid: str) -> bool:
        """False: the pod does not wait."""
        waiting = self._services.waiting.get(uid)
        if waiting is not None:
            waiting.reject(self.instance_name, "removed")
        return waiting is not None

    def make(self, name: str, args: Any = None) -> Any:
        """An instance of another plugin, for composition. Its args are checked like all args.

        The caller must close it.
        """
        part = self._services.make_plugin(name, args, self)
        self.made.append(part)
        return part

    def inside(self, name: str, kinds: Sequence[str]) -> "Handle":
        """The handle of a part, with a name and kinds of its own."""
        number = f"#{len(self.made) + 1}" if self.made else ""
        full_name = f"{self.instance_name}.{name}{number}"
        return Handle(self._services, self.profile_name, full_name, kinds)

    def emit(
        self,
        regarding: PodInfo,
        kind: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: ObjectReference | None = None,
    ) -> None:
        """Write an event about a pod. ``kind``: Normal or Warning. ``related``: a second object."""
        reference, reporter = pod_reference(regarding), self.profile_name
        event = EmitEvent(reference, kind, reason, action, note, reporter, related)
        self._services.emit(regarding, event)

    def perform(self, subject: str, write: Write) -> None:
        """Write to the API from code that cannot await. A refusal becomes a note in the journal;
        ``subject``: the subject of the note."""
        self._services.perform(subject, write, self.instance_name)
