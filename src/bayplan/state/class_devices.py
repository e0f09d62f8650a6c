"""The devices of one class, by the nodes that may use them; kept current slice by slice.

What is counted here is what upstream counts where it scores a resource that the class stands for,
which is less than what it looks at where it gives devices away: every slice counts, of whatever
generation and in whatever pool, and taints do not matter. Upstream: calculateDRAResourceTotals in
plugins/noderesources/resource_allocation.go. What a selector said of a device, or a node selector
of a node, upstream remembers by name for as long as it runs; here it is what it says now.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from msgspec import structs

from bayplan.api.device_objects import Device, DeviceClass, ResourceSlice
from bayplan.api.device_selectors import CelError, compile_selector
from bayplan.api.object_meta import NodeSelector
from bayplan.api.objects import Node
from bayplan.api.selectors import NodeTerm, node_term
from bayplan.state.allocated_devices import AllocatedDevices, DeviceId

#: In place of a node's name: any node may be meant.
ANY_NODE = ""


@dataclass(frozen=True, slots=True)
class _Reach:
    """Whom devices are for: one node, those that one of the terms selects, or all."""

    node_name: str = ANY_NODE
    terms: tuple[NodeTerm, ...] | None = None

    @property
    def is_broken(self) -> bool:
        return any(term.error is not None for term in self.terms or ())

    def includes(self, node: Node) -> bool:
        """Of a node that has the name, where one is said. Broken terms fail for every node."""
        if self.terms is None or self.is_broken:
            return True
        labels, name = node.metadata.labels or {}, node.metadata.name
        return any(term.matches(labels, name) for term in self.terms)


@dataclass(frozen=True, slots=True)
class _Offer:
    """Devices of the class that one slice lists for the same nodes."""

    reach: _Reach
    ids: tuple[DeviceId, ...]
    #: A selector fails for one of them: upstream then counts nothing on any node it is for.
    is_broken: bool

    def taken_count(self, allocated: AllocatedDevices) -> int:
        return sum(map(allocated.is_taken, self.ids))


@final
class ClassDevices:
    """Which devices there are for a node, and where a device is."""

    def __init__(self, device_class: DeviceClass, slices: Iterable[ResourceSlice]) -> None:
        self.device_class = device_class
        self._expressions = tuple(
            each.cel.expression for each in device_class.spec.selectors or () if each.cel
        )
        #: Name of a node, or ANY_NODE → name of a slice → what it offers there.
        self._offers: dict[str, dict[str, list[_Offer]]] = defaultdict(dict)
        #: By name of a slice.
        self._of_slice: dict[str, list[_Offer]] = {}
        #: Names of nodes, or ANY_NODE, once for each slice that lists the device.
        self._places: dict[DeviceId, list[str]] = {}
        for each in slices:
            self.put(each)

    def put(self, found: ResourceSlice) -> Collection[str]:
        """A slice as it is from now on. Whom it concerns: names of nodes, ANY_NODE among them."""
        gone = self.remove(found)
        name = found.metadata.name
        offers = self._of_slice[name] = list(self._offers_of(found))
        for offer in offers:
            place = offer.reach.node_name
            self._offers[place].setdefault(name, []).append(offer)
            for device in offer.ids:
                self._places.setdefault(device, []).append(place)
        return {*gone, *(offer.reach.node_name for offer in offers)}

    def remove(self, found: ResourceSlice) -> Collection[str]:
        """A slice of this name counts no longer. Whom it concerned."""
        name = found.metadata.name
        offers = self._of_slice.pop(name, ())
        for offer in offers:
            place = offer.reach.node_name
            self._offers[place].pop(name, None)
            if not self._offers[place]:
                del self._offers[place]
            for device in offer.ids:
                self._places[device].remove(place)
                if not self._places[device]:
                    del self._places[device]
        return {offer.reach.node_name for offer in offers}

    def places_of(self, device: DeviceId) -> Sequence[str]:
        """Names of nodes, or ANY_NODE; none: it is not of the class, or no slice lists it."""
        return self._places.get(device, ())

    def counts(
        self, nodes: Iterable[Node], allocated: AllocatedDevices
    ) -> Iterator[tuple[int, int]]:
        """How many devices there are for each of these nodes, and how many of them are taken."""
        anywhere = [
            (offer, offer.taken_count(allocated))
            for offers in self._offers.get(ANY_NODE, {}).values()
            for offer in offers
        ]
        for node in nodes:
            here = [
                (offer, offer.taken_count(allocated))
                for offers in self._offers.get(node.metadata.name, {}).values()
                for offer in offers
            ]
            for_node = [
                *here,
                *((offer, taken) for offer, taken in anywhere if offer.reach.includes(node)),
            ]
            if any(offer.is_broken for offer, _ in for_node):
                yield 0, 0
            else:
                yield (
                    sum(len(offer.ids) for offer, _ in for_node),
                    sum(taken for _, taken in for_node),
                )

    # ---- one slice ------------------------------------------------------------------------

    def _offers_of(self, found: ResourceSlice) -> Iterator[_Offer]:
        """Those with any devices of the class."""
        spec, by_reach = found.spec, dict[_Reach, list[Device]]()
        if spec.per_device_node_selection:
            for device in spec.devices or ():
                reach = _reach(device.all_nodes, device.node_name, device.node_selector)
                if reach is not None:
                    by_reach.setdefault(reach, []).append(device)
        else:
            # Upstream takes a slice that names no nodes at all for one of all nodes.
            reach = _reach(spec.all_nodes, spec.node_name, spec.node_selector) or _Reach()
            by_reach[reach] = list(spec.devices or ())
        for reach, devices in by_reach.items():
            offer = self._offer(found, reach, devices)
            if offer.ids or offer.is_broken:
                yield offer

    def _offer(self, found: ResourceSlice, reach: _Reach, devices: Iterable[Device]) -> _Offer:
        driver, pool = found.spec.driver, found.spec.pool.name
        if reach.is_broken:
            return _Offer(reach, (), is_broken=True)
        try:
            meant = [each for each in devices if self._means(driver, each)]
        except CelError:
            return _Offer(reach, (), is_broken=True)
        ids = tuple(DeviceId(driver, pool, each.name) for each in meant)
        return _Offer(reach, ids, is_broken=False)

    def _means(self, driver: str, device: Device) -> bool:
        """Whether all selectors hold, asked in order. Raises CelError."""
        # Here upstream does not tell selectors that a device may be shared.
        shown = structs.replace(device, allow_multiple_allocations=None)
        return all(_holds(expression, driver, shown) for expression in self._expressions)


def _holds(expression: str, driver: str, device: Device) -> bool:
    program = compile_selector(expression)
    if isinstance(program, CelError):
        raise program
    return program.matches(driver, device)


def _reach(
    all_nodes: bool | None, node_name: str | None, selector: NodeSelector | None
) -> _Reach | None:
    """None: nobody is named."""
    if all_nodes:
        return _Reach()
    if node_name:
        return _Reach(node_name=node_name)
    if selector is None:
        return None
    return _Reach(terms=tuple(map(node_term, selector.node_selector_terms or ())))
