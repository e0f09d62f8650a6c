"""Pod groups: several kinds of objects, one meaning.

A kind is one row of a table, `PodGroupKinds`: how its objects are decoded, and the label or field
by which a pod names its group. The configuration may add rows. Whatever the kind, the scheduler
works with one `PodGroup`. API group, namespace and name identify a group: several versions of one
API group serve the same object.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol, TypedDict, final

from msgspec import Struct
from msgspec.structs import replace

from bayplan.api.object_meta import Api, Condition, Int64, ObjectMeta, Quantities

#: Annotations for kinds without these fields: the node label whose value must (or should) be equal
#: for the nodes of all members.
REQUIRED_TOPOLOGY: Final = "bayplan.dev/required-topology"
PREFERRED_TOPOLOGY: Final = "bayplan.dev/preferred-topology"
#: "<node label>=<members>, …", the outermost first: so many members at a time share a value.
TOPOLOGY_SLICES: Final = "bayplan.dev/topology-slices"
#: How slices are placed across domains: "packed" (the default) or "balanced".
TOPOLOGY_STRATEGY: Final = "bayplan.dev/topology-strategy"
#: The node label of domains that take the members of this group and no other pods.
EXCLUSIVE_TOPOLOGY: Final = "bayplan.dev/exclusive-topology"
BALANCED: Final = "balanced"
_STRATEGIES: Final = ("packed", BALANCED)

COSCHEDULING_GROUP: Final = "scheduling.x-k8s.io"
COSCHEDULING_LABEL: Final = "scheduling.x-k8s.io/pod-group"
MING_GROUP: Final = "scheduling.ming.io"
MING_LABEL: Final = "pod-group.scheduling.ming.io"
UPSTREAM_GROUP: Final = "scheduling.k8s.io"

#: A condition of ours: members have waited longer than scheduleTimeoutSeconds.
SCHEDULE_TIMED_OUT: Final = "ScheduleTimedOut"


# ---- as the API has them ---------------------------------------------------------------------


class PodGroupResourceClaim(Api):
    """A claim that members share. A member names it by an entry with equal fields."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _ClaimEntry(Protocol):
    """An entry of the resourceClaims of a pod or of a PodGroup."""

    @property
    def name(self) -> str: ...
    @property
    def resource_claim_name(self) -> str | None: ...
    @property
    def resource_claim_template_name(self) -> str | None: ...


def group_entry(entry: _ClaimEntry) -> PodGroupResourceClaim:
    """The entry of a PodGroup that equals this one in all fields."""
    return PodGroupResourceClaim(
        entry.name, entry.resource_claim_name, entry.resource_claim_template_name
    )


class PodGroupResourceClaimStatus(Api):
    """The name of the claim that was made for an entry; None: none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Api):
    """The status of all kinds of groups. Upstream's kind has conditions and claims only."""

    phase: str | None = None
    occupied_by: str | None = None
    scheduled: Int64 | None = None
    running: Int64 | None = None
    succeeded: Int64 | None = None
    failed: Int64 | None = None
    schedule_start_time: str | None = None
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] | None = None
    conditions: tuple[Condition, ...] | None = None


class CoschedulingSpec(Api):
    min_member: Int64 | None = None
    min_resources: Quantities | None = None
    schedule_timeout_seconds: Int64 | None = None


class CoschedulingPodGroup(Api):
    """A PodGroup of the Coscheduling plugin, in either of its API groups."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CoschedulingSpec = CoschedulingSpec()
    status: PodGroupStatus = PodGroupStatus()


class GangPolicy(Api):
    min_count: Int64 | None = None


class PodGroupPolicy(Api):
    gang: GangPolicy | None = None


class TopologyConstraint(Api):
    key: str = ""


class PodGroupConstraints(Api):
    topology: tuple[TopologyConstraint, ...] | None = None


class AllDisruptionMode(Api):
    pass


class DisruptionMode(Api):
    """One of ``single`` and ``all`` is set; without either, single."""

    all: AllDisruptionMode | None = None


class UpstreamPodGroupSpec(Api):
    parent_composite_pod_group_name: str | None = None
    scheduling_policy: PodGroupPolicy | None = None
    scheduling_constraints: PodGroupConstraints | None = None
    priority: Int64 | None = None
    preemption_policy: str | None = None
    disruption_mode: DisruptionMode | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] | None = None


class UpstreamPodGroup(Api):
    """A PodGroup of Kubernetes itself: KEP-4671, KEP-5732."""

    metadata: ObjectMeta = ObjectMeta()
    spec: UpstreamPodGroupSpec = UpstreamPodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


# ---- as the scheduler has them ---------------------------------------------------------------


class GroupKey(NamedTuple):
    """The identity of a group; printed as ``namespace/name``."""

    api_group: str
    namespace: str
    name: str
    #: Whether it is a CompositePodGroup; a PodGroup may have the same name.
    is_composite: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TopologySlice(NamedTuple):
    """Members that share the value of a node label, ``size`` at a time."""

    key: str
    size: int


class PodGroup(Struct, frozen=True):
    """A group of pods that are placed together."""

    key: GroupKey
    #: The kind of its object: "scheduling.x-k8s.io/v1alpha1 PodGroup".
    kind: str
    metadata: ObjectMeta
    #: The minimum number of members that run, or no member runs; 1 by default.
    min_member: int
    #: The amounts that must be free on all nodes together.
    min_resources: Quantities | None
    schedule_timeout_seconds: int | None
    #: Node label whose value is equal for the nodes of all members; "" for none.
    required_topology: str
    #: Preferred labels of the same kind: the first one that is possible is honoured.
    preferred_topologies: tuple[str, ...]
    #: The priority of the group; None: the priority of its members.
    priority: int | None
    #: The preemption policy of the group; None: it has none.
    preemption_policy: str | None
    #: Whether an eviction of one member evicts all members.
    leaves_whole: bool
    status: PodGroupStatus
    #: Parts of the group that stay together, the outermost first.
    slices: tuple[TopologySlice, ...] = ()
    #: Whether slices spread evenly across domains. If not, they go to as few domains as possible.
    is_balanced: bool = False
    #: Node label whose domains the group has alone; "" for none.
    exclusive_topology: str = ""
    #: What is wrong with an annotation about the topology; "": nothing.
    topology_problem: str = ""
    #: The name of the CompositePodGroup that the group is a part of; "" for none.
    parent: str = ""
    #: The claims that members share: gate DRAWorkloadResourceClaims.
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()

    @property
    def is_upstream(self) -> bool:
        """Whether the kind is Kubernetes' own; its status has conditions only."""
        return self.key.api_group == UPSTREAM_GROUP

    def asks_the_same(self, other: "PodGroup") -> bool:
        """Whether two versions of an object are equal in all fields that placement reads."""
        return replace(other, kind=self.kind, metadata=self.metadata, status=self.status) == self

    def condition(self, name: str) -> Condition | None:
        return next((c for c in self.status.conditions or () if c.type == name), None)

    def has_condition(self, name: str) -> bool:
        """Whether the condition is True."""
        condition = self.condition(name)
        return condition is not None and condition.status == "True"


def _from_coscheduling(kind: str, content: CoschedulingPodGroup) -> PodGroup:
    return PodGroup(
        key=key_of(kind, content.metadata),
        kind=kind,
        metadata=content.metadata,
        min_member=max(1, content.spec.min_member or 1),
        min_resources=content.spec.min_resources,
        schedule_timeout_seconds=content.spec.schedule_timeout_seconds,
        required_topology=_annotation(content.metadata, REQUIRED_TOPOLOGY),
        preferred_topologies=_listed(_annotation(content.metadata, PREFERRED_TOPOLOGY)),
        priority=None,
        preemption_policy=None,
        leaves_whole=False,
        status=content.status,
        **_topology_of(content.metadata),
    )


def _from_upstream(kind: str, content: UpstreamPodGroup) -> PodGroup:
    policy = content.spec.scheduling_policy
    gang = None if policy is None else policy.gang
    constraints = content.spec.scheduling_constraints
    topology = () if constraints is None else constraints.topology or ()
    mode = content.spec.disruption_mode
    return PodGroup(
        key=key_of(kind, content.metadata),
        kind=kind,
        metadata=content.metadata,
        # The basic policy has no minimum.
        min_member=1 if gang is None else max(1, gang.min_count or 1),
        min_resources=None,
        schedule_timeout_seconds=None,
        required_topology=topology[0].key if topology else "",
        preferred_topologies=_listed(_annotation(content.metadata, PREFERRED_TOPOLOGY)),
        priority=content.spec.priority,
        preemption_policy=content.spec.preemption_policy,
        leaves_whole=mode is not None and mode.all is not None,
        status=content.status,
        parent=content.spec.parent_composite_pod_group_name or "",
        resource_claims=content.spec.resource_claims or (),
        **_topology_of(content.metadata),
    )


def _annotation(metadata: ObjectMeta, name: str) -> str:
    return (metadata.annotations or {}).get(name, "")


def _listed(text: str) -> tuple[str, ...]:
    """The parts between commas."""
    return tuple(part for part in map(str.strip, text.split(",")) if part)


class _Topology(TypedDict):
    slices: tuple[TopologySlice, ...]
    is_balanced: bool
    exclusive_topology: str
    topology_problem: str


def _topology_of(metadata: ObjectMeta) -> _Topology:
    """The slices of a group and how they are placed, from its annotations."""
    strategy = _annotation(metadata, TOPOLOGY_STRATEGY)
    slices, problem = _slices(_annotation(metadata, TOPOLOGY_SLICES))
    if strategy and strategy not in _STRATEGIES:
        problem = f"annotation {TOPOLOGY_STRATEGY}: found {strategy!r}, wanted packed or balanced"
    return _Topology(
        slices=slices,
        is_balanced=strategy == BALANCED,
        exclusive_topology=_annotation(metadata, EXCLUSIVE_TOPOLOGY),
        topology_problem=problem,
    )


def _slices(text: str) -> tuple[tuple[TopologySlice, ...], str]:
    """The slices that an annotation names, and what is wrong with it."""
    slices: list[TopologySlice] = []
    for part in _listed(text):
        key, _, size = (word.strip() for word in part.partition("="))
        if not key or not size.isascii() or not size.isdigit() or not 0 < int(size[:10]) < 2**31:
            wanted = "a node label, = and a number of members, such as example.com/rack=16"
            return (), f"annotation {TOPOLOGY_SLICES}: found {part!r}, wanted {wanted}"
        slices.append(TopologySlice(key, int(size)))
    for outer, inner in pairwise(slices):
        if outer.size % inner.size:
            problem = f"{outer.size} is no multiple of {inner.size}, the size of the next slices"
            return (), f"annotation {TOPOLOGY_SLICES}: {problem}"
    return tuple(slices), ""


def key_of(kind: str, metadata: ObjectMeta) -> GroupKey:
    """The key of a group's object."""
    return GroupKey(api_group_of(kind), metadata.namespace or "default", metadata.name)


def api_group_of(kind: str) -> str:
    """ "scheduling.x-k8s.io/v1alpha1 PodGroup" → "scheduling.x-k8s.io"."""
    return kind.partition("/")[0]


# ---- the table -------------------------------------------------------------------------------


class PodGroupKind(Struct, frozen=True):
    """One kind of group objects, and how pods name a group of this kind."""

    kind: str
    decoded_as: type[Api]
    compile: Callable[[str, Any], PodGroup]
    #: The label of a pod that names its group; "": spec.schedulingGroup.podGroupName names it.
    label: str = ""


#: The versions of Kubernetes' own PodGroup.
UPSTREAM_KINDS: Final = tuple(
    f"{UPSTREAM_GROUP}/{version} PodGroup" for version in ("v1alpha2", "v1alpha3", "v1beta1", "v1")
)


@final
class PodGroupKinds:
    """The kinds that one scheduler reads; the versions of an API group oldest first."""

    def __init__(self, rows: Iterable[PodGroupKind]) -> None:
        """If several rows have the same kind, the last row counts."""
        self.by_kind: Final[Mapping[str, PodGroupKind]] = {row.kind: row for row in rows}
        #: (API group, label) of kinds whose members have a label, in the order of the look-up.
        self.labels: Final = tuple(
            dict.fromkeys((api_group_of(r.kind), r.label) for r in self.by_kind.values() if r.label)
        )

    def __contains__(self, kind: str) -> bool:
        return kind in self.by_kind

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_kind)

    def with_kinds(self, rows: Iterable[PodGroupKind]) -> "PodGroupKinds":
        """These kinds and more. A row with the kind of an existing row replaces that row."""
        more = tuple(rows)
        return PodGroupKinds((*self.by_kind.values(), *more)) if more else self

    def membership(
        self, namespace: str, labels: Mapping[str, str] | None, pod_group_name: str | None
    ) -> GroupKey | None:
        """The group that a pod names, in the pod's namespace; the object need not exist.

        ``pod_group_name``: spec.schedulingGroup.podGroupName, which overrides labels.
        """
        if pod_group_name:
            return GroupKey(UPSTREAM_GROUP, namespace, pod_group_name)
        if labels:
            for api_group, label in self.labels:
                name = labels.get(label)
                if name:
                    return GroupKey(api_group, namespace, name)
        return None


def labelled_kind(kind: str, label: str) -> PodGroupKind:
    """A kind with the fields of the Coscheduling plugin's PodGroup and a label on its members."""
    return PodGroupKind(kind, CoschedulingPodGroup, _from_coscheduling, label)


#: The kinds that every scheduler reads.
BUILT_IN_KINDS: Final = PodGroupKinds(
    (
        *(PodGroupKind(kind, UpstreamPodGroup, _from_upstream) for kind in UPSTREAM_KINDS),
        labelled_kind(f"{COSCHEDULING_GROUP}/v1alpha1 PodGroup", COSCHEDULING_LABEL),
        labelled_kind(f"{MING_GROUP}/v1 PodGroup", MING_LABEL),
    )
)
KINDS: Final = BUILT_IN_KINDS.by_kind
