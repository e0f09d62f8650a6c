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
    """Compare the scores. Returns them, a Status after an error, or None without feasible nodes."""
    expected, sheet = question.expected, question.sheet
    nodes = question.snapshot.nodes
    positions = nodes.positions(expected.get("feasible") or ())
    recorded: Mapping[str, Mapping[str, Json]] = expected.get("scores") or {}
    if not len(positions):
        sheet.compare("scores", {}, recorded)
        return None
    state = CycleState()
    scored = _scored(question, state, nodes.take(positions))
    if "error" in expected:
        return scored
    if "scoreError" in expected or isinstance(scored, Status):
        recorded_error, failed = expected.get("scoreError"), isinstance(scored, Status)
        sheet.compare("scoreError", recorded_error is not None, failed)
        return None
    skips: Sequence[str] = expected.get("preScoreSkip") or ()
    sheet.compare("preScoreSkip", list(skips), sorted(state.skip_score_plugins))
    compare_table(question, scored)
    return scored


def compare_table(question: PodQuestion, scored: ScoreTable | Status) -> None:
    """Compare raw, normalised and weighted scores of each plugin, and the totals."""
    recorded: Mapping[str, Mapping[str, Json]] = question.expected.get("scores") or {}
    actual = _entries(scored) if isinstance(scored, ScoreTable) else {}
    for plugin in sorted({*actual, *recorded}):
        _compare_plugin(question.sheet, plugin, recorded.get(plugin, {}), actual.get(plugin, {}))
    _compare_totals(question, scored)


def _scored(question: PodQuestion, state: CycleState, nodes: NodeView) -> ScoreTable | Status:
    """Score may read the notes of PreFilter and Filter, so they run before it."""
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
    actual: dict[str, dict[str, Json]] = {}
    for column in table.columns:
        numbers = zip(
            column.raw.tolist(), column.normalized.tolist(), column.weighted.tolist(), strict=True
        )
        each: list[Json] = [dict(zip(_FIELDS, row, strict=True)) for row in numbers]
        actual[column.name] = dict(zip(names, each, strict=True))
    return actual


def _compare_plugin(
    sheet: Sheet, plugin: str, expected: Mapping[str, Json], actual: Mapping[str, Json]
) -> None:
    for node in sorted({*expected, *actual}):
        recorded, ours = expected.get(node, {}), actual.get(node, {})
        for name in (*_FIELDS, *sorted(set(recorded) - set(_FIELDS))):
            where = f"{plugin} {node}"
            sheet.compare(f"scores.{name}", recorded.get(name), ours.get(name), where)


def _compare_totals(question: PodQuestion, scored: ScoreTable | Status) -> None:
    expected: Mapping[str, int] = question.expected.get("total") or {}
    actual: dict[str, int] = {}
    if isinstance(scored, ScoreTable):
        actual = dict(zip(scored.nodes.names(), scored.totals.tolist(), strict=True))
    question.sheet.compare_entries("total", expected, actual, ())
