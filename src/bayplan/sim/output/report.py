"""The summary that a reader sees after a simulation, and the format of all tables."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.sim.output.pod_counts import Counts, gone_text
from bayplan.sim.output.result import (
    FailureResult,
    LostPods,
    NodeUsage,
    SimulationResult,
    Usage,
)

# ---- tables ---------------------------------------------------------------------------------


#: The blank line between a table and the next part.
BLANK = Text()


def new_table(*headings: str, numbers: bool = False) -> Table:
    """``numbers``: all columns but the first are right-aligned. Long cells are folded, not cut:
    names often differ only at their end."""
    made = Table(*headings, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, column in enumerate(made.columns):
        column.overflow = "fold"
        column.justify = "right" if numbers and index else "left"
    return made


# ---- report ---------------------------------------------------------------------------------


#: The most pods named per reason, and the most reasons shown; further ones are counted.
EXAMPLES_MAX = 3
#: The most nodes with a row of their own where pods are listed by node.
_POD_NODES_MAX = 12
GROUPS_MAX = 12
#: The most nodes with a row of their own, and the most resources with a column.
NODES_MAX = 10
RESOURCES_MAX = 4
_FIRST_RESOURCES = ("cpu", "memory")
NONE = "–"
#: A count of nodes, not a digit inside a name.
_NUMBER = re.compile(r"(0/)?(?<![\w.-])\d+(?![\w.-])")
_BYTES = frozenset(("memory", "ephemeral-storage"))
#: From here on, one digit after the point is enough.
_EXACT_BELOW = 10
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
#: A shorter span of time is shown in seconds.
_SECONDS_MAX = 120


def summary(result: SimulationResult) -> list[RenderableType]:
    """The parts of the summary, from top to bottom."""
    parts: list[RenderableType] = [Text(line) for line in _what(result)]
    parts += [Text(line, style="bold") for line in failure_lines(result.failures)]
    if result.node_usage:
        parts += [BLANK, *_nodes(result)]
    if any(one.peak for one in result.usage):
        parts += [BLANK, *_how_full(result.usage)]
    if result.unschedulable:
        parts += [BLANK, _why_not(result)]
    parts.append(BLANK)
    parts += [Text(note) for note in result.notes]
    parts += [Text(line) for line in _how_fast(result)]
    return parts


# ---- counts --------------------------------------------------------------------------------


def _what(result: SimulationResult) -> Iterator[str]:
    counts = result.counts
    yield _headline(counts, result.nodes)
    if counts.unschedulable:
        yield f"{_pods(counts.unschedulable)} still waiting"
    if counts.running:
        yield f"{_pods(counts.running)} had a node already"
    if counts.missing_nodes:
        yield f"{_pods(counts.missing_nodes)} on nodes that do not exist"
    if counts.other_schedulers:
        yield f"{_pods(counts.other_schedulers)} without a node left to other schedulers"
    if counts.left_out:
        yield f"{_pods(counts.left_out)} left out, completed or failed"
    if counts.gone:
        yield gone_text(counts)
    yield from _lost(result)


def _lost(result: SimulationResult) -> Iterator[str]:
    """Lines about lost pods: those that a cluster would create again, and the others."""
    workloads = [one for one in result.lost if one.workload]
    if workloads:
        count = result.counts.not_recreated
        yield (
            f"{_pods(count)} not made again, as a cluster's controllers would: {_causes(workloads)}"
        )
        ordered = sorted(workloads, key=lambda one: (-one.count, one.workload))
        named = [f"{one.workload} {one.count:,}" for one in ordered[:GROUPS_MAX]]
        further = len(ordered) - len(named)
        yield f"  of {', '.join(named)}" + (f" and {further:,} more" if further else "")
    bare = [one for one in result.lost if not one.workload]
    if bare:
        yield f"{_pods(bare[0].count)} without a controller gone for good: {_causes(bare)}"


def _causes(lost: Iterable[LostPods]) -> str:
    total: Counter[str] = Counter()
    for one in lost:
        total.update(one.causes)
    return ", ".join(f"{count:,} {cause}" for cause, count in sorted(total.items()))


def _headline(counts: Counts, node_count: int) -> str:
    nodes = f"{node_count:,} node{'s' * (node_count != 1)}"
    ours = counts.scheduled + counts.unschedulable
    if not ours:
        return (
            f"no pod of this run is left on {nodes}"
            if counts.gone
            else (f"no pod to be placed on {nodes}")
        )
    return f"{counts.scheduled:,} of {_pods(ours)} placed on {nodes}"


def _pods(count: int) -> str:
    return f"{count:,} pod{'s' * (count != 1)}"


def failure_lines(failures: Sequence[FailureResult]) -> Iterator[str]:
    """The failures by error, one line per kind of failure."""
    for one in failures[:GROUPS_MAX]:
        whose = f" of plugin {one.plugin}" if one.plugin else ""
        times = f"{one.count:,} failure{'s' * (one.count != 1)}{whose}"
        first = "at" if one.count == 1 else "first at"
        yield f"{times}, {first} {one.example}: {one.message}"
    further = failures[GROUPS_MAX:]
    if further:
        yield f"{sum(one.count for one in further):,} failures of {len(further):,} further kinds"


# ---- why not -------------------------------------------------------------------------------


def _why_not(result: SimulationResult) -> Table:
    """Pending pods grouped by the scheduler's message, the largest groups first."""
    ordered = by_message(result.unschedulable)
    table = new_table("pods", "why they wait", "for example")
    table.columns[0].justify = "right"
    for names in ordered[:GROUPS_MAX]:
        message = result.unschedulable[names[0]] or "not tried yet"
        table.add_row(f"{len(names):,}", message, examples(names))
    further = ordered[GROUPS_MAX:]
    if further:
        count = sum(map(len, further))
        reasons = f"{len(further):,} further reason{'s' * (len(further) > 1)}"
        table.add_row(f"{count:,}", reasons, examples([names[0] for names in further]))
    return table


def by_message(waiting: Mapping[str, str]) -> list[list[str]]:
    """Pods → message as groups of pods, the largest first.

    Sentences that differ in their counts and names only are one group.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(waiting):
        groups[kind_of(name, waiting[name])].append(name)
    return sorted(groups.values(), key=lambda names: (-len(names), names[0]))


def kind_of(name: str, message: str) -> str:
    """A sentence without its counts and its pod's name; its reasons sorted, not by count."""
    for own in (name, name.partition("/")[2]):
        if own in message:
            message = re.sub(rf"(?<![\w./-]){re.escape(own)}(?![\w/-])", "", message)
    return ", ".join(
        sorted(part.strip(" .") for part in re.split("[,:]", _NUMBER.sub("", message)))
    )


def examples(names: list[str]) -> str:
    shown = ", ".join(names[:EXAMPLES_MAX])
    return shown if len(names) <= EXAMPLES_MAX else f"{shown}, …"


def pods_by_node(table: Table, by_node: Mapping[str, list[str]]) -> Iterator[RenderableType]:
    """``table`` (node, pods, for example) with rows for the nodes with most pods, and a line about
    the other nodes. ``by_node``: pods by node."""
    ordered = sorted(by_node, key=lambda node: (-len(by_node[node]), node))
    for node in ordered[:_POD_NODES_MAX]:
        table.add_row(node, f"{len(by_node[node]):,}", examples(by_node[node]))
    yield table
    further = ordered[_POD_NODES_MAX:]
    if further:
        count = sum(len(by_node[node]) for node in further)
        yield Text(f"and {count:,} pod{'s' * (count != 1)} on {len(further):,} more nodes")


# ---- where pods went -----------------------------------------------------------------------


def _nodes(result: SimulationResult) -> Iterator[RenderableType]:
    """The nodes that most pods went to, and how full they are."""
    counts = Counter(result.placements.values())
    nodes = result.node_usage
    ordered = sorted(nodes, key=lambda name: (-counts[name], -nodes[name].pods, name))
    resources = _shown_resources(nodes.values())
    table = new_table("node", "placed", "pods", *resources, numbers=True)
    for name in ordered[:NODES_MAX]:
        node = nodes[name]
        shares = (_share(node, resource) for resource in resources)
        table.add_row(name, f"{counts[name]:,}", f"{node.pods:,}", *shares)
    yield table
    further = ordered[NODES_MAX:]
    if further:
        placed = sum(counts[name] for name in further)
        empty = sum(not nodes[name].pods for name in further)
        yield Text(
            f"and {len(further):,} more node{'s' * (len(further) > 1)} with {placed:,} placed "
            f"pod{'s' * (placed != 1)}; {empty:,} of them empty"
        )


def _shown_resources(nodes: Iterable[NodeUsage]) -> list[str]:
    """The resources that pods request: cpu and memory first."""
    requested: Counter[str] = Counter()
    for node in nodes:
        requested.update(node.requested)
    resources = [resource for resource, amount in requested.items() if amount]
    return sorted(resources, key=lambda one: (one not in _FIRST_RESOURCES, one))[:RESOURCES_MAX]


def _share(node: NodeUsage, resource: str) -> str:
    allocatable = node.allocatable.get(resource, 0)
    return f"{node.requested.get(resource, 0) / allocatable:.0%}" if allocatable else NONE


# ---- how full ------------------------------------------------------------------------------


def _how_full(usage: Iterable[Usage]) -> Iterator[RenderableType]:
    """The usage at the end and, if pods went during the run, at the peak."""
    used = [one for one in usage if one.peak]
    has_peaks = any(one.peak > one.requested for one in used)
    peaks = ("peak", "") if has_peaks else ()
    table = new_table("resource", "requested", "", *peaks, "allocatable", numbers=True)
    for one in used:
        cells = [one.requested, one.peak] if has_peaks else [one.requested]
        cells = [
            text
            for count in cells
            for text in (amount(one.resource, count), _percentage(count, one.allocatable))
        ]
        table.add_row(one.resource, *cells, amount(one.resource, one.allocatable))
    yield table


def _percentage(count: int, allocatable: int) -> str:
    """More than 100 % is possible: pods may come with a node that is too small for them, and a peak
    may be above the capacity of the nodes that are left."""
    return f"{count / allocatable:.1%}" if allocatable else NONE


def amount(resource: str, count: int) -> str:
    """An amount for a reader: cores, Gi, or a plain number; a small one is not rounded away."""
    if resource == "cpu":
        return _number(count / 1000, 3)
    if resource not in _BYTES and not resource.startswith("hugepages-"):
        return f"{count:,}"
    power = max(min((count.bit_length() - 1) // 10, len(_UNITS) - 1), 0)
    number = _number(count / 1024**power, 2) if power else f"{count:,}"
    return f"{number}{_UNITS[power]}"


def _number(value: float, digits: int) -> str:
    """One digit after the point; below ten up to ``digits``, as far as they are needed."""
    if value >= _EXACT_BELOW:
        return f"{value:,.1f}"
    text = f"{value:.{digits}f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


# ---- how fast ------------------------------------------------------------------------------


def _how_fast(result: SimulationResult) -> Iterator[str]:
    rate = result.attempts / result.wall_seconds if result.wall_seconds else 0.0
    yield (
        f"{span(result.simulated_seconds)} simulated in {result.wall_seconds:,.2f} s: "
        f"{result.attempts:,} decision{'s' * (result.attempts != 1)}, {rate:,.0f} per second"
    )
    yield f"seed {result.seed}, digest {result.digest[:12]}"


def span(seconds: float) -> str:
    """A duration with two units at most: 1.5 s, 4 min 10 s, 2 h 5 min, 3 d 4 h."""
    if seconds < _SECONDS_MAX:
        return f"{seconds:,.1f} s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days:,} d {hours} h"
