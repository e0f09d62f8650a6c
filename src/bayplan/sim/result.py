"""What a simulation found, as plain data: the object that `--format json` prints."""

from typing import final

from msgspec import Struct, field

from bayplan.journal import BUG_PREFIX


class PodResult(Struct, frozen=True, kw_only=True):
    """One pod's fate. Times are seconds of virtual time; None: it did not happen."""

    node: str | None = None
    created_at: float | None = None
    bound_at: float | None = None
    deleted_at: float | None = None
    #: The workload it belongs to, "Kind/name" in its own namespace; None: it has no controller.
    controller: str | None = None
    attempts: int = 0
    nominated_node: str | None = None
    #: Of the last PodScheduled condition, or what holds it back at PreEnqueue.
    message: str | None = None


class PodGroupResult(Struct, frozen=True, kw_only=True):
    """How one group of pods stood at the end."""

    phase: str
    min_member: int
    #: Members that have, or had, a node; that run; that ended.
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    occupied_by: str | None = None
    schedule_start_time: str | None = None
    #: Why its members wait; None: they do not.
    message: str | None = None


class PodKindResult(Struct, frozen=True, kw_only=True):
    """Pods that no plugin tells apart by what it signs, and what reuse of answers spared them."""

    profile: str
    #: One of them, "namespace/name".
    example: str
    pods: int
    cycles: int
    #: Nodes that plugins were asked about, and nodes that they were not, for that was known.
    rows_asked: int
    rows_kept: int


class FailureResult(Struct, frozen=True, kw_only=True):
    """What failed by an error in one way: not a rejection, but an exception or a code Error."""

    #: "" where no plugin is to blame.
    plugin: str
    #: How often.
    count: int
    #: Where it happened first: "namespace/name" of a pod, as a rule.
    example: str
    #: What was said there.
    message: str

    @property
    def is_defect(self) -> bool:
        """Whether a plugin or Bayplan is at fault, and not something outside, as an extender that
        does not answer: that is a state of the world which a simulation may be about."""
        return bool(self.plugin) or self.message.startswith(BUG_PREFIX)


class Counts(Struct, frozen=True, kw_only=True):
    """How many pods there were of which sort."""

    #: All that took part: running ones, ours, other schedulers'.
    pods: int = 0
    #: Came with a node.
    running: int = 0
    #: Bound by this run, also those that ended since.
    scheduled: int = 0
    #: Ours, pending at the end.
    unschedulable: int = 0
    #: Completed and failed ones in the input, which take no part.
    left_out: int = 0
    #: Pending ones whose schedulerName is no profile's.
    other_schedulers: int = 0
    #: Lost ones that a cluster's controllers would make again, and that nobody makes again here.
    not_recreated: int = field(default=0, name="notRecreated")


class LostPods(Struct, frozen=True, kw_only=True):
    """Pods of one workload that went before their end and did not come again."""

    #: Kind, namespace and name, as in "Deployment default/web"; "": pods without a controller.
    workload: str
    #: How many went by which cause: preempted, evicted, deleted, failed, lost with a node.
    causes: dict[str, int]

    @property
    def count(self) -> int:
        return sum(self.causes.values())


class Usage(Struct, frozen=True, kw_only=True):
    """One resource over all nodes at the end: cpu in millicores, others in whole units."""

    resource: str
    requested: int
    #: The most that was requested at any time.
    peak: int
    allocatable: int


class NodeUsage(Struct, frozen=True, kw_only=True):
    """One node at the end; amounts as in `Usage`."""

    #: Pods on it that have not ended.
    pods: int
    requested: dict[str, int]
    allocatable: dict[str, int]


@final
class SimulationResult(Struct, frozen=True, kw_only=True):
    """Everything a run is asked for afterwards."""

    nodes: int
    counts: Counts
    #: "namespace/name" → node, of pods bound by this run.
    placements: dict[str, str]
    #: "namespace/name" → message, of pods pending at the end.
    unschedulable: dict[str, str]
    pods: dict[str, PodResult]
    seed: int
    digest: str
    simulated_seconds: float
    wall_seconds: float
    attempts: int
    usage: tuple[Usage, ...] = ()
    #: By name, of the nodes that are there at the end.
    node_usage: dict[str, NodeUsage] = field(default_factory=dict[str, NodeUsage])
    #: "namespace/name" → how a group of pods stood.
    podgroups: dict[str, PodGroupResult] = field(default_factory=dict[str, PodGroupResult])
    #: Kinds of pods, those with the most cycles first.
    pod_kinds: tuple[PodKindResult, ...] = ()
    #: Kinds of the input that nothing reads, and how many objects of them there are.
    passed_over: dict[str, int] = field(default_factory=dict[str, int])
    #: What failed by an error, in the order of the first failures. Empty: nothing did.
    failures: tuple[FailureResult, ...] = ()
    #: Pods that went before their end and did not come again, by workload.
    lost: tuple[LostPods, ...] = ()
    #: What was left out or made up, for the reader.
    notes: tuple[str, ...] = field(default=())
