"""The choice among the best nodes, and the nodes of a sample."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.engine.schedule_one import sampled
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.scoring import Choice, ScoreTable, choose
from bayplan.rng import stable_hash, tie_index
from bayplan.state.nodes import NodeView
from bayplan.testing import SampleCluster, node


def nodes_called(*names: str) -> NodeView:
    return SampleCluster().add(*map(node, names)).lend().nodes


def table(nodes: NodeView, *totals: int) -> ScoreTable:
    return ScoreTable(nodes, [], np.array(totals, np.int64))


def drawn(names: list[str]) -> list[str]:
    """The order of the draw by the plain rule."""
    return sorted(names, key=lambda name: (stable_hash(name), name))


# ---- the choice -----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 16, 17, 60])
def test_among_equal_nodes_the_drawn_one_is_taken(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    nodes = nodes_called(*names)
    for attempt in range(1, 6):
        result = choose(table(nodes, *[7] * count), 3, "uid", attempt)
        index = tie_index(3, "uid", attempt, count)
        assert result == Choice(drawn(names)[index], tied_count=count, tied_index=index)


def test_only_nodes_selected_by_tie_break_keys_are_drawn() -> None:
    names = [f"n{number}" for number in range(6)]
    score_table = table(nodes_called(*names), *[7] * 6)
    score_table.tied = np.array([True, False, True, False, False, True])
    left = drawn(["n0", "n2", "n5"])
    index = tie_index(3, "uid", 1, 3)
    assert choose(score_table, 3, "uid", 1) == Choice(left[index], tied_count=3, tied_index=index)
    score_table.tied = np.arange(6) == 4
    assert choose(score_table, 3, "uid", 1) == Choice("n4")


@settings(max_examples=50)
@given(st.permutations([f"n{number}" for number in range(20)]), st.integers(1, 20))
def test_the_draw_does_not_depend_on_the_position_of_nodes(names: list[str], tied: int) -> None:
    totals = [5 if int(name[1:]) < tied else 1 for name in names]
    best = [f"n{number}" for number in range(tied)]
    result = choose(table(nodes_called(*names), *totals), 3, "uid", 1)
    assert result.node_name == drawn(best)[tie_index(3, "uid", 1, tied)]


def test_without_scores_every_node_is_drawn_equally_often() -> None:
    names = [f"n{number}" for number in range(4)]
    nodes = nodes_called(*names)
    taken = Counter(
        choose(table(nodes, 1, 1, 1, 1), 1, f"uid-{number}", 1).node_name for number in range(400)
    )
    assert set(taken) == set(names)
    assert all(70 < count < 130 for count in taken.values())


@pytest.mark.parametrize("step", [1, 3, 40], ids=["all", "many", "few"])
@pytest.mark.parametrize("order", [1, -1], ids=["ascending", "descending"])
def test_the_first_marked_nodes_come_first_in_tie_break_order(step: int, order: int) -> None:
    names = [f"n{number}" for number in range(300)]
    nodes = nodes_called(*names).take(np.arange(20, 300)[::order])
    marked = np.zeros(len(nodes), np.bool_)
    marked[::step] = True
    expected = drawn([nodes.name(position) for position in np.flatnonzero(marked).tolist()])
    for count in (1, 5, 400):
        first = nodes.table.first_drawn(marked, count)
        assert [nodes.name(position) for position in first.tolist()] == expected[:count]


# ---- sampling -------------------------------------------------------------------------------


def outcome(count: int, feasible: list[int] | None = None) -> FilterOutcome:
    mask = np.ones(count, np.bool_)
    if feasible is not None:
        mask[:] = False
        mask[feasible] = True
    return FilterOutcome(nodes_called(*(f"n{number}" for number in range(count))), mask)


def test_the_percentage_determines_the_number_of_sampled_nodes() -> None:
    filter_outcome = outcome(1000)
    sample, looked_at = sampled(filter_outcome, 20, 0)
    assert (np.count_nonzero(sample), looked_at) == (200, 200)


@pytest.mark.parametrize("count", [3, 99, 100])
def test_in_a_small_cluster_all_nodes_are_evaluated(count: int) -> None:
    sample, looked_at = sampled(outcome(count), 5, 0)
    assert (sample.all(), looked_at) == (True, count)


def test_successive_searches_go_round_the_nodes() -> None:
    filter_outcome = outcome(1000)
    start, seen = 0, Counter[int]()
    for _ in range(5):
        sample, looked_at = sampled(filter_outcome, 20, start)
        seen.update(np.flatnonzero(sample).tolist())
        start = (start + looked_at) % 1000
    assert seen == dict.fromkeys(range(1000), 1)


@settings(max_examples=40)
@given(st.sets(st.integers(0, 299)), st.integers(0, 599))
def test_the_sample_has_the_first_feasible_nodes_from_its_start_on(
    feasible: set[int], start: int
) -> None:
    filter_outcome = outcome(300, feasible=sorted(feasible))
    order = np.roll(filter_outcome.nodes.table.draw_order(), -(start % 300)).tolist()
    first = [position for position in order if position in feasible][:150]
    sample, _ = sampled(filter_outcome, 50, start)
    assert np.flatnonzero(sample).tolist() == sorted(first)
