"""PreEnqueue, PreFilter and Filter: each plugin alone, and the framework's result."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.engine.cycle import Cycle
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.status import is_rejected, is_success
from bayplan.state.pods import PodInfo
from tests.parity.answers import ERROR, merged_answer, pre_filter_answer, rejections, status_as_json
from tests.parity.question import PodQuestion
from tests.parity.tally import Sheet

Json = dict[str, Any]


def gates(profile: ProfilePlugins, pod: PodInfo) -> dict[str, Json]:
    """{plugin: {code, reasons}} of every PreEnqueue plugin that gates the pod."""
    statuses = {plugin.instance_name: plugin.pre_enqueue(pod) for plugin in profile.pre_enqueue}
    return {
        name: status_as_json(status) for name, status in statuses.items() if not is_success(status)
    }


def compare_gates(
    name: str,
    recorded: Mapping[str, Json],
    actual: Mapping[str, Json],
    sheet: Sheet,
) -> None:
    """PreEnqueue, plugin by plugin."""
    if recorded or actual:
        sheet.compare_entries(name, recorded, actual, ())
    else:
        sheet.compare(name, {}, {})


# ---- each plugin alone ---------------------------------------------------------------------


def compare_plugins_alone(question: PodQuestion) -> None:
    """PreFilter and Filter of each plugin by itself, without nominated pods."""
    sheet, expected = question.sheet, question.expected
    state, nodes = CycleState(), question.snapshot.nodes
    actual: dict[str, Json] = {}
    skipped: list[str] = []
    silent: set[str] = set()
    for plugin in question.profile.plugins.pre_filter:
        name = plugin.instance_name
        answer, may_filter = pre_filter_answer(plugin, state, question.pod, nodes)
        if not may_filter:
            silent.add(name)
        if answer["code"] == "Skip":
            skipped.append(name)
        else:
            actual[name] = answer
    recorded: Mapping[str, Json] = expected.get("preFilter") or {}
    recorded_skips: Sequence[str] = expected.get("preFilterSkip") or ()
    sheet.compare_entries("preFilter", recorded, actual, ())
    sheet.compare("preFilterSkip", list(recorded_skips), skipped)
    _compare_filters_alone(question, state, silent)


def _compare_filters_alone(question: PodQuestion, state: CycleState, silent: set[str]) -> None:
    """``silent``: plugins whose PreFilter skipped or rejected, so that Filter is not called."""
    sheet, profile = question.sheet, question.profile
    recorded: Mapping[str, Mapping[str, Json]] = question.expected.get("filterByPlugin") or {}
    state.skip_filter_plugins |= silent
    nodes = question.snapshot.nodes
    calls = dict(profile.framework.filter_answers(state, question.pod, nodes))
    for name in sorted({*calls, *recorded}):
        entries = recorded.get(name, {})
        if name not in calls:
            sheet.compare_entries("filterByPlugin", entries, {}, (), name)
            continue
        erring = any(entry.get("code") == ERROR for entry in entries.values())
        if erring or calls[name].error is not None:
            # An error ends the evaluation here, so only the fact can be compared.
            sheet.compare("filterByPlugin", erring, calls[name].error is not None, f"{name} errs")
            continue
        actual = rejections(calls[name], plugin=False)
        sheet.compare_entries("filterByPlugin", entries, actual, question.names, name)


# ---- the framework -------------------------------------------------------------------------


def compare_pre_filter_result(question: PodQuestion) -> None:
    run = question.profile.framework.run_pre_filter
    result, status, narrowing = run(CycleState(), question.pod, question.snapshot.nodes)
    if status is not None and not is_success(status) and not is_rejected(status):
        return  # the error is compared elsewhere
    actual = merged_answer(result, status, narrowing)
    question.sheet.compare("preFilterResult", question.expected.get("preFilterResult"), actual)


def compare_filter(question: PodQuestion, cycle: Cycle) -> None:
    """Compare the first plugin that rejects each node, and the feasible nodes."""
    sheet, expected = question.sheet, question.expected
    if "error" in expected:
        return  # an error ends the evaluation here, so the other answers are incomplete
    recorded: Mapping[str, Json] = expected.get("filter") or {}
    outcome = cycle.filter_outcome()
    actual = rejections(outcome, plugin=True) if outcome is not None else {}
    for name in sorted({*question.names, *recorded}):
        sheet.compare("filter", recorded.get(name), actual.get(name), name)
    sheet.compare("feasible", expected.get("feasible"), _feasible(cycle))


def _feasible(cycle: Cycle) -> list[str]:
    outcome = cycle.filter_outcome()
    return sorted(outcome.nodes.take(outcome.feasible).names()) if outcome is not None else []
