"""PodInfo: a pod as the engine and the plugins see it, compiled once per shape.

Pods of one template differ only in name, uid and node. Everything that follows from namespace,
labels and spec is compiled once per distinct combination, a `PodShape`, which all pods of the
template share. Shapes that differ only in labels, as those of the members of many pod groups, share
what follows from the spec. `PodVolumes` is the part about volumes: only volumes that restrict the
choice of a node count, not configuration, secrets or scratch space.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_field
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar, final
from weakref import ReferenceType, WeakValueDictionary, ref

import msgspec

from bayplan.api.affinity import AffinityTerms, compile_terms
from bayplan.api.csi_migration import plugin_of
from bayplan.api.declared_fields import DeclaredFields
from bayplan.api.objects import (
    DEFAULT_SCHEDULER,
    Affinity,
    NodeAffinity,
    NodeAllocatableResourceClaimStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    Toleration,
    namespaced_name,
)
from bayplan.api.pod_groups import BUILT_IN_KINDS, GroupKey, PodGroupKinds
from bayplan.api.pod_requests import (
    CPU,
    MEMORY,
    NEWEST_POD_RULES,
    NON_ZERO_DEFAULTS,
    PodRules,
    is_counted,
    pending_resize,
    requested,
    resize_report,
)
from bayplan.api.read_only import EMPTY, ReadOnlyDict
from bayplan.api.selectors import COMPARISONS, IN, NODE_NAME_FIELD
from bayplan.api.storage_objects import Volume
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.state.host_ports import HostPort, host_ports

# ---- pod volumes ----------------------------------------------------------------------------


class ClaimUse(NamedTuple):
    """A volume of a pod that uses a claim: a named claim, or the claim of an ephemeral volume."""

    volume_name: str
    #: "" for an ephemeral volume.
    claim_name: str
    is_ephemeral: bool


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The volumes of a pod that restrict the choice of its node."""

    #: Volumes with a claim, in the order of the spec.
    claims: tuple[ClaimUse, ...] = ()
    #: In-tree volumes in the pod's spec that a CSI driver serves.
    migrated: tuple[Volume, ...] = ()
    #: Volumes that two pods of one node may not always share.
    exclusive: tuple[Volume, ...] = ()
    #: The CSI drivers of inline volumes in the pod's spec.
    inline_drivers: tuple[str, ...] = ()

    @property
    def has_any(self) -> bool:
        """Whether a volume depends on storage objects or on other pods of the node."""
        return bool(self.claims or self.migrated or self.exclusive)

    @property
    def has_ephemeral(self) -> bool:
        return any(use.is_ephemeral for use in self.claims)

    def claim_names(self) -> list[str]:
        """The names of named claims, once for each volume."""
        return [use.claim_name for use in self.claims if not use.is_ephemeral]


NO_VOLUMES = PodVolumes()


def pod_volumes(spec: PodSpec) -> PodVolumes:
    """The volumes of a spec, by kind."""
    volumes = spec.volumes
    if not volumes:
        return NO_VOLUMES
    by_kind = PodVolumes(
        claims=tuple(use for volume in volumes if (use := _claim_use(volume)) is not None),
        migrated=tuple(v for v in volumes if _claim_use(v) is None and plugin_of(v) is not None),
        exclusive=tuple(filter(is_exclusive, volumes)),
        inline_drivers=tuple(volume.csi.driver for volume in volumes if volume.csi is not None),
    )
    return by_kind if by_kind != NO_VOLUMES else NO_VOLUMES


def _claim_use(volume: Volume) -> ClaimUse | None:
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.name, volume.persistent_volume_claim.claim_name, False)
    return ClaimUse(volume.name, "", True) if volume.ephemeral is not None else None


def is_exclusive(volume: Volume) -> bool:
    """Whether pods of one node may not always share the volume. Upstream:
    needsRestrictionsCheck."""
    sources = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    return any(source is not None for source in sources)


# ---- pods -----------------------------------------------------------------------------------


T = TypeVar("T")


#: Shared by all pods without declared fields.
NOTHING_DECLARED: Mapping[str, Any] = DeclaredFields("Pod", "", {})


class Pin(NamedTuple):
    """The required node affinity of a pod of a DaemonSet: one term, which names one node by its
    name and demands nothing else."""

    node_name: str
    #: The shape of the same pods without this affinity. All pods of a DaemonSet share it.
    unpinned: "PodShape"


@dataclass(slots=True, weakref_slot=True, eq=False)
class PodShape:
    """The values that follow from a pod's namespace, labels and spec (without its node).

    For a pod with an in-place resize, they also follow from the kubelet's report: the amounts that
    the pod has, and whether the resize is deferred.
    """

    namespace: str
    labels: Mapping[str, str]
    spec: PodSpec
    #: Resource name → amount, pod-level requests and overhead included; only counted resources.
    requests: Mapping[str, int]
    #: cpu and memory as scores count them: 100m and 200Mi for a container without a request.
    non_zero_milli_cpu: int
    non_zero_memory_bytes: int
    host_ports: tuple[HostPort, ...]
    volumes: PodVolumes
    affinity: AffinityTerms
    anti_affinity: AffinityTerms
    #: The parts that do not parse, each with its path.
    errors: tuple[str, ...]
    #: The group that the pods name.
    group_key: GroupKey | None = None
    #: Whether the pods run and wait for a deferred resize.
    has_deferred_resize: bool = False
    #: What of the pods counts.
    rules: PodRules = NEWEST_POD_RULES
    #: What the devices of claims take of the node; it is a part of `requests`.
    claim_amounts: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    #: None: the pods do not name their node, or they demand more of it.
    pin: Pin | None = None
    #: Whether a pod of this shape takes nothing of its node but amounts and host ports: it has no
    #: affinity term, and no volume that restricts the choice of a node.
    takes_amounts_and_ports: bool = field(init=False)
    #: The profile that places the pods.
    scheduler_name: str = field(init=False)
    _memo: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])
    #: The same of all shapes that differ from this one only in labels.
    _spec_memo: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])

    def __post_init__(self) -> None:
        self.takes_amounts_and_ports = not (self.has_affinity or self.volumes.has_any)
        self.scheduler_name = self.spec.scheduler_name or DEFAULT_SCHEDULER

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """Those that can tolerate something."""
        stated = self.spec.tolerations or ()
        if self.rules.compares_taints or not stated:
            return stated
        return self.once_per_spec("PodShape.tolerations", _comparing_no_numbers)

    @property
    def has_affinity(self) -> bool:
        """Whether there is any pod (anti-)affinity term."""
        one, other = self.affinity, self.anti_affinity
        return bool(one.required or one.preferred or other.required or other.preferred)

    def once(self, key: Hashable, compute: Callable[["PodShape"], T]) -> T:
        """``compute(shape)``, stored under ``key`` for all pods of this shape.

        The result may depend on the shape and the key only. It may not refer to a plugin or to
        another part of a scheduler: see `ShapeMemo`.
        """
        try:
            return self._memo[key]
        except KeyError:
            value = self._memo[key] = compute(self)
            return value

    def once_per_spec(self, key: Hashable, compute: Callable[["PodShape"], T]) -> T:
        """The same for all shapes that differ only in labels.

        The result must not follow from the labels, nor from the group that the labels name.
        """
        try:
            return self._spec_memo[key]
        except KeyError:
            value = self._spec_memo[key] = compute(self)
            return value

    def differs_in_labels_alone(self, other: "PodShape") -> bool:
        """Whether pods of both shapes take the same of their node, and are in one group."""
        return self._spec_memo is other._spec_memo and self.group_key == other.group_key

    def with_labels(self, labels: Mapping[str, str], group_key: GroupKey | None) -> "PodShape":
        """The same with other labels and the group that they name."""
        return replace_field(self, labels=labels, group_key=group_key, _memo={})

    def with_pin(self, pin: Pin, spec: PodSpec) -> "PodShape":
        """The same of pods whose spec differs by nothing but the pin."""
        return replace_field(self, spec=spec, pin=pin, _memo={}, _spec_memo={})


@final
class ShapeMemo(Generic[T]):
    """What one part of a scheduler computes for shapes.

    All schedulers of a process share the shapes. A value that refers to its scheduler would, in the
    memo of a shape, keep that scheduler alive as long as any other scheduler has a pod of the
    shape. Here a value ends with its owner or with its shape, whichever ends first.
    """

    def __init__(self) -> None:
        #: By the id of the shape: its value, and the reference that drops the value when the shape
        #: ends. A WeakKeyDictionary would make two more calls at each look-up.
        self._values: dict[int, tuple[T, ref[PodShape]]] = {}

    def once(self, shape: PodShape, compute: Callable[[PodShape], T]) -> T:
        """``compute(shape)``, stored for all pods of this shape."""
        key = id(shape)
        try:
            return self._values[key][0]
        except KeyError:
            value = compute(shape)
            self._values[key] = value, ref(shape, partial(_drop, ref(self), key))
            return value

    def forget(self) -> None:
        """Compute the values again."""
        self._values.clear()

    def drop(self, key: int) -> None:
        """Drop the value of a shape that has ended."""
        self._values.pop(key, None)


def _drop(memo: "ref[ShapeMemo[Any]]", key: int, _ended: object) -> None:
    """``memo``: a weak reference, so that the memo and its values end with their owner."""
    owner = memo()
    if owner is not None:
        owner.drop(key)


def _comparing_no_numbers(shape: PodShape) -> tuple[Toleration, ...]:
    stated = shape.spec.tolerations or ()
    return tuple(each for each in stated if each.operator not in COMPARISONS)


class PodInfo(msgspec.Struct, frozen=True, eq=False):
    """One version of a pod; an update makes a new one. See `pod_info`."""

    #: "namespace/name"
    key: str
    uid: str
    metadata: ObjectMeta
    status: PodStatus
    shape: PodShape
    #: The node on which the pod is bound or assumed; "": no node.
    node_name: str
    #: Path → value of the fields that plugins declare in `fields`.
    declared: Mapping[str, Any] = NOTHING_DECLARED

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.shape.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        return self.shape.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        annotations = self.metadata.annotations
        return MappingProxyType(annotations) if annotations else EMPTY

    @property
    def spec(self) -> PodSpec:
        """The spec without nodeName (see `node_name`), and without volumes of which no plugin
        reads a source; shared by equal pods."""
        return self.shape.spec

    @property
    def requests(self) -> Mapping[str, int]:
        return self.shape.requests

    @property
    def priority(self) -> int:
        return self.shape.spec.priority or 0

    @property
    def scheduler_name(self) -> str:
        return self.shape.scheduler_name

    @property
    def nominated_node_name(self) -> str:
        """status.nominatedNodeName of the API object. The nominator may have a newer value."""
        return self.status.nominated_node_name or ""

    @property
    def group_key(self) -> GroupKey | None:
        """The group that the pod names."""
        return self.shape.group_key

    @property
    def has_deferred_resize(self) -> bool:
        """Whether the pod runs and waits for a resize that its kubelet deferred."""
        return self.shape.has_deferred_resize

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def pod(self) -> Pod:
        """The API object, built from the parts at each read; its spec is `spec`."""
        spec = self.shape.spec
        if self.node_name:
            spec = msgspec.structs.replace(spec, node_name=self.node_name)
        declared = dict(self.declared)
        return Pod(metadata=self.metadata, spec=spec, status=self.status, declared=declared)

    def claim_keys(self) -> Iterator[str]:
        """ "namespace/name" of every claim that the pod's volumes use, each once."""
        names = dict.fromkeys(map(self.claim_name, self.shape.volumes.claims))
        return (namespaced_name(self.namespace, name) for name in names)

    def names_claim(self, claim: ObjectMeta) -> bool:
        """Whether a volume of the pod names the claim; that of an ephemeral volume has no name."""
        is_own = claim.namespace == self.namespace
        return is_own and claim.name in self.shape.volumes.claim_names()

    def claim_name(self, use: ClaimUse) -> str:
        """The name of the claim that a volume uses. Upstream: VolumeClaimName."""
        return f"{self.name}-{use.volume_name}" if use.is_ephemeral else use.claim_name

    def on_node(self, node_name: str) -> "PodInfo":
        """The same pod on another node."""
        return msgspec.structs.replace(self, node_name=node_name)

    def with_claim_amounts(
        self, claim_amounts: tuple[NodeAllocatableResourceClaimStatus, ...]
    ) -> "PodInfo":
        """The same pod whose devices take these amounts of its node. Raises QuantityError."""
        if claim_amounts == self.shape.claim_amounts:
            return self
        status = msgspec.structs.replace(
            self.status, node_allocatable_resource_claim_statuses=claim_amounts or None
        )
        pod = Pod(metadata=self.metadata, spec=self.shape.spec, status=status)
        shape = replace_field(
            self.shape,
            **_amounts(pod, self.shape.rules),
            claim_amounts=claim_amounts,
            # The other pods of a DaemonSet use other amounts.
            pin=None,
            _memo={},
            _spec_memo={},
        )
        return msgspec.structs.replace(self, status=status, shape=shape)

    def __repr__(self) -> str:
        where = f" on {self.node_name}" if self.node_name else ""
        return f"PodInfo({self.key}{where})"


class _Newest(NamedTuple):
    """What the shape of the pod that was compiled last followed from."""

    spec: PodSpec
    status: PodStatus
    labels: Mapping[str, str] | None
    namespace: str | None
    group_kinds: PodGroupKinds
    rules: PodRules
    shape: "ReferenceType[PodShape]"


#: Of the pods without a node, and of those with one: the pods of a template mostly follow one
#: another, and a simulated API server shares their specs and their status.
_newest: list[_Newest | None] = [None, None]

_encoder = msgspec.msgpack.Encoder(order=None)
_shapes: WeakValueDictionary[bytes, PodShape] = WeakValueDictionary()
#: Without the labels in the key: one of the shapes that differ only in labels.
_shapes_by_spec: WeakValueDictionary[bytes, PodShape] = WeakValueDictionary()


def pod_info(
    pod: Pod,
    group_kinds: PodGroupKinds = BUILT_IN_KINDS,
    rules: PodRules = NEWEST_POD_RULES,
) -> PodInfo:
    """Compile a pod. ``group_kinds``: the labels by which a pod may name its group. ``rules``: what
    of the pod counts.

    Raises QuantityError if a request is not a quantity.
    """
    spec, node_name = pod.spec, pod.spec.node_name or ""
    volumes = spec.volumes and _read_volumes(spec.volumes)
    if node_name:
        spec = msgspec.structs.replace(spec, node_name=None, volumes=volumes)
    elif volumes is not spec.volumes:
        spec = msgspec.structs.replace(spec, volumes=volumes)
    declared = NOTHING_DECLARED
    if pod.declared:
        declared = DeclaredFields("Pod", pod.metadata.name, pod.declared)
    meta, status, newest, shape = pod.metadata, pod.status, _newest[node_name != ""], None
    if (
        newest is not None
        and newest.status is status
        and newest.spec == spec
        and newest.labels == meta.labels
        and newest.namespace == meta.namespace
        and newest.group_kinds is group_kinds
        and newest.rules is rules
    ):
        shape = newest.shape()
    if shape is None:
        if spec is not pod.spec:
            pod = msgspec.structs.replace(pod, spec=spec)
        has_conditions = bool(node_name and status.conditions)
        is_deferred = has_conditions and pending_resize(status) == _DEFERRED
        shape = _shape_of(pod, group_kinds, rules, is_deferred=is_deferred)
        _newest[node_name != ""] = _Newest(
            spec, status, meta.labels, meta.namespace, group_kinds, rules, ref(shape)
        )
    key, uid = f"{shape.namespace}/{meta.name}", meta.uid
    assert uid, f"pod {key} has no uid"
    return PodInfo(key, uid, meta, status, shape, node_name, declared)


_sources_of = attrgetter(*(name for name in Volume.__struct_fields__ if name != "name"))
_NO_SOURCES = _sources_of(Volume())


def _read_volumes(volumes: tuple[Volume, ...]) -> tuple[Volume, ...] | None:
    """The volumes without those of which no plugin reads a source, such as configuration and
    tokens; None: there are no others.

    The admission of ServiceAccounts gives the token's volume a name of its own in each pod. With
    these names, no two pods of a template would have one shape.
    """
    read = [each for each in volumes if _sources_of(each) != _NO_SOURCES]
    return volumes if len(read) == len(volumes) else tuple(read) or None


def _read_only(spec: PodSpec) -> PodSpec:
    """The spec with read-only mappings. Made once for all pods of a shape."""
    if not spec.node_selector and not spec.overhead:
        return spec
    selector, overhead = spec.node_selector, spec.overhead
    return msgspec.structs.replace(
        spec,
        node_selector=ReadOnlyDict(selector) if selector else selector,
        overhead=ReadOnlyDict(overhead) if overhead else overhead,
    )


def _shape_of(
    pod: Pod, group_kinds: PodGroupKinds, rules: PodRules, *, is_deferred: bool
) -> PodShape:
    meta, report = pod.metadata, resize_report(pod.status)
    labels = None if group_kinds is BUILT_IN_KINDS else group_kinds.labels
    own_rules = None if rules is NEWEST_POD_RULES else rules
    by_spec = (meta.namespace, pod.spec, report, is_deferred, own_rules, _claimed(pod, rules))
    key = _encoder.encode((meta.labels, labels, by_spec))
    shape = _shapes.get(key)
    if shape is None:
        spec_key = _encoder.encode(by_spec)
        shape = _shapes_by_spec.get(spec_key)
        node_name = _pinned_node_name(pod.spec)
        if node_name:
            unpinned_pod = msgspec.structs.replace(pod, spec=_unpinned(pod.spec))
            unpinned = _shape_of(unpinned_pod, group_kinds, rules, is_deferred=is_deferred)
            shape = unpinned.with_pin(Pin(node_name, unpinned), _read_only(pod.spec))
        elif shape is None:
            shape = _compiled(pod, group_kinds, rules, is_deferred=is_deferred)
            _shapes_by_spec[spec_key] = shape
        else:
            shape = shape.with_labels(*_labels_and_group(pod, group_kinds))
        if report is not None and not is_deferred:
            # The reported resources of a running pod are mostly equal to those of its template.
            # Then the pod shares the template's shape.
            plain = msgspec.structs.replace(pod, status=PodStatus())
            template = _shape_of(plain, group_kinds, rules, is_deferred=False)
            shape = template if _requests_equally(shape, template) else shape
        _shapes[key] = shape
    return shape


def _pinned_node_name(spec: PodSpec) -> str:
    """The node that a `Pin` names; "": there is none."""
    rules = spec.affinity.node_affinity if spec.affinity is not None else None
    terms = rules.required.node_selector_terms if rules is not None and rules.required else None
    if terms is None or len(terms) != 1 or terms[0].match_expressions:
        return ""
    fields = terms[0].match_fields
    if fields is None or len(fields) != 1:
        return ""
    (each,) = fields
    if each.key != NODE_NAME_FIELD or each.operator != IN:
        return ""
    names: Sequence[str] = each.values or ()
    return names[0] if len(names) == 1 else ""


def _unpinned(spec: PodSpec) -> PodSpec:
    """The spec without its required node affinity."""
    affinity = spec.affinity
    assert affinity is not None and affinity.node_affinity is not None, "the pods have no pin"
    preferred = affinity.node_affinity.preferred
    others = NodeAffinity(preferred=preferred) if preferred is not None else None
    affinity = msgspec.structs.replace(affinity, node_affinity=others)
    return msgspec.structs.replace(spec, affinity=affinity if affinity != Affinity() else None)


#: The pending resize of a pod whose kubelet deferred it. Upstream: IsPodResizeDeferred.
_DEFERRED = ("Deferred",)


def _requests_equally(one: PodShape, other: PodShape) -> bool:
    return (
        one.requests == other.requests
        and one.non_zero_milli_cpu == other.non_zero_milli_cpu
        and one.non_zero_memory_bytes == other.non_zero_memory_bytes
    )


def _compiled(
    pod: Pod, group_kinds: PodGroupKinds, rules: PodRules, *, is_deferred: bool
) -> PodShape:
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    affinity = pod.spec.affinity
    errors: list[str] = []
    path = "spec.affinity"
    labels, group_key = _labels_and_group(pod, group_kinds)
    terms = affinity.pod_affinity if affinity else None
    anti_terms = affinity.pod_anti_affinity if affinity else None
    return PodShape(
        namespace=namespace,
        labels=labels,
        spec=_read_only(pod.spec),
        **_amounts(pod, rules),
        claim_amounts=_claimed(pod, rules),
        host_ports=host_ports(pod.spec),
        volumes=pod_volumes(pod.spec),
        affinity=compile_terms(terms, namespace, f"{path}.podAffinity", errors),
        anti_affinity=compile_terms(anti_terms, namespace, f"{path}.podAntiAffinity", errors),
        errors=tuple(errors),
        group_key=group_key,
        has_deferred_resize=is_deferred,
        rules=rules,
    )


class _Amounts(TypedDict):
    requests: Mapping[str, int]
    non_zero_milli_cpu: int
    non_zero_memory_bytes: int


def _amounts(pod: Pod, rules: PodRules) -> _Amounts:
    amounts = requested(pod, rules=rules)
    non_zero = requested(pod, defaults=NON_ZERO_DEFAULTS, rules=rules)
    return {
        "requests": ReadOnlyDict({n: amount for n, amount in amounts.items() if is_counted(n)}),
        "non_zero_milli_cpu": non_zero.get(CPU, 0),
        "non_zero_memory_bytes": non_zero.get(MEMORY, 0),
    }


def _claimed(pod: Pod, rules: PodRules) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    """What counts of the statuses of the pod's claims."""
    return pod.status.node_allocatable_resource_claim_statuses or () if rules.counts_claims else ()


def _labels_and_group(
    pod: Pod, group_kinds: PodGroupKinds
) -> tuple[Mapping[str, str], GroupKey | None]:
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    labels, group = ReadOnlyDict(pod.metadata.labels or {}), pod.spec.scheduling_group
    group_name = None if group is None else group.pod_group_name
    return labels, group_kinds.membership(namespace, labels, group_name)
