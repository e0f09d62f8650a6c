"""`bayplan why`: the records of a pod or a workload as text and tables."""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from bayplan import journal
from bayplan.answers.amounts import counted, pod_count
from bayplan.answers.names import in_natural_order
from bayplan.answers.pod_tables import by_message, examples, messages_table, nodes_table
from bayplan.answers.table import BLANK, Column, Table, node_columns, number_columns
from bayplan.answers.times import moment
from bayplan.sim.output.pod_counts import Counts, PodEnd, PodState, gone_text
from bayplan.sim.output.result import PodGroupResult, SimulationResult

if TYPE_CHECKING:
    from bayplan.history.node_verdict import NodeVerdict

_NAMED_PODS_MAX = 5
#: The most names that are compared letter by letter.
_COMPARED_PODS_MAX = 200
#: The most groups of waiting pods of one workload that are explained by an attempt.
_EXPLAINED_MAX = 3


# ---- hints ---------------------------------------------------------------------------------


def without_record(pod: str, result: SimulationResult | None) -> str | None:
    """Why there is no decision about a pod that took part; None: no reason is known."""
    pod_result = result.pods.get(pod) if result is not None else None
    if pod_result is None or result is None or pod_result.bound_at is not None:
        return None
    if pod_result.node is not None:
        return f"{pod} came with a node, {pod_result.node}: there was nothing to decide"
    if not pod_result.end.is_there:
        return f"{pod} was not tried before it was gone: {pod_result.end}"
    if pod in result.unschedulable:
        return f"{pod} waits and was not tried: {pod_result.message or 'no reason is known'}"
    return f"{pod} is left to another scheduler: there was nothing to decide"


def similar_pods(pod: str, names: Iterable[str]) -> str:
    """A hint for an unknown name: pods of the same name in other namespaces, or similar names."""
    sorted_names = sorted(set(names))
    own = pod.rpartition("/")[2]
    near = [name for name in sorted_names if name.rpartition("/")[2] == own] or _nearest(
        pod, sorted_names
    )
    listed = ", ".join(near[:_NAMED_PODS_MAX])
    return f"known names include: {listed}" if listed else "the journal is empty"


def _nearest(pod: str, names: Sequence[str]) -> list[str]:
    namespace, _, own = pod.rpartition("/")

    def shared_length(name: str) -> int:
        pairs = zip(own, name.rpartition("/")[2], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def rank(name: str) -> tuple[bool, int]:
        return name.rpartition("/")[0] == namespace, shared_length(name)

    # First names with a common beginning, of the same namespace first. Among the best of those,
    # the similarity of all letters decides.
    best = nlargest(_COMPARED_PODS_MAX, names, key=rank)
    ratios = {name: SequenceMatcher(None, own, name.rpartition("/")[2]).ratio() for name in best}
    return sorted(best, key=lambda name: (not rank(name)[0], -ratios[name]))


def nearest_nodes(node: str, names: Iterable[str]) -> str:
    """A hint for an unknown node."""
    sorted_names = sorted(set(names))
    near = (
        difflib.get_close_matches(node, sorted_names, _NAMED_PODS_MAX)
        or sorted_names[:_NAMED_PODS_MAX]
    )
    return (
        f"there are {len(sorted_names):,}, for example: {', '.join(near)}"
        if near
        else "there is none"
    )


def end_line(pod: str, result: SimulationResult | None) -> str:
    """What became of a pod that is gone, or of a group; "": nothing is to be said.

    ``pod``: "namespace/name", or the subject of a group.
    """
    if result is not None and journal.is_group(pod):
        return _group_end(result.pod_groups.get(pod.partition(" ")[2]))
    pod_result = result.pods.get(pod) if result is not None else None
    if pod_result is None or pod_result.end in (PodEnd.PLACED, PodEnd.WAITING):
        return ""
    if pod_result.end is PodEnd.MISSING_NODE:
        return (
            f"at the end of the run, {pod} names the node {pod_result.node}, which does not exist"
        )
    if pod_result.end.is_there:
        return ""
    at = "" if pod_result.deleted_at is None else f"{moment(pod_result.deleted_at)}  "
    replaced = ", and another pod came in its place" if pod_result.replaced else ""
    return f"{at}{pod} is gone: {pod_result.end}{replaced}"


def _group_end(group: PodGroupResult | None) -> str:
    if group is None:
        return ""
    counts = {
        "running": group.running,
        "succeeded": group.succeeded,
        "failed": group.failed,
    }
    members = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    members = f"members: {members}" if members else "no member runs or has ended"
    return f"at the end of the run, the group is {group.phase}; {members}"


# ---- records -------------------------------------------------------------------------------


def explain_records(records: Sequence[journal.Record]) -> list[RenderableType]:
    """The records from top to bottom. Consecutive attempts with equal outcomes are one entry."""
    parts: list[RenderableType] = []
    for _, group in groupby(records, key=_sameness):
        first, *repetitions = group
        if parts and isinstance(first, journal.AttemptRecord | journal.GroupRecord):
            parts.append(BLANK)
        parts += _explained(first)
        if repetitions:
            parts.append(Text(_repeated(repetitions)))
    return parts


def _sameness(record: journal.Record) -> Any:
    """A key that is equal for attempts with equal outcomes; it is unique for other records."""
    if isinstance(record, journal.AttemptRecord):
        return replace(record, at_seconds=0.0, attempt=0, tied_index=0)
    if isinstance(record, journal.GroupRecord):
        return replace(record, at_seconds=0.0, attempt=0)
    return id(record)


def _repeated(records: Sequence[journal.Record]) -> str:
    """Attempts with the outcome of the attempt before them."""
    numbers = [
        one.attempt
        for one in records
        if isinstance(one, journal.AttemptRecord | journal.GroupRecord)
    ]
    which = f"attempt {numbers[0]}"
    if len(numbers) > 1:
        which = f"attempts {numbers[0]} to {numbers[-1]}"
    return f"{when(records[-1])}  {which}: the same outcome"


def when(record: journal.Record) -> str:
    return moment(record.at_seconds)


def _explained(record: journal.Record) -> Iterator[RenderableType]:
    if isinstance(record, journal.AttemptRecord):
        yield from _attempt(record)
    elif isinstance(record, journal.BindingRecord):
        message = f": {record.message}" if record.message else ""
        yield Text(f"{when(record)}  binding to {record.node}: {record.result}{message}")
    elif isinstance(record, journal.GateRecord):
        message = f": {record.message}" if record.message else ""
        yield Text(f"{when(record)}  held back by {record.plugin}{message}")
    elif isinstance(record, journal.GroupRecord):
        yield from _group(record)
    else:
        yield Text(f"{when(record)}  {record.text}")


def _group(record: journal.GroupRecord) -> Iterator[RenderableType]:
    number = f"attempt {record.attempt}: " if record.attempt else ""
    yield Text(f"{when(record)}  {number}{group_outcome(record)}", style="bold")
    if record.message:
        yield Text(record.message)


def group_outcome(record: journal.GroupRecord) -> str:
    """The outcome of an attempt at a group, in a line."""
    before = f", {record.assigned} had one before" if record.assigned else ""
    within = f" in {record.domain}" if record.domain else ""
    of_all = f"minMember {record.min_member}, {record.api_group}"
    if record.result == "placed":
        members = counted(record.fitting, "member")
        return f"{members} placed{within}{before} ({of_all})"
    if record.result in ("unschedulable", "error"):
        return f"{record.result}, nothing is held: {record.fitting} fit{before} ({of_all})"
    return f"{record.result} ({of_all})"


def _attempt(record: journal.AttemptRecord) -> Iterator[RenderableType]:
    head = f"{when(record)}  attempt {record.attempt} ({record.profile})"
    yield Text(f"{head}: {outcome(record)}", style="bold")
    if record.message:
        yield Text(record.message)
    if record.nominated_node:
        yield Text(f"nominated to {record.nominated_node}")
    if record.rejections:
        yield from (BLANK, _rejections(record))
    if record.scores:
        yield from (BLANK, *score_table(record.scores), BLANK)
        yield Text(_draw(record))
        yield from map(Text, record.score_notes)
    elif record.node and record.feasible_count == 1:
        yield Text("only one node was feasible, so nothing was scored")


def outcome(record: journal.AttemptRecord) -> str:
    """How an attempt ended, in a line."""
    of_all = f"{record.feasible_count} of {record.node_count} nodes feasible"
    if record.result == "scheduled":
        return f"chose {record.node}, {of_all}"
    if record.result == "waiting":
        return f"chose {record.node} and waits at Permit, {of_all}"
    blamed = f" by {record.plugin}" if record.plugin else ""
    return f"{record.result}{blamed}, {of_all}"


def _rejections(record: journal.AttemptRecord) -> Table:
    table = Table("rejected by", *number_columns("nodes"), "code", "reason")
    for rejection in record.rejections:
        table.add_row(rejection.plugin, f"{rejection.nodes:,}", rejection.code, rejection.reason)
    return table


def score_table(scores: Sequence[journal.NodeScore]) -> list[RenderableType]:
    """Plugins by nodes: weighted, normalized and raw scores, and the scores that plugins read."""
    table = Table("score", *node_columns(score.node for score in scores))
    zeros: list[str] = []
    for index, plugin in enumerate(scores[0].plugins):
        cells = [score.plugins[index] for score in scores]
        if any(map(is_shown, cells)):
            table.add_row(plugin.plugin, *(_cell(cell) for cell in cells))
        else:
            zeros.append(plugin.plugin)
    table.add_row("total", *(str(score.total) for score in scores), is_bold=True)
    for index, plugin in enumerate(scores[0].read):
        cells = [score.read[index] for score in scores]
        table.add_row(f"{plugin.plugin} (read)", *(f"({c.normalized}; {c.raw})" for c in cells))
    parts: list[RenderableType] = [table, Text(_SCORE_LEGEND)]
    if zeros:
        parts.append(Text(f"0 for each of these nodes: {', '.join(zeros)}"))
    return parts


_SCORE_LEGEND = "weighted score (normalized; raw); the weighted scores add up to the total"


def is_shown(score: journal.PluginScore) -> bool:
    """Whether a score deserves a row: it is not zero at every stage."""
    return bool(score.raw or score.normalized or score.weighted)


def _cell(score: journal.PluginScore) -> str:
    return f"{score.weighted} ({score.normalized}; {score.raw})"


def _draw(record: journal.AttemptRecord) -> str:
    keys = [f"{s.key} keeps {s.left_count:,} of {s.equal_count:,}" for s in record.tie_break]
    tie_break = f" (tie-break: {', '.join(keys)})" if keys else ""
    if record.tied_count <= 1:
        best = "is the best of those with" if keys else "has"
        return f"{record.node} {best} the highest total{tie_break}"
    return (
        f"{record.node} is one of {record.tied_count} nodes with the highest total{tie_break}; "
        f"seed, pod and attempt drew it (number {record.tied_index + 1} by the hash of the name)"
    )


def record_row(record: journal.Record) -> tuple[str, str, str, int | None, str, str]:
    """(event, result, node, attempt, plugin, message)"""
    match record:
        case journal.AttemptRecord():
            return (
                "attempt",
                record.result,
                record.node or record.nominated_node,
                record.attempt,
                record.plugin,
                record.message,
            )
        case journal.BindingRecord():
            return "binding", record.result, record.node, None, record.plugin, record.message
        case journal.GateRecord():
            return "gate", record.code or "held back", "", None, record.plugin, record.message
        case journal.GroupRecord():
            return "group", record.result, record.domain, record.attempt, "", record.message
        case journal.NoteRecord():
            return "note", "", "", None, record.plugin, record.text


# ---- a workload ----------------------------------------------------------------------------


def explain_workload(
    name: str,
    counts: Counts,
    pods: Sequence[PodState],
    last_attempts: Mapping[str, journal.AttemptRecord],
    *,
    is_wide: bool = False,
) -> Iterator[RenderableType]:
    """The pods of one workload, grouped by what became of them.

    ``pods``: a name may occur more than once. ``last_attempts``: the last attempt at each waiting
    pod. ``is_wide``: kube-scheduler's whole sentences in place of their short forms.
    """
    yield Text(_workload_line(name, counts), style="bold")
    waiting = {pod.pod: pod.message for pod in pods if pod.end is PodEnd.WAITING}
    yield from _by_node(pods)
    yield from _elsewhere(pods)
    groups = by_message(waiting)
    if groups:
        yield from (BLANK, messages_table("pods", "why they wait", waiting, is_wide=is_wide))
    for group in groups[:_EXPLAINED_MAX]:
        record = last_attempts.get(group[0])
        if record is not None:
            of = f", one of {len(group):,}" if len(group) > 1 else ""
            yield from (BLANK, Text(f"the last attempt at {group[0]}{of}:"))
            yield from _attempt(replace(record, message=""))


def _workload_line(name: str, counts: Counts) -> str:
    """How many pods the workload has at the end, and how many are gone."""
    line = (
        f"{name}: {pod_count(counts.present)}, {counts.placed:,} with a node, "
        f"{counts.unschedulable:,} waiting"
    )
    if counts.missing_nodes:
        line += f", {counts.missing_nodes:,} on nodes that do not exist"
    if counts.other_schedulers:
        line += f", {counts.other_schedulers:,} left to other schedulers"
    return f"{line}; {gone_text(counts)}" if counts.gone else line


def _elsewhere(pods: Iterable[PodState]) -> Iterator[RenderableType]:
    """The pods that neither have a node nor wait, by what became of them."""
    by_end: dict[PodEnd, list[str]] = defaultdict(list)
    for pod in pods:
        if pod.end not in (PodEnd.PLACED, PodEnd.WAITING):
            by_end[pod.end].append(pod.pod)
    if by_end:
        table = Table(
            "what became of them", *number_columns("pods"), Column("for example", "examples")
        )
        for end in sorted(by_end, key=lambda one: (-len(by_end[one]), one)):
            table.add_row(end, f"{len(by_end[end]):,}", examples(by_end[end]))
        yield from (BLANK, table)


def _by_node(pods: Iterable[PodState]) -> Iterator[RenderableType]:
    placed = {pod.pod: pod.node for pod in pods if pod.end is PodEnd.PLACED}
    by_node: dict[str, list[str]] = defaultdict(list)
    for pod in in_natural_order(placed):
        by_node[placed[pod]].append(pod)
    if by_node:
        yield from (BLANK, *nodes_table(by_node))


# ---- one node ------------------------------------------------------------------------------


def explain_node(verdict: "NodeVerdict", record: journal.AttemptRecord) -> Iterator[RenderableType]:
    """One node in one attempt. ``record``: of the attempt."""
    head = f"{when(record)}  attempt {record.attempt} at {record.pod}: {outcome(record)}"
    yield Text(head, style="bold")
    if record.message:
        yield Text(record.message)
    yield Text(f"{verdict.node}: {verdict.ruling}")
    if verdict.alone:
        table = Table("Filter plugin", f"result for {verdict.node} alone")
        for result in verdict.alone:
            table.add_row(result.plugin, str(result))
        yield from (BLANK, table)
    if verdict.scores:
        counts = (f"{c:,}" if c else "none" for c in (verdict.better, verdict.equal))
        better, equal = counts
        rank = f"of the others, {better} scored higher and {equal} as high"
        yield from (BLANK, _compared(verdict.scores), BLANK, Text(rank))


def _compared(lines: Sequence[journal.NodeScore]) -> Table:
    """The node's scores, beside those of the chosen node."""
    own, *chosen = lines
    weighted = (f"weighted, {line.node}" for line in lines)
    table = Table("score", *number_columns("raw", "0-100", *weighted))
    for index, score in enumerate(own.plugins):
        if not any(is_shown(line.plugins[index]) for line in lines):
            continue
        chosen_cells = (str(line.plugins[index].weighted) for line in chosen)
        cells = (str(score.raw), str(score.normalized), str(score.weighted))
        table.add_row(score.plugin, *cells, *chosen_cells)
    totals = (str(line.total) for line in lines)
    table.add_row("total", "", "", *totals, is_bold=True)
    for index, score in enumerate(own.read):
        chosen_cells = (str(line.read[index].normalized) for line in chosen)
        cells = (str(score.raw), str(score.normalized), str(score.normalized))
        table.add_row(f"{score.plugin} (read)", *cells, *chosen_cells)
    return table
