"""Evaluation of single rows. Any failure causes a full evaluation."""

import numpy as np
import pytest

from bayplan.engine.ranking.evaluation_plan import (
    PLUGIN_FAILED,
    RankingInvalid,
    SingleNodeEvaluator,
)
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
