"""The order in which ties are drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.rng import stable_hash
from bayplan.state.draw_order import DrawOrder

NAMES = st.lists(st.sampled_from([f"node-{i}" for i in range(20)]), max_size=40)


@given(changes=NAMES)
def test_it_is_sorted_by_hash_and_name_whatever_came_and_went(changes: list[str]) -> None:
    """Each mention of a name adds the node, the next one removes it."""
    order, rows = DrawOrder(), dict[str, int]()
    for row, name in enumerate(changes):
        if name in rows:
            order.remove(name)
            del rows[name]
        else:
            order.add(name, row)
            rows[name] = row
    expected = sorted(rows, key=lambda name: (stable_hash(name), name))
    assert order.rows().tolist() == [rows[name] for name in expected]


def test_it_does_not_follow_from_row_numbers() -> None:
    orders: list[list[str]] = []
    for names in (["a", "b", "c", "d"], ["d", "c", "b", "a"]):
        order = DrawOrder()
        for row, name in enumerate(names):
            order.add(name, row)
        orders.append([names[row] for row in order.rows()])
    assert orders[0] == orders[1]


def test_removing_a_node_that_is_not_there_names_it() -> None:
    order = DrawOrder()
    order.add("a", 0)
    for stranger in ("ghost", "other", "z"):
        with pytest.raises(AssertionError, match=f"node {stranger} is not"):
            order.remove(stranger)


def test_the_rows_cannot_be_written() -> None:
    order = DrawOrder()
    order.add("a", 0)
    with pytest.raises(ValueError, match="read-only"):
        order.rows()[0] = 1


@given(st.sets(st.integers(0, 99), min_size=1), st.data())
def test_few_and_many_are_drawn_alike(rows: set[int], data: st.DataObject) -> None:
    order = DrawOrder()
    for row in range(100):
        order.add(f"node-{row}", row)
    marked = np.zeros(100, np.bool_)
    marked[list(rows)] = True
    index = data.draw(st.integers(0, len(rows) - 1))
    expected = [row for row in order.rows().tolist() if row in rows]
    assert order.nth(marked, len(rows), index) == expected[index]


def test_a_draw_knows_of_nodes_that_came_and_went() -> None:
    order, marked = DrawOrder(), np.ones(200, np.bool_)
    for row in range(100):
        order.add(f"node-{row}", row)
    marked[2:] = False
    assert {order.nth(marked, 2, index) for index in range(2)} == {0, 1}
    order.remove("node-1")
    order.add("other", 150)
    marked[[1, 150]] = False, True
    assert {order.nth(marked, 2, index) for index in range(2)} == {0, 150}
