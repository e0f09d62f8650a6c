"""The free thousandths of each GPU of each node.

The devices of a pod are written on the pod when it is bound (`DEVICES_ANNOTATION`), so that a
restarted scheduler has the same counts. From Reserve until the API reports the annotation, GpuShare
stores the devices. A pod with neither (a what-if, or placed by another scheduler) counts on the
devices that fit it best.

So a node's devices depend on its pods, and are a derived column: one record per node, computed
again for nodes whose pods or GPUs changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bayplan import CycleState, Facet, NodeView, PodInfo
from gpu_sharing.asks import GPU, WHOLE_MILLI, GpuAsk, ask_of_placed

DEVICES_ANNOTATION = "gpu-sharing.bayplan.dev/devices"

#: The facets that a node's devices depend on.
FACETS = Facet.PODS | Facet.ALLOCATABLE

#: Node → uid of a pod on it → its devices.
Reserved = Mapping[str, Mapping[str, tuple[int, ...]]]

#: int16[nodes, devices]: free thousandths; 0 where a node has no such device.
FreeMilli = npt.NDArray[np.int16]

_NOTE: Final = "gpu-sharing.bayplan.dev/devices"
_WIDTH_MIN = 8


@dataclass(frozen=True, slots=True, eq=False)
class Devices:
    """The devices of a view's nodes; ``reserved``: those of pods that do not say so yet."""

    reserved: Reserved = field(default_factory=dict[str, Mapping[str, tuple[int, ...]]])

    def free(self, nodes: NodeView) -> FreeMilli:
        return self._records(nodes)["free"]

    def tags(self, nodes: NodeView) -> npt.NDArray[np.int64]:
        """int64[nodes]: which sorts of pods use GPUs there, one bit each; see `tag_bit`."""
        return self._records(nodes)["tags"]

    def _records(self, nodes: NodeView) -> npt.NDArray[Any]:
        # The widest node of the cluster, not of this view: a record looks the same through any.
        width = max(_WIDTH_MIN, int(nodes.all().allocatable(GPU).max(initial=0)))
        dtype = np.dtype([("free", np.int16, (width,)), ("tags", np.int64)])
        key = ("gpu-sharing.devices", self, width)
        return nodes.derived(key, FACETS, dtype, lambda view: self._compute(view, dtype))

    def _compute(self, nodes: NodeView, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        records = np.zeros(len(nodes), dtype)
        gpus = nodes.allocatable(GPU).tolist()
        for position, info in enumerate(nodes.infos()):
            reserved = self.reserved.get(info.name, {})
            free, tags = devices_of(info.pods, gpus[position], reserved)
            records["free"][position, : len(free)] = free
            records["tags"][position] = tags
        return records


#: Of pods that are bound, alone: for a scorer in a profile without GpuShare.
ONLY_WRITTEN: Final = Devices()


def show(state: CycleState, devices: Devices) -> None:
    """Note the devices as the reserving plugin knows them, for scorers of this cycle."""
    state[_NOTE] = devices


def shown(state: CycleState) -> Devices:
    return state.get(_NOTE) or ONLY_WRITTEN


# ---- one node -------------------------------------------------------------------------------


def devices_of(
    pods: Iterable[PodInfo], gpu_count: int, reserved: Mapping[str, tuple[int, ...]]
) -> tuple[list[int], int]:
    """(free thousandths of each device, the bits of those who use some)."""
    free, tags = [WHOLE_MILLI] * gpu_count, 0
    for pod in pods:
        ask = ask_of_placed(pod)
        if not ask.count:
            continue
        tags |= tag_bit(ask)
        for device in _held(pod, ask, free, reserved):
            free[device] = max(free[device] - ask.milli, 0)
    return free, tags


def tag_bit(ask: GpuAsk) -> int:
    """1 for pods that share a device, else one bit for each number of whole devices."""
    return 1 if ask.is_shared else 1 << min(ask.count, 62)


def best_fit(free: Sequence[int], ask: GpuAsk) -> tuple[int, ...]:
    """The devices with the least free that will do; too few are given where there are too few."""
    fitting = [(milli, device) for device, milli in enumerate(free) if milli >= ask.milli]
    return tuple(device for _, device in sorted(fitting)[: ask.count])


def written(pod: PodInfo) -> tuple[int, ...] | None:
    """The devices that a bound pod says it was given."""
    text = pod.annotations.get(DEVICES_ANNOTATION, "")
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        return None
    return tuple(map(int, parts))


def _held(
    pod: PodInfo, ask: GpuAsk, free: Sequence[int], reserved: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    held = written(pod)
    if held is None:
        held = reserved.get(pod.uid)
    if held is None:
        return best_fit(free, ask)
    return tuple(device for device in held if device < len(free))
