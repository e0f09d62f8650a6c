"""The status of an allocated claim."""

from typing import Any

import msgspec
import pytest

from bayplan.api.device_objects import AllocationResult
from bayplan.objects.object_store import ObjectStore
from bayplan.plugins.dynamic_resources.allocator import Allocator, PoolsByNode
from bayplan.plugins.dynamic_resources.pools import AllocationError
from bayplan.state.device_table import Devices
from bayplan.state.node_table import NodeTable
from bayplan.testing import node
from tests.plugins.devices_kit import (
    as_claim,
    claim,
    class_of,
    device,
    exactly,
    first_of,
    put,
    slice_of,
)

ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
RACK = {"key": "rack", "operator": "Exists"}


def allocation(content: Any, *further: Any, classes: tuple[Any, ...] = ()) -> AllocationResult:
    store = ObjectStore[Any]()
    put(store, class_of(), *classes, *further)
    devices = Devices(NodeTable(), store)
    pools, taken = PoolsByNode(devices.resource_slices), devices.resource_claims.allocated
    allocator = Allocator(pools, devices.device_classes, taken)
    where = node("n1", labels={"zone": "a", "rack": "r"})
    result = allocator.allocate(where, [as_claim(content)], lambda: None)
    assert result is not None
    return result[0]


def plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def terms(*requirements: Any) -> Any:
    return {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}


def test_devices_of_a_fabric_need_the_node_selectors_of_all_their_slices() -> None:
    one = slice_of("s1", "x", nodeSelector=terms(ZONE))
    other = slice_of("s2", "y", nodeSelector=terms(ZONE, RACK))
    allocated = allocation(claim("c", exactly(count=2)), one, other)
    assert plain(allocated.node_selector) == terms(ZONE, RACK)


def test_a_device_for_all_nodes_does_not_bind_to_a_node_unless_it_has_the_field() -> None:
    result = allocation(claim("c", exactly()), slice_of("s", "x", allNodes=True))
    assert result.node_selector is None
    binding = slice_of("s", device("x", bindsToNode=True), allNodes=True)
    result = allocation(claim("c", exactly()), binding)
    assert "metadata.name" in str(plain(result.node_selector))


def test_a_slice_with_several_terms_is_an_error() -> None:
    two = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}, {"matchExpressions": [RACK]}]}
    with pytest.raises(AllocationError, match=r"unsupported ResourceSlice\.NodeSelector with 2"):
        allocation(claim("c", exactly()), slice_of("s", "x", nodeSelector=two))


def test_a_result_has_the_request_and_the_conditions_of_the_device() -> None:
    toleration = {"key": "a", "operator": "Exists"}
    request = exactly("r", adminAccess=True, tolerations=[toleration])
    content = slice_of(
        "n1", device("x", bindingConditions=["ready"], bindingFailureConditions=["bad"])
    )
    (result,) = plain(allocation(claim("c", request), content))["devices"]["results"]
    assert result == {
        "request": "r",
        "driver": "gpu.example.com",
        "pool": "n1",
        "device": "x",
        "adminAccess": True,
        "tolerations": [toleration],
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["bad"],
    }


def test_shares_of_a_device_have_ids_and_consumed_capacities() -> None:
    shared = device("s", allowMultipleAllocations=True, capacity={"memory": "4Gi"})
    half = {"requests": {"memory": "1Gi"}}
    new_claim = claim("c", exactly("a", capacity=half), exactly("b", capacity=half))
    results = allocation(new_claim, slice_of("n1", shared)).results
    assert len({result.share_id for result in results}) == 2
    assert [result.consumed_capacity for result in results] == [{"memory": "1073741824"}] * 2


def opaque(number: int, *requests: str) -> Any:
    return {"requests": list(requests), "opaque": {"driver": "d", "parameters": {"n": number}}}


def configuration(allocation: AllocationResult) -> list[tuple[str, int, tuple[str, ...] | None]]:
    return [
        (each.source, (each.opaque or {})["parameters"]["n"], each.requests)
        for each in allocation.devices.config or ()
    ]


def test_configuration_of_classes_comes_first_and_each_class_once() -> None:
    fpga = class_of("fpga", config=[opaque(2)])
    gpu = class_of("gpu", config=[opaque(1)])
    new_claim = claim(
        "c",
        exactly("a"),
        exactly("b", "fpga"),
        exactly("x"),
        config=[opaque(3), opaque(4, "b"), opaque(5, "absent")],
    )
    allocated = allocation(new_claim, slice_of("n1", "x", "y", "z"), classes=(gpu, fpga))
    assert configuration(allocated) == [
        ("FromClass", 1, ("a", "x")),
        ("FromClass", 2, ("b",)),
        ("FromClaim", 3, None),
        ("FromClaim", 4, ("b",)),
    ]


def test_configuration_of_an_alternative_counts_if_it_was_chosen() -> None:
    request = first_of("r", two={"count": 2}, one={})
    config = [opaque(1, "r/two"), opaque(2, "r/one"), opaque(3, "r")]
    allocated = allocation(claim("c", request, config=config), slice_of("n1", "x"))
    assert configuration(allocated) == [("FromClaim", 2, None), ("FromClaim", 3, None)]
