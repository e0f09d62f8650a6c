"""Allocatable, requested and free amounts of nodes, as int64 and as float64."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.state.resources import EXACT_BELOW, Bundle, Resources, Usage
from bayplan.testing import pod

GPU = "example.com/gpu"
SILENT = pod().shape
ALL = slice(2)


def two_nodes(**offered: int) -> Resources:
    """Two nodes with equal amounts in a table with room for four nodes."""
    resources = Resources(4)
    for row in range(2):
        resources.set_allocatable(row, {"cpu": 8000, "memory": 2**34, "pods": 110} | offered)
    return resources


def usage(resources: Resources, amounts: Mapping[str, int], rows: Any = ALL) -> Usage:
    bundle = Bundle(tuple(amounts), tuple(amounts.values()))
    return resources.usage(bundle, rows, 2, scored=False)


def short(resources: Resources, name: str, amount: int, rows: Any = ALL) -> Any:
    return resources.short(name, amount, rows, are_all=isinstance(rows, slice))


def asking(**requests: Any) -> Any:
    return pod(requests=requests).shape


SHAPES = (
    SILENT,
    asking(cpu="500m"),
    asking(cpu=1, memory="3Gi"),
    asking(**{GPU: 1}),
    asking(memory=EXACT_BELOW // 2),
    asking(memory=2**62),
)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(SHAPES)), max_size=60))
def test_pods_counted_together_are_counted_like_pods_one_by_one(
    placed: list[tuple[int, Any]],
) -> None:
    one_by_one, at_once = two_nodes(), two_nodes()
    for row, shape in placed:
        one_by_one.count(row, shape, 1)
    at_once.count_many(np.array([row for row, _ in placed], np.intp), [s for _, s in placed])
    assert at_once.pod_counts.values.tolist() == one_by_one.pod_counts.values.tolist()
    numbers = [each.equivalence.numbers for each in (at_once, one_by_one)]
    for first, second in combinations(range(3), 2):
        expected = numbers[1][first] == numbers[1][second]
        assert (numbers[0][first] == numbers[0][second]) <= expected
    for name in ("cpu", "memory", "pods", GPU):
        for row in range(4):
            assert at_once.of_row(name, row) == one_by_one.of_row(name, row)
        for amount in (0, 1, 100, 7000):
            expected = short(one_by_one, name, amount)
            assert np.array_equal(short(at_once, name, amount), expected)
        both = [usage(each, {name: 1}) for each in (at_once, one_by_one)]
        assert both[0].used.dtype == both[1].used.dtype
        assert both[0].used.tolist() == both[1].used.tolist()


def test_a_node_that_offers_less_than_its_pods_request_has_a_negative_free_amount() -> None:
    resources = two_nodes()
    resources.count(1, asking(cpu=4), 1)
    resources.set_allocatable(1, {"cpu": 3000})
    assert resources.free("cpu").values[1] == -1000
    assert resources.free("pods").values[1] == -1


def test_scored_amounts_of_other_resources_equal_the_requested_ones() -> None:
    resources = two_nodes()
    resources.count(0, pod(requests={GPU: 2}).shape, 1)
    assert resources.scored(GPU).values[0] == resources.requested(GPU).values[0] == 2


def test_rows_with_less_free_amounts_are_returned_or_none() -> None:
    resources = two_nodes()
    resources.count(1, asking(cpu=1), 1)
    some = np.array([0])
    assert short(resources, "cpu", 7000) is None
    result = short(resources, "cpu", 7001)
    assert result is not None
    assert result.tolist() == [False, True]
    assert short(resources, "cpu", 7001, some) is None
    assert short(resources, GPU, 0) is None
    assert short(resources, GPU, 1, some) is not None


def test_the_least_free_amount_follows_nodes_and_pods() -> None:
    resources = two_nodes()
    assert short(resources, "cpu", 8000) is None
    resources.count(0, asking(cpu=3), 1)
    assert short(resources, "cpu", 5001) is not None
    resources.count(0, asking(cpu=3), -1)
    assert short(resources, "cpu", 8000) is None
    resources.set_allocatable(2, {})
    assert short(resources, "cpu", 1, slice(3)) is not None
    resources.set_allocatable(2, {"cpu": 9000})
    assert short(resources, "cpu", 8000, slice(3)) is None


def test_an_absent_resource_is_reported_and_its_divisor_is_1() -> None:
    resources = two_nodes()
    resources.set_allocatable(1, {"cpu": 0, "memory": 1})
    result = usage(resources, {"cpu": 0, "memory": 0})
    assert result.offered is not None
    assert result.offered.tolist() == [[True, False], [True, True]]
    assert result.allocatable.tolist() == [[8000, 1], [2**34, 1]]
    assert usage(resources, {"cpu": 0, "memory": 0}, np.array([0])).offered is None


@pytest.mark.parametrize("offered", [EXACT_BELOW - 1, EXACT_BELOW])
def test_floats_are_used_while_they_are_exact(offered: int) -> None:
    resources = two_nodes(**{"ephemeral-storage": offered})
    result = usage(resources, {"ephemeral-storage": 1})
    assert (result.used.dtype == np.float64) == (offered < EXACT_BELOW)
    assert result.allocatable[0, 0] == offered
    assert usage(resources, {"cpu": 1}).used.dtype == np.float64


def test_a_demand_that_float64_cannot_represent_is_added_exactly() -> None:
    result = usage(two_nodes(), {"memory": 2**60 + 1})
    assert result.used.tolist() == [[2**60 + 1] * 2]


def test_amounts_overflow_like_int64() -> None:
    resources = two_nodes()
    for _ in range(2):
        resources.count(0, pod(requests={GPU: 2**62}).shape, 1)
    assert resources.requested(GPU).values[0] == -(2**63)


PLACEMENTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.dictionaries(
            st.sampled_from(["cpu", "memory", GPU, "hugepages-2Mi"]), st.integers(0, 9)
        ),
    ),
    max_size=12,
)


@given(PLACEMENTS, st.integers(4, 9))
def test_columns_do_not_depend_on_the_order_of_changes(
    placements: list[tuple[int, dict[str, int]]], capacity: int
) -> None:
    resources = Resources(4)
    for row in range(4):
        resources.set_allocatable(row, {"cpu": 1000 * row, GPU: row, "pods": 5})
    for row, requests in placements:
        resources.count(row, pod(requests=requests).shape, 1)
    resources.grow(capacity)
    for name in ("cpu", "memory", GPU, "hugepages-2Mi"):
        scale = 1000 if name == "cpu" else 1
        expected = [0] * capacity
        for row, requests in placements:
            expected[row] += requests.get(name, 0) * scale
        assert resources.requested(name).values.tolist() == expected
        free = resources.allocatable(name).values - resources.requested(name).values
        assert resources.free(name).values.tolist() == free.tolist()
        bundle = Bundle((name,), (0,))
        twin = resources.usage(bundle, slice(capacity), 4, scored=False)
        assert twin.used.tolist() == [expected]
        for amount in (0, 1, 1000, int(free.max())):
            result = short(resources, name, amount, slice(capacity))
            assert (free < amount).tolist() == (
                [False] * capacity if result is None else result.tolist()
            )
