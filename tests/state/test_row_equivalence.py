"""Rows with the same number have equal amounts after any sequence of changes."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.state.resources import RowEquivalence
from bayplan.testing import SampleCluster, node, pod

SMALL, LARGE = "100m", "1500m"


def test_a_row_can_be_unequal_to_every_other_row() -> None:
    rows = RowEquivalence(2)
    assert rows.numbers[0] == rows.numbers[1]
    rows.set_unique(0)
    assert rows.numbers[0] != rows.numbers[1]


def test_forgotten_numbers_are_not_reused() -> None:
    rows = RowEquivalence(1)
    seen = {rows.numbers[0]}
    for shape in range(1 << 14):
        rows.change(0, shape, comes=True)
        assert rows.numbers[0] not in seen
        seen.add(rows.numbers[0])


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from((SMALL, LARGE, "0")), st.booleans()),
        max_size=40,
    )
)
def test_rows_of_the_same_number_have_the_same_amounts(steps: list[tuple[str, str, bool]]) -> None:
    cluster = SampleCluster()
    for name, cpu in (("a", "4"), ("b", "4"), ("c", "8")):
        cluster.add(node(name, cpu=cpu))
    placed: dict[str, list[str]] = {name: [] for name in "abc"}
    for number, (name, cpu, comes) in enumerate(steps):
        if comes:
            cluster.add(pod(f"p{number}", node=name, cpu=cpu))
            placed[name].append(f"p{number}")
        elif placed[name]:
            cluster.cache.remove_pod(f"uid-default/{placed[name].pop()}")
    table = cluster.cache.table
    by_number: dict[int, list[object]] = {}
    for name in "abc":
        row, resources = table.row_of[name], table.resources
        amounts = [resources.of_row(each, row) for each in ("cpu", "memory", "pods")]
        values = [*amounts, table.pod_counts.values.item(row)]
        assert by_number.setdefault(resources.equivalence.numbers[row], values) == values
