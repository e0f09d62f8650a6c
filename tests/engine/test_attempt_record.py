"""The journal's record of a cycle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig
from bayplan.engine.attempt_record import BEST_NODES_MAX
from bayplan.engine.cycle import Cycle
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.scoring import PluginScores, ScoreTable
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.framework.types import NominatingMode, Nomination
from bayplan.journal import PluginScore, RejectionCount
from bayplan.plugins.registry import Registry
from bayplan.rng import stable_hash
from bayplan.state.nodes import LoanEnded
from bayplan.testing import SampleCluster, node
from tests.engine.kit import Engine, waiting_pod
from tests.framework.answering import answering, scores


def table(*totals: int, weight: int = 1) -> ScoreTable:
    names = [f"n{number}" for number in range(len(totals))]
    nodes = SampleCluster().add(*map(node, names)).lend().nodes
    raw = np.array(totals, np.int64)
    return ScoreTable(nodes, [PluginScores("A", weight, raw, raw * 2)], raw * 2 * weight)


def test_a_score_line_has_raw_normalized_and_weighted_scores() -> None:
    result = table(3, 7, weight=5).line_at(1)
    assert (result.node, result.total) == ("n1", 70)
    assert result.plugins == (PluginScore("A", 7, 14, 70),)


def test_nodes_selected_by_tie_break_keys_come_before_their_equals() -> None:
    score_table = table(*[4] * 9, 3)
    score_table.tied = np.arange(10) == 6
    lines = [line.node for line in score_table.best_lines(BEST_NODES_MAX)]
    other_nodes = sorted((f"n{number}" for number in range(9) if number != 6), key=stable_hash)
    assert lines == ["n6", *other_nodes[:4]]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_the_best_nodes_are_the_first_of_all_nodes_by_total_and_draw_order(
    totals: list[int],
) -> None:
    score_table = table(*totals)
    names = [f"n{number}" for number in range(len(totals))]
    total_of = dict(zip(names, totals, strict=True))
    in_order = sorted(names, key=lambda name: (-total_of[name], stable_hash(name)))
    lines = [line.node for line in score_table.best_lines(BEST_NODES_MAX)]
    assert lines == in_order[:BEST_NODES_MAX]


# ---- records --------------------------------------------------------------------------------


def test_a_scheduled_pod() -> None:
    plugin = answering("A", score=scores(1, 1))
    engine = Engine(plugins=[("A", 1)], classes=[plugin])
    engine.add(node("n1"), node("n2"), waiting_pod())
    engine.clock.advance_to(1.5)
    engine.run()
    (record,) = engine.attempts()
    assert (record.at_seconds, record.result, record.attempt) == (1.5, "scheduled", 1)
    assert (record.profile, record.uid) == ("bayplan", "uid-default/p")
    assert (record.node_count, record.feasible_count) == (2, 2)
    assert (record.tied_count, len(record.scores)) == (2, 2)
    assert record.node == sorted(("n1", "n2"), key=stable_hash)[record.tied_index]
    assert (record.rejections, record.message, record.plugin) == ((), "", "")


def test_a_rejected_pod() -> None:
    plugin = answering(
        "A",
        filter_node=lambda state, pod, info: unschedulable(*info.name),
        post_filter=(Nomination(NominatingMode.OVERRIDE, "n1"), unschedulable()),
    )
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), node("n2"), waiting_pod())
    engine.run()
    (record,) = engine.attempts()
    assert (record.result, record.node, record.nominated_node) == ("unschedulable", "", "n1")
    assert record.message == "0/2 nodes are available: 1 1, 1 2, 2 n."
    assert record.rejections == (
        RejectionCount("A", "Unschedulable", "1", 1),
        RejectionCount("A", "Unschedulable", "2", 1),
        RejectionCount("A", "Unschedulable", "n", 2),
    )


@pytest.mark.parametrize(
    ("answers", "result"),
    [
        pytest.param({"filter_node": ValueError("boom")}, "error", id="in Filter"),
        pytest.param({"reserve": Status(Code.ERROR, ("boom",))}, "error", id="in Reserve"),
        pytest.param({"reserve": unschedulable("boom")}, "unschedulable", id="rejected in Reserve"),
    ],
)
def test_the_failed_plugin_is_recorded(answers: dict[str, Any], result: str) -> None:
    engine = Engine(plugins=["A"], classes=[answering("A", **answers)])
    engine.add(node("n1"), waiting_pod())
    engine.run()
    (record,) = engine.attempts()
    assert (record.result, record.plugin) == (result, "A")
    assert "boom" in record.message


def test_the_attempt_callback_can_read_the_lent_snapshot() -> None:
    cycles: list[Cycle] = []

    def look(cycle: Cycle) -> None:
        assert cycle.snapshot.node("n1").name == "n1"
        cycles.append(cycle)

    clock = ManualClock()
    scheduler = Scheduler(SchedulerConfig(), Registry(), clock, on_attempt=look)
    engine = Engine()
    engine.scheduler = scheduler
    engine.add(node("n1"), waiting_pod(scheduler_name="default-scheduler"))
    engine.run()
    (cycle,) = cycles
    with pytest.raises(LoanEnded):
        cycle.snapshot.node("n1")
