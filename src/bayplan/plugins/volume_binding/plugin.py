"""VolumeBinding: its extension points, hints and score. Upstream: plugins/volumebinding.

The score (gate StorageCapacityScoring) is the share of a node's storage that the claims would use:
the request against the size of an existing volume, or against the free capacity for a new one. It
is computed per storage class and averaged over the classes. Upstream: volumebinding/scorer.go.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Annotated, Final, final

import msgspec
import numpy as np
from msgspec import Struct

from bayplan.api.objects import namespaced_name
from bayplan.api.storage_objects import (
    MIGRATED_PLUGINS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.config.feature_gates import FeatureGates
from bayplan.framework import plugin
from bayplan.framework.arithmetic import uniform
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
from bayplan.framework.resource_scorers import (
    MAX_SHAPE_SCORE,
    MAX_UTILIZATION,
    UtilizationShapePoint,
    broken_line,
    shape_problems,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status
from bayplan.framework.types import PreFilterResult
from bayplan.plugins.volume_binding.binding import (
    NO_NODE,
    NO_POD,
    BindingFailed,
    Progress,
    VolumeDecision,
    claim_write,
    decide,
    volume_write,
)
from bayplan.plugins.volume_binding.claims import (
    NONE,
    NodeVolumes,
    PodClaims,
    find_volumes,
    pod_claims,
)
from bayplan.ports import ApiError, BindPort, OutcomeUnknownError
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask, NodeMask, NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.storage_infos import CapacityInfo
from bayplan.state.volumes import STORAGE_KINDS

# ---- hints ----------------------------------------------------------------------------------


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


def _after_class(pod: PodInfo, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    """Of a class only the topologies can change."""
    if old is None:
        return QueueingHint.QUEUE
    return queue_if((old.allowed_topologies or ()) != (new.allowed_topologies or ()))


def _after_claim(
    pod: PodInfo, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    key = namespaced_name(new.metadata.namespace, new.metadata.name)
    return queue_if(key in pod.claim_keys())


def _after_csi_node(pod: PodInfo, old: CSINode | None, new: CSINode) -> QueueingHint:
    return queue_if(old is None or _migrated(old) != _migrated(new))


def _migrated(csi_node: CSINode) -> str:
    return (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "")


def _after_driver(pod: PodInfo, old: CSIDriver, new: CSIDriver) -> QueueingHint:
    """QUEUE if the driver no longer requires capacity checks. Upstream reads inline volumes
    here."""
    is_used = new.metadata.name in pod.shape.volumes.inline_drivers
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return queue_if(is_used and stopped)


def _after_capacity(
    pod: PodInfo, old: CSIStorageCapacity | None, new: CSIStorageCapacity
) -> QueueingHint:
    """QUEUE if larger volumes can be provisioned than before."""
    if old is None:
        return QueueingHint.QUEUE
    before, after = CapacityInfo(old).volume_bytes_max, CapacityInfo(new).volume_bytes_max
    return queue_if(after is not None and (before is None or after > before))


# ---- scoring --------------------------------------------------------------------------------


class _Classes:
    """Per storage class: requested and offered bytes; [nodes] each."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.requested: dict[str, Int64s] = {}
        self.offered: dict[str, Int64s] = {}
        self.where: dict[str, Mask] = {}

    def add(self, name: str, where: Mask, requested: int) -> Int64s:
        """The offered amounts of the class; the caller writes to the array."""
        zeros = np.zeros(self._count, np.int64)
        self.requested[name] = self.requested.get(name, zeros) + requested * where
        self.where[name] = self.where.get(name, where) | where
        return self.offered.setdefault(name, zeros.copy())


def scores(volumes: NodeVolumes, by_utilization: Sequence[int], count: int) -> NodeScores:
    """int64[nodes]: 0..100; nodes without any reported storage score 0."""
    classes = _Classes(count)
    has_static = np.zeros(count, np.bool_)
    for matched in volumes.matched:
        has_static |= matched.chosen != NONE
    _add_matched(classes, volumes)
    _add_provisioned(classes, volumes, ~has_static)
    if not any(where.any() for where in classes.where.values()):
        return uniform(0, count)
    line = np.array(by_utilization, np.int64)
    total, class_count = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for name, where in classes.where.items():
        used = _utilization(classes.requested[name], classes.offered[name])
        total += np.where(where, line[used], 0)
        class_count += where
    # Go rounds half away from zero; none of these is negative.
    return np.floor(total / np.maximum(class_count, 1) + 0.5).astype(np.int64)


def _add_matched(classes: _Classes, volumes: NodeVolumes) -> None:
    for matched in volumes.matched:
        if not matched.volumes:
            continue
        taken = matched.chosen != NONE
        sizes = np.array([volume.size_bytes for volume in matched.volumes], np.int64)
        # By the field, as upstream, which looks at the old annotation elsewhere.
        names = [volume.volume.spec.storage_class_name for volume in matched.volumes]
        for name in dict.fromkeys(names):
            of_class = np.array([each == name for each in names], np.bool_)
            where = taken & of_class[matched.chosen]
            offered = classes.add(name, where, matched.claim.size_bytes)
            offered += np.where(where, sizes[matched.chosen], 0)


def _add_provisioned(classes: _Classes, volumes: NodeVolumes, where_nothing_is_there: Mask) -> None:
    for provisioned in volumes.provisioned:
        counted = (
            provisioned.needed & where_nothing_is_there & (provisioned.capacity_indices != NONE)
        )
        if not counted.any():
            continue
        sizes = np.array([each.capacity_bytes for each in provisioned.capacities], np.int64)
        # Two volumes of one class are made in the same room: it is not offered twice.
        claim = provisioned.claim
        offered = classes.add(claim.class_name, counted, claim.size_bytes)
        offered[counted] = sizes[provisioned.capacity_indices[counted]]


def _utilization(requested: Int64s, offered: Int64s) -> Int64s:
    """int64[nodes]: 0..100; a request above the offer, and an offer of 0, count as full."""
    is_full = (offered == 0) | (requested > offered)
    share = requested * MAX_UTILIZATION // np.maximum(offered, 1)
    return np.where(is_full, MAX_UTILIZATION, share)


# ---- plugin ---------------------------------------------------------------------------------


#: The time between two checks of the volume controller's work.
POLL_SECONDS: Final = 1.0
TIMED_OUT: Final = "binding volumes: context deadline exceeded"


_SCORING_GATE: Final = "StorageCapacityScoring"
#: The more room is left, the better.
_EMPTIEST: Final = (
    UtilizationShapePoint(utilization=0, score=MAX_SHAPE_SCORE),
    UtilizationShapePoint(utilization=MAX_UTILIZATION, score=0),
)


class VolumeBindingArgs(plugin.PluginArgs, frozen=True):
    """How long to wait for the volume controller, and how nodes are scored by their storage."""

    bind_timeout_seconds: Annotated[int, msgspec.Meta(ge=0)] = 600
    #: Without points: the more room is left, the better.
    shape: tuple[UtilizationShapePoint, ...] = _EMPTIEST

    def __post_init__(self) -> None:
        if not self.shape:
            msgspec.structs.force_setattr(self, "shape", _EMPTIEST)

    def problems(self) -> Iterable[tuple[str, str]]:
        return shape_problems("shape", self.shape)

    def problems_in_version(self, gates: FeatureGates) -> Iterable[tuple[str, str]]:
        if self.shape is not _EMPTIEST and not gates.enabled(_SCORING_GATE):
            yield "shape", f"unwanted; belongs to the gate {_SCORING_GATE}, which is off"


class Notes(Struct):
    """The state of one attempt; ``decision`` is set from Reserve on, None if all claims are
    bound."""

    claims: PodClaims
    decision: VolumeDecision | None = None


@final
class VolumeBinding(
    plugin.PreFilterPlugin[VolumeBindingArgs],
    plugin.FilterPlugin,
    plugin.PreScorePlugin,
    plugin.ScorePlugin,
    plugin.ReservePlugin,
    plugin.PreBindPlugin,
    plugin.EnqueueExtensions,
    plugin.SignPlugin,
):
    """Finds volumes for a pod's claims, reserves them, and waits until they are bound."""

    name = "VolumeBinding"
    caching = plugin.Caching(
        facets=Facet.LABELS | Facet.STORAGE, facets_if_unconcerned=Facet(0), signs_template=True
    )
    kinds = STORAGE_KINDS
    ignores_resizes = True
    allows_parallel_pre_bind = True

    def setup(self) -> None:
        args: VolumeBindingArgs = self.args or VolumeBindingArgs()
        self._scores = self.handle.gates.enabled(_SCORING_GATE)
        self._has_attribute_classes = self.handle.gates.enabled("VolumeAttributesClass")
        self._timeout_seconds = args.bind_timeout_seconds
        self._line = broken_line([(point.utilization, point.score) for point in args.shape])

    def _notes(self, state: CycleState) -> Notes | None:
        """None: the pod has no claims."""
        return state.get(self.instance_name)

    def _volumes(self, notes: Notes, nodes: NodeView) -> NodeVolumes:
        return find_volumes(
            self.handle.volumes,
            notes.claims,
            nodes,
            has_attribute_classes=self._has_attribute_classes,
        )

    def concerns(self, shape: PodShape) -> bool:
        return bool(shape.volumes.claims)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        if not pod.shape.volumes.claims:
            return SKIP
        claims = pod_claims(self.handle.volumes, pod)
        if isinstance(claims, Status):
            return claims
        state[self.instance_name] = Notes(claims)
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        notes = self._notes(state)
        if notes is not None:
            yield from self._volumes(notes, nodes).rejections()

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """It skips where storage is not scored, as upstream's: not for pods without claims."""
        return None if self._scores else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: how well the claims use the offered storage; 0..100."""
        notes = self._notes(state)
        if notes is None or not notes.claims.delayed:
            return uniform(0, len(nodes))
        node_volumes = self._volumes(notes, nodes)
        return scores(node_volumes, self._line, len(nodes))

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        notes = self._notes(state)
        if notes is None or not notes.claims.delayed:
            return None
        nodes = self.handle.snapshot.nodes
        node = nodes.take(nodes.positions([node_name]))
        node_volumes = self._volumes(notes, node)
        assert node_volumes.fits, f"{node_name} took {pod!r} and has no volumes for it"
        notes.decision = decide(node_volumes, node_name)
        notes.decision.assume(self.handle.volumes)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        notes = self._notes(state)
        if notes is not None and notes.decision is not None:
            notes.decision.restore(self.handle.volumes)

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        notes = self._notes(state)
        return SKIP if notes is None or notes.decision is None else None

    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        notes = self._notes(state)
        if notes is None or notes.decision is None:
            return None
        try:
            await _write(notes.decision, port)
            return await self._wait(notes.decision, pod, port)
        except (ApiError, OutcomeUnknownError) as problem:
            return Status(Code.ERROR, (str(problem),))
        except BindingFailed as problem:
            return Status(Code.ERROR, (f"binding volumes: {problem}",))

    async def _wait(self, decision: VolumeDecision, pod: PodInfo, port: BindPort) -> Status | None:
        """Until all is bound. Raises BindingFailed."""
        until = self.handle.now_seconds + self._timeout_seconds
        while True:
            await port.sleep(POLL_SECONDS)
            if self._is_complete(decision, pod):
                return None
            if self.handle.now_seconds + POLL_SECONDS > until:
                return Status(Code.ERROR, (TIMED_OUT,))

    def _is_complete(self, decision: VolumeDecision, pod: PodInfo) -> bool:
        """Raises BindingFailed."""
        node = self.handle.volumes.node(decision.node_name)
        if node is None:
            raise BindingFailed(NO_NODE.format(decision.node_name))
        if not self.handle.volumes.is_placed(pod):
            raise BindingFailed(NO_POD.format(pod.name))
        return Progress(self.handle.volumes, node).is_complete(decision)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return registered_events()

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """The claims by name; a claim made for the pod alone belongs to no other pod.

        Inline drivers concern a hint only.
        """
        volumes = pod.shape.volumes
        if volumes.has_ephemeral:
            return None
        names = tuple(volumes.claim_names())
        return (pod.namespace, names, volumes.inline_drivers) if names else ()


async def _write(decision: VolumeDecision, port: BindPort) -> None:
    """Writes are not undone after a failure. Raises ApiError, OutcomeUnknownError."""
    for binding in decision.bindings:
        # Each binding writes: the pod that assumed these values may fail to write them.
        # Upstream: binder.go, bindAPIUpdate.
        await port.patch(*volume_write(binding))
        binding.is_written = True
    for provision in decision.provisions:
        await port.patch(*claim_write(provision))
        provision.is_written = True
