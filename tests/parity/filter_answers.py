"""PreEnqueue, PreFilter and Filter: each plugin alone, and the framework's result."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.engine.cycle import Cycle
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.status import is_rejected, is_success
from bayplan.state.pods import PodInfo
from tests.parity.answers import ERROR, merged_answer, pre_filter_answer, rejections, status_as_json
from tests.parity.missing import Missing
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
    missing: Missing,
    sheet: Sheet,
) -> None:
    """PreEnqueue, plugin by plugin."""
    for plugin in missing.among(recorded):
        sheet.pass_over(name, [plugin])
    without_missing = missing.without_missing(recorded)
    if without_missing or actual:
        sheet.compare_entries(name, without_missing, actual, ())
    elif not missing.among(recorded):
        sheet.compare(name, {}, {})


# ---- each plugin alone ---------------------------------------------------------------------


def compare_plugins_alone(question: PodQuestion) -> None:
    """PreFilter and Filter of each plugin by itself, without nominated pods."""
    sheet, missing, expected = question.sheet, question.missing, question.expected
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
    for plugin in missing.among(recorded):
        sheet.pass_over("preFilter", [plugin])
    for plugin in missing.among(recorded_skips):
        sheet.pass_over("preFilterSkip", [plugin])
    sheet.compare_entries("preFilter", missing.without_missing(recorded), actual, ())
    without_missing = [name for name in recorded_skips if name not in missing.plugins]
    sheet.compare("preFilterSkip", without_missing, skipped)
    _compare_filters_alone(question, state, silent)


def _compare_filters_alone(question: PodQuestion, state: CycleState, silent: set[str]) -> None:
    """``silent``: plugins whose PreFilter skipped or rejected, so that Filter is not called."""
    sheet, missing, profile = question.sheet, question.missing, question.profile
    recorded: Mapping[str, Mapping[str, Json]] = question.expected.get("filterByPlugin") or {}
    for plugin in missing.among(recorded):
        sheet.pass_over("filterByPlugin", [plugin], len(recorded[plugin]))
    state.skip_filter_plugins |= silent
    nodes = question.snapshot.nodes
    calls = dict(profile.framework.filter_answers(state, question.pod, nodes))
    for name in sorted({*calls, *missing.without_missing(recorded)}):
        entries = recorded.get(name, {})
        if missing.behind(name):
            sheet.pass_over("filterByPlugin", missing.behind(name), len(question.names))
            continue
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
    shared = question.missing.in_pre_filter()
    if shared:
        question.sheet.pass_over("preFilterResult", shared)
        return
    run = question.profile.framework.run_pre_filter
    result, status, narrowing = run(CycleState(), question.pod, question.snapshot.nodes)
    if status is not None and not is_success(status) and not is_rejected(status):
        return  # the error is compared elsewhere
    actual = merged_answer(result, status, narrowing)
    question.sheet.compare("preFilterResult", question.expected.get("preFilterResult"), actual)


def compare_filter(question: PodQuestion, cycle: Cycle) -> None:
    """Compare the first plugin that rejects each node, and the feasible nodes."""
    sheet, missing, expected = question.sheet, question.missing, question.expected
    if "error" in expected and not missing.in_error():
        return  # an error ends the evaluation here, so the other answers are incomplete
    recorded: Mapping[str, Json] = expected.get("filter") or {}
    outcome = cycle.filter_outcome()
    actual = rejections(outcome, plugin=True) if outcome is not None else {}
    comparable = _comparable_nodes(question)
    for name in sorted({*question.names, *recorded}):
        entry = recorded.get(name)
        shared = _behind_either(missing, entry, actual.get(name))
        if missing.contradicts(name) and not question.nominated_ahead(name):
            sheet.compare("filter", entry, "what the plugins alone do not bear out", name)
        elif shared:
            sheet.pass_over("filter", shared)
        elif name in comparable or entry is not None:
            sheet.compare("filter", entry, actual.get(name), name)
        else:
            sheet.pass_over("filter", missing.in_pre_filter())
    shared = sorted({*missing.in_filter(), *missing.in_error()})
    if shared:
        sheet.pass_over("feasible", shared)
    else:
        sheet.compare("feasible", expected.get("feasible"), _feasible(cycle))


def _behind_either(missing: Missing, *entries: Json | None) -> list[str]:
    """The missing plugins that may be behind the rejection of a node by one of these plugins."""
    rejecting = [entry.get("plugin", "") for entry in entries if entry is not None]
    return sorted({behind for plugin in rejecting for behind in missing.behind(plugin)})


def _comparable_nodes(question: PodQuestion) -> set[str]:
    """Nodes whose answers can be compared with the recorded ones.

    If PreFilter of a missing plugin rejected the pod or narrowed the nodes, kube-scheduler
    evaluated fewer nodes.
    """
    if not question.missing.in_pre_filter():
        return set(question.names)
    merged: Json = question.expected["preFilterResult"]
    return set(merged.get("nodeNames") or ()) if merged.get("code") == "Success" else set()


def _feasible(cycle: Cycle) -> list[str]:
    outcome = cycle.filter_outcome()
    return sorted(outcome.nodes.take(outcome.feasible).names()) if outcome is not None else []
