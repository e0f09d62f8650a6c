"""Answers that the engine computes: what-if, the explanation of a pod, and what a node rejected.

The page asks again while ``phase`` is computing. A page of a list has at most `PAGE_MAX` entries.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

from bayplan.answers.document import Value
from bayplan.answers.names import natural_key
from bayplan.api.objects import POD, Pod
from bayplan.config import load_config
from bayplan.explain.diagnosis import diagnose
from bayplan.explain.explainer import NoSuchPodError, explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.history.timeline import State, Timeline, numbers
from bayplan.model.past import AttemptRejection
from bayplan.objects.workloads import workload_of
from bayplan.problems import BadInputError
from bayplan.sim.input.controller_kinds import SCALED_KINDS
from bayplan.sim.input.what_if import WhatIf
from bayplan.ui.answers import PAGE_MAX, Computation
from bayplan.ui.computations import ComputationState, Deadline
from bayplan.ui.pages import Part
from bayplan.ui.subjects import Subject
from bayplan.whatif.all_pending import PendingGroup, PendingPods, all_pending
from bayplan.whatif.comparison import WhatIfAnswer, what_if
from bayplan.whatif.configuration import what_if_configured

#: The most rows of a table that has no pages.
_ROWS_MAX = 100
#: The number of waiting pods that are tried to learn what a node rejects. Each is of another
#: workload.
_TRIED_MAX = 30
_CONFIGURATION = "the other configuration"


# ---- the answers ----------------------------------------------------------------------------


class WorkloadRow(Value):
    """A workload with a number of replicas."""

    kind: str
    #: namespace/name
    name: str
    pods: int


class WorkloadPage(Value):
    rows: tuple[WorkloadRow, ...] = ()


class CauseFixes(Value):
    """The fixes for the causes for which most pods wait."""

    #: The number of a cause → the largest group of pods of one workload that waits for it.
    groups: dict[int, PendingGroup] = {}


class NodeRejection(Value):
    """One reason for which a node was rejected."""

    plugin: str
    reason: str
    code: str
    #: The number of attempts, and of pods in them.
    attempts: int
    pods: int
    #: The newest of the attempts. For a cluster without a run, an example.
    pod: str
    attempt: int = 0
    change: int = 0
    seconds: float = 0.0


class NodeRejections(Value):
    """What a node rejected up to a moment, the newest first."""

    #: The number of all attempts up to the moment, and of those that rejected the node.
    attempts: int = 0
    rejecting: int = 0
    #: The rejections, at most 100.
    rows: tuple[NodeRejection, ...] = ()
    #: Whether the counts are of pods that wait now, and not of attempts of a run.
    is_now: bool = False


MODEL_TYPES = (
    Computation[WhatIfAnswer],
    Computation[WorkloadPage],
    Computation[PendingPods],
    Computation[CauseFixes],
    Computation[Explanation],
    Computation[NodeRejections],
)


# ---- what-if --------------------------------------------------------------------------------


def computed_what_if(
    subject: Subject, change: int, changes: WhatIf, *, force: bool
) -> ComputationState:
    def compute(deadline: Deadline) -> WhatIfAnswer:
        model, read, kinds, _ = subject.model(change, deadline.check)
        return what_if(model, changes, read, kinds, force=force, on_step=deadline.check)

    key = ("what-if", change, repr(changes), force)
    return subject.computations.ask(key, compute, is_long=True)


def computed_configuration(subject: Subject, change: int, text: bytes) -> ComputationState:
    """What another configuration would do. ``text``: a KubeSchedulerConfiguration."""

    def compute(deadline: Deadline) -> WhatIfAnswer:
        opened = subject.model(change, deadline.check)
        other = opened.configured(load_config(text, _CONFIGURATION))
        try:
            return what_if_configured(opened.model, other, _CONFIGURATION, opened.kinds)
        finally:
            other.close()

    return subject.computations.ask(("configuration", change, text), compute, is_long=True)


# ---- workloads ------------------------------------------------------------------------------


def workload_page(
    subject: Subject, change: int, search: str, limit: int
) -> Computation[WorkloadPage]:
    """Workloads that can be scaled, those with the most pods first."""

    def compute(deadline: Deadline) -> Sequence[tuple[str, int]]:
        model = subject.model(change, deadline.check).model
        counts = Counter(workload_of(cast(Pod, each)) for each in model.objects(POD))
        for key, each in model.all():
            kind = key.kind.rpartition(" ")[2]
            if kind in SCALED_KINDS and not each.metadata.owner_references:
                counts[f"{kind} {key.namespace}/{key.name}"] += 0
        scaled = [(n, c) for n, c in counts.items() if n.partition(" ")[0] in SCALED_KINDS]
        return sorted(scaled, key=lambda one: (-one[1], natural_key(one[0])))

    computed = subject.computations.ask(("workloads", change), compute)
    if computed.value is None:
        return computed.answer()
    text = search.lower()
    rows = [(name, pods) for name, pods in computed.value if text in name.lower()]
    part = Part(rows, 0, limit)
    page = WorkloadPage(
        rows=tuple(
            WorkloadRow(kind=name.partition(" ")[0], name=name.partition(" ")[2], pods=pods)
            for name, pods in part.items
        ),
    )
    return Computation(phase=computed.phase, value=page, total=part.total)


# ---- pods that wait -------------------------------------------------------------------------


def pending_pods(subject: Subject, change: int) -> ComputationState:
    """Why all pods wait, and fixes."""

    def compute(deadline: Deadline) -> PendingPods:
        model = subject.model(change, deadline.check).model
        return all_pending(model, on_step=deadline.check)

    return subject.computations.ask(("pending", change), compute, is_long=True)


def cause_fixes(subject: Subject, state: State, change: int) -> Computation[CauseFixes]:
    """The groups of `pending_pods` by the causes of a state. ``change``: see `Subject.model`."""
    computed = pending_pods(subject, change)
    if computed.value is None:
        return computed.answer()
    answer, rows = cast(PendingPods, computed.value), state.timeline.rows_by_name
    groups: dict[int, PendingGroup] = {}
    for group in answer.groups:
        row = rows.get(group.examples[0], len(state.cause_of_pod))
        if row < len(state.cause_of_pod) and len(groups) < PAGE_MAX:
            groups.setdefault(int(state.cause_of_pod[row]), group)
    return Computation(phase=computed.phase, value=CauseFixes(groups=groups))


# ---- a pod ----------------------------------------------------------------------------------


def explanation_answer(subject: Subject, change: int, pod: str) -> Computation[Explanation]:
    def compute(deadline: Deadline) -> Explanation:
        model = subject.model(change, deadline.check).model
        try:
            return explain_pod(model, pod)
        except NoSuchPodError:
            raise BadInputError(f"{pod} does not exist at this moment") from None

    return subject.computations.ask(("why", change, pod), compute).answer()


# ---- what a node rejected -------------------------------------------------------------------


def node_rejections(
    subject: Subject, state: State, change: int, node: str
) -> Computation[NodeRejections]:
    """``change``: see `Subject.model`."""
    if subject.kind != "run":
        return _rejections_now(subject, change, node)

    def compute(deadline: Deadline) -> Sequence[tuple[int, AttemptRejection]]:
        return _with_changes(state.timeline, subject.rejections(node, deadline.check))

    computed = subject.computations.ask(("rejections", node), compute)
    if computed.value is None:
        return computed.answer()
    so_far = [(at, one) for at, one in computed.value if at <= state.change]
    rejections = NodeRejections(
        attempts=int(state.attempt_counts.sum()),
        rejecting=len(so_far),
        rows=tuple(_rejection_rows(state.timeline, so_far)),
    )
    return Computation(phase=computed.phase, value=rejections)


def _with_changes(
    line: Timeline, rejections: Sequence[AttemptRejection]
) -> Sequence[tuple[int, AttemptRejection]]:
    """Each rejection with the change of its attempt. Equal rejections of one attempt come once."""
    uids = {pod.uid: row for row, pod in enumerate(line.pods)}
    attempts = line.attempts
    keys = zip(numbers(attempts.pod), numbers(attempts.number), strict=True)
    changes = dict(zip(keys, numbers(attempts.change), strict=True))
    placed = ((changes.get((uids.get(one.uid, -1), one.attempt)), one) for one in rejections)
    return list(dict.fromkeys((at, one) for at, one in placed if at is not None))


def _rejection_rows(
    line: Timeline, rejections: Sequence[tuple[int, AttemptRejection]]
) -> Iterator[NodeRejection]:
    names = {pod.uid: pod.name for pod in line.pods}
    by_cause: dict[tuple[str, str, str], list[tuple[int, AttemptRejection]]] = {}
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


def _rejections_now(subject: Subject, change: int, node: str) -> Computation[NodeRejections]:
    """What the node would reject of the waiting pods, of which one of each workload is tried."""

    def compute(deadline: Deadline) -> NodeRejections:
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
        return NodeRejections(
            attempts=min(len(by_workload), _TRIED_MAX),
            rejecting=len(rows),
            rows=tuple(rows),
            is_now=True,
        )

    return subject.computations.ask(("rejections", change, node), compute).answer()
