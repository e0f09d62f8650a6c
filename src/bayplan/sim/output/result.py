"""What a simulation found, as plain data: the object that `--format json` prints.

What became of the groups of pods in a simulation.

What reuse of answers came to, kind of pods by kind of pods.

What fails by an error in a run: attempts, bindings, and calls of plugins that decide nothing.

A pod that fits nowhere is an answer. An exception, or the code Error, is a failure: what the run
says about the pod then says nothing about the cluster. Failures are read from the journal's
records, so whatever the engine records is counted, whoever caused it.
"""

from collections import Counter
from typing import final

from msgspec import Struct, field

from bayplan.engine.podgroups.status import phase_of, scheduled_count
from bayplan.engine.reuse.entry import SignatureEntry
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import Code
from bayplan.journal import (
    BUG_PREFIX,
    AttemptRecord,
    BindingRecord,
    GateRecord,
    GroupRecord,
    NoteRecord,
    Record,
    subject_of,
)
from bayplan.state.pod_groups import GroupState

# ---- result ---------------------------------------------------------------------------------


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
    rows_evaluated: int = field(name="rows_asked")
    rows_cached: int = field(name="rows_kept")


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


# ---- group results --------------------------------------------------------------------------


def group_results(scheduler: Scheduler) -> dict[str, PodGroupResult]:
    """Of all groups that have an object, by "namespace/name"; one whose name another kind's group
    has, too, is told with its API group: "namespace/name (scheduling.ming.io)"."""
    states = sorted(scheduler.pod_groups.all(), key=lambda state: (str(state.key), state.key))
    results: dict[str, PodGroupResult] = {}
    for state in states:
        name = str(state.key)
        if state.group is not None:
            is_taken = name in results
            results[f"{name} ({state.key.api_group})" if is_taken else name] = _result(state)
    return results


def reasons_to_wait(scheduler: Scheduler) -> dict[str, str]:
    """Why members wait that no attempt was made at, by uid: nobody writes that to the pods."""
    return {
        pod.metadata.uid or "": state.message
        for state in scheduler.pod_groups.all()
        for pod in state.pending()
        if state.message
    }


def _result(state: GroupState) -> PodGroupResult:
    status = None if state.group is None else state.group.status
    return PodGroupResult(
        phase=phase_of(state),
        min_member=state.min_member,
        scheduled=scheduled_count(state),
        running=state.running_count,
        succeeded=state.succeeded_count,
        failed=state.failed_count,
        occupied_by=None if status is None else status.occupied_by,
        schedule_start_time=None if status is None else status.schedule_start_time,
        message=state.message or None,
    )


# ---- pod kinds ------------------------------------------------------------------------------


def pod_kinds(scheduler: Scheduler) -> tuple[PodKindResult, ...]:
    """Of all profiles, those with the most cycles first; kinds that left a full table are not
    told."""
    kinds = [
        _kind_result(profile, entry)
        for profile in scheduler.profile_names
        for entry in scheduler.reuse(profile).kinds()
    ]
    return tuple(sorted(kinds, key=lambda kind: (-kind.cycles, kind.profile, kind.example)))


def _kind_result(profile: str, entry: SignatureEntry) -> PodKindResult:
    entry.count_rows()
    return PodKindResult(
        profile=profile,
        example=entry.example,
        pods=entry.pod_count,
        cycles=entry.cycle_count,
        rows_evaluated=sum(counts.asked for counts in entry.counts.values()),
        rows_cached=sum(counts.kept for counts in entry.counts.values()),
    )


# ---- attempts and failures ------------------------------------------------------------------


@final
class AttemptCounter:
    """A journal sink: the number of attempts at each pod, by uid."""

    def __init__(self) -> None:
        self.by_uid: Counter[str] = Counter()

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord):
            self.by_uid[record.uid] += 1


#: So many ways to fail are told apart; a further one counts as an earlier one of its plugin.
_WAYS_MAX = 20
_ERROR = "error"
_CODE_ERROR = str(Code.ERROR)


class _Way:
    """One way to fail."""

    __slots__ = ("count", "example", "message", "plugin")

    def __init__(self, plugin: str, example: str, message: str) -> None:
        self.plugin = plugin
        self.example = example
        self.message = message
        self.count = 0


@final
class Failures:
    """A journal sink."""

    def __init__(self) -> None:
        self._ways: dict[tuple[str, str], _Way] = {}

    def write(self, record: Record) -> None:
        failure = _failure(record)
        if failure is not None:
            plugin, message = failure
            self._way(plugin, subject_of(record), message).count += 1

    def _way(self, plugin: str, subject: str, message: str) -> _Way:
        own_name = subject.partition("/")[2] or subject
        key = plugin, message.replace(subject, "").replace(own_name, "")
        if key not in self._ways and len(self._ways) >= _WAYS_MAX:
            key = next(
                (other_key for other_key in self._ways if other_key[0] == plugin), (plugin, "")
            )
        return self._ways.setdefault(key, _Way(plugin, subject, message))

    def results(self) -> tuple[FailureResult, ...]:
        """In the order of the first failures."""
        return tuple(
            FailureResult(
                plugin=way.plugin, count=way.count, example=way.example, message=way.message
            )
            for way in self._ways.values()
        )


def _failure(record: Record) -> tuple[str, str] | None:
    """Plugin and message of a record that tells of a failure."""
    if isinstance(record, AttemptRecord):
        return (record.plugin, record.message) if record.result == _ERROR else None
    if isinstance(record, BindingRecord | GateRecord):
        return (record.plugin, record.message) if record.code == _CODE_ERROR else None
    if isinstance(record, NoteRecord):
        return (record.plugin, record.text) if record.plugin else None
    assert isinstance(record, GroupRecord)
    return None
