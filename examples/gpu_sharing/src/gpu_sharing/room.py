"""What is free on a node in two numbers: CPU, and all of its GPUs together."""

import numpy as np
import numpy.typing as npt

from bayplan import CycleState, NodeView
from gpu_sharing.devices import shown

#: The largest machine of the trace, in thousandths.
CPU_MILLI_MAX = 128_000
GPU_MILLI_MAX = 8_000

Int64s = npt.NDArray[np.int64]  # [nodes]


def cpu_free_milli(nodes: NodeView) -> Int64s:
    return nodes.allocatable("cpu") - nodes.requested("cpu")


def gpu_free_milli(state: CycleState, nodes: NodeView) -> Int64s:
    return shown(state).free(nodes).sum(axis=1, dtype=np.int64)


def room(state: CycleState, nodes: NodeView) -> tuple[Int64s, Int64s]:
    """(CPU, GPUs): free thousandths per node, before the pod."""
    return cpu_free_milli(nodes), gpu_free_milli(state, nodes)
