"""The ranking is always what sorting would give."""

from copy import deepcopy

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.reuse.ranked_nodes import ScoreIndex

TOTALS = st.integers(-3, 3)


def told(ranking: ScoreIndex, totals: dict[int, int]) -> list[tuple[int, list[int]]]:
    """From the best on down, by taking the best away again and again."""
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
    assert told(ranking, totals) == sorted_out(totals)
    for place, total in changes:
        if place in totals:
            ranking.remove(place, totals.pop(place))
        if total is not None:
            totals[place] = total
            ranking.add(place, total)
        assert told(ranking, totals) == sorted_out(totals)


@given(st.dictionaries(st.integers(0, 30), TOTALS, min_size=1, max_size=20), st.integers(1, 8))
def test_the_first_places_are_those_of_the_best_rows(totals: dict[int, int], count: int) -> None:
    index = of(totals)
    expected = sorted(totals, key=lambda place: (-totals[place], place))
    assert index.first(count).tolist() == expected[:count]
    index.validate(totals)


def test_a_place_takes_four_bytes() -> None:
    assert of({1: 5, 2: 5, 3: 7}).bytes_used == 12
