"""The answers to questions about a cluster, as texts and tables for a reader."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from bayplan.sim.output.report import BLANK, amount, by_message, examples, new_table
from bayplan.whatif.drain_each import Action, Departure, DepartureReport
from bayplan.whatif.fit import Fit, MaxFit
from bayplan.whatif.headroom import Headroom, ShapeHeadroom

#: The most nodes with a row of their own, and the most pods named in a line.
_NODES_MAX = 12
_NAMED_PODS_MAX = 5
_WAIT_AND_WERE = "wait in the cluster already and were"


def fit_parts(fit: Fit, workload: str = "") -> list[RenderableType]:
    """The answer of `bayplan fit`. ``workload``: what `Fit.max` counts."""
    total, left_over = len(fit.pods), fit.left_over
    if left_over:
        head = f"{total - len(left_over):,} of {pods(total)} fit into {fit.cluster}"
    else:
        head = f"{pods(total)} fit{'s' * (total == 1)} into {fit.cluster}"
    parts: list[RenderableType] = [Text(head, style="bold")]
    by_node: dict[str, list[str]] = defaultdict(list)
    for pod in fit.pods:
        if pod.node:
            by_node[pod.node].append(pod.pod)
    if by_node:
        parts += [BLANK, *_node_rows(by_node)]
    if left_over:
        parts += [BLANK, *left_over_rows({pod.pod: pod.message for pod in left_over})]
    if fit.victims:
        parts += [BLANK, Text(f"preemption evicts {_named(fit.victims)}")]
    if fit.max is not None:
        parts += [BLANK, *(Text(line) for line in max_lines(fit.max, workload))]
    parts += _notes(fit.pending_count, fit.notes)
    return parts


def _node_rows(by_node: Mapping[str, list[str]]) -> Iterator[RenderableType]:
    table = new_table("node", "pods", "for example")
    table.columns[1].justify = "right"
    ordered = sorted(by_node, key=lambda node: (-len(by_node[node]), node))
    for node in ordered[:_NODES_MAX]:
        table.add_row(node, f"{len(by_node[node]):,}", examples(by_node[node]))
    yield table
    further = ordered[_NODES_MAX:]
    if further:
        count = sum(len(by_node[node]) for node in further)
        yield Text(f"and {pods(count)} on {len(further):,} more nodes")


def left_over_rows(messages: Mapping[str, str]) -> Iterator[RenderableType]:
    """Pods that do not fit, grouped by the scheduler's message. ``messages``: by pod."""
    table = new_table("pods", "why they do not fit", "for example")
    table.columns[0].justify = "right"
    for names in by_message(messages):
        table.add_row(f"{len(names):,}", messages[names[0]], examples(names))
    yield table


def max_lines(count: MaxFit, workload: str) -> Iterator[str]:
    """How many fit, and why no more."""
    more = " or more" if count.is_limit else ""
    copies = _copies(count.count, workload)
    yield f"{copies}{more} fit{'s' * (count.count == 1 and not more)}"
    if count.victim_count:
        yield f"preemption evicts {pods(count.victim_count)} for them"
    if count.message:
        yield f"the next does not: {count.message}"


def _copies(count: int, workload: str) -> str:
    if workload.startswith("PodGroup "):
        return f"{count:,} pod group{'s' * (count != 1)} such as {workload.partition(' ')[2]}"
    return f"{pods(count)} of {workload}"


def headroom_parts(headroom: Headroom) -> list[RenderableType]:
    """The answer of `bayplan headroom`."""
    resources = list(dict.fromkeys(name for one in headroom.shapes for name in one.requests))
    table = new_table("shape", "fit", *resources, "the next does not fit")
    for column in table.columns[1:-1]:
        column.justify = "right"
    for one in headroom.shapes:
        requests = (
            amount(name, one.requests[name]) if name in one.requests else "" for name in resources
        )
        table.add_row(one.shape, _count(one), *requests, one.max.message)
    heading = Text(f"how many more pods fit into {headroom.cluster}", style="bold")
    return [heading, BLANK, table, *_notes(headroom.pending_count, headroom.notes)]


def _count(one: ShapeHeadroom) -> str:
    return f"{one.max.count:,}{'+' * one.max.is_limit}"


def _notes(pending_count: int, notes: tuple[str, ...]) -> list[RenderableType]:
    lines = [*notes]
    if pending_count:
        words = "waits in the cluster already and was" if pending_count == 1 else _WAIT_AND_WERE
        lines.append(f"{pods(pending_count)} {words} not tried")
    return [BLANK, *map(Text, lines)] if lines else []


def pods(count: int) -> str:
    """ "1 pod", "2 pods"."""
    return f"{count:,} pod{'s' * (count != 1)}"


def _named(names: list[str]) -> str:
    listed = ", ".join(names[:_NAMED_PODS_MAX])
    more = f" and {len(names) - _NAMED_PODS_MAX:,} more" * (len(names) > _NAMED_PODS_MAX)
    return f"{pods(len(names))}: {listed}{more}"


# ---- departures ----------------------------------------------------------------------------


def departure_parts(report: DepartureReport) -> list[RenderableType]:
    """The answer of `bayplan whatif --drain-each` and `--remove-each`."""
    rows = report.departures
    can_go = sum(row.can_go for row in rows)
    noun = f"domains of {report.topology_key}" if report.topology_key else "nodes"
    verb = "be drained" if report.action is Action.DRAIN else "go"
    head = f"{can_go:,} of {len(rows):,} {noun} of {report.cluster} can {verb}"
    name = "domain" if report.topology_key else "node"
    nodes = ("nodes",) if report.topology_key else ()
    table = new_table(name, *nodes, "can go", "pods", "left over", "blocked", "why not")
    for column in table.columns[1:-1]:
        column.justify = "right"
    for row in sorted(rows, key=lambda row: row.can_go):
        count = (f"{row.nodes:,}",) if report.topology_key else ()
        cells = (f"{row.pods:,}", _count_or_none(row.left_over), _count_or_none(row.blocked))
        table.add_row(row.name, *count, "yes" if row.can_go else "no", *cells, _why_not(row))
    parts: list[RenderableType] = [Text(head, style="bold"), BLANK, table]
    lines = list(report.notes)
    if report.nodes_without_domain:
        count = report.nodes_without_domain
        lines.append(f"{count:,} node{'s' * (count != 1)} without the label {report.topology_key}")
    others = sum(row.other_schedulers for row in rows)
    if others:
        lines.append(f"{pods(others)} of other schedulers were not tried")
    return [*parts, *([BLANK, *map(Text, lines)] if lines else [])]


def _count_or_none(values: Sequence[object]) -> str:
    return f"{len(values):,}" if values else ""


def _why_not(row: Departure) -> str:
    """The first reason, with the pod."""
    if row.can_go:
        return ""
    if row.left_over:
        return f"{row.left_over[0].pod}: {row.left_over[0].message}"
    if row.blocked:
        return f"{row.blocked[0].pod}: {row.blocked[0].message}"
    return f"{row.unmanaged[0]} has no controller (--force: it may go)"
