"""Columns and vocabularies."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.state.columns import Column, Vocabulary, distinct, starts_of_runs


def test_clearing_a_row_makes_it_empty() -> None:
    column = Column(2, np.int32, empty=-1)
    column.values[:] = (5, 6)
    column.clear(0)
    assert column.values.tolist() == [-1, 6]


def test_a_vocabulary_numbers_values_permanently_in_order_of_appearance() -> None:
    words: Vocabulary[str] = Vocabulary()
    assert [words.intern(word) for word in ("b", "a", "b")] == [0, 1, 0]
    assert (words.values, len(words)) == (["b", "a"], 2)
    assert (words.find("a"), words.find("c")) == (1, None)
    assert words.intern_all(("c", "a", "d", "c")) == [2, 1, 3, 2]
    assert words.values == ["b", "a", "c", "d"]


@given(st.lists(st.integers(-3, 3)))
def test_distinct_values_are_numpys_unique_ones(values: list[int]) -> None:
    array = np.array(values, np.int64)
    assert distinct(array).tolist() == np.unique(array).tolist()
    ordered = np.sort(array)
    starts = starts_of_runs(ordered)
    assert ordered[starts].tolist() == np.unique(array).tolist()
    assert starts.tolist() == np.unique(ordered, return_index=True)[1].tolist()
