"""The index of scores has the order of a sort."""

from array import array
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.ranking import score_index
from bayplan.engine.ranking.score_index import PlaceBlocks, ScoreIndex

TOTALS = st.integers(-3, 3)


def ranked_rows(ranking: ScoreIndex, totals: dict[int, int]) -> list[tuple[int, list[int]]]:
    """Rows from the best one on, by removing the best row repeatedly."""
    left, levels = deepcopy(ranking), list[tuple[int, list[int]]]()
    count = len(totals)
    while count:
        best = list(left.best())
        levels.append((totals[best[0]], best))
        for place in best:
            left.remove(place, totals[place])
        count -= len(best)
    return levels


def sorted_out(totals: dict[int, int]) -> list[tuple[int, list[int]]]:
    levels = sorted(set(totals.values()), reverse=True)
    return [(level, sorted(p for p in totals if totals[p] == level)) for level in levels]


def of(totals: dict[int, int]) -> ScoreIndex:
    places = sorted(totals)
    return ScoreIndex(np.array([totals[p] for p in places], np.int64), np.array(places, np.intp))


@given(
    st.dictionaries(st.integers(0, 30), TOTALS, max_size=20),
    st.lists(st.tuples(st.integers(0, 30), TOTALS | st.none()), max_size=40),
)
def test_rows_are_added_and_removed_in_sorted_order(
    totals: dict[int, int], changes: list[tuple[int, int | None]]
) -> None:
    ranking = of(totals)
    assert ranked_rows(ranking, totals) == sorted_out(totals)
    for place, total in changes:
        if place in totals:
            ranking.remove(place, totals.pop(place))
        if total is not None:
            totals[place] = total
            ranking.add(place, total)
        assert ranked_rows(ranking, totals) == sorted_out(totals)


@given(st.dictionaries(st.integers(0, 30), TOTALS, min_size=1, max_size=20), st.integers(1, 8))
def test_the_first_positions_are_those_of_the_best_rows(totals: dict[int, int], count: int) -> None:
    index = of(totals)
    expected = sorted(totals, key=lambda place: (-totals[place], place))
    assert index.first(count).tolist() == expected[:count]
    index.validate(totals)


@given(
    stored=st.sets(st.integers(0, 400), min_size=1),
    changes=st.lists(st.integers(0, 400), max_size=60),
)
def test_blocks_have_the_positions_of_a_sorted_list(stored: set[int], changes: list[int]) -> None:
    """Each change adds a position, or removes it if the blocks have it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_index, "_BLOCK", 4)
        blocks = PlaceBlocks(array("i", sorted(stored)))
        for place in changes:
            if place not in stored:
                stored.add(place)
                blocks.add(place)
            elif len(stored) > 1:
                stored.remove(place)
                blocks.remove(place)
            expected = sorted(stored)
            assert list(blocks) == expected
            assert [blocks[index] for index in range(len(blocks))] == expected
            assert blocks.first(5).tolist() == expected[:5]


@given(
    st.dictionaries(st.integers(0, 30), TOTALS, max_size=20),
    st.lists(st.tuples(st.integers(0, 30), TOTALS), max_size=40),
)
def test_an_index_with_blocks_has_the_same_results_as_one_with_arrays(
    totals: dict[int, int], changes: list[tuple[int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_index, "_BLOCK", 2)
        patch.setattr(score_index, "_ARRAY_MAX", 3)
        index = of(totals)
        for place, total in changes:
            if place in totals:
                index.move(place, totals[place], total)
            else:
                index.add(place, total)
            totals[place] = total
            index.validate(totals)
            ordered = sorted(totals, key=lambda place: (-totals[place], place))
            assert index.first(7).tolist() == ordered[:7]


def test_a_position_takes_four_bytes() -> None:
    assert of({1: 5, 2: 5, 3: 7}).bytes_used == 12
