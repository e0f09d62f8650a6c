"""ShadowReport: the answer of `bayplan shadow`, and what a reader sees of it.

Names and messages in it come from a cluster and may hold any characters.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import msgspec
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import pod_count
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.table import BLANK, Table, name_columns, number_columns
from bayplan.answers.times import span


class DecisionCounts(Value, frozen=True, kw_only=True):
    """How many bindings arrived, and how they compare.

    ``compared`` is the sum of ``best``, ``lower`` and ``rejected``.
    """

    compared: int
    #: No node had a higher total.
    best: int
    #: The node was feasible, and another node had a higher total.
    lower: int
    #: The node was not feasible.
    rejected: int
    #: Of ``lower`` and ``rejected``: the node is best on a state that a reordering of the bindings
    #: in flight allows.
    best_when_reordered: int
    #: ``best`` by ``compared``; null: nothing was compared.
    share_best: float | None
    #: The same with ``bestWhenReordered``.
    share_best_when_reordered: float | None
    #: Not compared: no attempt of the shadow reached the nodes.
    untried: int
    #: Not compared: learned from a list, so the order of the bindings is unknown.
    unordered: int
    #: Not compared: the pod was first seen with its node.
    first_seen_bound: int
    #: How many nodes had the highest total, in the median of the compared decisions.
    median_best_nodes: float | None


class Disagreement(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One decision that differs."""

    pod: str
    #: Seconds since the shadow's start.
    at_seconds: float
    result: Literal["lower", "rejected"]
    #: Where the pod is, and where Bayplan would have placed it; "": nowhere.
    node: str
    shadow_node: str
    best_nodes: int = 0
    feasible_nodes: int = 0
    #: By how much the total of the shadow's node is higher.
    points: int = 0
    #: Plugin → weighted score of the shadow's node minus that of the pod's node.
    plugin_points: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    #: The plugin that rejects the pod's node, and its message.
    plugin: str = ""
    message: str = ""
    #: Whether the node is best on a state that a reordering of the bindings in flight allows.
    best_when_reordered: bool = False


class Decision(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One decision that was judged, also one that agrees."""

    pod: str
    #: Seconds since the shadow's start.
    at_seconds: float
    node: str
    result: Literal["best", "lower", "rejected", "untried"]
    #: For ``lower`` and ``rejected``.
    disagreement: Disagreement | None = None


class PluginCount(Value, frozen=True, kw_only=True):
    """Disagreements that no reordering explains, by plugin."""

    #: "" for what no plugin decides.
    plugin: str
    #: Decisions whose node it rejects.
    rejected: int
    #: Decisions for which it favours the shadow's node, and by how many points in all.
    favours_shadow: int
    points: int


class LongerWait(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that the shadow would have placed earlier."""

    pod: str
    #: Since the pod was first seen.
    waited_seconds: float
    #: Since when the shadow would place it, without a break.
    fitted_seconds: float
    #: Where the shadow would have placed it first.
    shadow_node: str
    #: Where it is now; "": it waits.
    node: str = ""


class WaitingCounts(Value, frozen=True, kw_only=True):
    """The pods that wait, and those that waited longer than in the shadow."""

    #: Pods that waited for the scheduler at the end.
    pending: int
    #: Median time from a pod's first sight to its binding.
    median_seconds: float | None
    #: A wait counts as longer from this time on.
    longer_from_seconds: float
    longer: int
    #: The longest waits.
    pods: tuple[LongerWait, ...]
    omitted: int


class PolicyDecision(Value, frozen=True, kw_only=True, omit_defaults=True):
    """One decision that the policy would have made otherwise."""

    pod: str
    at_seconds: float
    node: str
    #: The node that the policy chooses; "": none.
    policy_node: str
    #: Why the policy rejects the pod's node; "": it does not.
    message: str = ""


class Policy(Value, frozen=True, kw_only=True):
    """What another configuration would have chosen, on the same states."""

    source: str
    compared: int
    #: The pod's node is one of the policy's best nodes.
    equal: int
    share_equal: float | None
    #: The policy would have left the pod pending.
    unplaced: int
    untried: int
    decisions: tuple[PolicyDecision, ...]
    omitted: int


class Relist(Value, frozen=True, kw_only=True):
    """A list after the first one: the watch was lost for a time."""

    kind: str
    at_seconds: float
    #: Objects that differ from what was known: at least so many events were missed.
    changes: int


class Stream(Value, frozen=True, kw_only=True):
    """The stream of events that the shadow has read."""

    #: Kind → events, without those of the first lists.
    events: dict[str, int]
    #: A lower bound of the events that were missed: the changes that relists brought.
    missed_events: int
    relists: tuple[Relist, ...]
    relists_omitted: int
    #: "list v1 Node: reason" → how often it failed.
    failures: dict[str, int]
    #: Kind → why it is not read: the shadow decides without it.
    unreadable: dict[str, str]


class ShadowReport(Answer, frozen=True, kw_only=True):
    """The whole report."""

    kind: Literal["ShadowReport"] = "ShadowReport"
    field_of_list: ClassVar[str] = "disagreements"
    source: str
    #: Names of the schedulers whose pods are compared.
    schedulers: tuple[str, ...]
    #: Start in RFC 3339, and duration.
    started_at: str
    seconds: float
    nodes: int
    decisions: DecisionCounts
    disagreements: tuple[Disagreement, ...]
    disagreements_omitted: int
    plugins: tuple[PluginCount, ...]
    waiting: WaitingCounts
    policy: Policy | None = None
    stream: Stream
    remarks: tuple[str, ...] = ()

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """The parts of the report; the agreement comes first. ``is_wide``: with all disagreements
        that the report has."""
        lines_max = len(self.disagreements) if is_wide else _LINES_MAX
        parts: list[RenderableType] = [Text(_headline(self), style="bold"), BLANK]
        parts.append(_decisions(self))
        if self.disagreements:
            heading = Text("Disagreements", style="bold")
            parts += [BLANK, heading, *_disagreements(self, lines_max)]
        if self.plugins:
            parts += [BLANK, Text("By plugin, without the reordered ones", style="bold")]
            table = Table(
                "plugin", *number_columns("rejects the node", "prefers another", "points")
            )
            for each in self.plugins:
                counts = (each.rejected, each.favours_shadow, each.points)
                table.add_row(each.plugin or "none", *map(str, counts))
            parts.append(table)
        parts += [BLANK, *_waiting(self.waiting)]
        if self.policy is not None:
            parts += [BLANK, *_policy(self.policy)]
        parts += [BLANK, *(Text(line) for line in _stream(self.stream))]
        parts += [Text(f"Note: {remark}") for remark in self.remarks]
        return parts

    def rows(self) -> Rows:
        """The disagreements."""
        return Rows(DISAGREEMENT_HEADINGS, map(disagreement_row, self.disagreements))


#: The columns of a table of disagreements, for programs.
DISAGREEMENT_HEADINGS = (
    "pod",
    "seconds",
    "node",
    "shadow_node",
    "result",
    "points",
    "plugins",
    "message",
)


def disagreement_row(one: Disagreement) -> tuple[Any, ...]:
    """One row of that table."""
    return (
        one.pod,
        one.at_seconds,
        one.node,
        one.shadow_node,
        "best if reordered" if one.best_when_reordered else one.result,
        one.points,
        " ".join(plugins_of(one)),
        one.message,
    )


def plugins_of(one: Disagreement) -> list[str]:
    """The plugins that decide a disagreement: the one that rejects, or those with more points."""
    if one.plugin:
        return [one.plugin]
    return [plugin for plugin, points in one.plugin_points.items() if points > 0]


# ---- what a reader sees -------------------------------------------------------------------------

#: Lines of each table; the JSON has more.
_LINES_MAX = 20


def percentage(share: float | None) -> str:
    """Rounded down, so that 100 % means all; "–" for none."""
    if share is None:
        return "–"
    return f"{int(share * 10_000 + 1e-9) / 100:.2f} %"


def _headline(report: ShadowReport) -> str:
    decisions = report.decisions
    names = ", ".join(report.schedulers)
    if not decisions.compared:
        return f"{names}: no decision was compared in {span(report.seconds)}"
    share = percentage(decisions.share_best)
    return (
        f"{names}: {share} of {decisions.compared:,} decisions chose one of the shadow's best "
        f"nodes, in {span(report.seconds)}"
    )


def _decisions(report: ShadowReport) -> RenderableType:
    decisions = report.decisions
    table = Table("decisions", *number_columns("count"))
    rows = [
        ("compared", decisions.compared),
        ("  node is best", decisions.best),
        ("  node is feasible, another has a higher score", decisions.lower),
        ("  node is not feasible", decisions.rejected),
        ("  of these two: best if bindings are reordered", decisions.best_when_reordered),
    ]
    further = (
        ("not compared: no attempt reached the nodes", decisions.untried),
        ("not compared: learned from a list", decisions.unordered),
        ("not compared: first seen with a node", decisions.first_seen_bound),
    )
    rows += [row for row in further if row[1]]
    for text, count in rows:
        table.add_row(text, f"{count:,}")
    if decisions.median_best_nodes is not None:
        table.add_row(
            "nodes with the best score, in the median", f"{decisions.median_best_nodes:g}"
        )
    return table


def _disagreements(report: ShadowReport, lines_max: int) -> Iterator[RenderableType]:
    table = Table("at", *name_columns("pod", "is on", "shadow"), "why")
    for each in report.disagreements[:lines_max]:
        at = f"{each.at_seconds:.1f} s"
        table.add_row(at, each.pod, each.node, each.shadow_node or "none", _why(each))
    yield table
    omitted = len(report.disagreements[lines_max:]) + report.disagreements_omitted
    if omitted:
        yield Text(f"and {omitted:,} more")


def _why(each: Disagreement) -> str:
    if each.result == "rejected":
        text = f"{each.plugin}: {each.message}" if each.plugin else each.message
    else:
        pairs = sorted(each.plugin_points.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
        plugins = ", ".join(f"{plugin} {points:+d}" for plugin, points in pairs)
        text = f"{each.points:+d}: {plugins}"
    return f"{text} (best if reordered)" if each.best_when_reordered else text


def _waiting(waiting: WaitingCounts) -> Iterator[RenderableType]:
    yield Text(f"{pod_count(waiting.pending)} waiting at the end")
    if waiting.median_seconds is not None:
        yield Text(f"A pod waited {waiting.median_seconds:g} s for its node, in the median")
    if not waiting.longer:
        return
    bound = f"{waiting.longer_from_seconds:g} s"
    yield Text(f"{pod_count(waiting.longer)} waited at least {bound} longer than in the shadow")
    table = Table(
        *name_columns("pod"),
        "waited",
        "shadow would place it since",
        *name_columns("there", "is on"),
    )
    for each in waiting.pods[:_LINES_MAX]:
        row = (span(each.waited_seconds), span(each.fitted_seconds))
        table.add_row(each.pod, *row, each.shadow_node, each.node or "none")
    yield table


def _policy(policy: Policy) -> Iterator[RenderableType]:
    share = percentage(policy.share_equal)
    yield Text(
        f"{policy.source}: the pod's node is one of its best nodes in {share} of "
        f"{policy.compared:,} decisions; it would have chosen no node in {policy.unplaced:,}"
    )
    if not policy.decisions:
        return
    table = Table(*name_columns("pod", "is on", "policy"), "why not the pod's node")
    for each in policy.decisions[:_LINES_MAX]:
        table.add_row(
            each.pod, each.node, each.policy_node or "none", each.message or "lower score"
        )
    yield table
    omitted = len(policy.decisions[_LINES_MAX:]) + policy.omitted
    if omitted:
        yield Text(f"and {omitted:,} more")


def _stream(stream: Stream) -> Iterator[str]:
    yield f"{sum(stream.events.values()):,} events were read"
    if stream.relists:
        count = len(stream.relists) + stream.relists_omitted
        yield (
            f"Lists after the first: {count}; they brought {stream.missed_events:,} changes, so at "
            "least as many events were missed"
        )
    for line, count in stream.failures.items():
        yield f"Failed {count} times: {line}"
    for kind, reason in stream.unreadable.items():
        yield f"Decided without {kind}: {reason}"
