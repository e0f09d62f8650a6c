"""The scores of one cycle."""

import numpy as np
import pytest

from bayplan.framework.score_table import PluginScores, ScoreTable
from bayplan.testing import node
from tests.framework.answering import cluster_of


def int64s(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def table() -> ScoreTable:
    nodes = cluster_of(node("a"), node("b"), node("c")).lend().nodes
    columns = [
        PluginScores("Fit", 1, int64s(90, 70, 40), int64s(90, 70, 40)),
        PluginScores("Taint", 3, int64s(0, 2, 0), int64s(100, 0, 100)),
    ]
    others = {"far away": int64s(0, 60, 160)}
    return ScoreTable(nodes, columns, int64s(390, 130, 500), others)


def test_a_row_is_what_each_gave_weighted_and_their_sum() -> None:
    assert table().row("c") == ([("Fit", 40), ("Taint", 300), ("far away", 160)], 500)
    for position in range(3):
        pairs, total = table().row_at(position)
        assert total == sum(score for _, score in pairs)


def test_a_node_that_was_not_scored_has_no_row() -> None:
    with pytest.raises(KeyError, match="ghost"):
        table().row("ghost")


@pytest.mark.parametrize(
    ("totals", "best"), [((1, 3, 2), [1]), ((3, 3, 2), [0, 1]), ((0, 0, 0), [0, 1, 2])]
)
def test_the_best_are_all_that_have_the_highest_total(
    totals: tuple[int, ...], best: list[int]
) -> None:
    found = table()
    found.totals = int64s(*totals)
    assert found.best_positions().tolist() == best
