"""Columns and vocabularies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.state.columns import Column, Vocabulary, distinct, starts_of_runs


def test_a_lent_column_is_a_read_only_view_of_the_same_memory() -> None:
    column = Column(2, np.int64)
    column.values[1] = 7
    assert column.lent.tolist() == [0, 7]
    with pytest.raises(ValueError, match="read-only"):
        column.lent[0] = 1


def test_growing_a_column_preserves_its_values_and_adds_empty_ones() -> None:
    column = Column(2, np.int32, empty=-1)
    column.values[:] = (5, 6)
    column.grow(4)
    assert column.lent.tolist() == [5, 6, -1, -1]
    assert column.lent.dtype == np.int32


def test_after_growing_a_column_lends_its_new_memory() -> None:
    column = Column(1, np.int64)
    before = column.lent
    column.grow(2)
    column.values[0] = 9
    assert (before.tolist(), column.lent.tolist()) == ([0], [9, 0])


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
