"""Amounts of nodes for resources that devices stand for.

If a node does not offer a resource itself and a DeviceClass stands for the resource, the node's
allocatable amount is the number of devices of the class, and the used amount is the number of
allocated ones. Upstream: calculateResourceAllocatableRequest in plugins/noderesources,
resource_allocation.go (KEP-5004).
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, final

import numpy as np

from bayplan.framework.handle import SharedDRAManager
from bayplan.state.device_table import CountsByRow
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.resources import Bundle, RowAmounts, Usage

#: Resource → its COUNTS [rows].
Counts = Mapping[str, CountsByRow]


class UsageOfNodes(Protocol):
    """The part of `NodeResources` that a scoring strategy reads."""

    def usage(self, bundle: Bundle, *, scored: bool) -> Usage: ...


class AmountsOfNodes(Protocol):
    """The amounts of many nodes, as a scoring strategy reads them: a NodeView, for example."""

    def __len__(self) -> int: ...
    @property
    def resources(self) -> UsageOfNodes: ...


class AmountsOfNode(Protocol):
    """The amounts of one node, as a scoring strategy reads them."""

    @property
    def view(self) -> AmountsOfNodes: ...
    def amounts(self, resource: str) -> RowAmounts:
        """See NodeInfo."""
        ...


def counted(devices: SharedDRAManager, resources: Iterable[str]) -> Counts:
    """Device counts of those resources that a DeviceClass stands for."""
    by_resource = ((resource, devices.counts(resource)) for resource in resources)
    return {resource: counts for resource, counts in by_resource if counts is not None}


@final
class NodesWithDevices:
    """Nodes whose devices count as resources."""

    def __init__(self, nodes: NodeView, counts: Counts) -> None:
        self._nodes = nodes
        self._counts = counts

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def resources(self) -> "NodesWithDevices":
        return self

    def usage(self, bundle: Bundle, *, scored: bool) -> Usage:
        own = self._nodes.resources.usage(bundle, scored=scored)
        if own.offered is None:
            return own  # every node offers all the resources itself
        used, allocatable, offered = own.used, own.allocatable.copy(), own.offered.copy()
        for place, resource in enumerate(bundle.resources):
            if resource not in self._counts:
                continue
            counts = self._counts[resource][self._nodes.table.index]
            backed = np.flatnonzero(~offered[place] & (counts["devices"] > 0))
            taken = counts["taken"][backed]
            used[..., place, backed] = taken + bundle.as_ints[..., place, :]
            allocatable[place, backed] = counts["devices"][backed]
            offered[place, backed] = True
        return Usage(used, allocatable, None if offered.all() else offered, is_within=False)


@final
class NodeWithDevices:
    """One node whose devices count as resources."""

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
        devices, taken = self._counts[resource][self._node.view.table.index].item()
        if not devices:
            return has
        return RowAmounts(allocatable=devices, requested=taken, scored=taken, free=devices - taken)
