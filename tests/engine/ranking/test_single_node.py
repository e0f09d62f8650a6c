"""Evaluation of single rows. Any failure causes a full evaluation."""

import numpy as np
import pytest

from bayplan.engine.ranking.evaluation_plan import (
    PLUGIN_FAILED,
    RankingInvalid,
    SingleNodeEvaluator,
)
from bayplan.framework.status import Code
from tests.engine.cached_attempts import Attempts, Bad, Rank

NODES = {"n1": {"rank": "3"}, "n2": {"bad": "broken", "rank": "7"}}
ROWS = np.array([0, 1], np.intp)


@pytest.fixture
def recorded() -> Attempts:
    attempts = Attempts(Bad, Rank, nodes=NODES)
    attempts.attempt()
    attempts.label("n1", rank="4")
    attempts.evaluated_nodes("Bad")
    attempts.evaluated_nodes("Rank")
    return attempts


def evaluator_of(recorded: Attempts) -> SingleNodeEvaluator:
    return recorded.evaluator()


def test_one_row_is_filtered_and_scored(recorded: Attempts) -> None:
    now = evaluator_of(recorded)
    assert now.filter_row("Bad", 0) == ()
    assert now.filter_row("Bad", 1) == ((Code.UNSCHEDULABLE, ("broken",)),)
    assert now.score_row("Rank", 1) == 7
    assert recorded.evaluated_nodes("Bad") == ["n1", "n2"]


def test_all_plugins_evaluate_a_row_through_one_node_facade(recorded: Attempts) -> None:
    now = evaluator_of(recorded)
    assert now.node(1) is now.node(1)
    assert now.node(0).name == "n1"


def test_only_rows_without_a_cached_result_are_evaluated(recorded: Attempts) -> None:
    evaluator_of(recorded).filter_rows("Bad", ROWS)
    assert recorded.evaluated_nodes("Bad") == ["n1"]
    assert recorded.entry.caches.filters["Bad"].marks[:2].all()


def test_an_empty_set_of_rows_calls_no_plugin(recorded: Attempts) -> None:
    evaluator_of(recorded).filter_rows("Bad", ROWS[:0])
    assert recorded.evaluated_nodes("Bad") == []


def test_scores_of_many_rows_are_a_column(recorded: Attempts) -> None:
    column = evaluator_of(recorded).score_rows("Rank", ROWS)
    assert (column.name, column.normalized.tolist()) == ("Rank", [4, 7])
    assert recorded.evaluated_nodes("Rank") == ["n1", "n2"]


def test_a_failing_plugin_is_evaluated_in_full(recorded: Attempts) -> None:
    recorded.plugin("Bad").failure = recorded.plugin("Rank").failure = OSError("disk")
    now = evaluator_of(recorded)
    for ask in (
        lambda: now.filter_row("Bad", 0),
        lambda: now.score_row("Rank", 0),
        lambda: now.filter_rows("Bad", ROWS),
        lambda: now.score_rows("Rank", ROWS),
    ):
        with pytest.raises(RankingInvalid) as problem:
            ask()
        assert problem.value.reason == PLUGIN_FAILED
