"""How many devices stand for a resource on each node, and how many of them are taken: columns.

Nothing is counted before somebody asks for a resource. From then on whatever changes the numbers
of a node is noted as a change of what it offers, so that answers that follow from them are void.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    RESOURCE_SLICE,
    AllocationResult,
    DeviceClass,
    ResourceSlice,
)
from bayplan.state.allocated_devices import AllocatedDevices, DeviceId
from bayplan.state.change_log import ALL_ROWS, Facet
from bayplan.state.class_devices import ANY_NODE, ClassDevices
from bayplan.state.columns import Rows
from bayplan.state.node_table import NodeTable
from bayplan.state.object_store import KindStore, ObjectStore

#: Of one node; an array of such is [rows].
COUNTS = np.dtype([("devices", np.int64), ("taken", np.int64)])
CountsByRow = npt.NDArray[np.void]

#: Which nodes a device is for may follow from their labels.
_FACETS = Facet.ALLOCATABLE | Facet.LABELS


@final
class DeviceCounts:
    """Columns of counts, one for each resource that was asked about."""

    def __init__(self, table: NodeTable, objects: ObjectStore, allocated: AllocatedDevices) -> None:
        self._table = table
        self._slices: KindStore = objects.of(RESOURCE_SLICE)
        self._allocated = allocated
        #: By the resource that a class stands for.
        self._of_resource: dict[str, ClassDevices] = {}
        objects.of(DEVICE_CLASS).subscribe(self._class_changed)
        self._slices.subscribe(self._slice_changed)

    def by_row(self, resource: str, device_class: DeviceClass) -> CountsByRow:
        """COUNTS [rows] of the devices that stand for the resource, by this class."""
        found = self._of_resource.get(resource)
        if found is None or found.device_class is not device_class:
            found = ClassDevices(device_class, self._slices.list())
            self._of_resource[resource] = found
        key, compute = ("devices", resource), partial(self._counted, found)
        return self._table.derived(key, _FACETS, COUNTS, compute).lent

    def taken_changed(self, allocation: AllocationResult) -> None:
        """Devices of an allocation are taken from now on, or not any more."""
        if not self._of_resource:
            return
        devices = {DeviceId(each.driver, each.pool, each.device) for each in allocation.results}
        self._note(
            place
            for found in self._of_resource.values()
            for device in devices
            for place in found.places_of(device)
        )

    def _counted(self, counting: ClassDevices, rows: Rows) -> CountsByRow:
        numbers: list[int] = rows.tolist()
        held = (self._table.nodes[row] for row in numbers)
        counts = counting.counts((node for node in held if node is not None), self._allocated)
        return np.array(list(counts), COUNTS)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        about = old if new is None else new
        assert about is not None
        concerned: set[str] = set()
        for found in self._of_resource.values():
            concerned.update(found.remove(about) if new is None else found.put(new))
        self._note(concerned)

    def _class_changed(self, old: Any, new: Any) -> None:
        """Which resources devices stand for decides about every node's room."""
        self._table.log.note(ALL_ROWS, Facet.ALLOCATABLE)

    def _note(self, places: Iterable[str]) -> None:
        names, table = set(places), self._table
        if ANY_NODE in names:
            table.log.note(ALL_ROWS, Facet.ALLOCATABLE)
            return
        for row in sorted(table.row_of[name] for name in names if name in table.row_of):
            table.log.note(row, Facet.ALLOCATABLE)
