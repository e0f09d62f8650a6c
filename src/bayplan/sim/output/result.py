"""SimulationResult: the answer of `bayplan simulate`, and the summary that a reader sees of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, final

from msgspec import field
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import NONE, counted, pod_count, share_text, short_text
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.names import natural_key
from bayplan.answers.pod_tables import GROUPS_MAX, messages_table
from bayplan.answers.table import BLANK, Table, name_columns, number_columns
from bayplan.answers.times import span
from bayplan.journal import BUG_PREFIX
from bayplan.sim.output.pod_counts import Counts as Counts
from bayplan.sim.output.pod_counts import PodResult as PodResult
from bayplan.sim.output.pod_counts import gone_text

# ---- result ---------------------------------------------------------------------------------


class PodGroupResult(Value, frozen=True, kw_only=True):
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


class SignatureResult(Value, frozen=True, kw_only=True):
    """Pods with one signature, and how many results were cached for them."""

    profile: str
    #: One of them, "namespace/name".
    example: str
    pods: int
    cycles: int
    #: Results of plugins for single nodes: evaluated, and taken from the cache.
    rows_evaluated: int
    rows_cached: int


class FailureResult(Value, frozen=True, kw_only=True):
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


class LostPods(Value, frozen=True, kw_only=True):
    """Pods of one workload that went before their end and were not replaced."""

    #: Kind, namespace and name, as in "Deployment default/web"; "": pods without a controller.
    workload: str
    #: Cause (preempted, evicted, deleted, failed, lost with a node) → number of pods.
    causes: dict[str, int]

    @property
    def count(self) -> int:
        return sum(self.causes.values())


class Usage(Value, frozen=True, kw_only=True):
    """One resource over all nodes: cpu in millicores, others in whole units."""

    resource: str
    #: At the end.
    requested: int
    allocatable: int
    #: The most that was requested at any time, and what the nodes offered at that time.
    peak: int
    peak_allocatable: int


class NodeUsage(Value, frozen=True, kw_only=True):
    """One node at the end; amounts as in `Usage`."""

    #: Pods on it that have not ended.
    pods: int
    requested: dict[str, int]
    allocatable: dict[str, int]


@final
class SimulationResult(Answer, frozen=True, kw_only=True):
    """The result of a run. What it says about pods is what the run ended with."""

    kind: Literal["Simulation"] = "Simulation"
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
    pod_groups: dict[str, PodGroupResult] = field(default_factory=dict[str, PodGroupResult])
    #: The signatures of pods, those with the most cycles first.
    signatures: tuple[SignatureResult, ...] = ()
    #: Kinds of the input that nothing reads, and how many objects of them there are.
    ignored_kinds: dict[str, int] = field(default_factory=dict[str, int])
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

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """The summary. ``is_wide``: with kube-scheduler's whole sentences, and all nodes."""
        parts: list[RenderableType] = [Text(line) for line in _what(self)]
        parts += [Text(line, style="bold") for line in failure_lines(self.failures)]
        if self.node_usage:
            parts += [BLANK, *_nodes(self, len(self.node_usage) if is_wide else NODES_MAX)]
        if any(one.peak for one in self.usage):
            parts += [BLANK, *_how_full(self.usage)]
        if self.unschedulable:
            table = messages_table("pods", "why they wait", self.unschedulable, is_wide=is_wide)
            parts += [BLANK, table]
        parts.append(BLANK)
        parts += [Text(note) for note in self.notes]
        parts += [Text(line) for line in _how_fast(self)]
        return parts

    def rows(self) -> Rows:
        """Every pod at the end: those that waited first."""
        headings = ("pod", "node", "end", "created_at", "bound_at", "deleted_at", "attempts")
        headings = (*headings, "message")
        pods = sorted(self.pods.items(), key=lambda item: item[0] not in self.unschedulable)
        return Rows(
            headings,
            (
                (
                    name,
                    pod.node or "",
                    str(pod.end),
                    pod.created_at,
                    pod.bound_at,
                    pod.deleted_at,
                    pod.attempts,
                    pod.message or "",
                )
                for name, pod in pods
            ),
        )


# ---- the summary ----------------------------------------------------------------------------

#: The most nodes with a row of their own, and the most resources with a column.
NODES_MAX = 10
RESOURCES_MAX = 4
_FIRST_RESOURCES = ("cpu", "memory")


def _what(result: SimulationResult) -> Iterator[str]:
    counts = result.counts
    yield _headline(counts, result.nodes)
    if counts.unschedulable:
        yield f"{pod_count(counts.unschedulable)} still waiting"
    if counts.running:
        yield f"{pod_count(counts.running)} had a node already"
    if counts.missing_nodes:
        yield f"{pod_count(counts.missing_nodes)} on nodes that do not exist"
    if counts.other_schedulers:
        yield f"{pod_count(counts.other_schedulers)} without a node left to other schedulers"
    if counts.completed:
        yield f"{pod_count(counts.completed)} left out, completed or failed"
    if counts.gone:
        yield gone_text(counts)
    yield from _lost(result)


def _lost(result: SimulationResult) -> Iterator[str]:
    """Lines about lost pods: those that a cluster would create again, and the others."""
    workloads = [one for one in result.lost if one.workload]
    if workloads:
        count = result.counts.not_recreated
        yield (
            f"{pod_count(count)} not made again, as a cluster's controllers would: "
            f"{_causes(workloads)}"
        )
        ordered = sorted(workloads, key=lambda one: (-one.count, natural_key(one.workload)))
        listed = [f"{one.workload} {one.count:,}" for one in ordered[:GROUPS_MAX]]
        further = len(ordered) - len(listed)
        yield f"  of {', '.join(listed)}" + (f" and {further:,} more" if further else "")
    bare = [one for one in result.lost if not one.workload]
    if bare:
        count = bare[0].count
        verb = "is" if count == 1 else "are"
        yield f"{pod_count(count)} without a controller {verb} gone: {_causes(bare)}"


def _causes(lost: Iterable[LostPods]) -> str:
    total: Counter[str] = Counter()
    for one in lost:
        total.update(one.causes)
    return ", ".join(f"{count:,} {cause}" for cause, count in sorted(total.items()))


def _headline(counts: Counts, node_count: int) -> str:
    nodes = counted(node_count, "node")
    ours = counts.scheduled + counts.unschedulable
    if not ours:
        return (
            f"no pod of this run is left on {nodes}"
            if counts.gone
            else (f"no pod to be placed on {nodes}")
        )
    return f"{counts.scheduled:,} of {pod_count(ours)} placed on {nodes}"


def failure_lines(failures: Sequence[FailureResult]) -> Iterator[str]:
    """The failures by error, one line per kind of failure."""
    for one in failures[:GROUPS_MAX]:
        whose = f" of plugin {one.plugin}" if one.plugin else ""
        times = f"{counted(one.count, 'failure')}{whose}"
        first = "at" if one.count == 1 else "first at"
        yield f"{times}, {first} {one.example}: {one.message}"
    further = failures[GROUPS_MAX:]
    if further:
        count = counted(sum(one.count for one in further), "failure")
        yield f"{count} of {counted(len(further), 'further kind')}"


# ---- where pods went -----------------------------------------------------------------------


def _nodes(result: SimulationResult, nodes_max: int) -> Iterator[RenderableType]:
    """The nodes that most pods went to, and how full they are."""
    counts = Counter(result.placements.values())
    nodes = result.node_usage
    ordered = sorted(nodes, key=lambda name: (-counts[name], -nodes[name].pods, natural_key(name)))
    resources = _shown_resources(nodes.values())
    table = Table(*name_columns("node"), *number_columns("placed", "pods", *resources))
    for name in ordered[:nodes_max]:
        node = nodes[name]
        shares = (_share(node, resource) for resource in resources)
        table.add_row(name, f"{counts[name]:,}", f"{node.pods:,}", *shares)
    yield table
    further = ordered[nodes_max:]
    if further:
        placed = sum(counts[name] for name in further)
        empty = sum(not nodes[name].pods for name in further)
        yield Text(
            f"and {counted(len(further), 'more node')} with {counted(placed, 'placed pod')}"
            + (f"; {empty:,} of them empty" if empty else "")
        )


def _shown_resources(nodes: Iterable[NodeUsage]) -> list[str]:
    """The resources that pods request: cpu and memory first."""
    requested: Counter[str] = Counter()
    for node in nodes:
        requested.update(node.requested)
    resources = [resource for resource, amount in requested.items() if amount]
    return sorted(resources, key=lambda one: (one not in _FIRST_RESOURCES, one))[:RESOURCES_MAX]


def _share(node: NodeUsage, resource: str) -> str:
    return share_text(node.requested.get(resource, 0), node.allocatable.get(resource, 0))


# ---- how full ------------------------------------------------------------------------------


def _how_full(usage: Iterable[Usage]) -> Iterator[RenderableType]:
    """The usage at the end and, if pods went during the run, at the peak."""
    used = [one for one in usage if one.peak]
    has_peaks = any(one.peak > one.requested for one in used)
    peaks = ("peak", "") if has_peaks else ()
    table = Table("resource", *number_columns("requested", "", *peaks, "allocatable"))
    for one in used:
        counts = [(one.requested, one.allocatable)]
        counts += [(one.peak, one.peak_allocatable)] if has_peaks else []
        cells = [
            text
            for count, allocatable in counts
            for text in (short_text(one.resource, count), _percentage(count, allocatable))
        ]
        table.add_row(one.resource, *cells, short_text(one.resource, one.allocatable))
    yield table


def _percentage(count: int, allocatable: int) -> str:
    """More than 100 % is possible: pods may come with a node that is too small for them."""
    return f"{count / allocatable:.1%}" if allocatable else NONE


# ---- how fast ------------------------------------------------------------------------------


def _how_fast(result: SimulationResult) -> Iterator[str]:
    rate = result.attempts / result.wall_seconds if result.wall_seconds else 0.0
    yield (
        f"{span(result.simulated_seconds)} simulated in {result.wall_seconds:,.2f} s: "
        f"{counted(result.attempts, 'decision')}, {rate:,.0f} per second"
    )
    yield f"seed {result.seed}, digest {result.digest[:12]}"
