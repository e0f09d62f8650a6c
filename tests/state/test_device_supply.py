"""Devices count as amounts of the resources that they stand for."""

from typing import Any

from bayplan.api.objects import Node
from bayplan.state.device_supply import DeviceSupply
from bayplan.state.device_table import ANY_NODE
from bayplan.testing import node
from tests.plugins.devices_kit import DRIVER, as_class, as_slice, class_of, slice_of

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


def supply_of(*slices: dict[str, Any]) -> DeviceSupply:
    supply = DeviceSupply()
    of_driver = f"device.driver == '{DRIVER}'"
    supply.change(as_class(class_of("gpu", of_driver, extendedResourceName=GPU)), is_there=True)
    for each in slices:
        supply.change(as_slice(each), is_there=True)
    return supply


def gpus_of(supply: DeviceSupply, of: Node, resource: str = GPU) -> int:
    return supply.offered(of).get(resource, 0)


def test_a_change_names_the_nodes_whose_amounts_may_change() -> None:
    supply, n1 = supply_of(), node("n1")
    assert set(supply.change(as_slice(slice_of("n1", "a", "b")), is_there=True)) == {"n1"}
    assert gpus_of(supply, n1) == 2
    assert set(supply.change(as_slice(slice_of("n1", "a")), is_there=True)) == {"n1"}
    assert gpus_of(supply, n1) == 1
    everywhere = as_slice(slice_of("pool", "c", allNodes=True))
    assert set(supply.change(everywhere, is_there=True)) == {ANY_NODE}
    assert gpus_of(supply, n1) == 2
    assert set(supply.change(everywhere, is_there=False)) == {ANY_NODE}
    assert gpus_of(supply, n1) == 1


def test_a_class_that_goes_takes_its_resource_along() -> None:
    supply = supply_of(slice_of("n1", "a"))
    assert set(supply.change(as_class(class_of("gpu")), is_there=False)) == {ANY_NODE}
    assert gpus_of(supply, node("n1")) == 0


def test_an_implicit_name_counts_once_a_pod_requests_it() -> None:
    supply = supply_of(slice_of("n1", "a"))
    assert gpus_of(supply, node("n1"), IMPLICIT) == 0
    assert set(supply.request(["cpu", IMPLICIT])) == {ANY_NODE}
    assert gpus_of(supply, node("n1"), IMPLICIT) == 1
    assert not supply.request([IMPLICIT])


def test_a_device_that_several_nodes_can_use_counts_once_in_the_total() -> None:
    supply = supply_of(slice_of("pool", "a", "b", allNodes=True), slice_of("n1", "c"))
    nodes = [node("n1"), node("n2"), node("n3", allocatable={GPU: 4})]
    assert [gpus_of(supply, each) for each in nodes] == [3, 2, 4]
    assert supply.total(nodes)[GPU] == 3 + 4
