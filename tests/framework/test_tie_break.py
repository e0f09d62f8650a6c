"""Tie-break keys among nodes whose totals are equal."""

from typing import Any

import numpy as np
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.scoring import ScoreTable, TieStep
from bayplan.framework.status import SKIP, Status
from bayplan.framework.tie_break import break_ties
from bayplan.framework.types import Normalizer
from bayplan.plugins.node_name import NodeNameOrder
from bayplan.testing import node, pod
from tests.framework.answering import answering, cluster_of, framework_of, made, scores


def tied_after(
    *keys: Any, totals: tuple[int, ...] = (5, 5, 5, 1), enabled: Any = ()
) -> tuple[list[str], list[TieStep]]:
    """The nodes of n0, n1 … that are left, and the key that decided."""
    score_table = run(*keys, totals=totals, enabled=enabled)
    assert isinstance(score_table, ScoreTable), score_table
    assert score_table.tied is not None
    left = [
        score_table.nodes.name(position) for position in np.flatnonzero(score_table.tied).tolist()
    ]
    return left, list(score_table.tie_steps)


def run(*keys: Any, totals: tuple[int, ...], enabled: Any = ()) -> ScoreTable | Status:
    total = answering("Total", score=scores(*totals))
    framework = framework_of(total, *enabled, tie_break=keys)
    nodes = cluster_of(*(node(f"n{number}") for number in range(len(totals)))).lend().nodes
    state = CycleState()
    assert framework.run_pre_score(state, pod(), nodes) is None
    table = framework.run_score(state, pod(), nodes)
    assert isinstance(table, ScoreTable)
    return break_ties(framework.calls(state, pod()).tie_break, state, pod(), table) or table


def test_keys_are_compared_one_after_another_until_one_node_is_left() -> None:
    first = answering("First", score=scores(3, 7, 7, 9))
    second = answering("Second", score=scores(1, 2, 1, 9))
    third = answering("Third", score=scores(0, 0, 0, 0))
    left, steps = tied_after(first, second, third)
    assert left == ["n1"]
    assert steps == [TieStep("First", 3, 2), TieStep("Second", 2, 1)]
    assert third.calls == []


def test_nodes_that_are_equal_in_all_keys_are_drawn() -> None:
    left, steps = tied_after(answering("Same", score=scores(4, 4, 4, 4)))
    assert (left, steps) == (["n0", "n1", "n2"], [TieStep("Same", 3, 3)])


def test_no_key_is_called_without_a_tie() -> None:
    key = answering("Key", score=scores(1, 2, 3, 4))
    assert tied_after(key, totals=(5, 4, 4, 1)) == (["n0"], [])
    assert key.calls == []


def test_nodes_are_compared_by_the_normalised_scores_of_all_feasible_nodes() -> None:
    """The reversed scores of 1 and 2 of 300 are equal after the normalisation."""
    key = answering("Key", score=scores(1, 2, 90, 300), normalizer=Normalizer.MAX_REVERSED)
    assert tied_after(key)[0] == ["n0", "n1"]


def test_a_key_whose_pre_score_skips_is_ignored() -> None:
    key = answering("Key", pre_score=SKIP, score=scores(1, 2, 3, 4))
    assert tied_after(key)[0] == ["n0", "n1", "n2"]
    assert ("Key", "score") not in key.calls


def test_a_tie_break_plugin_gets_the_tied_nodes_and_may_return_any_number() -> None:
    calls: list[list[str]] = []

    def exactly(state: Any, pod: Any, nodes: Any) -> Any:
        calls.append(nodes.names())
        return np.array([-7000, -6999, -9000], np.int64)

    assert tied_after(answering("Exact", tie_break=exactly))[0] == ["n1"]
    assert calls == [["n0", "n1", "n2"]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(scores(1, 2), "tie_break returned int64[2]; wanted int64[3]", id="too few"),
        pytest.param(
            None, "tie_break returned nothing (is a return missing?); wanted int64[3]", id="nothing"
        ),
        pytest.param(ValueError("boom"), "ValueError: boom", id="it raises"),
    ],
)
def test_a_key_that_fails_is_named(answer: Any, message: str) -> None:
    status = run(answering("Key", tie_break=answer), totals=(5, 5, 5, 1))
    assert isinstance(status, Status)
    assert status.plugin == "Key"
    assert status.message.startswith(f'running TieBreak plugin "Key": {message}')


def test_the_smallest_name_wins() -> None:
    instance = made(NodeNameOrder)
    assert tied_after(instance)[0] == ["n0"]
    assert tied_after(instance, totals=(5, 7, 7, 7))[0] == ["n1"]
