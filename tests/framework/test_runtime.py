"""Framework: each extension point follows upstream's rules, and wrong answers are errors.

Plugins at the extension points after the choice of a node.
"""

from typing import Any

import numpy as np
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import (
    SKIP,
    Code,
    NodeToStatus,
    Rejection,
    Status,
    code_of,
    unresolvable,
    unschedulable,
)
from bayplan.framework.types import (
    MAX_PERMIT_TIMEOUT_SECONDS,
    NominatingMode,
    Nomination,
    PreFilterResult,
)
from bayplan.queue.nominator import Nominator
from bayplan.testing import SampleCluster, node, pod
from tests.framework.answering import Calls, answering, cluster_of, framework_of, scores

# ---- runtime --------------------------------------------------------------------------------


ERROR = Status(Code.ERROR, ("broken",))
P = pod("p")
THREE = ("n1", "n2", "n3")


def three_nodes() -> SampleCluster:
    return cluster_of(*map(node, THREE))


def only(*names: str) -> PreFilterResult:
    return PreFilterResult(frozenset(names))


def refused(*names: str, code: Code = Code.UNSCHEDULABLE, reason: str = "no") -> Any:
    """A Filter that rejects these nodes."""

    def answer(state: Any, pod: Any, nodes: Any, feasible: Any) -> list[Rejection]:
        return [Rejection(nodes.positions(names), code, (reason,))]

    return answer


# ---- PreFilter ------------------------------------------------------------------------------


def pre_filtered(*plugins: Any) -> tuple[PreFilterResult, Status | None, set[str], CycleState]:
    state = CycleState()
    nodes = three_nodes().lend().nodes
    result, status, narrowing = framework_of(*plugins).run_pre_filter(state, P, nodes)
    return result, status, narrowing, state


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param("A", "node(s) didn't satisfy plugin A", id="one node"),
        pytest.param(
            "BA", "node(s) didn't satisfy plugin(s) [A B] simultaneously", id="two nodes, sorted"
        ),
    ],
)
def test_an_empty_set_of_nodes_rejects_the_pod(names: str, message: str) -> None:
    last, *first_names = names
    plugins = [answering(name, pre_filter=only("n1")) for name in first_names]
    plugins.append(answering(last, pre_filter=only("n2") if first_names else only()))
    late: Calls = []
    _, status, narrowing, _ = pre_filtered(*plugins, answering("Z", late, pre_filter=None))
    assert status == unresolvable(message)
    assert narrowing == set(names)
    assert late == []


def test_a_skip_is_recorded_and_its_other_fields_are_ignored() -> None:
    _, status, _, state = pre_filtered(answering("A", pre_filter=Status(Code.SKIP, ("why",))))
    assert status is None
    assert state.skip_filter_plugins == {"A"}


def test_an_unresolvable_status_ends_the_step_and_names_one_plugin() -> None:
    late: Calls = []
    narrows = answering("A", pre_filter=only("n1"))
    rejects = answering("B", pre_filter=unresolvable("never"))
    _, status, narrowing, _ = pre_filtered(narrows, rejects, answering("C", late, pre_filter=None))
    assert status == unresolvable("never").with_plugin("B")
    assert (narrowing, late) == (set(), [])


def test_unschedulable_does_not_end_the_step_and_the_last_one_counts() -> None:
    late: Calls = []
    plugins = [answering(name, pre_filter=unschedulable(name.lower())) for name in "AB"]
    _, status, _, _ = pre_filtered(*plugins, answering("C", late, pre_filter=None))
    assert status == unschedulable("b").with_plugin("B")
    assert late == [("C", "pre_filter")]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(ERROR, "broken", id="an Error"),
        pytest.param(Status(Code.PENDING), "returned Pending; wanted Success, ", id="Pending"),
        pytest.param(Status(Code.WAIT), "returned Wait; wanted Success, ", id="Wait"),
        pytest.param(ValueError("boom"), "ValueError: boom", id="raised"),
        pytest.param(
            True, "returned True; wanted a PreFilterResult, a Status or None", id="no answer"
        ),
    ],
)
def test_any_other_result_of_pre_filter_is_an_error(answer: Any, message: str) -> None:
    first = answering("A", pre_filter=only("n1"))
    _, status, narrowing, _ = pre_filtered(first, answering("B", pre_filter=answer))
    assert status is not None
    assert (status.code, status.plugin, narrowing) == (Code.ERROR, "B", set())
    assert status.message.startswith('running PreFilter plugin "B": ')
    assert message in status.message


# ---- Filter ---------------------------------------------------------------------------------


def test_the_first_plugin_to_reject_a_node_counts_and_later_ones_are_not_called() -> None:
    calls: list[list[bool]] = []

    def watching(state: Any, pod_info: Any, nodes: Any, feasible: Any) -> list[Rejection]:
        calls.append(feasible.tolist())
        return [Rejection(np.array([True, True, False]), Code.UNSCHEDULABLE, ("b",))]

    nodes = three_nodes().lend().nodes
    a, b = answering("A", filter=refused("n1", reason="a")), answering("B", filter=watching)
    outcome = framework_of(a, b).run_filter(CycleState(), P, nodes)
    assert calls == [[False, True, True]]
    assert outcome.feasible.tolist() == [False, False, True]
    assert outcome.reason_counts() == {"a": 1, "b": 1}
    assert outcome.plugins() == {"A", "B"}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        pytest.param({"filter": ValueError("boom")}, "ValueError: boom", id="the method raises"),
        pytest.param({"filter_node": ValueError("boom")}, "ValueError: boom", id="for one node"),
        pytest.param(
            {"filter": None}, "returned nothing (is a return or a yield missing?)", id="no result"
        ),
        pytest.param(
            {"filter": np.array([True, False, True])},
            "returned array([ True, False,  True]); wanted an iterable of Rejection, as "
            "`yield nodes.reject(mask, reason)` makes it; the mask is of the nodes to reject",
            id="a mask",
        ),
        pytest.param({"filter": "no"}, "returned 'no'; wanted an iterable of", id="a text"),
        pytest.param({"filter": {"n1": "no"}}, "returned {'n1': 'no'}; wanted", id="a mapping"),
        pytest.param({"filter_node": True}, "returned True", id="for one node, no status"),
        pytest.param({"filter_node": Status(Code.WAIT)}, "Wait", id="a code it may not answer"),
        pytest.param(
            {"filter": refused("n1", code=Code.SKIP)},
            "Skip",
            id="a code it may not answer, vectorised",
        ),
        pytest.param({"filter_node": ERROR}, "broken", id="an error of its own"),
    ],
)
def test_a_filter_that_fails_ends_the_evaluation(answers: dict[str, Any], message: str) -> None:
    late: Calls = []
    plugins = answering("A", **answers), answering("B", late, filter=refused())
    nodes = three_nodes().lend().nodes
    outcome = framework_of(*plugins).run_filter(CycleState(), P, nodes)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.plugin, outcome.code) == (
        Code.ERROR,
        "A",
        Code.ERROR,
    )
    assert '"A"' in outcome.error.message
    assert message in outcome.error.message
    assert late == []


# ---- Filter with nominated pods -------------------------------------------------------------


def takes_up_to(cpu: int) -> Any:
    """Rejects nodes whose requests with the pod would exceed ``cpu`` millicores."""

    def answer(state: Any, pod: Any, nodes: Any, feasible: Any) -> list[Rejection]:
        short = nodes.requested("cpu") + pod.requests["cpu"] > cpu
        return [Rejection(short, Code.UNSCHEDULABLE, ("Insufficient cpu",))]

    return answer


@pytest.mark.parametrize(
    ("priority", "accepted"),
    [
        pytest.param(5, False, id="a lower priority leaves room"),
        pytest.param(10, False, id="an equal priority leaves room"),
        pytest.param(20, True, id="a higher priority does not leave room"),
    ],
)
def test_room_is_left_for_nominated_pods_of_equal_or_higher_priority(
    priority: int, accepted: bool
) -> None:
    nominator = Nominator()
    nominator.add_nominated_pod(pod("high", cpu=3, priority=10, nominated_node="n1"))
    framework = framework_of(answering("Fit", filter=takes_up_to(4000)), nominator=nominator)
    snapshot = cluster_of(node("n1", cpu=4)).lend()
    scheduled_pod = pod("scheduled", cpu=2, priority=priority)
    status = framework.filter_with_nominated(CycleState(), scheduled_pod, snapshot, "n1")
    assert status == (None if accepted else unschedulable("Insufficient cpu").with_plugin("Fit"))
    # The what-if is over.
    assert snapshot.node("n1").requested == {}


def test_both_runs_must_pass() -> None:
    """A plugin that depends on a nominated pod rejects the node without that pod."""

    def needs_company(state: Any, pod: Any, info: Any) -> Status | None:
        return None if info.pods else unschedulable("alone")

    nominator = Nominator()
    nominator.add_nominated_pod(pod("high", priority=10, nominated_node="n1"))
    plugin = answering("Company", filter_node=needs_company)
    framework = framework_of(plugin, nominator=nominator)
    snapshot = cluster_of(node("n1")).lend()
    status = framework.filter_with_nominated(CycleState(), P, snapshot, "n1")
    assert status == unschedulable("alone").with_plugin("Company")
    assert len(plugin.calls) == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(ValueError("boom"), "ValueError: boom", id="the method raises"),
        pytest.param(unschedulable("no"), "no", id="it rejects"),
    ],
)
def test_a_failing_add_pod_is_an_error_and_the_trial_is_undone(answer: Any, message: str) -> None:
    nominator = Nominator()
    nominator.add_nominated_pod(pod("high", cpu=3, priority=10, nominated_node="n1"))
    plugin = answering("A", pre_filter=None, add_pod=answer, filter_node=None)
    framework = framework_of(plugin, nominator=nominator)
    snapshot = cluster_of(node("n1", cpu=4)).lend()
    status = framework.filter_with_nominated(CycleState(), P, snapshot, "n1")
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    assert status.message.startswith(f'running AddPod on PreFilter plugin "A": {message}')
    assert snapshot.node("n1").requested == {}
    assert snapshot.node("n1").pods == []


def test_a_filter_that_raises_in_a_trial_leaves_no_trace() -> None:
    nominator = Nominator()
    nominator.add_nominated_pod(pod("high", cpu=3, priority=10, nominated_node="n1"))
    framework = framework_of(answering("A", filter=ValueError("boom")), nominator=nominator)
    snapshot = cluster_of(node("n1", cpu=4)).lend()
    status = framework.filter_with_nominated(CycleState(), P, snapshot, "n1")
    assert code_of(status) is Code.ERROR
    assert snapshot.node("n1").pods == []


def test_the_what_if_works_on_a_clone_of_the_state() -> None:
    def count(state: CycleState, *_: Any) -> None:
        state["seen"] = state.get("seen") or 0
        state["seen"] += 1

    nominator = Nominator()
    nominator.add_nominated_pod(pod("high", priority=10, nominated_node="n1"))
    plugin = answering("A", pre_filter=None, add_pod=count, filter_node=None)
    state = CycleState()
    snapshot = cluster_of(node("n1")).lend()
    framework_of(plugin, nominator=nominator).filter_with_nominated(state, P, snapshot, "n1")
    assert "seen" not in state


# ---- AddPod, RemovePod ----------------------------------------------------------------------


def test_add_pod_and_remove_pod_are_called_for_plugins_with_extensions_that_did_not_skip() -> None:
    extended = answering("A", pre_filter=None, add_pod=None, remove_pod=None)
    skipped = answering("B", pre_filter=SKIP, add_pod=None, remove_pod=None)
    framework, state = (
        framework_of(extended, skipped, answering("C", pre_filter=None)),
        CycleState(),
    )
    snapshot = three_nodes().lend()
    framework.run_pre_filter(state, P, snapshot.nodes)
    info = snapshot.node("n1")
    assert framework.run_add_pod(state, P, pod("other"), info) is None
    assert framework.run_remove_pod(state, P, pod("other"), info) is None
    assert extended.calls[1:] == [("A", "add_pod"), ("A", "remove_pod")]
    assert skipped.calls[1:] == []


def test_the_first_failure_of_remove_pod_is_returned() -> None:
    plugins = [answering(n, pre_filter=None, remove_pod=ERROR) for n in "AB"]
    info = three_nodes().lend().node("n1")
    status = framework_of(*plugins).run_remove_pod(CycleState(), P, P, info)
    assert status is not None
    assert status.message == 'running RemovePod on PreFilter plugin "A": broken'
    assert plugins[1].calls == []


# ---- PostFilter -----------------------------------------------------------------------------

TAKE_N1 = Nomination(NominatingMode.OVERRIDE, "n1")


def post_filtered(*answers: Any) -> tuple[Nomination | None, Status | None]:
    plugins = [answering(name, post_filter=a) for name, a in zip("ABC", answers, strict=False)]
    return framework_of(*plugins).run_post_filter(CycleState(), P, NodeToStatus())


def test_without_a_post_filter_there_is_no_status() -> None:
    assert post_filtered() == (None, None)


def test_a_post_filter_that_waits_ends_the_step_without_a_message() -> None:
    result = post_filtered((TAKE_N1, Status(Code.WAIT)), (TAKE_N1, None))
    assert result == (None, Status(Code.WAIT, (), "A"))


def test_the_first_success_ends_the_step() -> None:
    late = (None, unschedulable("too late"))
    result = post_filtered((None, unschedulable("seen")), (TAKE_N1, None), late)
    assert result == (TAKE_N1, Status(Code.SUCCESS, (), "B"))
    outcome = post_filtered((TAKE_N1, Status(Code.SUCCESS, ("made room",))))
    assert outcome == (TAKE_N1, Status(Code.SUCCESS, ("made room",), "A"))


def test_messages_of_failed_post_filters_are_joined_in_order() -> None:
    nomination, status = post_filtered(
        (None, unschedulable("seen")), (None, unschedulable("no room"))
    )
    assert nomination is None
    assert status == Status(Code.UNSCHEDULABLE, ("seen", "no room"), "A")


def test_a_nomination_of_a_plugin_that_failed_remains() -> None:
    clear = Nomination(NominatingMode.OVERRIDE, "")
    nomination, _ = post_filtered((clear, unschedulable()), (Nomination(), unschedulable()))
    assert nomination == clear


def test_unresolvable_ends_the_step_with_its_nomination() -> None:
    result = post_filtered((TAKE_N1, unresolvable("never")), (None, None))
    assert result == (TAKE_N1, unresolvable("never").with_plugin("A"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param((TAKE_N1, ERROR), "broken", id="an Error"),
        pytest.param((None, Status(Code.SKIP)), "returned Skip", id="a code it may not answer"),
        pytest.param(ValueError("boom"), "ValueError: boom", id="raised"),
        pytest.param(None, "returned nothing (is a return missing?)", id="no pair"),
        pytest.param((None, "no"), "wanted a Status", id="no status"),
    ],
)
def test_an_error_ends_the_step_without_a_nomination(answer: Any, message: str) -> None:
    nomination, status = post_filtered(answer, (TAKE_N1, None))
    assert nomination is None
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    assert message in status.message


# ---- PreScore, Score ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(unschedulable("no taste"), "no taste", id="a rejection"),
        pytest.param(ERROR, "broken", id="an Error"),
        pytest.param(ValueError("boom"), "ValueError: boom", id="raised"),
        pytest.param("no", "wanted a Status", id="no status"),
    ],
)
def test_any_other_result_of_pre_score_is_an_error(answer: Any, message: str) -> None:
    framework = framework_of(answering("A", pre_score=answer))
    status = framework.run_pre_score(CycleState(), P, three_nodes().lend().nodes)
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    assert status.message.startswith('running PreScore plugin "A": ')
    assert message in status.message


def test_a_score_that_fails_is_an_error_that_names_its_plugin() -> None:
    late: Calls = []
    plugins = answering("A", score=ValueError("boom")), answering("B", late, score=scores(1, 1, 1))
    status = framework_of(*plugins).run_score(CycleState(), P, three_nodes().lend().nodes)
    assert isinstance(status, Status)
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    step = 'running Score plugins: plugin "A" failed with'
    assert status.message.startswith(f"{step}: ValueError: boom (")
    assert late == []


# ---- Reserve, Permit ------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["UNSCHEDULABLE", "UNSCHEDULABLE_AND_UNRESOLVABLE", "PENDING"])
def test_a_reserve_that_rejects_stops_the_other_plugins(code: str) -> None:
    late: Calls = []
    rejects = answering("A", reserve=Status(Code[code], ("no",)))
    framework = framework_of(rejects, answering("B", late, reserve=None))
    status = framework.run_reserve(CycleState(), P, "n1")
    assert status == Status(Code[code], ("no",), "A")
    assert late == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(ERROR, "broken", id="an Error"),
        pytest.param(SKIP, "returned Skip; wanted Success, ", id="Skip"),
        pytest.param(ValueError("boom"), "ValueError: boom", id="raised"),
        pytest.param("no", "wanted a Status", id="no status"),
    ],
)
def test_any_other_result_of_reserve_is_an_error(answer: Any, message: str) -> None:
    status = framework_of(answering("A", reserve=answer)).run_reserve(CycleState(), P, "n1")
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    assert status.message.startswith('running Reserve plugin "A": ')
    assert message in status.message


def test_unreserve_runs_for_all_plugins_in_reverse_order_even_if_one_fails() -> None:
    calls: Calls = []
    plugins = [
        answering(name, calls, reserve=None, unreserve=answer)
        for name, answer in (("A", None), ("B", ValueError("boom")), ("C", None))
    ]
    (failure,) = framework_of(*plugins).run_unreserve(CycleState(), P, "n1")
    assert calls == [(name, "unreserve") for name in "CBA"]
    assert failure.message.startswith('running Unreserve plugin "B": ValueError: boom (')


def permitted(*answers: Any) -> tuple[Status | None, dict[str, float]]:
    plugins = [answering(name, permit=a) for name, a in zip("ABC", answers, strict=False)]
    return framework_of(*plugins).run_permit(CycleState(), P, "n1")


WAIT = Status(Code.WAIT)


def test_all_permits_are_called_before_waiting_starts() -> None:
    status, waits = permitted((WAIT, 5.0), (None, 0.0), (WAIT, 8.0))
    assert code_of(status) is Code.WAIT
    assert waits == {"A": 5.0, "C": 8.0}


def test_no_pod_waits_longer_than_a_quarter_of_an_hour() -> None:
    _, waits = permitted((WAIT, 10_000.0))
    assert waits == {"A": MAX_PERMIT_TIMEOUT_SECONDS}


def test_a_permit_that_rejects_overrides_permits_that_wait() -> None:
    status, waits = permitted((WAIT, 5.0), (unschedulable("no"), 0.0), (WAIT, 1.0))
    assert (status, waits) == (unschedulable("no").with_plugin("B"), {})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param((ERROR, 0.0), "broken", id="an Error"),
        pytest.param((SKIP, 0.0), "returned Skip; wanted Success, ", id="Skip"),
        pytest.param(ValueError("boom"), "ValueError: boom", id="raised"),
        pytest.param(None, "returned nothing (is a return missing?)", id="no pair"),
        pytest.param((WAIT, -1.0), "Wait and -1.0", id="a negative timeout"),
        pytest.param((WAIT, float("nan")), "Wait and nan", id="no timeout"),
        pytest.param((WAIT, 0), "Wait and 0; wanted seconds to wait, more than 0", id="zero"),
        pytest.param((WAIT, "5s"), "Wait and '5s'", id="a timeout that is not a number"),
    ],
)
def test_any_other_result_of_permit_is_an_error(answer: Any, message: str) -> None:
    status, waits = permitted((WAIT, 5.0), answer)
    assert status is not None
    assert (status.code, status.plugin, waits) == (Code.ERROR, "B", {})
    assert message in status.message


# ---- the preflight of PreBind ---------------------------------------------------------------


def test_a_preflight_reports_the_plugins_that_need_pre_bind() -> None:
    idle = answering("A", pre_bind_preflight=SKIP, pre_bind=None)
    busy = answering("B", pre_bind_preflight=None, pre_bind=None)
    state = CycleState()
    assert framework_of(idle, busy).run_pre_bind_pre_flights(state, P, "n1") is None
    assert state.skip_pre_bind_plugins == {"A"}
    assert framework_of(idle).run_pre_bind_pre_flights(CycleState(), P, "n1") is SKIP
    assert framework_of().run_pre_bind_pre_flights(CycleState(), P, "n1") is SKIP


@pytest.mark.parametrize(
    "answer", [ERROR, unschedulable("broken"), RuntimeError("broken"), "broken"]
)
def test_a_preflight_that_rejects_is_an_error(answer: Any) -> None:
    plugin = answering("A", pre_bind_preflight=answer, pre_bind=None)
    status = framework_of(plugin).run_pre_bind_pre_flights(CycleState(), P, "n1")
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    assert "broken" in status.message


def test_each_filter_can_run_alone() -> None:
    plugins = answering("A", filter=refused("n1")), answering("B", filter=refused("n1", "n2"))
    nodes = three_nodes().lend().nodes
    answers = framework_of(*plugins).filter_answers(CycleState(), P, nodes)
    assert {name: outcome.feasible.tolist() for name, outcome in answers} == {
        "A": [False, True, True],
        "B": [False, False, True],
    }
