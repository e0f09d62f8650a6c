"""Which devices of a class there are for whom, and how many of them are taken."""

from typing import Any

import pytest

from bayplan.api.objects import Node
from bayplan.state.allocated_devices import AllocatedDevices, DeviceId
from bayplan.state.class_devices import ANY_NODE, ClassDevices
from bayplan.testing import node
from tests.plugins.devices_kit import (
    DRIVER,
    allocated,
    as_claim,
    as_class,
    as_slice,
    claim,
    class_of,
    device,
    slice_of,
)

N1, N2 = node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})
BOTH = (N1, N2)
FAST = "device.attributes['gpu.example.com'].fast"


def devices_of(*slices: dict[str, Any], expressions: tuple[str, ...] = ()) -> ClassDevices:
    return ClassDevices(as_class(class_of("gpu", *expressions)), map(as_slice, slices))


def counts(
    found: ClassDevices, *taken: tuple[str, str], nodes: tuple[Node, ...] = BOTH
) -> list[tuple[int, int]]:
    """(devices, taken) of n1 and n2; ``taken``: (pool, device)."""
    counting = AllocatedDevices()
    if taken:
        allocation = as_claim(claim("c", status=allocated(*taken))).allocation
        assert allocation is not None
        counting.add(allocation)
    return list(found.counts(nodes, counting))


def zone(name: str) -> dict[str, Any]:
    expression = {"key": "zone", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


# ---- whom devices are for ------------------------------------------------------------------


def test_devices_of_a_node_count_there_alone() -> None:
    found = devices_of(slice_of("n1", "x", "y"))
    assert counts(found, ("n1", "y"), ("n1", "elsewhere")) == [(2, 1), (0, 0)]
    assert list(found.places_of(DeviceId(DRIVER, "n1", "x"))) == ["n1"]
    assert list(found.places_of(DeviceId(DRIVER, "n2", "x"))) == []


@pytest.mark.parametrize(
    "reach", [{"allNodes": True}, {"nodeName": None}], ids=["of all nodes", "naming nobody"]
)
def test_devices_of_no_node_in_particular_count_everywhere(reach: dict[str, Any]) -> None:
    found = devices_of(slice_of("net", "x", "y", **reach), slice_of("n2", "z"))
    assert counts(found, ("net", "x")) == [(2, 1), (3, 1)]
    assert list(found.places_of(DeviceId(DRIVER, "net", "x"))) == [ANY_NODE]


def test_devices_of_labelled_nodes_count_where_the_selector_holds() -> None:
    found = devices_of(slice_of("rack", "x", nodeSelector=zone("b")))
    assert counts(found) == [(0, 0), (1, 0)]
    assert counts(found, nodes=(node("n3", labels={"zone": "b"}), node("n4"))) == [(1, 0), (0, 0)]


def test_each_device_of_a_slice_may_say_itself_whom_it_is_for() -> None:
    listed = (
        device("x", nodeName="n1"),
        device("y", allNodes=True),
        device("z", nodeSelector=zone("a")),
        device("nobody's"),
    )
    found = devices_of(slice_of("pool", *listed, perDeviceNodeSelection=True))
    assert counts(found, ("pool", "y"), ("pool", "z")) == [(3, 2), (1, 1)]


def test_slices_count_whatever_their_generation_and_taints() -> None:
    tainted = device("x", taints=[{"key": "bad", "effect": "NoExecute"}])
    old = {**slice_of("old", "y", nodeName="n1", pool={"name": "n1", "generation": 1})}
    new = slice_of("n1", tainted, pool={"generation": 2, "resourceSliceCount": 7})
    assert counts(devices_of(old, new)) == [(2, 0), (0, 0)]


# ---- which devices are of the class --------------------------------------------------------


def test_only_devices_that_all_selectors_mean_count() -> None:
    listed = [device(name, attributes={"fast": fast}) for name, fast in (("x", True), ("y", False))]
    found = devices_of(slice_of("n1", *listed), expressions=("true", FAST))
    assert counts(found, ("n1", "x"), ("n1", "y")) == [(1, 1), (0, 0)]


def test_a_selector_that_fails_for_one_device_leaves_its_nodes_without_any() -> None:
    plain, fast = device("x"), device("y", attributes={"fast": True})
    slices = slice_of("n1", fast), slice_of("n1-more", plain, nodeName="n1"), slice_of("n2", fast)
    assert counts(devices_of(*slices, expressions=(FAST,))) == [(0, 0), (1, 0)]
    # An earlier selector that does not hold keeps the next from being asked.
    guarded = devices_of(
        *slices, expressions=("has(device.attributes['gpu.example.com'].fast)", FAST)
    )
    assert counts(guarded) == [(1, 0), (1, 0)]


def test_a_selector_that_does_not_compile_means_no_device_anywhere() -> None:
    found = devices_of(slice_of("n1", "x"), slice_of("n2", "y"), expressions=("nonsense(",))
    assert counts(found) == [(0, 0), (0, 0)]


def test_a_node_selector_that_does_not_parse_leaves_every_node_without_any() -> None:
    broken = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Like"}]}]}
    found = devices_of(slice_of("n1", "x"), slice_of("rack", "y", nodeSelector=broken))
    assert counts(found) == [(0, 0), (0, 0)]


def test_selectors_are_not_told_that_a_device_may_be_shared() -> None:
    shared = device("x", allowMultipleAllocations=True)
    found = devices_of(slice_of("n1", shared), expressions=("device.allowMultipleAllocations",))
    assert counts(found) == [(0, 0), (0, 0)]


# ---- slice by slice ------------------------------------------------------------------------


def test_a_slice_that_changes_concerns_whom_it_was_for_and_whom_it_is_for() -> None:
    found = devices_of(slice_of("s", "x", nodeName="n1"))
    assert found.put(as_slice(slice_of("s", "x", "y", nodeName="n2"))) == {"n1", "n2"}
    assert counts(found) == [(0, 0), (2, 0)]
    assert found.put(as_slice(slice_of("s", "z", allNodes=True))) == {"n2", ANY_NODE}
    assert counts(found) == [(1, 0), (1, 0)]
    assert list(found.places_of(DeviceId(DRIVER, "s", "x"))) == []


def test_a_slice_that_goes_takes_its_own_devices_along() -> None:
    one = slice_of("one", "x", nodeName="n1", pool={"name": "p"})
    other = slice_of("other", "x", nodeName="n1", pool={"name": "p"})
    found = devices_of(one, other)
    assert counts(found, ("p", "x")) == [(2, 2), (0, 0)]
    assert found.remove(as_slice(one)) == {"n1"}
    assert counts(found, ("p", "x")) == [(1, 1), (0, 0)]
    assert list(found.places_of(DeviceId(DRIVER, "p", "x"))) == ["n1"]
    assert found.remove(as_slice(one)) == set()


def test_a_slice_without_a_device_of_the_class_concerns_nobody() -> None:
    found = devices_of(expressions=("false",))
    assert found.put(as_slice(slice_of("n1", "x"))) == set()
