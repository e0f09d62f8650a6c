"""Answers for which the engine is asked: what-if, the explanation of a pod, what a node rejected.

The page asks again while ``phase`` is computing. A page of a list has at most `PAGE_MAX` entries.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from bayplan.api.objects import POD, Pod
from bayplan.api.pod_requests import CPU, MEMORY
from bayplan.explain.diagnosis import diagnose
from bayplan.explain.explainer import NoSuchPodError, explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.history.timeline import State, Timeline, numbers
from bayplan.model.past import Rejection
from bayplan.problems import BadInputError
from bayplan.sim.input.controller_kinds import SCALED_KINDS
from bayplan.sim.input.what_if import WhatIf
from bayplan.ui.answers import Answer, Usage
from bayplan.ui.computations import ComputationState, Deadline
from bayplan.ui.pages import Part
from bayplan.ui.subjects import Subject
from bayplan.whatif.comparison import (
    HEADROOM_LIMIT,
    ClusterState,
    WhatIfAnswer,
    described,
    what_if,
)
from bayplan.whatif.copies import workload_of

_EXAMPLES_MAX = 5
#: Rows of a table that has no pages.
_ROWS_MAX = 100
#: Waiting pods that are tried to learn what a node rejects, each of another workload.
_TRIED_MAX = 30


# ---- the answers ----------------------------------------------------------------------------


class Move(Answer):
    """A pod that gets a node. ``source``: the node that it leaves; "": it had none."""

    pod: str
    source: str
    target: str
    #: Whether it waited before the changes.
    waited: bool


class PodsOfReason(Answer):
    """Pods with one reason."""

    reason: str
    pods: int
    examples: tuple[str, ...]
    #: Of the pods: those that waited before the changes, too.
    waited_before: int = 0
    #: Budgets that do not let the pods go, as namespace/name.
    budgets: tuple[str, ...] = ()


class ClusterNumbers(Answer):
    nodes: int
    cordoned: int
    pods: int
    waiting: int
    usage: tuple[Usage, ...]
    #: Workload → how many more of its pods fit, at most `headroomLimit`.
    headroom: dict[str, int]


class WhatIfPage(Answer):
    """What would happen if something changed at a moment; the moves are paged."""

    #: computing, ready, failed
    phase: str
    problem: str = ""
    #: The changes in a line.
    text: str = ""
    before: ClusterNumbers | None = None
    after: ClusterNumbers | None = None
    headroom_limit: int = 0
    total: int = 0
    offset: int = 0
    moves: tuple[Move, ...] = ()
    #: Pods without a node after the changes, by the scheduler's message.
    left_over: tuple[PodsOfReason, ...] = ()
    #: Pods that a drain cannot evict.
    blocked: tuple[PodsOfReason, ...] = ()
    #: Pods that go and are not created again.
    gone: tuple[PodsOfReason, ...] = ()
    notes: tuple[str, ...] = ()


class WorkloadRow(Answer):
    """A workload with a number of replicas."""

    kind: str
    #: namespace/name
    name: str
    pods: int


class WorkloadPage(Answer):
    #: computing, ready, failed
    phase: str
    problem: str = ""
    total: int = 0
    rows: tuple[WorkloadRow, ...] = ()


class ExplanationAnswer(Answer):
    """The answer of `bayplan why` about a pod at a moment."""

    #: computing, ready, failed
    phase: str
    problem: str = ""
    explanation: Explanation | None = None


class NodeRejection(Answer):
    """One reason for which a node was rejected."""

    plugin: str
    reason: str
    code: str
    #: Attempts, and pods of them.
    attempts: int
    pods: int
    #: The newest of the attempts; of a cluster without a run, an example.
    pod: str
    attempt: int = 0
    change: int = 0
    seconds: float = 0.0


class NodeRejections(Answer):
    """What a node rejected up to a moment, the newest first."""

    #: computing, ready, failed
    phase: str
    problem: str = ""
    #: All attempts up to the moment, and those that rejected the node.
    attempts: int = 0
    rejecting: int = 0
    #: At most 100.
    rows: tuple[NodeRejection, ...] = ()
    #: Whether they are pods that wait now, and not attempts of a run.
    is_now: bool = False


MODEL_TYPES = (WhatIfPage, WorkloadPage, ExplanationAnswer, NodeRejections)


# ---- what-if --------------------------------------------------------------------------------


def computed_what_if(
    subject: Subject, change: int, changes: WhatIf, *, force: bool
) -> ComputationState:
    def compute(deadline: Deadline) -> WhatIfAnswer:
        model, read, kinds = subject.model(change, deadline.check)
        return what_if(model, changes, read, kinds, force=force, on_step=deadline.check)

    return subject.computations.ask(("what-if", change, repr(changes), force), compute)


def what_if_page(computed: ComputationState, offset: int, limit: int) -> WhatIfPage:
    if computed.value is None:
        return WhatIfPage(phase=computed.phase, problem=computed.problem)
    answer = cast(WhatIfAnswer, computed.value)
    part = Part(answer.moves, offset, limit)
    return WhatIfPage(
        phase=computed.phase,
        text=described(answer.change),
        before=_numbers(answer.before),
        after=_numbers(answer.after),
        headroom_limit=HEADROOM_LIMIT,
        total=part.total,
        offset=part.offset,
        moves=tuple(
            Move(pod=m.pod, source=m.source, target=m.target, waited=m.waited) for m in part.items
        ),
        left_over=_left_over(answer),
        blocked=_blocked(answer),
        gone=tuple(
            PodsOfReason(reason=reason, pods=len(pods), examples=tuple(pods[:_EXAMPLES_MAX]))
            for reason, pods in answer.gone.items()
        ),
        notes=answer.notes,
    )


def _left_over(answer: WhatIfAnswer) -> tuple[PodsOfReason, ...]:
    """Pods by reason: first those that are newly without a node, then those that waited before."""
    by_reason: dict[str, list[str]] = {}
    for one in (*answer.left_over, *answer.waited_before):
        by_reason.setdefault(one.message, []).append(one.pod)
    waited = Counter(one.message for one in answer.waited_before)
    return tuple(
        PodsOfReason(
            reason=reason,
            pods=len(names),
            examples=tuple(names[:_EXAMPLES_MAX]),
            waited_before=waited[reason],
        )
        for reason, names in by_reason.items()
    )


def _blocked(answer: WhatIfAnswer) -> tuple[PodsOfReason, ...]:
    by_reason: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in answer.blocked:
        namespace = one.pod.partition("/")[0]
        budgets = tuple(f"{namespace}/{name}" for name in one.budgets)
        by_reason.setdefault((one.message, budgets), []).append(one.pod)
    return tuple(
        PodsOfReason(
            reason=reason, pods=len(pods), examples=tuple(pods[:_EXAMPLES_MAX]), budgets=budgets
        )
        for (reason, budgets), pods in by_reason.items()
    )


def _numbers(state: ClusterState) -> ClusterNumbers:
    first = {CPU: 0, MEMORY: 1}
    names = sorted(state.utilization, key=lambda name: (first.get(name, 2), name))
    return ClusterNumbers(
        nodes=state.nodes,
        cordoned=state.nodes - state.schedulable_nodes,
        pods=state.pods,
        waiting=state.waiting,
        usage=tuple(
            Usage(resource=name, used=one.requested, allocatable=one.allocatable)
            for name in names
            for one in (state.utilization[name],)
        ),
        headroom=state.headroom,
    )


def what_if_rows(computed: ComputationState) -> Iterator[tuple[str, str, str, str, str]]:
    """pod, outcome, from, to, why: for a table."""
    answer = cast(WhatIfAnswer, computed.value)
    for move in answer.moves:
        yield move.pod, "gets a node", move.source, move.target, ""
    for left in answer.left_over:
        yield left.pod, "left over", left.source, "", left.message
    for left in answer.waited_before:
        yield left.pod, "waited before, too", "", "", left.message
    for blocked in answer.blocked:
        yield blocked.pod, "not evicted", "", "", blocked.message
    for reason, pods in answer.gone.items():
        for pod in pods:
            yield pod, reason, "", "", ""


# ---- workloads ------------------------------------------------------------------------------


def workload_page(subject: Subject, change: int, search: str, limit: int) -> WorkloadPage:
    """Workloads that can be scaled, those with the most pods first."""

    def compute(deadline: Deadline) -> Sequence[tuple[str, int]]:
        model = subject.model(change, deadline.check).model
        counts = Counter(workload_of(cast(Pod, each)) for each in model.objects(POD))
        for key, each in model.all():
            kind = key.kind.rpartition(" ")[2]
            if kind in SCALED_KINDS and not each.metadata.owner_references:
                counts[f"{kind} {key.namespace}/{key.name}"] += 0
        scaled = [(n, c) for n, c in counts.items() if n.partition(" ")[0] in SCALED_KINDS]
        return sorted(scaled, key=lambda one: (-one[1], one[0]))

    computed = subject.computations.ask(("workloads", change), compute)
    if computed.value is None:
        return WorkloadPage(phase=computed.phase, problem=computed.problem)
    text = search.lower()
    rows = [(name, pods) for name, pods in computed.value if text in name.lower()]
    part = Part(rows, 0, limit)
    return WorkloadPage(
        phase=computed.phase,
        total=part.total,
        rows=tuple(
            WorkloadRow(kind=name.partition(" ")[0], name=name.partition(" ")[2], pods=pods)
            for name, pods in part.items
        ),
    )


# ---- a pod ----------------------------------------------------------------------------------


def explanation_answer(subject: Subject, change: int, pod: str) -> ExplanationAnswer:
    def compute(deadline: Deadline) -> Explanation:
        model = subject.model(change, deadline.check).model
        try:
            return explain_pod(model, pod)
        except NoSuchPodError:
            raise BadInputError(f"{pod} does not exist at this moment") from None

    computed = subject.computations.ask(("why", change, pod), compute)
    return ExplanationAnswer(
        phase=computed.phase, problem=computed.problem, explanation=computed.value
    )


# ---- what a node rejected -------------------------------------------------------------------


def node_rejections(subject: Subject, state: State, change: int, node: str) -> NodeRejections:
    """``change``: see `Subject.model`."""
    if subject.kind != "run":
        return _rejections_now(subject, change, node)

    def compute(deadline: Deadline) -> Sequence[tuple[int, Rejection]]:
        return _with_changes(state.timeline, subject.rejections(node, deadline.check))

    computed = subject.computations.ask(("rejections", node), compute)
    if computed.value is None:
        return NodeRejections(phase=computed.phase, problem=computed.problem)
    so_far = [(at, one) for at, one in computed.value if at <= state.change]
    return NodeRejections(
        phase=computed.phase,
        attempts=int(state.attempt_counts.sum()),
        rejecting=len(so_far),
        rows=tuple(_rejection_rows(state.timeline, so_far)),
    )


def _with_changes(
    line: Timeline, rejections: Sequence[Rejection]
) -> Sequence[tuple[int, Rejection]]:
    """Each rejection with the change of its attempt; of an attempt, each rejection once."""
    uids = {pod.uid: row for row, pod in enumerate(line.pods)}
    attempts = line.attempts
    keys = zip(numbers(attempts.pod), numbers(attempts.number), strict=True)
    changes = dict(zip(keys, numbers(attempts.change), strict=True))
    placed = ((changes.get((uids.get(one.uid, -1), one.attempt)), one) for one in rejections)
    return list(dict.fromkeys((at, one) for at, one in placed if at is not None))


def _rejection_rows(
    line: Timeline, rejections: Sequence[tuple[int, Rejection]]
) -> Iterator[NodeRejection]:
    names = {pod.uid: pod.name for pod in line.pods}
    by_cause: dict[tuple[str, str, str], list[tuple[int, Rejection]]] = {}
    for at, one in rejections:
        by_cause.setdefault((one.plugin, one.reason, one.code), []).append((at, one))
    newest = sorted(by_cause.items(), key=lambda item: -item[1][-1][0])
    for (plugin, reason, code), own in newest[:_ROWS_MAX]:
        at, last = own[-1]
        yield NodeRejection(
            plugin=plugin,
            reason=reason,
            code=code,
            attempts=len(own),
            pods=len({one.uid for _, one in own}),
            pod=names[last.uid],
            attempt=last.attempt,
            change=at,
            seconds=float(line.seconds[at]),
        )


def _rejections_now(subject: Subject, change: int, node: str) -> NodeRejections:
    """What the node would reject of the pods that wait, one of each workload."""

    def compute(deadline: Deadline) -> Mapping[str, Any]:
        model = subject.model(change, deadline.check).model
        by_workload: dict[str, list[str]] = {}
        for info in model.pending():
            by_workload.setdefault(workload_of(info.pod), []).append(info.key)
        rows: list[NodeRejection] = []
        for pods in list(by_workload.values())[:_TRIED_MAX]:
            deadline.check()
            status = diagnose(model, pods[0]).rejected.get(node)
            if status is not None:
                rows.append(
                    NodeRejection(
                        plugin=status.plugin,
                        reason=status.message,
                        code=str(status.code),
                        attempts=1,
                        pods=len(pods),
                        pod=pods[0],
                    )
                )
        return {"attempts": min(len(by_workload), _TRIED_MAX), "rows": tuple(rows)}

    computed = subject.computations.ask(("rejections", change, node), compute)
    if computed.value is None:
        return NodeRejections(phase=computed.phase, problem=computed.problem, is_now=True)
    return NodeRejections(
        phase=computed.phase,
        attempts=computed.value["attempts"],
        rejecting=len(computed.value["rows"]),
        rows=computed.value["rows"],
        is_now=True,
    )
