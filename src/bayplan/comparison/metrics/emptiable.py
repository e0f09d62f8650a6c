"""How many nodes could be emptied: the aim of packing, which a count of used nodes does not show.

A DaemonSet has a pod on every node. So daemon pods, and mirrors of static pods, do not count here:
a node without other pods is empty.

The count is greedy and exactly defined. Nodes with pods are handled one after the other, those with
the fewest pods first, and then by name. A node can be emptied if each of its pods, those with the
largest share of the node first, fits on another node with pods. The target is the first node by
name with enough free resources that the pod's node selector, its required node affinity and its
tolerations admit. The pods are then assumed on their targets, so that no resources are used twice.
A target is not emptied, and an emptied node is no target.

Ports, volumes, devices, affinity between pods, spreading and budgets are not checked, so a counted
node may have a pod that cannot move. Another order might empty more nodes.
"""

from collections.abc import Iterable, Mapping
from typing import final

import numpy as np
import numpy.typing as npt

from bayplan.api.objects import Node, is_terminal
from bayplan.api.pod_requests import PODS, amounts
from bayplan.api.selectors import NodeRequirements, SelectorError
from bayplan.comparison.metrics.run_metric import RunMetric
from bayplan.comparison.metrics.utilization import is_workload
from bayplan.sim.output.result import SimulationResult
from bayplan.state.pods import PodInfo, PodShape


@final
class Emptiable(RunMetric):
    """How many nodes could be emptied: all their pods but daemons fit on other nodes with pods."""

    name = "emptiable"

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        #: Node → pods of workloads, and pods that stay with the node.
        self._pods: dict[str, dict[str, PodInfo]] = {}
        self._staying: dict[str, dict[str, PodInfo]] = {}

    def node(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._nodes[new.metadata.name] = new
        elif old is not None:
            self._nodes.pop(old.metadata.name, None)

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        for pod in (old, new):
            if pod is not None and pod.node_name:
                for by_node in (self._pods, self._staying):
                    by_node.get(pod.node_name, {}).pop(pod.uid, None)
        if new is not None and new.node_name and not is_terminal(new.pod):
            by_node = self._pods if is_workload(new) else self._staying
            by_node.setdefault(new.node_name, {})[new.uid] = new

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        return {"nodes_emptiable": float(len(self.emptiable()))}

    def emptiable(self) -> list[str]:
        """The nodes, in the order in which they are emptied."""
        names = sorted(name for name, pods in self._pods.items() if pods and name in self._nodes)
        rooms = _Rooms([(self._nodes[name], self._all(name)) for name in names])
        order = sorted(names, key=lambda name: (len(self._pods[name]), name))
        return [name for name in order if rooms.empty(name, self._pods[name].values())]

    def _all(self, name: str) -> list[PodInfo]:
        return [*self._pods[name].values(), *self._staying.get(name, {}).values()]


@final
class _Rooms:
    """The free resources of the nodes with pods."""

    def __init__(self, nodes: list[tuple[Node, list[PodInfo]]]) -> None:
        self._nodes = [node for node, _ in nodes]
        self._row = {node.metadata.name: row for row, node in enumerate(self._nodes)}
        has = [amounts(node.status.allocatable) for node in self._nodes]
        asks = [_asks(pod) for _, pods in nodes for pod in pods]
        names = sorted({name for one in (*has, *asks) for name in one})
        self._column = {name: column for column, name in enumerate(names)}
        #: [nodes, resources]
        self._has = np.array([self._amounts(one) for one in has], np.int64).reshape(
            len(has), len(names)
        )
        self._free = self._has.copy()
        for row, (_, pods) in enumerate(nodes):
            for pod in pods:
                self._free[row] -= self._amounts(_asks(pod))
        self._takes_in = np.ones(len(self._nodes), np.bool_)
        self._took_in: set[int] = set()

    def _amounts(self, of: Mapping[str, int]) -> npt.NDArray[np.int64]:
        row = np.zeros(len(self._column), np.int64)
        for name, amount in of.items():
            row[self._column[name]] = amount
        return row

    def empty(self, name: str, pods: Iterable[PodInfo]) -> bool:
        """Move all pods of a node elsewhere, or none."""
        own = self._row[name]
        if own in self._took_in:
            return False
        share = self._has[own].clip(min=1)
        moves = [(self._amounts(_asks(pod)), pod) for pod in pods]
        moves.sort(key=lambda one: (-float((one[0] / share).max()), one[1].key))
        before, targets = self._free.copy(), set[int]()
        self._takes_in[own] = False
        for requests, pod in moves:
            row = self._target(requests, pod)
            if row is None:
                self._free, self._takes_in[own] = before, True
                return False
            self._free[row] -= requests
            targets.add(row)
        self._took_in |= targets
        return True

    def _target(self, requests: npt.NDArray[np.int64], pod: PodInfo) -> int | None:
        fits = ((self._free >= requests) | (requests == 0)).all(axis=1) & self._takes_in
        required = pod.shape.once(_requirements, _requirements)
        if required is None:
            return None
        for row in np.flatnonzero(fits).tolist():
            node = self._nodes[row]
            if not node.spec.unschedulable and required.admits(node):
                return row
        return None


def _requirements(shape: PodShape) -> NodeRequirements | None:
    """None: the pod has a selector that does not parse, so no node is sure to take it."""
    try:
        return NodeRequirements(shape.spec, shape.tolerations)
    except SelectorError:
        return None


def _asks(pod: PodInfo) -> Mapping[str, int]:
    return {**pod.requests, PODS: 1}
