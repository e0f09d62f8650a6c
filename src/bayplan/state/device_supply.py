"""Devices as amounts of extended resources: what nodes offer, with the devices that stand for it.

A node that offers a resource itself counts with its own amount. On other nodes the devices of the
class that stands for the resource count, as for the scores of NodeResourcesFit (`DeviceCounts` has
the rule). Every class stands for a resource with the implicit name of the class, too. Such a name
is in use only if a pod requests it.

The supply is made from objects of the API alone, for tables and pages; the scheduler has columns of
its own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import final

from bayplan.api.device_objects import (
    DEVICE_CLASS_RESOURCE_PREFIX,
    DeviceClass,
    ResourceSlice,
)
from bayplan.api.objects import Node
from bayplan.api.pod_requests import Amounts, amounts
from bayplan.state.device_table import (
    ANY_NODE,
    AllocatedDevices,
    ClassDevices,
    class_by_resource,
)

_NONE_TAKEN = AllocatedDevices()
_NOWHERE: Collection[str] = ()
_EVERYWHERE: Collection[str] = (ANY_NODE,)


@final
class DeviceSupply:
    """The devices behind the resources that are in use. Changes return the names of the nodes whose
    amounts may change; ANY_NODE stands for all nodes."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._slices: dict[str, ResourceSlice] = {}
        #: Implicit names that pods request.
        self._requested: set[str] = set()
        #: Resource in use → the devices of its class.
        self._behind: dict[str, ClassDevices] = {}

    def change(self, device_object: object, *, is_there: bool) -> Collection[str]:
        """A class or a slice was added, replaced or removed. Objects of other kinds are ignored."""
        if isinstance(device_object, DeviceClass):
            name = device_object.metadata.name
            self._classes.pop(name, None)
            if is_there:
                self._classes[name] = device_object
            return self._refresh()
        if isinstance(device_object, ResourceSlice):
            return self._change_slice(device_object, is_there)
        return _NOWHERE

    def request(self, resources: Iterable[str]) -> Collection[str]:
        """Pods request these resources."""
        implicit = {name for name in resources if name.startswith(DEVICE_CLASS_RESOURCE_PREFIX)}
        if implicit <= self._requested:
            return _NOWHERE
        self._requested |= implicit
        return self._refresh()

    def offered(self, node: Node) -> Amounts:
        """The allocatable amounts of a node, with devices."""
        offered = amounts(node.status.allocatable)
        for resource, devices in self._behind.items():
            if offered.get(resource, 0) <= 0:
                ((count, _),) = devices.counts((node,), _NONE_TAKEN)
                if count:
                    offered[resource] = count
        return offered

    def total(self, nodes: Iterable[Node]) -> Amounts:
        """The allocatable amounts of all nodes. A device that several nodes can use counts once."""
        total: Amounts = {}
        nodes = tuple(nodes)
        for node in nodes:
            for resource, amount in amounts(node.status.allocatable).items():
                total[resource] = total.get(resource, 0) + amount
        return self.with_devices(total, nodes)

    def with_devices(self, amounts_of_nodes: Mapping[str, int], nodes: Iterable[Node]) -> Amounts:
        """What these nodes offer themselves, in total, and the devices that count."""
        total = dict(amounts_of_nodes)
        for resource, devices in self._behind.items():
            count = devices.count_of(_without(resource, nodes))
            if count:
                total[resource] = total.get(resource, 0) + count
        return total

    def _change_slice(self, resource_slice: ResourceSlice, is_there: bool) -> Collection[str]:
        name = resource_slice.metadata.name
        self._slices.pop(name, None)
        if is_there:
            self._slices[name] = resource_slice
        concerned: set[str] = set()
        for devices in self._behind.values():
            change = devices.put if is_there else devices.remove
            concerned.update(change(resource_slice))
        return concerned

    def _refresh(self) -> Collection[str]:
        """Find the classes behind the resources in use again."""
        classes = [self._classes[name] for name in sorted(self._classes)]
        self._behind = {
            resource: self._devices_of(resource, device_class)
            for resource, device_class in class_by_resource(classes).items()
            if not resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX) or resource in self._requested
        }
        return _EVERYWHERE

    def _devices_of(self, resource: str, device_class: DeviceClass) -> ClassDevices:
        current = self._behind.get(resource)
        if current is not None and current.device_class is device_class:
            return current
        return ClassDevices(device_class, self._slices.values())


def _without(resource: str, nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes that do not offer a resource themselves."""
    for node in nodes:
        if amounts(node.status.allocatable).get(resource, 0) <= 0:
            yield node
