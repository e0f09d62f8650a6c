"""`bayplan why`: a pod's story from the journal, in words and tables."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import replace
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.framework.status import Status
from bayplan.journal import (
    AttemptRecord,
    BindingRecord,
    GateRecord,
    GroupRecord,
    NodeScore,
    Record,
)
from bayplan.sim.replay import NodeVerdict, Scores
from bayplan.sim.result import SimulationResult
from bayplan.sim.tables import BLANK
from bayplan.sim.tables import table as new_table

_NAMED_PODS_MAX = 5


# ---- finding -------------------------------------------------------------------------------


def without_record(pod: str, result: SimulationResult | None) -> str | None:
    """Why nothing was decided about a pod that took part; None: it should have been, or nobody
    knows it."""
    found = result.pods.get(pod) if result is not None else None
    if found is None or result is None or found.bound_at is not None:
        return None
    if found.node is not None:
        return f"{pod} came with a node, {found.node}: nothing was to be decided"
    if pod in result.unschedulable:
        return f"{pod} waits and was not tried: {found.message or 'no reason is known'}"
    return f"{pod} is left to another scheduler: nothing was to be decided"


def known_pods(wanted: str, names: Iterable[str]) -> str:
    """A hint for a name nobody knows: its namesakes, the nearest ones, or some."""
    known = sorted(set(names))
    own = wanted.rpartition("/")[2]
    namesakes = [name for name in known if name.rpartition("/")[2] == own]
    near = namesakes or difflib.get_close_matches(wanted, known, _NAMED_PODS_MAX) or known
    listed = ", ".join(near[:_NAMED_PODS_MAX])
    return f"known are, for example: {listed}" if listed else "the journal is empty"


# ---- a story -------------------------------------------------------------------------------


def told(records: Sequence[Record]) -> list[RenderableType]:
    """The story, top to bottom; attempts in a row that came to the same are told once."""
    parts: list[RenderableType] = []
    for _, group in groupby(records, key=_sameness):
        first, *others = group
        if parts and isinstance(first, AttemptRecord | GroupRecord):
            parts.append(BLANK)
        parts += _told(first)
        if others:
            count = f"{len(others)} further attempt{'s' * (len(others) > 1)}"
            parts.append(Text(f"{_when(others[-1])}  {count} until then came to the same"))
    return parts


def _sameness(record: Record) -> Any:
    """What attempts in a row have in common that came to the same; any other record is alone."""
    if isinstance(record, AttemptRecord):
        return replace(record, at_seconds=0.0, attempt=0, tied_index=0)
    if isinstance(record, GroupRecord):
        return replace(record, at_seconds=0.0, attempt=0)
    return id(record)


def _when(record: Record) -> str:
    return f"{record.at_seconds:.3f} s"


def _told(record: Record) -> Iterator[RenderableType]:
    if isinstance(record, AttemptRecord):
        yield from _attempt(record)
    elif isinstance(record, BindingRecord):
        said = f": {record.message}" if record.message else ""
        yield Text(f"{_when(record)}  binding to {record.node}: {record.result}{said}")
    elif isinstance(record, GateRecord):
        said = f": {record.message}" if record.message else ""
        yield Text(f"{_when(record)}  held back by {record.plugin}{said}")
    elif isinstance(record, GroupRecord):
        yield from _group(record)
    else:
        yield Text(f"{_when(record)}  {record.text}")


def _group(record: GroupRecord) -> Iterator[RenderableType]:
    number = f"attempt {record.attempt}: " if record.attempt else ""
    yield Text(f"{_when(record)}  {number}{group_outcome(record)}", style="bold")
    if record.message:
        yield Text(record.message)


def group_outcome(record: GroupRecord) -> str:
    """What became of a group, in a line."""
    before = f", {record.assigned} had one before" if record.assigned else ""
    within = f" in {record.domain}" if record.domain else ""
    of_all = f"minMember {record.min_member}, {record.api_group}"
    if record.result == "placed":
        members = f"{record.fitting} member{'s' * (record.fitting != 1)}"
        return f"{members} placed{within}{before} ({of_all})"
    if record.result in ("unschedulable", "error"):
        return f"{record.result}, nothing is held: {record.fitting} fit{before} ({of_all})"
    return f"{record.result} ({of_all})"


def _attempt(record: AttemptRecord) -> Iterator[RenderableType]:
    head = f"{_when(record)}  attempt {record.attempt} ({record.profile})"
    yield Text(f"{head}: {outcome(record)}", style="bold")
    if record.message:
        yield Text(record.message)
    if record.nominated_node:
        yield Text(f"nominated to {record.nominated_node}")
    if record.rejections:
        yield from (BLANK, _rejections(record))
    if record.scores:
        yield from (BLANK, score_table(record.scores), BLANK)
        yield Text(_draw(record))
        yield from map(Text, record.score_notes)
    elif record.node and record.feasible_count == 1:
        yield Text("only one node was feasible, so nothing was scored")


def outcome(record: AttemptRecord) -> str:
    """How an attempt ended, in a line."""
    of_all = f"{record.feasible_count} of {record.node_count} nodes feasible"
    if record.result == "scheduled":
        return f"chose {record.node}, {of_all}"
    if record.result == "waiting":
        return f"chose {record.node} and waits at Permit, {of_all}"
    blamed = f" by {record.plugin}" if record.plugin else ""
    return f"{record.result}{blamed}, {of_all}"


def _rejections(record: AttemptRecord) -> Table:
    table = new_table("rejected by", "nodes", "code", "reason")
    table.columns[1].justify = "right"
    for found in record.rejections:
        table.add_row(found.plugin, f"{found.nodes:,}", found.code, found.reason)
    return table


def score_table(scores: Sequence[NodeScore]) -> Table:
    """Plugins by nodes: the weighted scores, which add up to the total, and what was read."""
    table = new_table("score", *(score.node for score in scores), numbers=True)
    for index, plugin in enumerate(scores[0].plugins):
        table.add_row(plugin.plugin, *(str(score.plugins[index].weighted) for score in scores))
    table.add_row("total", *(str(score.total) for score in scores), style="bold")
    for index, plugin in enumerate(scores[0].read):
        cells = (str(score.read[index].normalized) for score in scores)
        table.add_row(f"{plugin.plugin} (read)", *cells)
    return table


def _draw(record: AttemptRecord) -> str:
    keys = [f"{s.key} keeps {s.left_count:,} of {s.equal_count:,}" for s in record.tie_break]
    told = f" (tie-break: {', '.join(keys)})" if keys else ""
    if record.tied_count <= 1:
        best = "is the best of those with" if keys else "has"
        return f"{record.node} {best} the highest total{told}"
    return (
        f"{record.node} is one of {record.tied_count} nodes with the highest total{told}; "
        f"seed, pod and attempt drew it (number {record.tied_index + 1} by the hash of the name)"
    )


# ---- one node ------------------------------------------------------------------------------


def told_node(verdict: NodeVerdict) -> list[RenderableType]:
    """One node in one attempt."""
    record = verdict.record
    head = f"{_when(record)}  attempt {record.attempt} at {record.pod}: {outcome(record)}"
    parts: list[RenderableType] = [
        Text(head, style="bold"),
        Text(f"{verdict.node}: {ruling(verdict)}"),
    ]
    if record.message:
        parts.insert(1, Text(record.message))
    if verdict.alone:
        table = new_table("Filter plugin", f"asked about {verdict.node} alone")
        for name, status in verdict.alone:
            table.add_row(name, _said(status))
        parts += [BLANK, table]
    if verdict.scores is not None:
        parts += [
            BLANK,
            _compared(verdict.scores),
            BLANK,
            Text(_rank(verdict.scores)),
        ]
    return parts


def ruling(verdict: NodeVerdict) -> str:
    """What became of the node, in a line."""
    record = verdict.record
    if verdict.not_asked:
        return f"not asked: {verdict.not_asked}"
    if verdict.rejection is not None:
        return f"rejected by {verdict.rejection.plugin}: {_said(verdict.rejection)}"
    if record.node == verdict.node:
        return "chosen" if record.result in ("scheduled", "waiting") else "chosen at first"
    if record.result == "error" and not record.node:
        return "nobody had rejected it when the attempt failed"
    return "feasible, not chosen"


def _compared(scores: Scores) -> Table:
    """How the node's scores came about, and what the chosen one has in their place."""
    own, *chosen = scores.lines
    table = new_table("score", "raw", "0-100", own.node, *(c.node for c in chosen), numbers=True)
    for index, score in enumerate(own.plugins):
        others = (str(line.plugins[index].weighted) for line in chosen)
        cells = (str(score.raw), str(score.normalized), str(score.weighted))
        table.add_row(score.plugin, *cells, *others)
    totals = (str(line.total) for line in scores.lines)
    table.add_row("total", "", "", *totals, style="bold")
    for index, score in enumerate(own.read):
        others = (str(line.read[index].normalized) for line in chosen)
        cells = (str(score.raw), str(score.normalized), str(score.normalized))
        table.add_row(f"{score.plugin} (read)", *cells, *others)
    return table


def _rank(scores: Scores) -> str:
    better = f"{scores.better_count:,}" if scores.better_count else "none"
    equal = f"{scores.equal_count:,}" if scores.equal_count else "none"
    return f"of the others, {better} scored higher and {equal} as high"


def _said(status: Status | None) -> str:
    return "no objection" if status is None else f"{status.message} ({status.code})"
