"""The log of changed rows, compared with a list of all changes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.state.change_log import ALL_FACETS, ALL_ROWS, ChangeLog, Facet
from bayplan.state.columns import Column

ROW_COUNT = 6
FACETS = [Facet.REQUESTED | Facet.PODS, Facet.LABELS, Facet.IMAGES, ALL_FACETS]

ROWS = st.integers(ALL_ROWS, ROW_COUNT - 1)
CHANGES = st.lists(st.tuples(ROWS, st.sampled_from(FACETS)), max_size=80)


def log_of(changes: list[tuple[int, Facet]], length_max: int) -> ChangeLog:
    log = ChangeLog(Column(ROW_COUNT + 2, np.int64), length_max)
    for row, facets in changes:
        log.note(row, facets)
    return log


def rows_changed(changes: list[tuple[int, Facet]], since: int, facet: Facet) -> set[int]:
    ever = {row for row, _ in changes if row != ALL_ROWS}
    rows = {row for row, facets in changes[since:] if facets & facet}
    return ever if ALL_ROWS in rows else rows


@given(changes=CHANGES, since=st.integers(0, 80), read_facet=st.sampled_from(FACETS))
def test_rows_within_the_log_are_reported_exactly(
    changes: list[tuple[int, Facet]], since: int, read_facet: Facet
) -> None:
    log = log_of(changes, length_max=100)
    assert log.rows_since(since, read_facet).tolist() == sorted(
        rows_changed(changes, since, read_facet)
    )


@given(
    changes=CHANGES,
    since=st.integers(-1, 80),
    read_facet=st.sampled_from(FACETS),
    length_max=st.sampled_from([1, 7, 20, 40]),
)
def test_a_reader_that_is_older_than_the_log_gets_all_rows_that_may_have_changed(
    changes: list[tuple[int, Facet]], since: int, read_facet: Facet, length_max: int
) -> None:
    log = log_of(changes, length_max)
    result = log.rows_since(since, read_facet).tolist()
    assert result == sorted(set(result))
    expected = rows_changed(changes, max(since, 0), read_facet)
    if len(changes) - since <= length_max:
        assert set(result) == expected
    else:
        assert expected <= set(result) <= {row for row, _ in changes}


@given(
    before=st.integers(0, 12),
    rows=st.lists(st.integers(0, ROW_COUNT - 1), max_size=30),
    length_max=st.sampled_from([1, 7, 100]),
)
def test_rows_noted_together_are_logged_like_rows_noted_one_by_one(
    before: int, rows: list[int], length_max: int
) -> None:
    facets = Facet.REQUESTED | Facet.PODS
    one_by_one = log_of([(1, Facet.LABELS)] * before + [(row, facets) for row in rows], length_max)
    at_once = log_of([(1, Facet.LABELS)] * before, length_max)
    at_once.note_many(np.array(rows, np.intp), facets)
    assert at_once.generation == one_by_one.generation
    for since in range(before + len(rows)):
        for each in FACETS:
            changed = at_once.rows_since(since, each).tolist()
            assert changed == one_by_one.rows_since(since, each).tolist()
            is_changed = at_once.is_changed_since(since, each)
            assert is_changed == one_by_one.is_changed_since(since, each)


def test_a_short_list_of_changed_rows_excludes_other_facets() -> None:
    log = log_of([], 64)
    log.note(1, Facet.LABELS)
    log.note(ALL_ROWS, Facet.STORAGE)
    log.note(2, Facet.TAINTS | Facet.LABELS)
    assert log.few_since(0, 16, Facet.LABELS) == [
        (1, Facet.LABELS),
        (2, Facet.TAINTS | Facet.LABELS),
    ]
    assert log.few_since(0, 16, Facet.LABELS | Facet.STORAGE) is None
    assert log.few_since(0, 16) is None
    assert log.few_since(2, 16, Facet.STORAGE) == []


def test_many_changes_of_other_facets_do_not_hide_a_short_list_of_changed_rows() -> None:
    log = log_of([], 64)
    for _ in range(30):
        log.note(ALL_ROWS, Facet.STORAGE)
    log.note(3, Facet.LABELS)
    assert log.few_since(0, 16, Facet.LABELS) == [(3, Facet.LABELS)]
    assert log.few_since(0, 16, Facet.STORAGE) is None
    assert log.few_since(30, 16, Facet.STORAGE) == []
