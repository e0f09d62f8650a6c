"""Why all pods of a cluster wait: by workload and by the decisive cause, the largest group first.

First the pods that wait are placed as far as they fit (`placing`). Those that get a node wait only
for their turn. Among the others, equal pods of one workload have one answer, so one pod of each
workload is tried. The decisive cause of a pod is the one whose removal would make most nodes
feasible, which is the reason that alone rejects most nodes. For that, each Filter plugin evaluates
all nodes; in an attempt, a plugin evaluates only the nodes that the plugins before it did not
reject.

Each group gets its mildest fix, tried as in `bayplan why`. The search of all groups together is
bounded, and the bound follows from the size of the cluster. The largest groups come first.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted, pod_count, short_text
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.names import natural_key
from bayplan.answers.reasons import short_reason, short_words
from bayplan.answers.table import BLANK, Column, Table, name_columns, number_columns
from bayplan.api.objects import DEFAULT_SCHEDULER, POD, Pod, is_terminal
from bayplan.api.selectors import SelectorError, selector_of_text
from bayplan.engine.cycle import Cycle
from bayplan.explain.diagnosis import diagnose
from bayplan.explain.explanation import Fix
from bayplan.explain.fixes.owners import Owners, owners_of
from bayplan.explain.fixes.search import Search
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.picture import RunMoment
from bayplan.model.unknown_names import no_namespace
from bayplan.objects.workloads import workload_of
from bayplan.plugins.node_resources_fit import INSUFFICIENT, NodeResourcesFit
from bayplan.printable import printable
from bayplan.problems import BadInputError
from bayplan.state.pods import PodInfo
from bayplan.whatif.placing import Placer
from bayplan.whatif.text import note_lines

_EXAMPLES_MAX = 5
#: The bounds for one group: attempts to find its fix, and candidates whose commands are tried.
_TRIALS_MAX, _WRITTEN_MAX = 24, 3
#: The bound for all groups: attempts times nodes.
_NODE_TRIALS_MAX = 2_500_000

SortKey = Literal["pods", "workload", "cause"]


# ---- the answer ----------------------------------------------------------------------------


@final
class PendingGroup(Value, frozen=True, kw_only=True):
    """Pods of one workload that wait for one cause."""

    #: The workload, such as "Deployment default/web"; for a pod without a controller, "Pod
    #: default/web".
    workload: str
    pods: int
    #: The decisive cause, in a few words.
    cause: str
    #: The plugin and the reason of the decisive cause; "": no plugin rejects the pods.
    plugin: str = ""
    reason: str = ""
    #: The number of nodes with this reason that no other plugin rejects for the pods.
    decisive_nodes: int = 0
    #: kube-scheduler's sentence about the first pod, and its reasons in short words, each with its
    #: number of nodes.
    message: str = ""
    short_message: str = ""
    #: "namespace/name" of some of the pods.
    examples: tuple[str, ...]
    #: The mildest fix that was tried; null: no fix is known, or the search ended at its bound.
    fix: Fix | None = None
    #: Whether the search looked for a fix.
    is_searched: bool = False

    @property
    def fix_text(self) -> str:
        """The steps of the fix, and how many of the pods it helps."""
        if self.fix is None:
            return "none found" if self.is_searched else ""
        helped = f" ({self.fix.helped:,} of {self.fix.waiting:,})" if self.fix.waiting > 1 else ""
        return f"{'; '.join(self.fix.steps)}{helped}"


@final
class PendingPods(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan why --all-pending`."""

    kind: Literal["PendingPods"] = "PendingPods"
    field_of_list: ClassVar[str] = "groups"
    #: The name of the cluster, for messages.
    cluster: str
    #: For the folder of a run: the moment that the answer is about.
    moment: RunMoment | None = None
    nodes: int
    #: The number of pods that wait, and of those that get a node without any change.
    pods: int
    fitting: int = 0
    #: The namespace of the pods; "": all namespaces.
    namespace: str = ""
    #: The selector of their labels, as for `kubectl -l`; "": all pods.
    labels: str = ""
    #: The groups, the largest first.
    groups: tuple[PendingGroup, ...]
    #: The number of changes that were tried to find the fixes.
    trials: int = 0
    notes: tuple[str, ...] = ()

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """A row for each group. ``is_wide``: with kube-scheduler's sentence and an example."""
        waiting = sum(group.pods for group in self.groups)
        where = f"namespace {self.namespace} of {self.cluster}" if self.namespace else self.cluster
        which = f" with the labels {printable(self.labels)}" if self.labels else ""
        head = f"{pod_count(waiting)}{which} of {where} wait{'s' * (waiting == 1)}"
        if not waiting:
            head = f"no pod{which} of {where} waits"
        parts: list[RenderableType] = [Text(head, style="bold")]
        if self.fitting:
            verb = "gets" if self.fitting == 1 else "get"
            parts.append(Text(f"{pod_count(self.fitting)} more {verb} a node as things are"))
            if any(group.plugin == NodeResourcesFit.name for group in self.groups):
                room = "it takes" if self.fitting == 1 else "they take"
                parts.append(Text(f"the amounts below are what is free after the room that {room}"))
        if self.groups:
            more = (*name_columns("for example"), "sentence") if is_wide else ()
            table = Table(
                *number_columns("pods"), Column("workload", "name"), "cause", "fix", *more
            )
            for group in self.groups:
                cells = (group.examples[0], group.message) if is_wide else ()
                table.add_row(
                    f"{group.pods:,}", group.workload, group.cause, group.fix_text, *cells
                )
            parts += [BLANK, table]
        return [*parts, *note_lines(self.notes)]

    def rows(self) -> Rows:
        """The groups."""
        headings = ("workload", "pods", "cause", "plugin", "reason", "fix", "helped", "message")
        rows = (
            (
                group.workload,
                group.pods,
                group.cause,
                group.plugin,
                group.reason,
                "" if group.fix is None else "; ".join(group.fix.steps),
                0 if group.fix is None else group.fix.helped,
                group.message,
            )
            for group in self.groups
        )
        return Rows(headings, rows)


# ---- the question --------------------------------------------------------------------------


def all_pending(
    model: ClusterModel,
    *,
    namespace: str = "",
    labels: str = "",
    sort_by: SortKey = "pods",
    on_step: Callable[[], None] = lambda: None,
) -> PendingPods:
    """Why the pods of a cluster wait. The model stays as it is.

    ``namespace``: the one of the pods; "": all namespaces. ``labels``: a selector as for `kubectl
    -l`; "": all pods. ``on_step`` is called before each attempt, and may raise an exception. Raises
    BadInputError for an unknown namespace and for wrong labels.
    """
    try:
        selector = selector_of_text(labels)
    except SelectorError as problem:
        raise BadInputError(f"labels: {problem}") from None
    if namespace and (unknown := no_namespace(model, namespace)):
        raise BadInputError(unknown)

    def is_chosen(pod: Pod | PodInfo) -> bool:
        meta = pod.metadata
        is_here = not namespace or meta.namespace == namespace
        return is_here and selector.matches(meta.labels or {})

    with model.trial():
        before = sum(map(is_chosen, model.pending()))
        Placer(model, on_step).place_waiting()
        waiting = [pod for pod in model.in_queue_order() if is_chosen(pod)]
        waiting += [pod for pod in model.pending() if is_chosen(pod) and pod not in waiting]
        groups = list(_groups(model, waiting, on_step))
        groups.sort(key=lambda group: (-len(group.pods), natural_key(group.workload)))
        answers, trials = _with_fixes(model, groups)
    answers.sort(key=_SORTS[sort_by])
    return PendingPods(
        cluster=model.source.source,
        namespace=namespace,
        labels=labels,
        moment=model.source.moment,
        nodes=model.scheduler.cache.table.node_count,
        pods=before,
        fitting=before - len(waiting),
        groups=tuple(answers),
        trials=trials,
        notes=(*_foreign(model, is_chosen), *model.source.remarks),
    )


_SORTS: dict[SortKey, Callable[[PendingGroup], tuple[Any, ...]]] = {
    "pods": lambda group: (-group.pods, natural_key(group.workload), group.cause),
    "workload": lambda group: (natural_key(group.workload), -group.pods, group.cause),
    "cause": lambda group: (group.cause, -group.pods, natural_key(group.workload)),
}


def _foreign(model: ClusterModel, is_chosen: Callable[[Pod], bool]) -> Iterator[str]:
    """The number of pods without a node that wait for other schedulers."""
    is_responsible_for = model.scheduler.is_responsible_for
    counts: Counter[str] = Counter()
    for pod in model.objects(POD):
        assert isinstance(pod, Pod), "the objects of a kind are of its type"
        name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        is_waiting = not pod.spec.node_name and not is_terminal(pod)
        if is_waiting and not is_responsible_for(name) and is_chosen(pod):
            counts[name] += 1
    if counts:
        names = ", ".join(f"{counts[name]:,} for {name}" for name in sorted(counts))
        verb = "waits" if counts.total() == 1 else "wait"
        yield f"{pod_count(counts.total())} {verb} for other schedulers: {names}"


class _Cause(NamedTuple):
    """The decisive cause of a pod."""

    text: str
    plugin: str = ""
    reason: str = ""
    nodes: int = 0


class _Group(NamedTuple):
    workload: str
    pods: list[PodInfo]
    cause: _Cause
    message: str


def _groups(
    model: ClusterModel, waiting: Iterable[PodInfo], on_step: Callable[[], None]
) -> Iterator[_Group]:
    """The pods by workload and cause. Of the equal pods of a workload, one is tried. Of a pod
    group, one member is tried, because all members wait for the same cause."""
    equal: dict[tuple[str, Hashable], list[PodInfo]] = defaultdict(list)
    for pod in waiting:
        equal[workload_of(pod.pod), pod.group_key or id(pod.shape)].append(pod)
    groups: dict[tuple[str, str], _Group] = {}
    for (workload, _), pods in equal.items():
        on_step()
        cause, message = _cause_of(model, pods[0])
        key = workload, cause.text
        if key in groups:
            groups[key].pods.extend(pods)
        else:
            groups[key] = _Group(workload, list(pods), cause, message)
    return iter(groups.values())


def _with_fixes(model: ClusterModel, groups: Sequence[_Group]) -> tuple[list[PendingGroup], int]:
    """The groups with their fixes, and how many changes were tried."""
    left = _NODE_TRIALS_MAX // max(model.scheduler.cache.table.node_count, 1)
    owners = owners_of(model)
    answers: list[PendingGroup] = []
    trials = 0
    for group in groups:
        is_searched = left > 0 and bool(group.cause.plugin)
        fix = None
        if is_searched:
            fix, count = _fix(model, owners, group, min(left, _TRIALS_MAX))
            left -= count
            trials += count
        cause = group.cause
        answers.append(
            PendingGroup(
                workload=group.workload,
                pods=len(group.pods),
                cause=cause.text,
                plugin=cause.plugin,
                reason=cause.reason,
                decisive_nodes=cause.nodes,
                message=group.message,
                short_message=short_reason(group.message),
                examples=tuple(pod.key for pod in group.pods[:_EXAMPLES_MAX]),
                fix=fix,
                is_searched=is_searched,
            )
        )
    return answers, trials


def _fix(
    model: ClusterModel, owners: Owners, group: _Group, trials_max: int
) -> tuple[Fix | None, int]:
    """The mildest fix, and how many attempts were made."""
    pod = group.pods[0]
    search = Search(
        model,
        owners,
        pod,
        [each.key for each in group.pods],
        trials_max=trials_max,
        written_max=_WRITTEN_MAX,
    )
    solutions = search.run(diagnose(model, pod.key))
    return (solutions[0].fix if solutions else None), search.trials + search.written


# ---- the decisive cause --------------------------------------------------------------------


def _cause_of(model: ClusterModel, pod: PodInfo) -> tuple[_Cause, str]:
    """The decisive cause, and kube-scheduler's sentence. A member of a pod group waits for the
    cause of the first member that no node admits."""
    causes: list[_Cause] = []

    def is_meant(other: PodInfo) -> bool:
        is_member = pod.group_key is not None and other.group_key == pod.group_key
        return is_member or other.uid == pod.uid

    def look(cycle: Cycle) -> None:
        if is_meant(cycle.pod) and cycle.choice is None and not causes:
            cause = _decisive(cycle)
            if cause is not None:
                causes.append(cause)

    attempt = model.attempt(pod.key, look)
    return (causes[0] if causes else _Cause(_whole(model, attempt))), attempt.message


def _whole(model: ClusterModel, attempt: Attempt) -> str:
    """Why a pod waits for which no node was evaluated."""
    if attempt.result == "gated":
        gates = ", ".join(gate.name for gate in attempt.pod.spec.scheduling_gates or ())
        return f"scheduling gates: {gates}" if gates else attempt.reason or "held back"
    if attempt.nominated_node:
        return f"victims of preemption leave {attempt.nominated_node}"
    return short_reason(attempt.reason) or attempt.result


def _decisive(cycle: Cycle) -> _Cause | None:
    """The reason of the plugin that alone rejects most nodes; without such a plugin, the reason
    that rejects most nodes. A node that lacks two resources has two reasons and one plugin."""
    nodes = cycle.snapshot.nodes
    if not len(nodes):
        return None
    if cycle.feasibility is None:
        # A plugin rejects the pod before it looks at nodes, for example because a claim is missing.
        status = cycle.status
        reason = "" if status is None else ", ".join(status.reasons)
        return None if status is None or not reason else _Cause(reason, status.plugin, reason)
    masks: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for plugin, outcome in cycle.framework.filter_answers(cycle.state, cycle.pod, nodes):
        for entry in outcome.entries:
            for reason in entry.reasons:
                mask = masks.setdefault((plugin, reason), np.zeros(len(nodes), np.bool_))
                mask[entry.positions] = True
    if not masks:
        return None
    by_plugin: dict[str, NDArray[np.bool_]] = {}
    for (plugin, _), mask in masks.items():
        by_plugin[plugin] = by_plugin[plugin] | mask if plugin in by_plugin else mask
    is_alone = np.sum(list(by_plugin.values()), axis=0) == 1
    alone_counts = {plugin: int((mask & is_alone).sum()) for plugin, mask in by_plugin.items()}
    alone = {key: mask & is_alone for key, mask in masks.items()}
    plugin, reason = max(
        masks,
        key=lambda key: (
            alone_counts[key[0]],
            int(alone[key].sum()),
            int(masks[key].sum()),
            key,
        ),
    )
    own = alone[plugin, reason]
    count = int(own.sum())
    mask = own if count else masks[plugin, reason]
    if reason.startswith(INSUFFICIENT):
        text = _shortage(cycle, reason.removeprefix(INSUFFICIENT), mask)
    else:
        text = f"{counted(int(mask.sum()), 'node')} {short_words(reason)}"
    return _Cause(text, plugin, reason, count)


def _shortage(cycle: Cycle, resource: str, mask: NDArray[np.bool_]) -> str:
    """A sentence such as "no node has 8 nvidia.com/gpu free; 12 nodes have 4". If nodes that the
    pod may not use have more, "40 nodes lack cpu: 3 needed, at most 2 free". ``mask``: the nodes
    that lack the resource."""
    nodes = cycle.snapshot.nodes
    free = nodes.allocatable(resource) - nodes.requested(resource)
    request = cycle.pod.requests.get(resource, 0)
    need, most = short_text(resource, request), int(free.max())
    usable = max(int(free[mask].max()), 0)
    if most >= request or 0 < usable < most:
        count = counted(int(np.count_nonzero(mask)), "node")
        verb = "lacks" if count.startswith("1 ") else "lack"
        return (
            f"{count} {verb} {resource}: {need} needed, at most {short_text(resource, usable)} free"
        )
    if most <= 0:
        return f"no node has any {resource} free, and {need} is needed"
    have = counted(int(np.count_nonzero(free == most)), "node")
    verb = "has" if have.startswith("1 ") else "have"
    return f"no node has {need} {resource} free; {have} {verb} {short_text(resource, most)}"
