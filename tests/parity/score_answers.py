"""PreScore, Score and NormalizeScore, on the nodes that were recorded as feasible."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status, is_success
from bayplan.state.nodes import NodeView
from tests.parity.question import PodQuestion
from tests.parity.tally import Sheet

Json = dict[str, Any]

_FIELDS: tuple[str, ...] = ("raw", "normalized", "weighted")


def compare_scores(question: PodQuestion) -> ScoreTable | Status | None:
    """Our scores; a Status where there was an error, None where no node was feasible."""
    wanted, sheet, missing = question.wanted, question.sheet, question.missing
    nodes = question.snapshot.nodes
    positions = nodes.positions(wanted.get("feasible") or ())
    recorded: Mapping[str, Mapping[str, Json]] = wanted.get("scores") or {}
    if not len(positions):
        sheet.compare("scores", {}, recorded)
        return None
    state = CycleState()
    scored = _scored(question, state, nodes.take(positions))
    if "error" in wanted:
        return scored
    skips: Sequence[str] = wanted.get("preScoreSkip") or ()
    for plugin in missing.among(skips):
        sheet.pass_over("preScoreSkip", [plugin])
    known_skips = [name for name in skips if name not in missing.plugins]
    sheet.compare("preScoreSkip", known_skips, sorted(state.skip_score_plugins))
    for plugin in missing.among(recorded):
        sheet.compare("scores", sorted(wanted["feasible"]), sorted(recorded[plugin]), plugin)
        for name in _FIELDS:
            sheet.pass_over(f"scores.{name}", [plugin], len(recorded[plugin]))
    compare_table(question, scored)
    return scored


def compare_table(question: PodQuestion, scored: ScoreTable | Status) -> None:
    """Raw, normalised and weighted, plugin by plugin, and the totals."""
    recorded: Mapping[str, Mapping[str, Json]] = question.wanted.get("scores") or {}
    found = _entries(scored) if isinstance(scored, ScoreTable) else {}
    for plugin in sorted({*found, *question.missing.known(recorded)}):
        _compare_plugin(question.sheet, plugin, recorded.get(plugin, {}), found.get(plugin, {}))
    _compare_totals(question, scored)


def _scored(question: PodQuestion, state: CycleState, nodes: NodeView) -> ScoreTable | Status:
    """Score may read what PreFilter and Filter left in the state, so they run before."""
    framework, pod = question.profile.framework, question.pod
    _, status, _ = framework.run_pre_filter(state, pod, question.snapshot.nodes)
    if is_success(status):
        framework.run_filter(state, pod, nodes)
        status = framework.run_pre_score(state, pod, nodes)
    if not is_success(status):
        assert status is not None
        return status
    return framework.run_score(state, pod, nodes)


def _entries(table: ScoreTable) -> dict[str, dict[str, Json]]:
    """{plugin: {node: {raw, normalized, weighted}}}"""
    names = table.nodes.names()
    found: dict[str, dict[str, Json]] = {}
    for column in table.columns:
        numbers = zip(
            column.raw.tolist(), column.normalized.tolist(), column.weighted.tolist(), strict=True
        )
        each: list[Json] = [dict(zip(_FIELDS, row, strict=True)) for row in numbers]
        found[column.name] = dict(zip(names, each, strict=True))
    return found


def _compare_plugin(
    sheet: Sheet, plugin: str, wanted: Mapping[str, Json], found: Mapping[str, Json]
) -> None:
    for node in sorted({*wanted, *found}):
        recorded, ours = wanted.get(node, {}), found.get(node, {})
        for name in (*_FIELDS, *sorted(set(recorded) - set(_FIELDS))):
            where = f"{plugin} {node}"
            sheet.compare(f"scores.{name}", recorded.get(name), ours.get(name), where)


def _compare_totals(question: PodQuestion, scored: ScoreTable | Status) -> None:
    """Totals, less what missing plugins had added."""
    recorded: Mapping[str, int] = question.wanted.get("total") or {}
    from_missing = question.missing.weighted()
    wanted = {name: total - from_missing.get(name, 0) for name, total in recorded.items()}
    found: dict[str, int] = {}
    if isinstance(scored, ScoreTable):
        found = dict(zip(scored.nodes.names(), scored.totals.tolist(), strict=True))
    question.sheet.compare_entries("total", wanted, found, ())
