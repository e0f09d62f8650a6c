"""The summary a person reads after a simulation."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.sim.result import SimulationResult, Usage

#: So many pods are named per reason, and so many reasons told; the others are counted.
EXAMPLES_MAX = 3
GROUPS_MAX = 12
#: A count of nodes, not a digit inside a name.
_NUMBER = re.compile(r"(0/)?(?<![\w.-])\d+(?![\w.-])")
_BYTES = frozenset(("memory", "ephemeral-storage"))


def summary(result: SimulationResult) -> RenderableType:
    """Everything in one renderable, top to bottom: what, why not, how full, how fast."""
    parts: list[RenderableType] = [Text(line) for line in _what(result)]
    if result.unschedulable:
        parts.append(_why_not(result))
    if result.usage:
        parts.append(_how_full(result.usage))
    parts += [Text(note, style="dim") for note in result.notes]
    parts.append(Text(_how_fast(result)))
    return Group(*parts)


def _what(result: SimulationResult) -> Iterator[str]:
    counts = result.counts
    ours = counts.scheduled + counts.unschedulable
    yield f"{counts.scheduled:,} of {ours:,} pods placed on {result.nodes:,} nodes"
    if counts.running:
        yield f"{counts.running:,} pods were running already"
    if counts.unschedulable:
        yield f"{counts.unschedulable:,} pods still wait"
    if counts.other_schedulers:
        yield f"{counts.other_schedulers:,} pods belong to another scheduler"
    if counts.left_out:
        yield f"{counts.left_out:,} completed or failed pods were left out"


def _why_not(result: SimulationResult) -> Table:
    """Pending pods grouped by what the scheduler says of them, the largest groups first.

    Sentences that differ in their counts only are one group, told by its first pod's sentence.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(result.unschedulable):
        groups[_kind_of(result.unschedulable[name])].append(name)
    ordered = sorted(groups.values(), key=lambda names: (-len(names), names[0]))
    table = Table("pods", "why they wait", "for example", show_lines=True)
    table.columns[0].justify = "right"
    for names in ordered[:GROUPS_MAX]:
        message = result.unschedulable[names[0]] or "not tried yet"
        table.add_row(f"{len(names):,}", message, _examples(names))
    rest = ordered[GROUPS_MAX:]
    if rest:
        count = sum(map(len, rest))
        table.add_row(f"{count:,}", f"{len(rest):,} further reasons", _examples(rest[0]))
    return table


def _kind_of(message: str) -> str:
    """A sentence without its counts; reasons, which are sorted with them, are sorted anew."""
    return ", ".join(sorted(part.strip(" .") for part in _NUMBER.sub("", message).split(",")))


def _examples(names: list[str]) -> str:
    shown = ", ".join(names[:EXAMPLES_MAX])
    return shown if len(names) <= EXAMPLES_MAX else f"{shown}, …"


def _how_full(usage: Iterable[Usage]) -> Table:
    table = Table("resource", "requested", "allocatable", "share")
    for column in table.columns[1:]:
        column.justify = "right"
    for used in usage:
        table.add_row(
            used.resource,
            amount(used.resource, used.requested),
            amount(used.resource, used.allocatable),
            f"{used.share:.1%}",
        )
    return table


def amount(resource: str, count: int) -> str:
    """An amount as a person writes it: cores, Gi, or a plain number."""
    if resource == "cpu":
        return f"{count / 1000:,.1f}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return f"{count / 2**30:,.1f}Gi"
    return f"{count:,}"


def _how_fast(result: SimulationResult) -> str:
    rate = result.attempts / result.wall_seconds if result.wall_seconds else 0.0
    return (
        f"{result.simulated_seconds:,.1f} s simulated in {result.wall_seconds:,.2f} s, "
        f"{result.attempts:,} decisions, {rate:,.0f} per second (seed {result.seed}, "
        f"digest {result.digest[:12]})"
    )
