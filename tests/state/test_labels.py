"""Label columns give the same answers as the requirement, value by value."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.selectors import Requirement
from bayplan.state.labels import LabelColumn, LabelColumns

VALUES = ["", "1", "2", "3", "10", "x", "y", "-4"]
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        st.just("k"),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from([*VALUES, "unseen"]), max_size=6).map(tuple),
    ),
    st.builds(Requirement, st.just("k"), st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        Requirement,
        st.just("k"),
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from([("2",), ("-4",), ("x",)]),
    ),
)
ROWS = st.lists(st.one_of(st.none(), st.sampled_from(VALUES)), min_size=1, max_size=12)


def column_of(values: list[str | None]) -> LabelColumn:
    column = LabelColumn(len(values))
    for row, value in enumerate(values):
        column.set(row, value)
    return column


@given(ROWS, REQUIREMENTS)
def test_a_column_answers_as_the_requirement_does(
    values: list[str | None], requirement: Requirement
) -> None:
    column = column_of(values)
    expected = [requirement.matches_value(value) for value in values]
    assert column.matching(column.ids.values, requirement).tolist() == expected


@given(ROWS, REQUIREMENTS, st.data())
def test_selected_rows_have_the_same_answers_as_all_rows(
    values: list[str | None], requirement: Requirement, data: st.DataObject
) -> None:
    column = column_of(values)
    rows = data.draw(st.lists(st.integers(0, len(values) - 1)))
    everywhere = column.matching(column.ids.values, requirement)
    some = column.matching(column.ids.values[rows], requirement)
    assert some.tolist() == everywhere[rows].tolist()


@given(st.lists(ROWS, min_size=2, max_size=2), REQUIREMENTS)
def test_an_answer_is_current_after_new_values_were_added(
    generations: list[list[str | None]], requirement: Requirement
) -> None:
    column = LabelColumn(max(map(len, generations)))
    for values in generations:
        for row, value in enumerate(values):
            column.set(row, value)
        result = column.matching(column.ids.values[: len(values)], requirement)
        assert result.tolist() == [requirement.matches_value(value) for value in values]


def test_the_number_of_tables_is_bounded() -> None:
    column = column_of(["5"])
    for bound in range(1000):
        requirement = Requirement("k", "Gt", (str(bound),))
        assert column.matching(column.ids.values, requirement)[0] == (bound < 5)
    assert len(column._tables) < 100


# ---- the columns of a table ----------------------------------------------------------------


def test_a_column_is_made_from_the_labels_at_its_first_read() -> None:
    columns = LabelColumns()
    labels: list[dict[str, str] | None] = [{"k": "a"}, None, {"other": "x"}, {"k": "b"}]
    column = columns.of("k", labels, 8)
    assert [column.values.values[i] if i >= 0 else None for i in column.ids.values[:4]] == [
        "a",
        None,
        None,
        "b",
    ]
    assert columns.of("k", [], 8) is column
