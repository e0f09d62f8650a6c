"""Rows, columns and the log of the node table. Rows F-038, F-040, F-043, F-044 of the checklist.

The order in which ties are drawn.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import ZONE_LABEL, Node
from bayplan.rng import stable_hash
from bayplan.state.change_log import Facet
from bayplan.state.columns import Rows
from bayplan.state.node_table import DrawOrder, NodeTable
from bayplan.testing import node, pod

# ---- node table -----------------------------------------------------------------------------


def table_of(*nodes: Node, capacity: int = 8) -> NodeTable:
    table = NodeTable(capacity)
    for each in nodes:
        table.add_node(each)
    return table


# ---- rows --------------------------------------------------------------------------------------


def test_columns_grow_beyond_the_capacity() -> None:
    table = table_of(capacity=2)
    table.label_column(ZONE_LABEL)
    for index in range(9):
        table.add_node(node(f"n{index}", zone=f"z{index % 2}"))
        table.assign(pod(f"p{index}", node=f"n{index}", requests={"cpu": index}))
    assert table.capacity == 16
    assert table.resources.allocatable("cpu").values[:9].tolist() == [4000] * 9
    assert table.resources.requested("cpu").values[:9].tolist() == [
        1000 * index for index in range(9)
    ]
    assert table.label_column(ZONE_LABEL).ids.values[:9].tolist() == [0, 1] * 4 + [0]


def test_errors_for_a_node_added_twice_and_for_an_absent_node_name_the_node() -> None:
    table = table_of(node("a"), node("b"))
    table.assign(pod("p", node="b"))
    table.remove_node("b")
    with pytest.raises(AssertionError, match="node a is already there"):
        table.add_node(node("a"))
    with pytest.raises(AssertionError, match="node b is not there"):
        table.update_node(node("b"))
    with pytest.raises(AssertionError, match="node b is not there"):
        table.remove_node("b")


def test_removing_an_unknown_pod_names_pod_and_node() -> None:
    table = table_of(node("a"))
    with pytest.raises(AssertionError, match=r"default/p .*not on node 'a'"):
        table.unassign(pod("p", node="a"))
    with pytest.raises(AssertionError, match=r"default/p .*not on node 'ghost'"):
        table.unassign(pod("p", node="ghost"))


def test_a_pod_is_counted_once() -> None:
    table = table_of(node("a"))
    table.assign(pod("p", node="a"))
    with pytest.raises(AssertionError, match=r"default/p.* already counted on a"):
        table.assign(pod("p", node="a"))


# ---- columns -----------------------------------------------------------------------------------


def test_amounts_are_whole_units_and_cpu_is_in_millicores() -> None:
    offered = {"cpu": "500m", "memory": "1Gi", "pods": "110", "example.com/gpu": "2", "odd": "7"}
    table = table_of(node("a", allocatable=offered))
    result = table.resources.allocatable_on(0)
    assert result == {"cpu": 500, "memory": 1 << 30, "pods": 110, "example.com/gpu": 2}


# ---- images: the number of nodes is a value of every node with the image ---------------------


@pytest.mark.parametrize("change", ["add", "remove"])
def test_the_share_of_nodes_with_an_image_changes_with_the_number_of_nodes(
    change: str,
) -> None:
    table = table_of(node("a", images={"i": 600}), node("b"))
    seen = table.log.generation
    if change == "add":
        table.add_node(node("c"))
    else:
        table.remove_node("b")
    assert 0 in table.log.rows_since(seen, Facet.IMAGES)
    assert 0 not in table.log.rows_since(seen, Facet.LABELS)


def test_a_change_of_an_image_on_many_nodes_is_one_entry_of_the_log() -> None:
    table = table_of(*(node(f"n{index}", images={"i": 1}) for index in range(300)), node("last"))
    seen = table.log.generation
    table.update_node(node("last", images={"i": 1}))
    assert table.log.generation == seen + 2
    assert len(table.log.rows_since(seen, Facet.IMAGES)) == 301


# ---- derived columns ---------------------------------------------------------------------------


def zeros(rows: Rows) -> np.ndarray:
    return np.zeros(len(rows), np.int64)


def test_a_derived_column_is_computed_for_changed_rows_only() -> None:
    table = table_of(node("a"), node("b"), node("c"))
    calls: list[list[int]] = []

    def compute(rows: Rows) -> np.ndarray:
        calls.append(rows.tolist())
        return table.resources.requested("cpu").values[rows] // 2

    def derived() -> list[int]:
        column = table.derived("half", Facet.REQUESTED, np.int64, compute)
        return column.values[: table.row_count].tolist()

    assert derived() == [0, 0, 0]
    table.assign(pod("p", node="b", requests={"cpu": 1}))
    table.update_node(node("c", labels={"x": "1"}))
    assert derived() == [0, 500, 0]
    assert derived() == [0, 500, 0]
    assert calls == [[0, 1, 2], [1]]


# ---- draw order -----------------------------------------------------------------------------


NAMES = st.lists(st.sampled_from([f"node-{i}" for i in range(20)]), max_size=40)


@given(changes=NAMES)
def test_the_draw_order_is_sorted_by_hash_and_name_after_any_changes(changes: list[str]) -> None:
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


@given(seed=st.integers(0, 2**16), removed=st.sets(st.integers(0, 199)))
def test_many_nodes_added_at_once_come_in_the_order_of_single_additions(
    seed: int, removed: set[int]
) -> None:
    names = [f"node-{seed + number}" for number in range(200)]
    at_once, one_by_one = DrawOrder(), DrawOrder()
    for row, name in enumerate(names):
        at_once.add(name, row)
        one_by_one.add(name, row)
        one_by_one.rows()
    for row in removed:
        at_once.remove(names[row])
        one_by_one.remove(names[row])
    assert at_once.rows().tolist() == one_by_one.rows().tolist()
    assert sorted(at_once.rows().tolist()) == sorted(set(range(200)) - removed)


def test_the_error_for_removing_an_absent_node_names_the_node() -> None:
    order = DrawOrder()
    order.add("a", 0)
    for stranger in ("ghost", "other", "z"):
        with pytest.raises(AssertionError, match=f"node {stranger} is not"):
            order.remove(stranger)


@given(st.sets(st.integers(0, 99), min_size=1), st.data())
def test_the_nth_marked_row_is_the_nth_in_draw_order(rows: set[int], data: st.DataObject) -> None:
    order = DrawOrder()
    for row in range(100):
        order.add(f"node-{row}", row)
    marked = np.zeros(100, np.bool_)
    marked[list(rows)] = True
    index = data.draw(st.integers(0, len(rows) - 1))
    expected = [row for row in order.rows().tolist() if row in rows]
    assert order.nth(marked, len(rows), index) == expected[index]


@pytest.mark.parametrize("hash_count", [2, 1 << 64])
def test_many_nodes_are_drawn_in_the_order_of_hash_and_name(
    hash_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if hashes are equal, and if the nodes are added in two parts."""

    def hash_of(name: str) -> int:
        return stable_hash(name) % hash_count

    monkeypatch.setattr("bayplan.state.node_table.stable_hash", hash_of)
    names = [f"node-{number}" for number in range(300)]
    expected = sorted(range(300), key=lambda row: (hash_of(names[row]), names[row]))
    order = DrawOrder()
    for row in range(200):
        order.add(names[row], row)
    assert order.rows().tolist() == [row for row in expected if row < 200]
    for row in range(200, 300):
        order.add(names[row], row)
    assert order.rows().tolist() == expected
    order.remove(names[7])
    assert order.rows().tolist() == [row for row in expected if row != 7]


def test_an_update_that_changes_nothing_changes_no_row() -> None:
    table = table_of(node("a", zone="z"))
    seen = table.log.generation
    assert table.update_node(node("a", zone="z")) == Facet(0)
    assert table.log.generation == seen
