"""An explanation for a reader: rich texts and tables, the answer first."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.explain.explanation import (
    Cause,
    Comparison,
    Explanation,
    Fix,
    Group,
    Preemption,
    WorkloadPods,
)
from bayplan.sim.output.report import BLANK, new_table

#: Scores of a comparison are shown for so many plugins.
_SUBJECTS = {
    "pod": "change the workload",
    "object": "change another object",
    "workload": "make room",
    "node": "add a node",
}


def explained(explanation: Explanation, *, is_wide: bool = False) -> list[RenderableType]:
    """The whole answer. ``is_wide``: with examples of nodes and with manifests."""
    parts: list[RenderableType] = [Text(_headline(explanation), style="bold")]
    if explanation.workload is not None and explanation.pod:
        parts[:0] = [Text(_workload_line(explanation.workload, explanation.pod)), BLANK]
    if explanation.moment is not None:
        parts.append(Text(f"The answer is about {explanation.moment}."))
    if explanation.stored_message:
        parts.append(Text(f"The status of the pod says: {explanation.stored_message}"))
    if explanation.group is not None:
        parts += [BLANK, *_group(explanation.group, explanation.message)]
    causes = [each for each in explanation.causes if each.reason or each.nodes or each.details]
    if causes:
        parts += [BLANK, Text("Causes", style="bold")]
        for cause in causes:
            parts += _cause(cause, is_wide=is_wide)
    if explanation.preemption is not None:
        parts += [BLANK, Text("Preemption", style="bold"), *_preemption(explanation.preemption)]
    if explanation.fixes:
        parts += [BLANK, Text("What would make it fit (each was tried)", style="bold")]
        for number, fix in enumerate(explanation.fixes, 1):
            parts += _fix(number, fix, is_wide=is_wide)
    elif explanation.trials:
        text = f"None of {explanation.trials} changes that were tried makes it fit."
        parts += [BLANK, Text(text)]
    if explanation.comparison is not None:
        parts += [BLANK, *_comparison(explanation.comparison)]
    if explanation.remarks:
        parts += [BLANK, *(Text(f"Note: {remark}") for remark in explanation.remarks)]
    return parts


def _workload_line(workload: WorkloadPods, pod: str) -> str:
    """How many pods of a workload have a node, and which one the answer is about."""
    waiting = workload.pods - workload.placed
    noun = "pod" if workload.pods == 1 else "pods"
    counts = f"{workload.pods:,} {noun}, {workload.placed:,} with a node, {waiting:,} waiting"
    which = "the first that waits" if waiting else "one of them"
    return f"{workload.kind} {workload.name}: {counts}; {which} is {pod}:"


def _headline(explanation: Explanation) -> str:
    """kube-scheduler's own sentence, where there is one."""
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
    missing = max(group.need - group.have, 0)
    lacking = f": {missing} missing" if missing else ""
    yield Text(
        f"  {group.have} members exist, {group.need} are needed{lacking}; {group.placed} have a "
        f"node, {group.fitting} more fit in this attempt"
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


def _cause(cause: Cause, *, is_wide: bool) -> Iterator[RenderableType]:
    plugin = f" ({cause.plugin})" if cause.plugin else ""
    if not cause.nodes:
        yield Text(f"  {cause.reason}{plugin}")
    else:
        nodes = f"{cause.nodes:,} node{'s' * (cause.nodes != 1)}"
        nearest = cause.nearest
        distance = f", the nearest {nearest.distance}: {nearest.node}" if nearest else ""
        yield Text(f"  {cause.reason}: {nodes}{distance}{plugin}")
    for detail in cause.details:
        yield Text(f"    {detail}")
    if is_wide and cause.examples:
        more = ", …" if cause.nodes > len(cause.examples) else ""
        yield Text(f"    nodes: {', '.join(cause.examples)}{more}")


def _preemption(preemption: Preemption) -> Iterator[RenderableType]:
    yield Text(f"  {preemption.verdict}")
    if preemption.victims:
        yield Text(f"  victims: {', '.join(preemption.victims)}")
    for budget in preemption.budgets:
        yield Text(
            f"  PodDisruptionBudget {budget.name} allows {budget.disruptions_allowed} disruptions; "
            f"it covers {', '.join(budget.pods)}"
        )


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
        # A terminal breaks a long line where it ends; a line break here would be part of the copy.
        yield Text(f"       {command}", style="cyan", no_wrap=True, overflow="ignore")
    if is_wide and fix.manifest:
        for line in fix.manifest.splitlines():
            yield Text(f"       | {line}")


def _effect(fix: Fix) -> str:
    if fix.waiting <= 1:
        return f"then it goes to {fix.node}"
    if fix.helped >= fix.waiting:
        return f"then all {fix.waiting:,} pods that wait get a node, for example {fix.node}"
    some = f"{'at least ' * fix.is_bounded}{fix.helped:,} of {fix.waiting:,} pods that wait"
    return f"then {some} get a node, for example {fix.node}"


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
    table = new_table("weighted score", *names, numbers=True)
    lines = {node.node: node for node in comparison.nodes}
    for plugin in lines[names[0]].scores:
        values = [lines[name].scores.get(plugin, 0) for name in names]
        if any(values):
            table.add_row(plugin, *map(str, values))
    table.add_row("total", *(str(lines[name].total) for name in names), style="bold")
    return table
