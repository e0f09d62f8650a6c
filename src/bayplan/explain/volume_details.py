"""The details of a rejection for volumes: claims, volumes, classes, capacities and limits.

A claim without a volume has a line for each PersistentVolume that could have been meant, the
nearest first. The line says why the volume does not match. Then come the topology of the class and
the CSIStorageCapacity objects, if volumes are provisioned.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from bayplan.answers.amounts import counted
from bayplan.answers.names import in_natural_order, listed_names, natural_key
from bayplan.api.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE
from bayplan.api.objects import (
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Node,
)
from bayplan.api.selectors import SelectorError
from bayplan.api.storage_objects import (
    AVAILABLE,
    FILESYSTEM,
    NO_PROVISIONER,
    READ_WRITE_ONCE_POD,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from bayplan.explain.diagnosis import NodeDiagnosis, pods_by_node
from bayplan.explain.fixes.edits import plain
from bayplan.explain.fixes.node_labels import terms_of_volume
from bayplan.explain.fixes.rule_edits import nodes_of, selector_text, term_text
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.volume_restrictions import disks_conflict
from bayplan.state.pods import PodInfo
from bayplan.state.storage_infos import CapacityInfo, ClaimInfo, VolumeInfo

ZONE_LABELS = (ZONE, REGION, BETA_ZONE, BETA_REGION)
#: The most volumes of one claim that have a line each, and the most capacities.
_VOLUMES_MAX = 4
_CAPACITIES_MAX = 4
_SHARED_MATCH = "matches, but serves one claim only, and another claim of the pod matches, too"


def volume_details(model: ClusterModel, pod: PodInfo, nodes: Sequence[str] = ()) -> Iterator[str]:
    """A line for each claim of the pod, and lines about the volumes that it might be bound to.

    ``nodes``: the rejected nodes.
    """
    rejected = nodes_of(model, in_natural_order(nodes))
    for claim_key in dict.fromkeys(pod.claim_keys()):
        namespace, _, name = claim_key.partition("/")
        claim = model.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        if not isinstance(claim, PersistentVolumeClaim):
            yield f"PersistentVolumeClaim {claim_key} does not exist"
            continue
        yield f"PersistentVolumeClaim {claim_key}: {_claim_text(model, claim)}"
        if not claim.spec.volume_name:
            yield from _unbound(model, ClaimInfo(claim), rejected)


def _claim_text(model: ClusterModel, claim: PersistentVolumeClaim) -> str:
    if claim.metadata.deletion_timestamp is not None:
        return "is being deleted"
    if claim.spec.volume_name:
        volume = model.get(PERSISTENT_VOLUME, "", claim.spec.volume_name)
        if not isinstance(volume, PersistentVolume):
            return f"its PersistentVolume {claim.spec.volume_name} does not exist"
        other = volume.spec.claim_ref
        if other is not None and _is_another(other, claim):
            name = f"{other.namespace}/{other.name}"
            which = f"an earlier PersistentVolumeClaim {name}" if _is_named(other, claim) else name
            return f"names {claim.spec.volume_name}, which is bound to {which}"
        return f"bound to {claim.spec.volume_name}{_reach(volume)}{_zone(volume)}"
    info = ClaimInfo(claim)
    if not info.class_name:
        return "not bound, without a storage class"
    storage_class = model.get(STORAGE_CLASS, "", info.class_name)
    if not isinstance(storage_class, StorageClass):
        return f"not bound; StorageClass {info.class_name} does not exist"
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        mode = "binds before the pod has a node"
        return f"not bound; its StorageClass {info.class_name} {mode}"
    return f"not bound; its StorageClass is {info.class_name}"


def _is_named(reference: ObjectReference, claim: PersistentVolumeClaim) -> bool:
    meta = claim.metadata
    return (reference.namespace, reference.name) == (meta.namespace, meta.name)


def _is_another(reference: ObjectReference, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is bound to another claim, which has another name, or had this name
    earlier."""
    if not _is_named(reference, claim):
        return True
    return bool(reference.uid and claim.metadata.uid and reference.uid != claim.metadata.uid)


def _reach(volume: PersistentVolume) -> str:
    text = _terms_text(volume)
    return f", which is reachable from nodes with {text}" if text else ""


def _terms_text(volume: PersistentVolume) -> str:
    return " or ".join(map(term_text, terms_of_volume(volume)))


def _zone(volume: PersistentVolume) -> str:
    labels = volume.metadata.labels or {}
    zones = [f"{key}={labels[key]}" for key in ZONE_LABELS if key in labels]
    return f", labeled {', '.join(zones)}" if zones else ""


# ---- claims without a volume ----------------------------------------------------------------


def _unbound(model: ClusterModel, claim: ClaimInfo, nodes: Sequence[Node]) -> Iterator[str]:
    yield from _volumes(model, claim, nodes)
    storage_class = model.get(STORAGE_CLASS, "", claim.class_name) if claim.class_name else None
    if isinstance(storage_class, StorageClass):
        yield from _provisioning(model, claim, storage_class, nodes)


def _volumes(model: ClusterModel, claim: ClaimInfo, nodes: Sequence[Node]) -> Iterator[str]:
    volumes = [
        VolumeInfo(each)
        for each in model.objects(PERSISTENT_VOLUME)
        if isinstance(each, PersistentVolume)
    ]
    of_class = [each for each in volumes if each.class_name == claim.class_name]
    if not of_class:
        if volumes:
            text = f"no PersistentVolume has the class {claim.class_name or '(none)'}"
            names = [f"{each.name} ({each.class_name or 'none'})" for each in volumes]
            yield f"  {text}; there are {listed_names(names)}"
        elif not claim.class_name:
            yield "  there is no PersistentVolume"
        return
    mismatches = {each.name: list(_mismatches(model, each, claim, nodes)) for each in of_class}
    of_class.sort(
        key=lambda each: (len(mismatches[each.name]), -each.size_nanos, natural_key(each.name))
    )
    for volume in of_class[:_VOLUMES_MAX]:
        reasons = "; ".join(mismatches[volume.name])
        yield f"  PersistentVolume {volume.name}: {reasons or _SHARED_MATCH}"
    further = len(of_class) - _VOLUMES_MAX
    if further > 0:
        yield f"  and {further} more PersistentVolumes of the class"


def _mismatches(
    model: ClusterModel, volume: VolumeInfo, claim: ClaimInfo, nodes: Sequence[Node]
) -> Iterator[str]:
    """All the rules of VolumeBinding by which a volume does not match a claim."""
    spec, claim_spec = volume.volume.spec, claim.claim.spec
    if volume.size_nanos < (claim.size_nanos or 0):
        requested = _size(claim_spec.resources.requests)
        yield f"{_size(spec.capacity)}, less than the {requested} requested"
    lacking = set(claim_spec.access_modes or ()) - set(spec.access_modes or ())
    if lacking:
        modes = ", ".join(spec.access_modes or ()) or "none"
        yield f"access modes {modes}, without {', '.join(sorted(lacking))}"
    mode = claim_spec.volume_mode or FILESYSTEM
    if volume.mode != mode:
        yield f"volumeMode {volume.mode}, not {mode}"
    attributes = claim_spec.volume_attributes_class_name or ""
    if (spec.volume_attributes_class_name or "") != attributes:
        own = spec.volume_attributes_class_name or "none"
        yield f"volumeAttributesClassName {own}, not {attributes or 'none'}"
    try:
        if claim.selector is not None and not claim.selector.matches(volume.labels):
            yield f"labels do not match {selector_text(plain(claim_spec.selector))}"
    except SelectorError as problem:
        yield f"the claim's selector is invalid: {problem}"
    yield from _not_free(model, volume, claim)
    if nodes and not any(_reaches(volume, node) for node in nodes):
        where = "the node" if len(nodes) == 1 else f"any of the {len(nodes):,} nodes"
        yield f"reachable from nodes with {_terms_text(volume.volume)}, not from {where}"


def _not_free(model: ClusterModel, volume: VolumeInfo, claim: ClaimInfo) -> Iterator[str]:
    phase, ref = volume.volume.status.phase, volume.volume.spec.claim_ref
    if volume.volume.metadata.deletion_timestamp is not None:
        yield "is being deleted"
    if ref is not None and not volume.is_claimed_by(claim):
        yield f"{phase or 'no phase'}, with a claimRef to {_referent(model, ref)}"
    elif ref is None and phase != AVAILABLE:
        yield f"has the phase {phase or '(none)'}, not {AVAILABLE}"


def _referent(model: ClusterModel, ref: ObjectReference) -> str:
    """The claim that a volume is reserved for, and whether that claim still exists."""
    name = f"PersistentVolumeClaim {ref.namespace or ''}/{ref.name}"
    present = model.get(PERSISTENT_VOLUME_CLAIM, ref.namespace or "", ref.name)
    if present is None:
        return f"{name}, which does not exist"
    if ref.uid and present.metadata.uid != ref.uid:
        return f"an earlier {name} (uid {ref.uid}), which is gone"
    return name


def _size(quantities: Mapping[str, object] | None) -> str:
    return str((quantities or {}).get(STORAGE, "no size"))


def _reaches(volume: VolumeInfo, node: Node) -> bool:
    terms, labels = volume.node_terms, node.metadata.labels or {}
    if terms is None:
        return True
    return any(all(one.matches(labels) for one in term) for term in terms)


# ---- provisioning ---------------------------------------------------------------------------


def _provisioning(
    model: ClusterModel, claim: ClaimInfo, storage_class: StorageClass, nodes: Sequence[Node]
) -> Iterator[str]:
    name, provisioner = storage_class.metadata.name, storage_class.provisioner
    if provisioner in ("", NO_PROVISIONER):
        yield f"  StorageClass {name} provisions no volume ({provisioner or 'no provisioner'})"
        return
    if claim.selected_node is not None:
        yield f"  {provisioner} is to provision its volume for node {claim.selected_node}"
    elif storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        yield f"  {provisioner} has provisioned no volume for it"
    terms = storage_class.allowed_topologies
    if terms:
        outside = [node for node in nodes if not any(_is_in(term, node) for term in terms)]
        text = " or ".join(map(_topology_text, terms))
        yield f"  StorageClass {name} allows only {text}{_excluded(outside, terms)}"
    driver = model.get(CSI_DRIVER, "", provisioner)
    if isinstance(driver, CSIDriver) and driver.spec.storage_capacity and claim.size_nanos:
        yield from _capacities(model, claim, name, nodes)


def _topology_text(term: TopologySelectorTerm) -> str:
    expressions = term.match_label_expressions or ()
    parts = (f"{one.key} in ({', '.join(one.values or ())})" for one in expressions)
    return " and ".join(parts) or "an empty term, which matches no node"


def _is_in(term: TopologySelectorTerm, node: Node) -> bool:
    labels, expressions = node.metadata.labels or {}, term.match_label_expressions or ()
    return bool(expressions) and all(
        labels.get(one.key) in (one.values or ()) for one in expressions
    )


def _excluded(nodes: Sequence[Node], terms: Iterable[TopologySelectorTerm]) -> str:
    if not nodes:
        return ""
    keys = dict.fromkeys(one.key for term in terms for one in term.match_label_expressions or ())
    names = [f"{node.metadata.name} ({_labels_text(node, keys)})" for node in nodes]
    return f", which excludes {listed_names(names)}"


def _labels_text(node: Node, keys: Collection[str]) -> str:
    labels = node.metadata.labels or {}
    return ", ".join(f"{key}={labels[key]}" if key in labels else f"no {key}" for key in keys)


def _capacities(
    model: ClusterModel, claim: ClaimInfo, class_name: str, nodes: Sequence[Node]
) -> Iterator[str]:
    """The reported capacities for the rejected nodes, the largest first."""
    objects = [
        each
        for each in model.objects(CSI_STORAGE_CAPACITY)
        if isinstance(each, CSIStorageCapacity) and each.storage_class_name == class_name
    ]
    size = _size(claim.claim.spec.resources.requests)
    infos = {CapacityInfo(each).key: (each, CapacityInfo(each)) for each in objects}
    near = sorted(
        (
            (-(info.volume_bytes_max or 0), key)
            for key, (_, info) in infos.items()
            if (info.volume_bytes_max or 0) < claim.size_bytes
            and any(info.nodes.matches(node.metadata.labels or {}) for node in nodes)
        ),
    )
    for _, key in near[:_CAPACITIES_MAX]:
        yield f"  CSIStorageCapacity {key}{_capacity_text(infos[key][0])}, less than {size}"
    if len(near) > _CAPACITIES_MAX:
        yield f"  and {len(near) - _CAPACITIES_MAX} more CSIStorageCapacities that are too small"
    bare = [
        node.metadata.name
        for node in nodes
        if not any(info.nodes.matches(node.metadata.labels or {}) for _, info in infos.values())
    ]
    if bare:
        yield f"  no CSIStorageCapacity of StorageClass {class_name} covers {listed_names(bare)}"


def _capacity_text(capacity: CSIStorageCapacity) -> str:
    topology = selector_text(plain(capacity.node_topology))
    amount = "no capacity" if capacity.capacity is None else str(capacity.capacity)
    most = capacity.maximum_volume_size
    at_most = "" if most is None else f", at most {most} for one volume"
    return f" ({topology}): {amount}{at_most}"


# ---- limits and conflicts -------------------------------------------------------------------


def limit_details(diagnosis: NodeDiagnosis, nodes: Sequence[str]) -> Iterator[str]:
    """Lines with driver, limit and attached volumes, one for each distinct set of numbers."""
    places: dict[str, list[str]] = {}
    for node in in_natural_order(nodes):
        for count in diagnosis.volume_counts.get(node, ()):
            text = (
                f"CSI driver {count.driver}: the limit is {count.limit}, {count.attached_count} "
                f"attached, the pod brings {count.new_count} more"
            )
            places.setdefault(text, []).append(node)
    for text, names in places.items():
        yield f"{text}: {listed_names(names)}"


def conflict_details(model: ClusterModel, pod: PodInfo, nodes: Sequence[str]) -> Iterator[str]:
    """Lines about claims that do not exist, and about pods that use a disk of the pod or a claim
    that only one pod may use."""
    for key in dict.fromkeys(pod.claim_keys()):
        if model.get(PERSISTENT_VOLUME_CLAIM, *key.split("/", 1)) is None:
            yield f"PersistentVolumeClaim {key} does not exist"
    exclusive = {
        key
        for key in pod.claim_keys()
        if _is_for_one_pod(model.get(PERSISTENT_VOLUME_CLAIM, *key.split("/", 1)))
    }
    placed = pods_by_node(model)
    for node in in_natural_order(placed):
        for other in placed[node]:
            for key in in_natural_order(exclusive & set(other.claim_keys())):
                yield f"{other.key} on {node} uses {key}, which is {READ_WRITE_ONCE_POD}"
            if node in nodes and disks_conflict(pod, other):
                yield f"{other.key} on {node} uses the same disk"


def _is_for_one_pod(claim: object) -> bool:
    return isinstance(claim, PersistentVolumeClaim) and READ_WRITE_ONCE_POD in (
        claim.spec.access_modes or ()
    )


def zone_details(model: ClusterModel, nodes: Sequence[str]) -> Iterator[str]:
    """The zones of the rejected nodes."""
    places: dict[str, list[str]] = {}
    for node in nodes_of(model, in_natural_order(nodes)):
        labels = node.metadata.labels or {}
        zones = [f"{key}={labels[key]}" for key in ZONE_LABELS if key in labels]
        places.setdefault(", ".join(zones) or "no zone", []).append(node.metadata.name)
    for zone, names in places.items():
        yield f"{counted(len(names), 'node')} with {zone}: {listed_names(names)}"
