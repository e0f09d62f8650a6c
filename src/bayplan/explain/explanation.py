"""Explanation: the answer of `bayplan why`, and what a reader sees of it.

Names and messages in it come from a cluster and may hold any characters.
"""

from collections.abc import Iterator, Set
from typing import Any, ClassVar, Literal

from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted, pod_count
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.table import BLANK, Table, node_columns
from bayplan.model.picture import RunMoment

#: The state of the pod now. ``fits``: an attempt would place it. ``nominated``: it waits for the
#: end of victims. ``foreign``: another scheduler is responsible for it. ``missing-node``: it names
#: a node that does not exist. ``no-pods``: the question is about a workload, which has no pods.
Result = Literal[
    "bound",
    "fits",
    "nominated",
    "waiting",
    "gated",
    "unschedulable",
    "error",
    "foreign",
    "ended",
    "missing-node",
    "no-pods",
]


class NodeDistance(Value, frozen=True, kw_only=True, omit_defaults=True):
    """How far one node is from fitting."""

    node: str
    #: The distance, such as "lacks 500m"; "" if no distance can be measured.
    distance: str = ""


class Cause(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One reason, with the nodes that it rejects."""

    #: The rejecting plugin; "": no plugin decides this.
    plugin: str
    #: The reason in kube-scheduler's words.
    reason: str
    #: The number of nodes that it rejects; 0: it rejects the pod as a whole.
    nodes: int = 0
    #: The node that is nearest to fitting.
    nearest: NodeDistance | None = None
    #: Some of the nodes, sorted.
    examples: tuple[str, ...] = ()
    #: The details of the reason: taints, terms, domains with their counts, objects.
    details: tuple[str, ...] = ()
    #: Whether preemption could help at these nodes.
    is_preemptible: bool = False


class Budget(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A PodDisruptionBudget that covers victims or pods in the way."""

    name: str
    disruptions_allowed: int
    pods: tuple[str, ...]


class Preemption(Value, frozen=True, kw_only=True, omit_defaults=True):
    """The result of preemption."""

    #: kube-scheduler's words, or a sentence of Bayplan if kube-scheduler says nothing.
    verdict: str
    nominated_node: str = ""
    victims: tuple[str, ...] = ()
    budgets: tuple[Budget, ...] = ()


class GroupLevel(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One level of the topology that a group names, and the domain that comes nearest."""

    #: The name in the configuration; without one, the node label.
    level: str
    node_label: str
    constraint: Literal["required", "preferred", "slices"]
    #: The number of members that share a domain.
    size: int
    #: The number of domains, and of those that can take ``size`` members. For members of several
    #: templates, the second number is an upper bound.
    domains: int = 0
    sufficient: int = 0
    #: For a group in slices: the number of slices, and how many of them fit at most.
    slices: int = 0
    fitting_slices: int = 0
    #: The domain that can take most members, or for a group in slices, most members beyond its
    #: whole slices; "": no domain exists, or all slices fit.
    nearest: str = ""
    #: The number of members that it can take.
    fitting: int = 0
    #: Resource → how much more must be free there. Empty: enough is free in total, or other pods
    #: keep the domain from being exclusive.
    lacking: dict[str, str] = {}
    #: Some of the pods that hold what is lacking, the lowest priority first; the number of all of
    #: them; and their groups.
    in_the_way: tuple[str, ...] = ()
    in_the_way_count: int = 0
    groups_in_the_way: tuple[str, ...] = ()


class Group(Value, frozen=True, kw_only=True, omit_defaults=True):
    """The pod's group in this attempt."""

    name: str
    kind: str
    #: The numbers of members that exist, that the group needs, and that have a node. A group
    #: without an object needs 0, because only the object says how many it needs.
    have: int
    need: int
    placed: int
    #: The number of members that this attempt could place.
    fitting: int = 0
    first_failing_member: str = ""
    domain: str = ""
    #: The number of nodes that cannot take one more member, because they are full.
    saturated_nodes: int = 0
    #: The number of nodes that no member may use, whatever is free.
    excluded_nodes: int = 0
    message: str = ""
    #: The levels of the topology that the group names. It has them only if the group does not fit.
    levels: tuple[GroupLevel, ...] = ()


class Change(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One change of one object, for programs. ``verb``: patch (JSON patch), replace (delete and
    recreate), create or delete."""

    verb: Literal["patch", "replace", "create", "delete"]
    #: apiVersion and kind, such as "apps/v1 Deployment".
    kind: str
    name: str
    namespace: str = ""
    #: For patch: the operations of RFC 6902.
    patch: tuple[dict[str, Any], ...] = ()
    #: For replace and create: the manifest.
    content: dict[str, Any] | None = None


class Fix(Value, frozen=True, kw_only=True, omit_defaults=True):
    """The smallest change of its kind with which the pod fits.

    The commands were tried in a model of the cluster, with its admission and controllers.
    """

    #: The kind of object that changes: pod, object, workload or node.
    changes_what: Literal["pod", "object", "workload", "node"]
    #: One line per step. Several steps work only together.
    steps: tuple[str, ...]
    #: The node to which the pod would go.
    node: str
    changes: tuple[Change, ...]
    #: Commands for a shell, one line each. None: only a person or another tool can do it.
    commands: tuple[str, ...] = ()
    #: The manifests of what the commands create, for a reader.
    manifest: str = ""
    #: The object whose pod template changes, such as "Deployment default/web"; "": none.
    target: str = ""
    #: The tool that writes the target again and again, such as "Helm release shop"; "": none.
    managed_by: str = ""
    #: The number of pods of the workload that wait, and of those that get a node.
    waiting: int = 1
    helped: int = 1
    #: Whether some of them were not tried, so that more than ``helped`` may get a node.
    is_bounded: bool = False
    #: What the reader should know before the change.
    notes: tuple[str, ...] = ()

    @property
    def is_combined(self) -> bool:
        """Whether several steps work only together."""
        return len(self.steps) > 1


class NodeComparison(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One node as a place for a bound pod."""

    node: str
    #: The total score; None: the node is rejected.
    total: int | None = None
    #: Plugin → weighted score.
    scores: dict[str, int] = {}
    reason: str = ""


class Comparison(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A bound pod's node among all nodes, as if the pod were pending now."""

    node: str
    feasible: int
    #: The number of nodes with a higher total, and of other nodes with the same total.
    better: int
    equal: int
    #: The pod's node first, then the best nodes.
    nodes: tuple[NodeComparison, ...]
    #: Why the pod would not get its node today; "": it would fit there.
    rejection: str = ""


class WorkloadPods(Value, frozen=True, kw_only=True):
    """The workload that a question was about. The pod of the answer is one of its pods."""

    kind: str
    #: "namespace/name"
    name: str
    #: The number of pods that have not ended, and of those that have a node.
    pods: int = 0
    placed: int = 0
    #: The number of waiting pods that get a node without any change. The answer is about the next
    #: waiting pod or, if all get a node, about the first one.
    fitting: int = 0


class Explanation(Answer, frozen=True, kw_only=True):
    """Why a pod has a node or none, and which changes would give it one."""

    kind: Literal["Explanation"] = "Explanation"
    field_of_list: ClassVar[str] = "causes"
    #: "namespace/name"; "": the workload has no pods.
    pod: str
    #: "": files have nothing of a pod that has ended.
    scheduler: str
    result: Result
    source: str = ""
    #: For the folder of a run: the moment that the answer is about.
    moment: RunMoment | None = None
    node: str = ""
    #: kube-scheduler's sentence, computed now; "" if the pod has or gets a node.
    message: str = ""
    #: The sentence in the pod's status, if it differs.
    stored_message: str = ""
    #: The workload that the question named; None: the question named the pod.
    workload: WorkloadPods | None = None
    node_count: int = 0
    feasible_count: int = 0
    causes: tuple[Cause, ...] = ()
    preemption: Preemption | None = None
    group: Group | None = None
    fixes: tuple[Fix, ...] = ()
    #: The number of changes that were tried to find the fixes.
    trials: int = 0
    comparison: Comparison | None = None
    #: What the answer leaves out, and what the reader should know.
    remarks: tuple[str, ...] = ()

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """The parts of the answer, the state of the pod first. ``is_wide``: whether to show
        examples of nodes, and manifests."""
        parts: list[RenderableType] = [Text(_headline(self), style="bold")]
        if self.workload is not None and self.pod:
            parts[:0] = [Text(_workload_line(self.workload, self.pod)), BLANK]
        if self.moment is not None:
            parts.append(Text(f"The answer is about {self.moment}."))
        if self.stored_message:
            parts.append(Text(f"The status of the pod says: {self.stored_message}"))
        if self.group is not None:
            parts += [BLANK, *_group(self.group, self.message)]
        causes = [each for each in self.causes if each.reason or each.nodes or each.details]
        if causes:
            parts += [BLANK, Text("Causes", style="bold")]
            shown: set[str] = set()
            for cause in causes:
                # One detail may concern several causes.
                parts += _cause(cause, is_wide=is_wide, omitted=shown)
                shown.update(cause.details)
        preemption = self.preemption
        if preemption is not None and (is_wide or not self._repeats(preemption)):
            parts += [BLANK, Text("Preemption", style="bold"), *_preemption(preemption)]
        if self.fixes:
            parts += [BLANK, Text("What would make it fit (each was tried)", style="bold")]
            for number, fix in enumerate(self.fixes, 1):
                parts += _fix(number, fix, is_wide=is_wide)
        elif self.trials:
            text = f"None of {self.trials} changes that were tried makes it fit."
            parts += [BLANK, Text(text)]
        if self.comparison is not None:
            parts += [BLANK, *_comparison(self.comparison)]
        if self.remarks:
            parts += [BLANK, *(Text(f"Note: {remark}") for remark in self.remarks)]
        return parts

    def _repeats(self, preemption: Preemption) -> bool:
        """Whether the message says all about preemption."""
        has_more = preemption.victims or preemption.budgets
        return preemption.verdict in self.message and not has_more

    def rows(self) -> Rows:
        """The causes."""
        headings = ("plugin", "reason", "nodes", "nearest_node", "distance")
        return Rows(headings, map(_cause_row, self.causes))

    def names(self) -> Iterator[str]:
        """The name of the pod; for a workload without pods, the name of the workload."""
        yield self.pod or (self.workload.name if self.workload is not None else "")


def _cause_row(cause: Cause) -> tuple[Any, ...]:
    nearest = cause.nearest or NodeDistance(node="")
    return cause.plugin, cause.reason, cause.nodes, nearest.node, nearest.distance


# ---- what a reader sees -------------------------------------------------------------------------

_SUBJECTS = {
    "pod": "change the workload",
    "object": "change another object",
    "workload": "make room",
    "node": "add a node",
}


def _workload_line(workload: WorkloadPods, pod: str) -> str:
    """How many pods of a workload have a node, and which one the answer is about."""
    waiting = workload.pods - workload.placed
    counts = f"{pod_count(workload.pods)}, {workload.placed:,} with a node, {waiting:,} waiting"
    which = "the first that waits" if waiting else "one of them"
    if workload.fitting:
        counts += f", of which {workload.fitting:,} {'gets' if workload.fitting == 1 else 'get'}"
        counts += " a node as things are"
        which = "the first" if workload.fitting == waiting else "the first that gets none"
    return f"{workload.kind} {workload.name}: {counts}; {which} is {pod}:"


def _headline(explanation: Explanation) -> str:
    """The first line: kube-scheduler's own sentence, if there is one."""
    pod, result = explanation.pod, explanation.result
    if explanation.message:
        return explanation.message
    if result == "bound":
        return f"{pod} is on {explanation.node}"
    if result == "fits":
        return f"{pod} fits now: an attempt would place it on {explanation.node}"
    if result == "foreign":
        where = f" and is on {explanation.node}" if explanation.node else ""
        return f"{pod} belongs to another scheduler, {explanation.scheduler}{where}"
    if result == "ended":
        return f"{pod} has ended: a scheduler has nothing to do with it any more"
    if result == "waiting":
        return f"{pod} waits at Permit for {explanation.node}"
    if result == "gated":
        return f"{pod} is held back before any attempt; kube-scheduler writes no sentence for it"
    return f"{pod}: {result}"


def _group(group: Group, sentence: str) -> Iterator[RenderableType]:
    yield Text(f"Group {group.name} ({group.kind})", style="bold")
    yield Text(
        f"  {members_text(group.have, group.need)}; {group.placed} have a node, "
        f"{group.fitting} more fit in this attempt"
    )
    if group.domain:
        yield Text(f"  tried in {group.domain}")
    if group.first_failing_member:
        yield Text(
            f"  the first member that fails is {group.first_failing_member}: "
            f"{group.saturated_nodes} nodes are full, {group.excluded_nodes} are excluded"
        )
    if group.message and group.message != sentence:
        yield Text(f"  {group.message}")
    for level in group.levels:
        yield from (Text(f"  {line}") for line in _level_lines(level))


def members_text(have: int, need: int) -> str:
    """How many members of a group exist, and how many it needs; ``need`` 0: nobody says."""
    exist = f"{counted(have, 'member')} {'exists' if have == 1 else 'exist'}"
    if not need:
        return exist
    lacking = f", {need - have} missing" if need > have else ""
    return f"{exist}, {need:,} {'is' if need == 1 else 'are'} needed{lacking}"


def _level_lines(level: GroupLevel) -> Iterator[str]:
    name = f"level {level.level} ({level.constraint})"
    domains = counted(level.domains, "domain")
    if level.slices:
        count = f"{level.fitting_slices} of {level.slices} slices of {level.size} fit"
        yield f"{name}: {count} in {domains}"
    elif level.domains:
        yield f"{name}: {level.sufficient} of {domains} can take {level.size} members"
    else:
        yield f"{name}: no node has the label {level.node_label}"
    if not level.nearest or level.fitting >= level.size:
        return
    lacking = ", ".join(f"{amount} {name}" for name, amount in level.lacking.items())
    what = f"lacks {lacking}" if lacking else "has enough in total, but not where it is needed"
    room = f"has room for {level.fitting} of {level.size} members"
    yield f"  the nearest is {level.nearest}: it {room}; it {what}"
    if level.in_the_way:
        more = ", …" if level.in_the_way_count > len(level.in_the_way) else ""
        pods = f"{pod_count(level.in_the_way_count)} in the way"
        yield f"  {pods}: {', '.join(level.in_the_way)}{more}"
    if level.groups_in_the_way:
        yield f"  of groups: {', '.join(level.groups_in_the_way)}"


def _cause(cause: Cause, *, is_wide: bool, omitted: Set[str]) -> Iterator[RenderableType]:
    """The lines of a cause. ``omitted``: the details that are already shown."""
    plugin = f" ({cause.plugin})" if cause.plugin else ""
    if not cause.nodes:
        yield Text(f"  {cause.reason}{plugin}")
    else:
        count = counted(cause.nodes, "node")
        nearest = cause.nearest
        distance = f", the nearest {nearest.distance}: {nearest.node}" if nearest else ""
        yield Text(f"  {cause.reason}: {count}{distance}{plugin}")
    yield from (Text(f"    {detail}") for detail in cause.details if detail not in omitted)
    if is_wide and cause.examples:
        more = ", …" if cause.nodes > len(cause.examples) else ""
        yield Text(f"    nodes: {', '.join(cause.examples)}{more}")


def _preemption(preemption: Preemption) -> Iterator[RenderableType]:
    yield Text(f"  {preemption.verdict}")
    if preemption.victims:
        yield Text(f"  victims: {', '.join(preemption.victims)}")
    for budget in preemption.budgets:
        allowed = counted(budget.disruptions_allowed, "disruption")
        pods = ", ".join(budget.pods)
        yield Text(f"  PodDisruptionBudget {budget.name} allows {allowed}; it covers {pods}")


def _fix(number: int, fix: Fix, *, is_wide: bool) -> Iterator[RenderableType]:
    together = " (only together)" if fix.is_combined else ""
    subject = f"change {fix.target}" if fix.target else _SUBJECTS[fix.changes_what]
    yield Text(f"  {number}. {subject}{together}, {_effect(fix)}:")
    for step in fix.steps:
        yield Text(f"     {step}")
    if fix.managed_by:
        yield Text(
            f"     {fix.managed_by} writes {fix.target}: change it there, too, "
            "or its next update undoes this"
        )
    for note in fix.notes:
        yield Text(f"     note: {note}")
    for command in fix.commands:
        # The line is not wrapped, because a line break here would be copied, too. A terminal breaks
        # a long line by itself.
        yield Text(f"       {command}", style="cyan", no_wrap=True, overflow="ignore")
    if is_wide and fix.manifest:
        for line in fix.manifest.splitlines():
            yield Text(f"       | {line}")


def _effect(fix: Fix) -> str:
    if fix.waiting <= 1:
        return f"then it goes to {fix.node}"
    if fix.helped >= fix.waiting:
        every = "both" if fix.waiting == 2 else f"all {fix.waiting:,}"
        return f"then {every} pods that wait get a node, for example {fix.node}"
    some = f"{'at least ' * fix.is_bounded}{fix.helped:,} of {fix.waiting:,} pods that wait"
    return f"then {some} {'gets' if fix.helped == 1 else 'get'} a node, for example {fix.node}"


def _comparison(comparison: Comparison) -> Iterator[RenderableType]:
    yield Text("Its node among all nodes, as if the pod were pending now", style="bold")
    if comparison.rejection:
        yield Text(f"  {comparison.node} would be rejected now: {comparison.rejection}")
    elif comparison.feasible <= 1:
        yield Text(f"  {comparison.node} is the only feasible node")
    else:
        yield Text(
            f"  {comparison.feasible:,} nodes are feasible. Nodes with a higher score than "
            f"{comparison.node}: {comparison.better:,}. Other nodes with the same score: "
            f"{comparison.equal:,}."
        )
    scored = [node for node in comparison.nodes if node.total is not None]
    if not scored:
        return
    yield _scores(comparison, [node.node for node in scored])


def _scores(comparison: Comparison, names: list[str]) -> Table:
    table = Table("weighted score", *node_columns(names))
    lines = {node.node: node for node in comparison.nodes}
    for plugin in lines[names[0]].scores:
        values = [lines[name].scores.get(plugin, 0) for name in names]
        if any(values):
            table.add_row(plugin, *map(str, values))
    table.add_row("total", *(str(lines[name].total) for name in names), is_bold=True)
    return table
