"""A pod's claims, and the volumes that each node could give them, for all nodes at once.

A bound claim restricts the pod to the nodes that reach its volume. For each unbound claim, from the
smallest to the largest, each node takes the smallest volume that matches and that no other claim of
the pod has taken. Where no volume matches, one is provisioned. A volume is evaluated once for all
nodes. Upstream: volumebinding/binder.go (FindPodVolumes), component-helpers storage/volume
(FindMatchingVolume).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import numpy as np
from msgspec import Struct, field

from bayplan.api.csi_migration import NotTranslated
from bayplan.api.objects import namespaced_name
from bayplan.api.selectors import IN, Requirement, Selector, SelectorError, is_label_key
from bayplan.api.storage_objects import (
    AVAILABLE,
    FILESYSTEM,
    LOST,
    MIGRATED_PLUGINS,
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    StorageClass,
    TopologySelectorTerm,
)
from bayplan.framework.status import Code, Rejection, Status, unresolvable
from bayplan.state.columns import Int32s, Mask
from bayplan.state.nodes import NodeView
from bayplan.state.pods import ClaimUse, PodInfo
from bayplan.state.storage_infos import CapacityInfo, ClaimInfo, NodeTerms, VolumeInfo
from bayplan.state.volumes import Volumes, claim_not_found

# ---- claims ---------------------------------------------------------------------------------


UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"
NOT_MADE_YET: Final = (
    'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
)
LOST_VOLUME: Final = 'persistentvolumeclaim "{}" bound to non-existent persistentvolume "{}"'
BEING_DELETED: Final = 'persistentvolumeclaim "{}" is being deleted'
NOT_OWNED: Final = "PVC {} was not created for pod {} (pod is not owner)"
NO_BINDING_MODE: Final = 'VolumeBindingMode not set for StorageClass "{}"'


class PodClaims(Struct, frozen=True):
    """In the order of the pod's volumes, each as often as it is used."""

    bound: tuple[ClaimInfo, ...]
    #: Unbound claims that wait for the pod's node (WaitForFirstConsumer).
    delayed: tuple[ClaimInfo, ...]


def pod_claims(volumes: Volumes, pod: PodInfo) -> PodClaims | Status:
    """All claims of a pod, or why it cannot run yet."""
    uses = pod.shape.volumes.claims
    for use in uses:
        problem = _problem(volumes, pod, use)
        if problem:
            return unresolvable(problem)
    bound: list[ClaimInfo] = []
    delayed: list[ClaimInfo] = []
    is_unbound = False
    for use in uses:
        claim = volumes.claim(namespaced_name(pod.namespace, pod.claim_name(use)))
        assert claim is not None, f"a claim of {pod!r} went while it was looked at"
        if claim.is_fully_bound:
            bound.append(claim)
            continue
        waits = _waits_for_consumer(volumes, claim)
        if isinstance(waits, Status):
            return waits
        # One that names a volume already is bound by the volume controller alone.
        if waits and not claim.volume_name:
            delayed.append(claim)
        else:
            is_unbound = True
    return (
        unresolvable(UNBOUND_IMMEDIATE) if is_unbound else PodClaims(tuple(bound), tuple(delayed))
    )


def _problem(volumes: Volumes, pod: PodInfo, use: ClaimUse) -> str:
    """Why one claim cannot be used; "" if it can."""
    name = pod.claim_name(use)
    claim = volumes.api.claim(namespaced_name(pod.namespace, name))
    if claim is None:
        return NOT_MADE_YET.format(name) if use.is_ephemeral else claim_not_found(name)
    if claim.claim.status.phase == LOST:
        return LOST_VOLUME.format(name, claim.volume_name)
    if claim.claim.metadata.deletion_timestamp is not None:
        return BEING_DELETED.format(name)
    if use.is_ephemeral and not claim.is_for(pod):
        return NOT_OWNED.format(claim.key, pod.key)
    return ""


def _waits_for_consumer(volumes: Volumes, claim: ClaimInfo) -> bool | Status:
    """Whether its class binds late. Upstream: IsDelayBindingMode."""
    storage_class = volumes.api.storage_class(claim.class_name) if claim.class_name else None
    if storage_class is None:
        return False
    mode = storage_class.volume_binding_mode
    if mode is None:
        return Status(Code.ERROR, (NO_BINDING_MODE.format(claim.class_name),))
    return mode == WAIT_FOR_FIRST_CONSUMER


# ---- finding --------------------------------------------------------------------------------


OUT_OF_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE: Final = "node(s) did not have enough free storage"
NO_SUCH_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

NO_ATTRIBUTE_CLASSES = (
    "unsupported volumeAttributesClassName is set on claim {} when the feature-gate "
    "VolumeAttributesClass is disabled"
)
#: In place of a volume's or a capacity's number.
NONE: Final = -1


class MatchedClaim(Struct, frozen=True):
    """A claim with the volume it would be bound to: ``chosen``: int32[nodes], a place in
    ``volumes`` or NONE."""

    claim: ClaimInfo
    volumes: Sequence[VolumeInfo]
    chosen: Int32s


class ProvisionedClaim(Struct, frozen=True):
    """A claim whose volume is to be provisioned. ``needed``: bool[nodes]; ``capacity_indices``:
    index into ``capacities`` of the entry with room, NONE if the driver reports no capacity."""

    claim: ClaimInfo
    needed: Mask
    capacities: Sequence[CapacityInfo]
    capacity_indices: Int32s


def _no_problems() -> list[tuple[Mask, str]]:
    return []


class NodeVolumes(Struct):
    """The volumes for the nodes of one view. Masks are bool[nodes]."""

    #: Nodes that do not reach a bound volume; nodes without a volume to bind or to provision; nodes
    #: without the capacity to provision one; nodes for which a bound volume does not exist.
    out_of_reach: Mask
    unbound: Mask
    short: Mask
    missing: Mask
    matched: list[MatchedClaim] = field(default_factory=list[MatchedClaim])
    provisioned: list[ProvisionedClaim] = field(default_factory=list[ProvisionedClaim])
    #: (nodes, message) of invalid objects: the attempt ends with an error.
    problems: list[tuple[Mask, str]] = field(default_factory=_no_problems)

    def rejections(self) -> Iterator[Rejection]:
        """Several reasons of one node add up, in this order."""
        for mask, message in self.problems:
            yield Rejection(mask, Code.ERROR, (message,))
        for mask, reason in (
            (self.out_of_reach, OUT_OF_REACH),
            (self.unbound, NOTHING_TO_BIND),
            (self.short, NOT_ENOUGH_SPACE),
            (self.missing, NO_SUCH_VOLUME),
        ):
            if np.count_nonzero(mask):
                yield Rejection(mask, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))

    @property
    def fits(self) -> bool:
        """For a view of one node: whether the node fits."""
        masks = (self.out_of_reach, self.unbound, self.short, self.missing)
        return not self.problems and not any(mask.any() for mask in masks)


def find_volumes(
    volumes: Volumes, claims: PodClaims, nodes: NodeView, *, has_attribute_classes: bool = True
) -> NodeVolumes:
    """The volumes of a pod's claims on each node. ``has_attribute_classes``: the gate
    VolumeAttributesClass; without it a claim with such a class is an error."""
    return _Search(volumes, nodes, has_attribute_classes).run(claims)


@final
class _Search:
    """One question about the nodes of one view."""

    def __init__(self, volumes: Volumes, nodes: NodeView, has_attribute_classes: bool) -> None:
        self._volumes = volumes
        self._has_attribute_classes = has_attribute_classes
        self._nodes = nodes
        none = np.zeros(len(nodes), np.bool_)
        self._result = NodeVolumes(none, none.copy(), none.copy(), none.copy())
        self._none = none.copy()
        #: Volume's name → nodes that have taken it.
        self._taken: dict[str, Mask] = {}

    def run(self, claims: PodClaims) -> NodeVolumes:
        self._look_at_bound(claims.bound)
        open_nodes = self._all()
        for mask, _ in self._result.problems:
            open_nodes &= ~mask
        selected = [claim for claim in claims.delayed if claim.selected_node is not None]
        for claim in selected:
            elsewhere = open_nodes & ~self._named(claim.selected_node or "")
            self._result.unbound |= elsewhere
            open_nodes = open_nodes & ~elsewhere
        to_make = [(claim, open_nodes) for claim in selected]
        unselected = (claim for claim in claims.delayed if claim.selected_node is None)
        for claim in sorted(unselected, key=lambda each: each.size_nanos or 0):
            matched = self._match(claim, open_nodes)
            if matched is None:
                return self._result
            self._result.matched.append(matched)
            to_make.append((claim, open_nodes & (matched.chosen == NONE)))
        self._make(to_make)
        return self._result

    def _all(self) -> Mask:
        return np.ones(len(self._nodes), np.bool_)

    def _named(self, name: str) -> Mask:
        mask = np.zeros(len(self._nodes), np.bool_)
        position = self._nodes.position(name)
        if position is not None:
            mask[position] = True
        return mask

    # ---- bound claims ---------------------------------------------------------------------

    def _look_at_bound(self, claims: Iterable[ClaimInfo]) -> None:
        """The first claim that a node fails decides the node's reason."""
        undecided = self._all()
        for claim in claims:
            volume = self._volumes.volume(claim.volume_name)
            if volume is None:
                self._result.missing |= undecided
                return
            wrong = undecided & ~self._reaching(volume, undecided)
            self._result.out_of_reach |= wrong
            undecided = undecided & ~wrong

    def _reaching(self, volume: VolumeInfo, selected: Mask) -> Mask:
        """bool[nodes]: nodes that reach a volume; by the CSI driver's labels if the plugin was
        migrated."""
        reaching = matching(volume.node_terms, self._nodes)
        if volume.plugin is None or not volume.plugin.is_counted:
            return reaching
        migrated = self._migrated(volume.plugin.name)
        if not migrated.any():
            return reaching
        try:
            return np.where(migrated, matching(volume.csi_node_terms, self._nodes), reaching)
        except NotTranslated as problem:
            failing = selected & migrated
            if failing.any():
                self._result.problems.append((failing, f"could not translate pv: {problem}"))
            return reaching | failing

    def _migrated(self, plugin: str) -> Mask:
        """bool[nodes]: nodes whose CSINode lists the plugin as migrated."""
        names = [
            csi_node.metadata.name
            for csi_node in self._volumes.api.csi_nodes
            if plugin in (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "").split(",")
        ]
        mask = np.zeros(len(self._nodes), np.bool_)
        mask[self._nodes.positions(names)] = True
        return mask

    # ---- volumes that are there -----------------------------------------------------------

    def _match(self, claim: ClaimInfo, selected: Mask) -> MatchedClaim | None:
        """The volume that each node would take; None: the claim makes no sense."""
        if claim.claim.spec.volume_attributes_class_name and not self._has_attribute_classes:
            self._result.problems.append((selected, NO_ATTRIBUTE_CLASSES.format(claim.key)))
            return None
        candidates, preferred = self._candidates(claim)
        chosen = np.full(len(self._nodes), NONE, np.int32)
        try:
            fitting = [] if preferred else fitting_volumes(claim, candidates)
        except SelectorError as problem:
            message = f"error creating internal label selector for claim: {claim.key}: {problem}"
            self._result.problems.append((selected, message))
            return None
        unserved = selected
        for index, volume in enumerate(preferred or fitting):
            if not unserved.any():
                break
            taken = self._taken.get(volume.name, self._none)
            free = unserved & ~taken
            taking = free & matching(volume.node_terms, self._nodes)
            chosen[taking] = index
            self._taken[volume.name] = taken | taking
            # A volume made for this claim is the only one for it, even out of a node's reach.
            unserved = unserved & ~(free if preferred else taking)
        return MatchedClaim(claim, preferred or fitting, chosen)

    def _candidates(self, claim: ClaimInfo) -> tuple[list[VolumeInfo], list[VolumeInfo]]:
        """(volumes of the class that are large enough, those made for just this claim)."""
        volumes = [
            volume
            for volume in self._volumes.volumes_of_class(claim.class_name)
            if may_hold(volume, claim)
        ]
        return volumes, [volume for volume in volumes if volume.is_claimed_by(claim)]

    # ---- volumes to provision -------------------------------------------------------------

    def _make(self, claims: Iterable[tuple[ClaimInfo, Mask]]) -> None:
        """The first claim that a node fails decides the node's reason."""
        undecided = self._all()
        for claim, needing in claims:
            unprovisioned = needing & undecided
            if not unprovisioned.any():
                continue
            storage_class, problem = self._class_of(claim)
            if storage_class is None:
                self._result.problems.append((unprovisioned, problem))
                undecided = undecided & ~unprovisioned
                continue
            unfit = unprovisioned & ~self._may_make(storage_class)
            self._result.unbound |= unfit
            capacities, capacity_indices, enough = self._room(claim, storage_class)
            short = unprovisioned & ~unfit & ~enough
            self._result.short |= short
            undecided = undecided & ~unfit & ~short
            made = unprovisioned & undecided
            self._result.provisioned.append(
                ProvisionedClaim(claim, made, capacities, capacity_indices)
            )

    def _class_of(self, claim: ClaimInfo) -> tuple[StorageClass | None, str]:
        name = claim.class_name
        if not name:
            return None, f'no class for claim "{claim.key}"'
        return self._volumes.api.storage_class(name), f'failed to find storage class "{name}"'

    def _may_make(self, storage_class: StorageClass) -> Mask:
        """bool[nodes]: nodes for which the class provisions volumes."""
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return np.zeros(len(self._nodes), np.bool_)
        terms = storage_class.allowed_topologies
        if not terms:
            return self._all()
        allowed = np.zeros(len(self._nodes), np.bool_)
        for term in terms:
            allowed |= _in_topology(term, self._nodes)
        return allowed

    def _room(
        self, claim: ClaimInfo, storage_class: StorageClass
    ) -> tuple[Sequence[CapacityInfo], Int32s, Mask]:
        """(reported capacities, the index that each node would use, bool[nodes]: nodes with
        enough)."""
        capacity_indices = np.full(len(self._nodes), NONE, np.int32)
        driver = self._volumes.api.csi_driver(storage_class.provisioner)
        if claim.size_nanos is None or driver is None or not driver.spec.storage_capacity:
            return (), capacity_indices, self._all()
        capacities = self._volumes.api.capacities(storage_class.metadata.name)
        for index, capacity in enumerate(capacities):
            most = capacity.volume_bytes_max
            if most is not None and most >= claim.size_bytes:
                capacity_indices[
                    (capacity_indices == NONE) & _selected(capacity.nodes, self._nodes)
                ] = index
        return capacities, capacity_indices, capacity_indices != NONE


def matching(terms: NodeTerms, nodes: NodeView) -> Mask:
    """bool[nodes]: nodes that reach a volume with these terms."""
    if terms is None:
        return np.ones(len(nodes), np.bool_)
    reaching = np.zeros(len(nodes), np.bool_)
    for term in terms:
        reaching |= _satisfying(term, nodes)
    return reaching


def _satisfying(requirements: Iterable[Requirement], nodes: NodeView) -> Mask:
    mask = np.ones(len(nodes), np.bool_)
    for requirement in requirements:
        mask &= nodes.labels.matching(requirement)
    return mask


def _selected(selector: Selector, nodes: NodeView) -> Mask:
    if selector.nothing:
        return np.zeros(len(nodes), np.bool_)
    return _satisfying(selector.requirements, nodes)


def _in_topology(term: TopologySelectorTerm, nodes: NodeView) -> Mask:
    """An empty or malformed term allows no node."""
    expressions = term.match_label_expressions or ()
    if not expressions or not all(one.values and is_label_key(one.key) for one in expressions):
        return np.zeros(len(nodes), np.bool_)
    return _satisfying([Requirement(one.key, IN, one.values or ()) for one in expressions], nodes)


def may_hold(volume: VolumeInfo, claim: ClaimInfo) -> bool:
    """Whether a volume is reserved for no other claim, large enough, and of the right mode and
    attributes."""
    spec, claim_spec = volume.volume.spec, claim.claim.spec
    if spec.claim_ref is not None and not volume.is_claimed_by(claim):
        return False
    if volume.size_nanos < (claim.size_nanos or 0):
        return False
    if volume.mode != (claim_spec.volume_mode or FILESYSTEM):
        return False
    attributes = claim_spec.volume_attributes_class_name or ""
    if (spec.volume_attributes_class_name or "") != attributes:
        return False
    return volume.volume.metadata.deletion_timestamp is None


def fitting_volumes(claim: ClaimInfo, volumes: Iterable[VolumeInfo]) -> list[VolumeInfo]:
    """Free volumes that match the claim, smallest first. Raises SelectorError."""
    selector = claim.selector
    modes = set(claim.claim.spec.access_modes or ())
    fitting = [
        volume
        for volume in volumes
        if volume.volume.status.phase == AVAILABLE
        and (selector is None or selector.matches(volume.labels))
        and modes <= set(volume.volume.spec.access_modes or ())
    ]
    return sorted(fitting, key=lambda volume: volume.size_nanos)
