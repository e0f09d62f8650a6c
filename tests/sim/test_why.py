"""The printed explanation of a pod or a group."""

from typing import Any

import pytest

from bayplan.journal import (
    AttemptRecord,
    BindingRecord,
    GateRecord,
    GroupRecord,
    NodeScore,
    NoteRecord,
    PluginScore,
    RejectionCount,
    TieBreakStep,
)
from bayplan.sim.output.pod_counts import PodEnd, counts_of, pod_state
from bayplan.sim.output.result import Counts, PodResult, SimulationResult
from bayplan.sim.why import (
    explain_records,
    explain_workload,
    similar_pods,
    without_record,
)
from tests.sim.printing import printed
from tests.sim.records import WEB, attempt, line

# ---- unknown pods ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        pytest.param("default/web", ["kube/web", "a/b"], "kube/web", id="a namesake elsewhere"),
        pytest.param("default/wep", ["default/web", "x/y"], "default/web, x/y", id="the nearest"),
        pytest.param("a/q", ["z/1", "y/2"], "y/2, z/1", id="some"),
        pytest.param(
            "shop/web-0",
            ["data/web-1", "shop/pg-0", "shop/web-lmwr-2bdxl", "shop/web-lmwr-7"],
            "shop/web-lmwr-7, shop/pg-0, shop/web-lmwr-2bdxl, data/web-1",
            id="its namespace first",
        ),
    ],
)
def test_an_unknown_pod_is_answered_with_similar_names(
    name: str, names: list[str], expected: str
) -> None:
    assert similar_pods(name, names) == f"known names include: {expected}"


def test_an_empty_journal_is_reported() -> None:
    assert similar_pods(WEB, []) == "the journal is empty"


def result_of(pod: PodResult, unschedulable: dict[str, str] | None = None) -> SimulationResult:
    return SimulationResult(
        nodes=1,
        counts=Counts(),
        placements={},
        unschedulable=unschedulable or {},
        pods={WEB: pod},
        seed=0,
        digest="",
        simulated_seconds=0.0,
        wall_seconds=0.0,
        attempts=0,
    )


def test_a_pod_that_starts_on_a_node_needed_no_decision() -> None:
    message = without_record(WEB, result_of(PodResult(node="n1")))
    assert message == "default/web came with a node, n1: there was nothing to decide"


def test_a_pod_of_another_scheduler_had_no_decision() -> None:
    message = without_record(WEB, result_of(PodResult()))
    assert message == "default/web is left to another scheduler: there was nothing to decide"


def test_a_pod_that_was_never_tried_has_its_last_message() -> None:
    message = without_record(WEB, result_of(PodResult(message="gated"), {WEB: "gated"}))
    assert message == "default/web waits and was not tried: gated"


def test_bound_and_unknown_pods_without_records_have_no_explanation() -> None:
    bound = result_of(PodResult(node="n1", bound_at=0.0))
    assert without_record(WEB, bound) is None
    assert without_record("default/ghost", bound) is None
    assert without_record(WEB, None) is None


# ---- attempts -------------------------------------------------------------------------------


def test_an_attempt_without_a_node_lists_rejections_by_plugin_and_reason() -> None:
    rejections = (
        RejectionCount("NodeResourcesFit", "Unschedulable", "Insufficient cpu", 1200),
        RejectionCount("TaintToleration", "Unresolvable", "node(s) had [a] taint", 3),
    )
    record = attempt(message="0/3 nodes are available.", rejections=rejections)
    assert printed(explain_records([record])) == (
        "0.000 s  attempt 1 (default-scheduler): unschedulable, 0 of 3 nodes feasible\n"
        "0/3 nodes are available.\n"
        "\n"
        "rejected by        nodes   code            reason\n"
        "────────────────────────────────────────────────────────────────\n"
        "NodeResourcesFit   1,200   Unschedulable   Insufficient cpu\n"
        "TaintToleration        3   Unresolvable    node(s) had [a] taint"
    )


def test_a_choice_lists_the_parts_of_the_totals() -> None:
    scores = (line("n1", Fit=40, Taints=300), line("n2", Fit=20, Taints=300))
    record = attempt(
        result="scheduled", node="n1", feasible_count=2, scores=scores, tied_count=1, at_seconds=2.5
    )
    assert printed(explain_records([record])) == (
        "2.500 s  attempt 1 (default-scheduler): chose n1, 2 of 3 nodes feasible\n"
        "\n"
        "score                n1               n2\n"
        "────────────────────────────────────────\n"
        "Fit         40 (40; 80)      20 (20; 40)\n"
        "Taints   300 (300; 600)   300 (300; 600)\n"
        "total               340              320\n"
        "weighted score (normalized; raw); the weighted scores add up to the total\n"
        "\n"
        "n1 has the highest total"
    )


def test_a_tie_is_explained() -> None:
    record = attempt(
        result="scheduled", node="n9", scores=(line("n1", Fit=1),), tied_count=7, tied_index=3
    )
    assert printed(explain_records([record])).splitlines()[-1] == (
        "n9 is one of 7 nodes with the highest total; "
        "seed, pod and attempt drew it (number 4 by the hash of the name)"
    )


def test_tie_break_keys_and_sources_are_explained() -> None:
    scores = (NodeScore("n1", 7, (PluginScore("Fit", 7, 7, 7),), (PluginScore("Read", 9, 3, 0),)),)
    record = attempt(
        result="scheduled",
        node="n1",
        scores=scores,
        tied_count=1,
        score_notes=("R read zeros in place of A, which was skipped",),
        tie_break=(TieBreakStep("Fit", 4, 2), TieBreakStep("NodeNameOrder", 2, 1)),
    )
    *table, message, note = printed(explain_records([record])).splitlines()
    assert ["Read", "(read)", "(3;", "9)"] in [row.split() for row in table]
    assert message == (
        "n1 is the best of those with the highest total "
        "(tie-break: Fit keeps 2 of 4, NodeNameOrder keeps 1 of 2)"
    )
    assert note == "R read zeros in place of A, which was skipped"


def test_scores_that_are_zero_at_every_stage_have_no_row() -> None:
    scores = (line("n1", Fit=1, Images=0), line("n2", Fit=2, Images=0))
    text = printed(
        explain_records([attempt(result="scheduled", node="n2", scores=scores, tied_count=1)])
    )
    assert "0 for each of these nodes: Images" in text.splitlines()
    assert not any(row.startswith("Images") for row in text.splitlines())


def test_a_single_feasible_node_was_not_scored() -> None:
    record = attempt(result="scheduled", node="n1", feasible_count=1)
    assert printed(explain_records([record])).endswith(
        "only one node was feasible, so nothing was scored"
    )


@pytest.mark.parametrize(
    ("record", "outcome"),
    [
        pytest.param(
            attempt(result="waiting", node="n1", feasible_count=2),
            "chose n1 and waits at Permit, 2 of 3 nodes feasible",
            id="at Permit",
        ),
        pytest.param(
            attempt(result="error", plugin="Broken"),
            "error by Broken, 0 of 3 nodes feasible",
            id="a plugin failed",
        ),
        pytest.param(attempt(nominated_node="n2"), "nominated to n2", id="nominated"),
    ],
)
def test_an_attempt_has_its_outcome(record: AttemptRecord, outcome: str) -> None:
    assert outcome in printed(explain_records([record]))


def test_each_event_between_attempts_is_one_line() -> None:
    records = [
        GateRecord(at_seconds=0.0, pod=WEB, uid="u", plugin="SchedulingGates", message="gated"),
        NoteRecord(at_seconds=1.0, subject=WEB, text="something"),
        BindingRecord(at_seconds=2.0, pod=WEB, uid="u", node="n1", result="failed", message="no"),
        BindingRecord(at_seconds=3.0, pod=WEB, uid="u", node="n1", result="bound"),
    ]
    assert printed(explain_records(records)) == (
        "0.000 s  held back by SchedulingGates: gated\n"
        "1.000 s  something\n"
        "2.000 s  binding to n1: failed: no\n"
        "3.000 s  binding to n1: bound"
    )


def group(result: str, attempt: int = 0, **fields: Any) -> GroupRecord:
    at = fields.pop("at_seconds", float(attempt))
    return GroupRecord(
        at_seconds=at,
        group="default/g",
        api_group="scheduling.x-k8s.io",
        result=result,
        attempt=attempt,
        min_member=3,
        **fields,
    )


def test_a_group_is_explained_attempt_by_attempt() -> None:
    records = [
        group("short", message="group default/g: 2 of 3 members are here"),
        group("unschedulable", 1, fitting=2, message="no room"),
        group("unschedulable", 2, fitting=2, message="no room"),
        group("timed out", at_seconds=10.0, message="not placed within 10 s"),
        group("placed", 3, fitting=2, assigned=1, domain="rack-1", at_seconds=12.0),
    ]
    assert printed(explain_records(records)) == (
        "0.000 s  short (minMember 3, scheduling.x-k8s.io)\n"
        "group default/g: 2 of 3 members are here\n"
        "\n"
        "1.000 s  attempt 1: unschedulable, nothing is held: 2 fit "
        "(minMember 3, scheduling.x-k8s.io)\n"
        "no room\n"
        "2.000 s  attempt 2: the same outcome\n"
        "\n"
        "10.000 s  timed out (minMember 3, scheduling.x-k8s.io)\n"
        "not placed within 10 s\n"
        "\n"
        "12.000 s  attempt 3: 2 members placed in rack-1, 1 had one before "
        "(minMember 3, scheduling.x-k8s.io)"
    )


def test_equal_attempts_are_summarized() -> None:
    records = [attempt(number, at_seconds=number * 10.0, message="no room") for number in (1, 2, 3)]
    assert printed(explain_records(records)) == (
        "10.000 s  attempt 1 (default-scheduler): unschedulable, 0 of 3 nodes feasible\n"
        "no room\n"
        "30.000 s  attempts 2 to 3: the same outcome"
    )


def test_different_attempts_are_all_printed() -> None:
    records = [attempt(1, message="no room"), attempt(2, message="less room")]
    assert printed(explain_records(records)).count("attempt") == 2


def test_equal_bindings_are_all_printed() -> None:
    twice = [
        BindingRecord(at_seconds=2.0, pod=WEB, uid="u", node="n1", result="failed")
        for _ in range(2)
    ]
    assert printed(explain_records(twice)).count("failed") == 2


# ---- pods of a workload ---------------------------------------------------------------------


def test_pods_of_a_workload_are_grouped_by_node_and_by_reason() -> None:
    no_room = "0/2 nodes are available: 2 Insufficient cpu."
    pods = [
        *((f"d/a{i}", PodResult(node="n1", bound_at=0.0, end=PodEnd.PLACED)) for i in range(2)),
        ("d/b", PodResult(node="n2", bound_at=0.0, end=PodEnd.PLACED)),
        ("d/c", PodResult(message=no_room)),
        ("d/e", PodResult(message="0/3 nodes are available: 3 Insufficient cpu.")),
        ("d/gone", PodResult(node="n3", deleted_at=4.0, end=PodEnd.EVICTED, replaced=True)),
    ]
    last = {"d/c": attempt(3, at_seconds=7.0, message=no_room)}
    counts = counts_of(pod for _, pod in pods)
    states = [pod_state(name, pod) for name, pod in pods]
    parts = explain_workload("Deployment/web in d", counts, states, last)
    lines = printed(parts).splitlines()
    head = "Deployment/web in d: 5 pods, 3 with a node, 2 waiting; 1 pod gone: 1 evicted (replaced)"
    assert lines[0] == head
    assert not any(line.startswith("n3 ") for line in lines)
    assert "evicted                  1   d/gone" in lines
    assert "n1        2   d/a0, d/a1" in lines
    assert "   2   2 lack cpu      d/c, d/e" in lines
    assert "the last attempt at d/c, one of 2:" in lines
    assert lines[-1].startswith("7.000 s  attempt 3 (default-scheduler): unschedulable")
