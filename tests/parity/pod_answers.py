"""One pending pod of a case: the answers of the framework are compared with the recorded ones.

Every answer is compared on its own, and from the recorded state if one step depends on another:
scores are compared on the nodes recorded as feasible, and this pod is placed on the recorded node
before the next one. So one difference does not hide further differences.
"""

from collections.abc import Sequence
from typing import Any

from bayplan.engine.cycle import Cycle
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status, is_rejected, is_success
from bayplan.plugins.volume_binding.plugin import Notes
from bayplan.state.pods import PodInfo
from tests.parity.answers import status_as_json
from tests.parity.filter_answers import (
    compare_filter,
    compare_plugins_alone,
    compare_pre_filter_result,
)
from tests.parity.preemption_answers import FIELDS as PREEMPTION_FIELDS
from tests.parity.preemption_answers import as_recorded, compare_preemption
from tests.parity.question import PodQuestion
from tests.parity.score_answers import compare_scores

Json = dict[str, Any]

VOLUME_BINDING = "VolumeBinding"

#: Every field of an answer that this module compares.
FIELDS = frozenset(
    (
        "pod",
        "signature",
        "preEnqueue",
        "preFilter",
        "preFilterSkip",
        "preFilterResult",
        "filter",
        "filterByPlugin",
        "feasible",
        "preScoreSkip",
        "scores",
        "total",
        "best",
        "chosen",
        "reserve",
        "error",
        "fitError",
        "postFilter",
        "fitErrorFinal",
        "scoreError",
        # Of one plugin each; compared after Reserve.
        "volumeBindings",
        "allocations",
    )
)
#: Compared in `compare_claim_updates`.
CLAIM_UPDATES = "claimUpdates"
_POST_FILTER_FIELDS = ("code", "plugin", "reasons", "nominatedNode", "nominatingMode")


def compare_pod(question: PodQuestion) -> Cycle:
    """Compare all answers from PreFilter to the choice. Returns the cycle over all nodes."""
    _note_unknown(question)
    compare_plugins_alone(question)
    compare_pre_filter_result(question)
    cycle = question.cycle_over_all_nodes()
    compare_filter(question, cycle)
    scored = compare_scores(question)
    _compare_error(question, cycle, scored)
    _compare_choice(question, cycle, scored if isinstance(scored, ScoreTable) else None)
    _compare_fit_error(question, cycle)
    return cycle


def _note_unknown(question: PodQuestion) -> None:
    for name in sorted(set(question.expected) - FIELDS):
        question.sheet.not_understood(name, is_answer=True)


def _compare_error(question: PodQuestion, cycle: Cycle, scored: ScoreTable | Status | None) -> None:
    """Compare whether the attempt ended with an error, without its text."""
    erred = cycle.status is not None and not question.has_no_fit(cycle)
    erred = erred or (isinstance(scored, Status) and not is_rejected(scored))
    question.sheet.compare("error", "error" in question.expected, erred)


def _compare_choice(question: PodQuestion, cycle: Cycle, table: ScoreTable | None) -> None:
    """Compare the best nodes, and check that the cycle chooses one of them."""
    expected, sheet = question.expected, question.sheet
    if "error" in expected:
        return
    nominated = question.pod.nominated_node_name
    choice = (question.cycle() if nominated else cycle).choice
    chosen = choice.node_name if choice is not None else None
    if chosen is not None and nominated in (expected.get("feasible") or ()):
        actual = [chosen]
    elif "scoreError" in expected:
        # Score failed, but a running scheduler does not call it for the only feasible node.
        actual = [chosen] if chosen is not None else []
    else:
        actual = _best(table)
    best: Sequence[str] = expected.get("best") or ()
    sheet.compare("best", list(best), actual)
    sheet.compare("chosen", expected.get("chosen"), actual[0] if actual else None)
    sheet.compare("choice", True, chosen in (best or (None,)), f"of {chosen}")


def _best(table: ScoreTable | None) -> list[str]:
    if table is None:
        return []
    return sorted(table.nodes.name(position) for position in table.best_positions().tolist())


def _compare_fit_error(question: PodQuestion, cycle: Cycle) -> None:
    """Compare the message before PostFilter, the result of PostFilter, and the message after it."""
    sheet, expected = question.sheet, question.expected
    failed = question.has_no_fit(cycle)
    message = cycle.fit_error().message if failed else None
    sheet.compare("fitError", expected.get("fitError"), message)
    if not question.pod.node_name:
        _compare_post_filter(question, cycle if failed else None)


def _compare_post_filter(question: PodQuestion, cycle: Cycle | None) -> None:
    """``cycle``: a cycle without a feasible node, or None."""
    sheet, expected = question.sheet, question.expected
    recorded: Json = expected.get("postFilter") or {}
    framework = question.profile.framework
    if cycle is None or not framework.plugins.post_filter:
        sheet.compare("postFilter", recorded, {})
        sheet.compare("fitErrorFinal", expected.get("fitErrorFinal"), None)
        return
    fit_error = cycle.fit_error()
    statuses = cycle.node_to_status()
    nomination, status = framework.run_post_filter(cycle.state, question.pod, statuses)
    actual = status_as_json(status, plugin=True)
    drawn = nomination.node_name if nomination is not None else None
    message = as_recorded(status.message if status is not None else "", drawn, recorded)
    actual["nominatedNode"] = drawn
    if drawn in (recorded.get("bestCandidates") or ()):
        actual["nominatedNode"] = recorded.get("nominatedNode")
        actual["reasons"] = [message] if message else None
    if nomination is not None:
        actual["nominatingMode"] = nomination.mode.value
    for name in _POST_FILTER_FIELDS:
        sheet.compare(f"postFilter.{name}", recorded.get(name), actual.get(name))
    compare_preemption(question, cycle)
    for name in sorted(set(recorded) - {*_POST_FILTER_FIELDS, *PREEMPTION_FIELDS, CLAIM_UPDATES}):
        sheet.not_understood(f"postFilter.{name}", is_answer=True)
    fit_error.diagnosis.post_filter_msg = message or ""
    sheet.compare("fitErrorFinal", expected.get("fitErrorFinal"), fit_error.message)


# ---- afterwards ----------------------------------------------------------------------------


def compare_reserve(question: PodQuestion, state: CycleState, assumed: PodInfo) -> bool:
    """Run Reserve on the recorded node. Returns whether the pod stays there in the record."""
    recorded: Json | None = question.expected.get("reserve")
    framework = question.profile.framework
    status = framework.run_reserve(state, assumed, assumed.node_name)
    actual = None if is_success(status) else status_as_json(status, plugin=True)
    question.sheet.compare("reserve", recorded, actual)
    expected = question.expected.get("volumeBindings") or {}
    question.sheet.compare("volumeBindings", expected, _volume_bindings(state))
    if recorded is None:
        return True
    framework.run_unreserve(state, assumed, assumed.node_name)
    return False


def _volume_bindings(state: CycleState) -> dict[str, list[str]]:
    """The decisions about the pod's claims in the format of the record."""
    notes = state.get(VOLUME_BINDING)
    decision = notes.decision if isinstance(notes, Notes) else None
    if decision is None:
        return {}
    bindings = {
        "static": [f"{each.claim.key}={each.volume.name}" for each in decision.bindings],
        "dynamic": [each.claim.key for each in decision.provisions],
    }
    return {name: sorted(entries) for name, entries in bindings.items() if entries}
