"""Evaluation of single rows; any failure leads to a full evaluation."""

import numpy as np
import pytest

from bayplan.engine.reuse.evaluation_plan import PLUGIN_FAILED, RankingInvalid, SingleNodeEvaluator
from bayplan.framework.status import Code
from tests.engine.cached_attempts import Attempts, Bad, Rank

NODES = {"n1": {"rank": "3"}, "n2": {"bad": "broken", "rank": "7"}}
ROWS = np.array([0, 1], np.intp)


@pytest.fixture
def known() -> Attempts:
    attempts = Attempts(Bad, Rank, nodes=NODES)
    attempts.attempt()
    attempts.label("n1", rank="4")
    attempts.evaluated_nodes("Bad")
    attempts.evaluated_nodes("Rank")
    return attempts


def asking(known: Attempts) -> SingleNodeEvaluator:
    return known.evaluator()


def test_one_row_is_filtered_and_scored(known: Attempts) -> None:
    now = asking(known)
    assert now.filter_row("Bad", 0) == ()
    assert now.filter_row("Bad", 1) == ((Code.UNSCHEDULABLE, ("broken",)),)
    assert now.score_row("Rank", 1) == 7
    assert known.evaluated_nodes("Bad") == ["n1", "n2"]


def test_all_plugins_evaluate_a_row_through_one_node_facade(known: Attempts) -> None:
    now = asking(known)
    assert now.node(1) is now.node(1)
    assert now.node(0).name == "n1"


def test_only_rows_without_a_cached_result_are_evaluated(known: Attempts) -> None:
    asking(known).filter_rows("Bad", ROWS)
    assert known.evaluated_nodes("Bad") == ["n1"]
    assert known.entry.caches.filters["Bad"].marks[:2].all()


def test_an_empty_set_of_rows_calls_no_plugin(known: Attempts) -> None:
    asking(known).filter_rows("Bad", ROWS[:0])
    assert known.evaluated_nodes("Bad") == []


def test_scores_of_many_rows_are_a_column(known: Attempts) -> None:
    column = asking(known).score_rows("Rank", ROWS)
    assert (column.name, column.normalized.tolist()) == ("Rank", [4, 7])
    assert known.evaluated_nodes("Rank") == ["n1", "n2"]


def test_a_failing_plugin_is_evaluated_in_full(known: Attempts) -> None:
    known.plugin("Bad").failure = known.plugin("Rank").failure = OSError("disk")
    now = asking(known)
    for ask in (
        lambda: now.filter_row("Bad", 0),
        lambda: now.score_row("Rank", 0),
        lambda: now.filter_rows("Bad", ROWS),
        lambda: now.score_rows("Rank", ROWS),
    ):
        with pytest.raises(RankingInvalid) as problem:
            ask()
        assert problem.value.reason == PLUGIN_FAILED
