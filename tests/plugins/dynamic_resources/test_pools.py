"""Pools are put together from slices, as far as a node can use them.

Two different errors that end an allocation.
"""

from typing import Any

import pytest

from bayplan.plugins.dynamic_resources.pools import (
    AllocationError,
    NodeAllocationFailed,
    gather_pools,
)
from bayplan.testing import node
from tests.plugins.devices_kit import as_slice, device, slice_of

# ---- pools ----------------------------------------------------------------------------------


NODE = node("n1", zone="a")
IN_ZONE_A = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
            ]
        }
    ]
}


def pools(*contents: dict[str, Any]) -> dict[str, list[str] | str]:
    """Pool → its devices in order, or its problem."""
    slices = [as_slice(each) for each in contents]
    devices_by_pool: dict[str, list[str] | str] = {}
    for pool in gather_pools(NODE, slices, slices):
        wrong = "incomplete" if pool.is_incomplete else "invalid" if pool.is_invalid else ""
        devices_by_pool[str(pool.id)] = wrong or [each.id.device for each in pool.candidates]
    return devices_by_pool


def part(name: str, *devices: Any, count: int = 2, generation: int = 1, **spec: Any) -> Any:
    """One of several slices of the pool p."""
    pool = {"name": "p", "generation": generation, "resourceSliceCount": count}
    return slice_of(name, *devices, pool=pool, **{"nodeName": "n1", **spec})


def test_a_pool_has_only_the_devices_that_the_node_can_use() -> None:
    pool_list = pools(
        slice_of("n2", "no"),
        slice_of("s1", "yes", allNodes=True),
        slice_of("s2", "yes", nodeSelector=IN_ZONE_A),
        slice_of("s3", "future", nodeName=""),
        slice_of(
            "s4",
            device("mine", nodeName="n1"),
            device("hers", nodeName="n2"),
            perDeviceNodeSelection=True,
        ),
    )
    listed = {name.rpartition("/")[2]: devices for name, devices in pool_list.items()}
    assert listed == {"s1": ["yes"], "s2": ["yes"], "s4": ["mine", "hers"]}


def test_only_the_newest_generation_counts() -> None:
    result = pools(part("a", "old", count=1), part("b", "new", count=1, generation=2))
    assert result == {"gpu.example.com/p": ["new"]}


def test_a_pool_whose_newer_slices_are_elsewhere_is_being_replaced() -> None:
    old = part("a", "old", generation=1)
    assert pools(old, part("b", "new", generation=2, nodeName="n2")) == {}


@pytest.mark.parametrize(
    "content",
    [
        slice_of("n1", "x", "x"),
        slice_of("n1", device("x", consumesCounters=[{"counterSet": "absent", "counters": {}}])),
    ],
)
def test_a_pool_that_contradicts_itself_is_invalid(content: Any) -> None:
    assert list(pools(content).values()) == ["invalid"]


def test_devices_with_binding_conditions_are_last() -> None:
    ready = slice_of("b", "x", allNodes=True)
    slow = slice_of("a", device("y", bindingConditions=["ready"]), allNodes=True)
    assert list(pools(slow, ready)) == ["gpu.example.com/b", "gpu.example.com/a"]


def test_slices_with_compatibility_groups_are_left_out() -> None:
    consumption = {"counterSet": "s", "counters": {}, "compatibilityGroups": ["g"]}
    grouped = part("a", device("x", consumesCounters=[consumption]))
    assert pools(grouped) == {}
    assert pools(grouped, part("b", "y")) == {"gpu.example.com/p": "incomplete"}


def test_a_selector_that_does_not_parse_is_an_error() -> None:
    wrong = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Maybe"}]}]}
    with pytest.raises(AllocationError, match="failed to parse node selector"):
        pools(slice_of("s", "x", nodeSelector=wrong))


# ---- problems -------------------------------------------------------------------------------


def test_a_problem_of_a_claim_differs_from_a_problem_of_a_node() -> None:
    assert not issubclass(AllocationError, NodeAllocationFailed)
    assert not issubclass(NodeAllocationFailed, AllocationError)
