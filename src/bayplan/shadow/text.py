"""A report of a shadow for a reader: rich texts and tables, the answer first."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from bayplan.shadow.report import Disagreement, Policy, ShadowReport, Stream, WaitingPods
from bayplan.sim.output.report import BLANK, new_table, span

#: Lines of each table; the JSON has more.
_LINES_MAX = 20


def reported(report: ShadowReport) -> list[RenderableType]:
    """The whole report."""
    parts: list[RenderableType] = [Text(_headline(report), style="bold"), BLANK]
    parts.append(_decisions(report))
    if report.disagreements:
        parts += [BLANK, Text("Disagreements", style="bold"), *_disagreements(report)]
    if report.plugins:
        parts += [BLANK, Text("By plugin, without the reordered ones", style="bold")]
        table = new_table("plugin", "rejects the node", "prefers another", "points", numbers=True)
        for each in report.plugins:
            counts = (each.rejected, each.favours_shadow, each.points)
            table.add_row(each.plugin or "none", *map(str, counts))
        parts.append(table)
    parts += [BLANK, *_waiting(report.waiting)]
    if report.policy is not None:
        parts += [BLANK, *_policy(report.policy)]
    parts += [BLANK, *(Text(line) for line in _stream(report.stream))]
    parts += [Text(f"Note: {remark}") for remark in report.remarks]
    return parts


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
    table = new_table("decisions", "count", numbers=True)
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


def _disagreements(report: ShadowReport) -> Iterator[RenderableType]:
    table = new_table("at", "pod", "is on", "shadow", "why")
    for each in report.disagreements[:_LINES_MAX]:
        at = f"{each.at_seconds:.1f} s"
        table.add_row(at, each.pod, each.node, each.shadow_node or "none", _why(each))
    yield table
    left_out = len(report.disagreements[_LINES_MAX:]) + report.disagreements_left_out
    if left_out:
        yield Text(f"and {left_out:,} more")


def _why(each: Disagreement) -> str:
    if each.result == "rejected":
        text = f"{each.plugin}: {each.message}" if each.plugin else each.message
    else:
        pairs = sorted(each.plugin_points.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
        plugins = ", ".join(f"{plugin} {points:+d}" for plugin, points in pairs)
        text = f"{each.points:+d}: {plugins}"
    return f"{text} (best if reordered)" if each.best_when_reordered else text


def _waiting(waiting: WaitingPods) -> Iterator[RenderableType]:
    yield Text(f"{waiting.pending} pods wait at the end")
    if waiting.median_seconds is not None:
        yield Text(f"A pod waited {waiting.median_seconds:g} s for its node, in the median")
    if not waiting.longer:
        return
    bound = f"{waiting.longer_from_seconds:g} s"
    yield Text(f"{waiting.longer} pods waited at least {bound} longer than in the shadow")
    table = new_table("pod", "waited", "shadow would place it since", "there", "is on")
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
    table = new_table("pod", "is on", "policy", "why not the pod's node")
    for each in policy.decisions[:_LINES_MAX]:
        table.add_row(
            each.pod, each.node, each.policy_node or "none", each.message or "lower score"
        )
    yield table
    left_out = len(policy.decisions[_LINES_MAX:]) + policy.left_out
    if left_out:
        yield Text(f"and {left_out:,} more")


def _stream(stream: Stream) -> Iterator[str]:
    yield f"{sum(stream.events.values()):,} events were read"
    if stream.relists:
        count = len(stream.relists) + stream.relists_left_out
        yield (
            f"Lists after the first: {count}; they brought {stream.missed_events:,} changes, so at "
            "least as many events were missed"
        )
    for line, count in stream.failures.items():
        yield f"Failed {count} times: {line}"
    for kind, reason in stream.unreadable.items():
        yield f"Decided without {kind}: {reason}"
