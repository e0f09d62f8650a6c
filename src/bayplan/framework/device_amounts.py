"""Amounts of nodes where devices stand for some resources: what a strategy sees of such nodes.

Where a node does not offer a resource itself, and a DeviceClass stands for it, what the node has of
it is how many devices of the class there are for it, and what is used is how many of these are
taken. Upstream: calculateResourceAllocatableRequest in plugins/noderesources,
resource_allocation.go (KEP-5004).
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, final

import numpy as np

from bayplan.framework.shared_devices import SharedDRAManager
from bayplan.state.device_table import CountsByRow
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.resources import Bundle, RowAmounts, Usage

#: Resource → its COUNTS [rows].
Counts = Mapping[str, CountsByRow]


class AmountsOfNodes(Protocol):
    """What a strategy reads of many nodes."""

    def __len__(self) -> int: ...
    def usage(self, bundle: Bundle, *, scored: bool) -> Usage:
        """See NodeView."""
        ...


class AmountsOfNode(Protocol):
    """What it reads of one."""

    @property
    def view(self) -> AmountsOfNodes: ...
    def amounts(self, resource: str) -> RowAmounts:
        """See NodeInfo."""
        ...


def counted(devices: SharedDRAManager, resources: Iterable[str]) -> Counts:
    """Devices that stand for these resources; none for those that no class stands for."""
    by_resource = ((resource, devices.counts(resource)) for resource in resources)
    return {resource: counts for resource, counts in by_resource if counts is not None}


@final
class NodesWithDevices:
    """Some nodes, their devices counted."""

    def __init__(self, nodes: NodeView, counts: Counts) -> None:
        self._nodes = nodes
        self._counts = counts

    def __len__(self) -> int:
        return len(self._nodes)

    def usage(self, bundle: Bundle, *, scored: bool) -> Usage:
        own = self._nodes.usage(bundle, scored=scored)
        if own.offered is None:
            return own  # every node offers them all itself
        used, allocatable, offered = own.used, own.allocatable.copy(), own.offered.copy()
        for place, resource in enumerate(bundle.resources):
            if resource not in self._counts:
                continue
            counts = self._counts[resource][self._nodes.selection]
            backed = np.flatnonzero(~offered[place] & (counts["devices"] > 0))
            taken = counts["taken"][backed]
            used[..., place, backed] = taken + bundle.as_ints[..., place, :]
            allocatable[place, backed] = counts["devices"][backed]
            offered[place, backed] = True
        return Usage(used, allocatable, None if offered.all() else offered, is_within=False)


@final
class NodeWithDevices:
    """One node, its devices counted."""

    def __init__(self, node: NodeInfo, counts: Counts) -> None:
        self._node = node
        self._counts = counts

    @property
    def view(self) -> NodesWithDevices:
        return NodesWithDevices(self._node.view, self._counts)

    def amounts(self, resource: str) -> RowAmounts:
        has = self._node.amounts(resource)
        if has.allocatable or resource not in self._counts:
            return has
        devices, taken = self._counts[resource][self._node.view.selection].item()
        if not devices:
            return has
        return RowAmounts(allocatable=devices, requested=taken, scored=taken, free=devices - taken)
