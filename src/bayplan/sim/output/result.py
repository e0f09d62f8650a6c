"""The result of a simulation as plain data: the object that `--format json` prints.

A pod that fits nowhere is a result. An exception, or the code Error, is a failure: then the result
for the pod says nothing about the cluster. Failures are read from the records of the journal, so
each failure that the engine records is counted, whatever caused it.
"""

from collections import Counter
from collections.abc import Iterator
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
from bayplan.sim.output.pod_counts import Counts as Counts
from bayplan.sim.output.pod_counts import PodResult as PodResult
from bayplan.state.pod_groups import GroupState

# ---- result ---------------------------------------------------------------------------------


class PodGroupResult(Struct, frozen=True, kw_only=True):
    """The state of a pod group at the end."""

    phase: str
    min_member: int
    #: Members that have, or had, a node; that run; that ended.
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    occupied_by: str | None = None
    schedule_start_time: str | None = None
    #: Why the members wait; None: they do not wait.
    message: str | None = None


class PodKindResult(Struct, frozen=True, kw_only=True):
    """Pods with one signature, and how many results were cached for them."""

    profile: str
    #: One of them, "namespace/name".
    example: str
    pods: int
    cycles: int
    #: Results of plugins for single nodes: evaluated, and taken from the cache.
    rows_evaluated: int = field(name="rows_asked")
    rows_cached: int = field(name="rows_kept")


class FailureResult(Struct, frozen=True, kw_only=True):
    """One kind of failure: an exception or the code Error, not a rejection."""

    #: "": no plugin caused the failure.
    plugin: str
    #: How often.
    count: int
    #: Where it happened first: usually "namespace/name" of a pod.
    example: str
    #: The message of the first occurrence.
    message: str

    @property
    def is_defect(self) -> bool:
        """Whether a plugin or Bayplan is defective. An extender that does not answer is no defect:
        it is a state of the world that a simulation may be about."""
        return bool(self.plugin) or self.message.startswith(BUG_PREFIX)


class LostPods(Struct, frozen=True, kw_only=True):
    """Pods of one workload that went before their end and were not replaced."""

    #: Kind, namespace and name, as in "Deployment default/web"; "": pods without a controller.
    workload: str
    #: Cause (preempted, evicted, deleted, failed, lost with a node) → number of pods.
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
    """The result of a run. What it says about pods is what the run ended with."""

    nodes: int
    counts: Counts
    #: "namespace/name" → node, of pods that this run bound and that are there at the end, on nodes
    #: that are there.
    placements: dict[str, str]
    #: "namespace/name" → message, of pods pending at the end.
    unschedulable: dict[str, str]
    #: "namespace/name" → the newest pod of this name.
    pods: dict[str, PodResult]
    seed: int
    digest: str
    simulated_seconds: float
    wall_seconds: float
    attempts: int
    usage: tuple[Usage, ...] = ()
    #: Name → usage, for nodes that exist at the end.
    node_usage: dict[str, NodeUsage] = field(default_factory=dict[str, NodeUsage])
    #: "namespace/name" → the state of a pod group.
    podgroups: dict[str, PodGroupResult] = field(default_factory=dict[str, PodGroupResult])
    #: Kinds of pods, those with the most cycles first.
    pod_kinds: tuple[PodKindResult, ...] = ()
    #: Kinds of the input that nothing reads, and how many objects of them there are.
    passed_over: dict[str, int] = field(default_factory=dict[str, int])
    #: Failures by error, in the order of their first occurrence.
    failures: tuple[FailureResult, ...] = ()
    #: Pods that went before their end and were not replaced, by workload.
    lost: tuple[LostPods, ...] = ()
    #: Notes for the reader: ignored and added objects.
    notes: tuple[str, ...] = field(default=())
    #: "namespace/name" → the pods that had this name before, the oldest first.
    earlier_pods: dict[str, tuple[PodResult, ...]] = field(
        default_factory=dict[str, tuple[PodResult, ...]]
    )

    def all_pods(self) -> Iterator[tuple[str, PodResult]]:
        """Every pod that took part with its name; a name may occur more than once."""
        for name, pod in self.pods.items():
            yield from ((name, earlier) for earlier in self.earlier_pods.get(name, ()))
            yield name, pod

    def bound_pods(self) -> Iterator[tuple[str, PodResult]]:
        """The newest pod of each name that this run bound, also if it is gone."""
        return ((name, pod) for name, pod in self.pods.items() if pod.bound_at is not None)


# ---- group results --------------------------------------------------------------------------


def group_results(scheduler: Scheduler) -> dict[str, PodGroupResult]:
    """The groups with an object, by "namespace/name". If groups of two kinds share a name, the
    second has its API group behind the name: "namespace/name (scheduling.ming.io)"."""
    states = sorted(scheduler.pod_groups.all(), key=lambda state: (str(state.key), state.key))
    results: dict[str, PodGroupResult] = {}
    for state in states:
        name = str(state.key)
        if state.group is not None:
            is_taken = name in results
            results[f"{name} ({state.key.api_group})" if is_taken else name] = _result(state)
    return results


def reasons_to_wait(scheduler: Scheduler) -> dict[str, str]:
    """By uid: why members wait without an attempt. No condition of the pods says so."""
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
    """The signatures of all profiles, those with the most cycles first; evicted entries are
    missing."""
    kinds = [
        _kind_result(profile, entry)
        for profile in scheduler.profile_names
        for entry in scheduler.reuse(profile).entries()
    ]
    return tuple(sorted(kinds, key=lambda kind: (-kind.cycles, kind.profile, kind.example)))


def _kind_result(profile: str, entry: SignatureEntry) -> PodKindResult:
    row_counts = entry.row_counts().values()
    return PodKindResult(
        profile=profile,
        example=entry.example,
        pods=entry.pod_count,
        cycles=entry.cycle_count,
        rows_evaluated=sum(counts.evaluated for counts in row_counts),
        rows_cached=sum(counts.cached for counts in row_counts),
    )


# ---- attempts and failures ------------------------------------------------------------------


@final
class AttemptCounter:
    """A journal sink: the number of attempts at each pod, by uid."""

    def __init__(self) -> None:
        self.by_uid: Counter[str] = Counter()

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord):
            # A missing count of a Counter costs a call.
            self.by_uid[record.uid] = self.by_uid.get(record.uid, 0) + 1


#: The most kinds of failures. A further kind counts as an earlier kind of its plugin.
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
    """A journal sink: the failures by kind."""

    def __init__(self) -> None:
        self._ways: dict[tuple[str, str], _Way] = {}

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord) and record.result != _ERROR:
            return
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
        """The failures in the order of their first occurrence."""
        return tuple(
            FailureResult(
                plugin=way.plugin, count=way.count, example=way.example, message=way.message
            )
            for way in self._ways.values()
        )


def _failure(record: Record) -> tuple[str, str] | None:
    """Plugin and message of a record of a failure; None: the record is no failure."""
    if isinstance(record, AttemptRecord):
        return (record.plugin, record.message) if record.result == _ERROR else None
    if isinstance(record, BindingRecord | GateRecord):
        return (record.plugin, record.message) if record.code == _CODE_ERROR else None
    if isinstance(record, NoteRecord):
        return (record.plugin, record.text) if record.plugin else None
    assert isinstance(record, GroupRecord)
    return None
