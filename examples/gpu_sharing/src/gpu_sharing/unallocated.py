"""How much GPU is unallocated when all of it has been asked for: the published figure."""

from collections.abc import Mapping
from typing import final

from bayplan import Node, PodInfo
from bayplan.comparison import Curve, RunMetric
from gpu_sharing.asks import GPU, WHOLE_MILLI, ask_of_placed


@final
class UnallocatedGpu(RunMetric):
    """The percentage of all GPU thousandths that no pod holds, at the moment when the pods that
    have arrived ask for 100 % of them."""

    name = "unallocated_gpu"

    def __init__(self) -> None:
        self._capacity = self._arrived = self._allocated = 0
        self._at_capacity: float | None = None
        self._curve: list[tuple[float, float]] = []

    def node(self, old: Node | None, new: Node | None) -> None:
        self._capacity += WHOLE_MILLI * (_gpus(new) - _gpus(old))

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if old is None and new is not None:
            # All that came before has settled: a pod comes when the one before it was tried.
            self._look()
            self._arrived += ask_of_placed(new).total_milli
        self._allocated += _held(new) - _held(old)

    def _look(self) -> None:
        if not self._capacity:
            return
        arrived = 100 * self._arrived / self._capacity
        if not self._curve or arrived >= self._curve[-1][0] + 1:
            self._curve.append((arrived, self._unallocated()))
        if self._at_capacity is None and arrived >= 100:
            self._at_capacity = self._unallocated()

    def _unallocated(self) -> float:
        return 100 * (1 - self._allocated / self._capacity)

    def values(self, result: object) -> Mapping[str, float]:
        self._look()
        if self._at_capacity is None:
            return {}
        return {"unallocated_gpu_percent": self._at_capacity}

    def curves(self) -> Mapping[str, Curve]:
        return {"GPU unallocated % over GPU arrived %": self._curve}


def _gpus(node: Node | None) -> int:
    """Whole devices, as the kubelet tells them."""
    if node is None:
        return 0
    return int((node.status.allocatable or {}).get(GPU, 0))


def _held(pod: PodInfo | None) -> int:
    """What a pod on a node holds; one that has ended holds nothing."""
    if pod is None or not pod.node_name or pod.status.phase in ("Succeeded", "Failed"):
        return 0
    return ask_of_placed(pod).total_milli
