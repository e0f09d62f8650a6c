"""Fragmentation: how many idle thousandths of GPU a typical pod could not use.

After "Beware of Fragmentation" (USENIX ATC '23): for one typical pod all that is idle on a node is
lost if the pod cannot run there, else what is idle on devices that have too little for it. A pod
without GPU can use none of it. The fragmentation of a node is the mean over the typical pods.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayplan import NodeView, PodInfo
from gpu_sharing.asks import MODEL_LABEL, WHOLE_MILLI, GpuAsk, ask_of
from gpu_sharing.devices import Devices, FreeMilli
from gpu_sharing.room import cpu_free_milli
from gpu_sharing.typical_pods import TypicalPods

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Idle:
    """What is idle on some nodes, or on copies of them: the same node with other devices free."""

    cpu_milli: npt.NDArray[np.int64]  # [nodes]
    free: FreeMilli  # [nodes, devices]
    #: Which typical pods may use a node's model: [nodes, typical pods].
    allowed: npt.NDArray[np.bool_]

    def take(self, positions: npt.NDArray[np.intp]) -> "Idle":
        return Idle(self.cpu_milli[positions], self.free[positions], self.allowed[positions])


def idle_on(nodes: NodeView, devices: Devices, typical: TypicalPods) -> Idle:
    return Idle(cpu_free_milli(nodes), devices.free(nodes), _allowed(nodes, typical))


def fragmentation(idle: Idle, typical: TypicalPods) -> Floats:
    """Thousandths of GPU that a typical pod could not use: [nodes]."""
    free = idle.free
    total = free.sum(axis=1, dtype=np.float64)[:, None]
    # Only pods that ask for so much of a device differ in what they can use of it.
    fits = free[:, None, :] >= np.maximum(typical.amounts, 1)[None, :, None]
    fit_counts = fits.sum(axis=2)[:, typical.which]
    usable = np.where(fits, free[:, None, :], 0).sum(axis=2, dtype=np.float64)[:, typical.which]
    runs = (idle.cpu_milli[:, None] >= typical.cpu_milli) & (fit_counts >= typical.counts)
    runs &= idle.allowed & (typical.counts > 0)
    return (total - np.where(runs, usable, 0.0)) @ typical.shares


def best_after(idle: Idle, cpu_milli: int, ask: GpuAsk, typical: TypicalPods) -> Floats:
    """The least fragmentation that placing the pod can leave: [nodes]; inf where it fits not."""
    return _after(idle, cpu_milli, ask, typical).min(axis=1)


def least_fragmenting(
    pod: PodInfo, nodes: NodeView, free: FreeMilli, typical: TypicalPods
) -> tuple[int, ...]:
    """The devices of one node to give to a pod, which is not counted there yet."""
    ask = ask_of(pod)
    if not _is_one_of_several(ask):
        return _in_order(free[0], ask)
    idle = Idle(cpu_free_milli(nodes), free, _allowed(nodes, typical))
    return (int(_after(idle, 0, ask, typical)[0].argmin()),)


def _after(idle: Idle, cpu_milli: int, ask: GpuAsk, typical: TypicalPods) -> Floats:
    """Fragmentation with the pod placed: [nodes, ways to place it]."""
    left = Idle(idle.cpu_milli - cpu_milli, idle.free, idle.allowed)
    if not ask.count:
        return fragmentation(left, typical)[:, None]
    if not _is_one_of_several(ask):
        fits = left.free >= ask.milli
        taken = fits & (fits.cumsum(axis=1) <= ask.count)
        free = np.where(taken, left.free - ask.milli, left.free).astype(np.int16)
        after = fragmentation(Idle(left.cpu_milli, free, left.allowed), typical)
        return np.where(fits.sum(axis=1) >= ask.count, after, np.inf)[:, None]
    return _after_each(left, ask, typical)


def _after_each(idle: Idle, ask: GpuAsk, typical: TypicalPods) -> Floats:
    """[nodes, devices]: as if the pod shared each of the devices; inf where it has too little."""
    after = np.full(idle.free.shape, np.inf)
    positions, places = np.nonzero(_distinct(idle.free) & (idle.free >= ask.milli))
    tried = idle.take(positions)
    tried.free[np.arange(len(places)), places] -= ask.milli
    after[positions, places] = fragmentation(tried, typical)
    return after


def _distinct(free: FreeMilli) -> npt.NDArray[np.bool_]:
    """Devices but for those that a device before them equals: [nodes, devices]."""
    equal = free[:, :, None] == free[:, None, :]
    return equal.argmax(axis=2) == np.arange(free.shape[1])


def _is_one_of_several(ask: GpuAsk) -> bool:
    """Whether it matters which devices it is given: of whole devices one is like another."""
    return ask.count == 1 and ask.milli < WHOLE_MILLI


def _in_order(free: npt.NDArray[np.int16], ask: GpuAsk) -> tuple[int, ...]:
    return tuple(np.flatnonzero(free >= ask.milli)[: ask.count].tolist())


def _allowed(nodes: NodeView, typical: TypicalPods) -> npt.NDArray[np.bool_]:
    allowed = np.ones((len(nodes), len(typical.models)), np.bool_)
    models = nodes.labels.values(MODEL_LABEL)
    for place, wanted in enumerate(typical.models):
        if wanted:
            ids = [index for index, model in enumerate(models) if model in wanted]
            allowed[:, place] = np.isin(nodes.labels.ids(MODEL_LABEL), ids)
    return allowed
