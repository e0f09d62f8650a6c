"""What became of each pod of a run, and the numbers of pods: the one place that counts them.

A pod is counted by its state at the end of the run. It is there, on a node that is there; it waits;
or it is gone, for one cause. Every surface (the summary, `why` about a workload, the page, the
metrics of a comparison) reads `Counts`. The counts of a part of the pods are those of the same
function: `counts_of`.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from msgspec import field

from bayplan.answers.amounts import pod_count
from bayplan.answers.document import Value


class PodEnd(StrEnum):
    """The state of a pod at the end of a run."""

    # Pods that are there.
    PLACED = "placed"
    #: Its spec names a node that does not exist.
    MISSING_NODE = "on a missing node"
    WAITING = "waiting"
    #: It waits, and no profile has its scheduler's name.
    OTHER_SCHEDULER = "left to another scheduler"
    # Pods that are gone.
    #: It succeeded, or its running time has passed.
    ENDED = "ended"
    FAILED = "failed"
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    LOST_WITH_NODE = "lost with a node"
    SCALED_DOWN = "scaled down"
    DELETED = "deleted"

    @property
    def is_there(self) -> bool:
        return self in _THERE


_THERE = frozenset(
    (PodEnd.PLACED, PodEnd.MISSING_NODE, PodEnd.WAITING, PodEnd.OTHER_SCHEDULER),
)


class PodResult(Value, frozen=True, kw_only=True):
    """The history of one pod. Times are seconds of virtual time; None: it did not happen."""

    #: Its node; of a pod that is gone, its last one.
    node: str | None = None
    created_at: float | None = None
    bound_at: float | None = None
    deleted_at: float | None = None
    #: The workload it belongs to, "Kind/name" in its own namespace; None: it has no controller.
    controller: str | None = None
    attempts: int = 0
    nominated_node: str | None = None
    #: The message of the last PodScheduled condition, or why PreEnqueue holds the pod back.
    message: str | None = None
    end: PodEnd = PodEnd.WAITING
    #: Whether a pod came in place of this pod, which is gone.
    replaced: bool = False


class PodState(Value, frozen=True, kw_only=True):
    """One pod of a workload at the end of a run."""

    pod: str
    #: Its node; "": it has none, or it is gone.
    node: str
    message: str
    end: PodEnd
    #: Whether another pod came in place of a pod that is gone.
    replaced: bool = False


def pod_state(name: str, pod: PodResult) -> PodState:
    """What a pod's history comes to at the end."""
    node = pod.node if pod.end is PodEnd.PLACED else None
    return PodState(
        pod=name,
        node=node or "",
        message=pod.message or "",
        end=pod.end,
        replaced=pod.replaced,
    )


class Counts(Value, frozen=True, kw_only=True):
    """The numbers of pods at the end of a run, or of a part of its pods."""

    #: All pods that took part, of any scheduler: those that are there, and those that are gone.
    pods: int = 0
    #: Pods that were created with a node, and are there on it.
    running: int = 0
    #: Pods that this run bound, and that are there on their nodes.
    scheduled: int = 0
    #: Pods of our profiles that are pending.
    unschedulable: int = 0
    #: Completed and failed pods of the input, which take no part.
    completed: int = 0
    #: Pending pods whose schedulerName is the name of no profile.
    other_schedulers: int = 0
    #: Lost pods that the controllers of a cluster would create again. Nothing does so here.
    not_recreated: int = 0
    #: Pods that are there and whose node is not.
    missing_nodes: int = 0
    #: Cause → pods that are gone.
    gone: dict[PodEnd, int] = field(default_factory=dict[PodEnd, int])
    #: Cause → pods that are gone and were replaced: by their controller, or under their name.
    replaced: dict[PodEnd, int] = field(default_factory=dict[PodEnd, int])

    @property
    def placed(self) -> int:
        """Pods that are there, on nodes that are there."""
        return self.running + self.scheduled

    @property
    def present(self) -> int:
        """Pods that are there."""
        return self.placed + self.missing_nodes + self.unschedulable + self.other_schedulers


def counts_of(pods: Iterable[PodResult], *, completed: int = 0, not_recreated: int = 0) -> Counts:
    """The counts of pods. ``completed``, ``not_recreated``: see `Counts`."""
    ends: Counter[PodEnd] = Counter()
    replaced: Counter[PodEnd] = Counter()
    scheduled = 0
    for pod in pods:
        ends[pod.end] += 1
        replaced[pod.end] += pod.replaced
        scheduled += pod.end is PodEnd.PLACED and pod.bound_at is not None
    return Counts(
        pods=ends.total(),
        running=ends[PodEnd.PLACED] - scheduled,
        scheduled=scheduled,
        unschedulable=ends[PodEnd.WAITING],
        completed=completed,
        other_schedulers=ends[PodEnd.OTHER_SCHEDULER],
        not_recreated=not_recreated,
        missing_nodes=ends[PodEnd.MISSING_NODE],
        gone={end: ends[end] for end in PodEnd if not end.is_there and ends[end]},
        replaced={end: replaced[end] for end in PodEnd if replaced[end]},
    )


def gone_text(counts: Counts) -> str:
    """ "4 pods gone: 2 ended, 2 preempted (replaced)"; "": no pod is gone."""
    if not counts.gone:
        return ""
    count = sum(counts.gone.values())
    causes = (
        f"{number:,} {end}{_replaced_text(number, counts.replaced.get(end, 0))}"
        for end, number in counts.gone.items()
    )
    return f"{pod_count(count)} gone: {', '.join(causes)}"


def _replaced_text(count: int, replaced_count: int) -> str:
    if not replaced_count:
        return ""
    return " (replaced)" if replaced_count == count else f" ({replaced_count:,} replaced)"
