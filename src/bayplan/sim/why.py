"""`bayplan why`: a pod's story from the journal, in words and tables."""

import difflib
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.framework.status import Status
from bayplan.journal import (
    AttemptRecord,
    BindingRecord,
    GateRecord,
    NodeScore,
    NoteRecord,
    Record,
)
from bayplan.sim.replay import NodeVerdict

_NAMED_PODS_MAX = 5


def story_of(pod: str, records: Iterable[Record]) -> list[Record]:
    """Everything recorded about "namespace/name", oldest first."""
    return [r for r in records if _subject(r) == pod]


def _subject(record: Record) -> str:
    return record.subject if isinstance(record, NoteRecord) else record.pod


def told(records: Sequence[Record]) -> RenderableType:
    """The story, top to bottom."""
    return Group(*(part for record in records for part in _told(record)))


def _told(record: Record) -> list[RenderableType]:
    if isinstance(record, AttemptRecord):
        return _attempt(record)
    when = f"{record.at_seconds:.3f} s"
    if isinstance(record, BindingRecord):
        said = f": {record.message}" if record.message else ""
        return [Text(f"{when}  binding to {record.node}: {record.result}{said}")]
    if isinstance(record, GateRecord):
        return [Text(f"{when}  held back by {record.plugin}: {record.message}")]
    return [Text(f"{when}  {record.text}")]


def _attempt(record: AttemptRecord) -> list[RenderableType]:
    head = f"{record.at_seconds:.3f} s  attempt {record.attempt} ({record.profile})"
    parts: list[RenderableType] = [Text(f"{head}: {_outcome(record)}", style="bold")]
    if record.message:
        parts.append(Text(f"  {record.message}"))
    if record.rejections:
        parts.append(_rejections(record))
    if record.scores:
        parts.append(score_table(record.scores))
        parts.append(Text(f"  {_draw(record)}"))
    elif record.node and record.feasible_count == 1:
        parts.append(Text("  only one node was feasible, so nothing was scored"))
    return parts


def _outcome(record: AttemptRecord) -> str:
    of_all = f"{record.feasible_count} of {record.node_count} nodes feasible"
    if record.result == "scheduled":
        return f"chose {record.node}, {of_all}"
    if record.result == "waiting":
        return f"chose {record.node} and waits at Permit, {of_all}"
    blamed = f" by {record.plugin}" if record.plugin else ""
    return f"{record.result}{blamed}, {of_all}"


def _rejections(record: AttemptRecord) -> Table:
    table = Table("rejected by", "nodes", "code", "reason")
    table.columns[1].justify = "right"
    for found in record.rejections:
        table.add_row(found.plugin, f"{found.nodes:,}", found.code, found.reason)
    return table


def score_table(scores: Sequence[NodeScore]) -> Table:
    """Nodes by plugins: weighted score, and raw → normalised where they differ."""
    plugins = [score.plugin for score in scores[0].plugins]
    table = Table("node", "total", *plugins)
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.overflow = "fold"
        column.justify = "right"
    for row in scores:
        cells = [_cell(s.raw, s.normalized, s.weighted) for s in row.plugins]
        table.add_row(row.node, str(row.total), *cells)
    return table


def _cell(raw: int, normalized: int, weighted: int) -> str:
    """``weighted`` and how it came about: raw → normalised."""
    if raw == normalized == weighted:
        return str(weighted)
    return f"{weighted} ({raw} → {normalized})" if raw != normalized else f"{weighted} ({raw})"


def _draw(record: AttemptRecord) -> str:
    if record.tied_count <= 1:
        return f"{record.node} has the highest total"
    return (
        f"{record.tied_count} nodes tied for the highest total; seed, pod and attempt drew number "
        f"{record.tied_index + 1} in the order of the hash of their names: {record.node}"
    )


def known_pods(wanted: str, records: Iterable[Record]) -> str:
    """A hint for a name nobody knows: the nearest ones, or some."""
    names = sorted({_subject(r) for r in records})
    near = difflib.get_close_matches(wanted, names, _NAMED_PODS_MAX) or names[:_NAMED_PODS_MAX]
    return f"known are, for example: {', '.join(near)}" if near else "the journal is empty"


def told_node(verdict: NodeVerdict) -> RenderableType:
    """One node in one attempt."""
    head = f"{verdict.pod}, attempt {verdict.attempt}, node {verdict.node}: {_ruling(verdict)}"
    parts: list[RenderableType] = [Text(head, style="bold")]
    if verdict.alone:
        table = Table("Filter plugin", "asked alone about this node")
        for name, status in verdict.alone:
            table.add_row(name, _said(status))
        parts.append(table)
    if verdict.scores is not None:
        parts.append(score_table([verdict.scores]))
        parts.append(
            Text(f"{verdict.better_count} nodes scored higher, {verdict.equal_count} as high")
        )
    if verdict.chosen:
        parts.append(Text(f"chosen: {verdict.chosen}"))
    return Group(*parts)


def _ruling(verdict: NodeVerdict) -> str:
    if verdict.not_asked:
        return f"not asked, {verdict.not_asked}"
    if verdict.rejection is not None:
        return f"rejected by {verdict.rejection.plugin}: {_said(verdict.rejection)}"
    return "chosen" if verdict.chosen == verdict.node else "feasible, not chosen"


def _said(status: Status | None) -> str:
    return "no objection" if status is None else f"{status.message} ({status.code})"
