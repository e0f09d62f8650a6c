"""How full the nodes in use are, and what pods reserved on nodes while they waited."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import final

from bayplan.api.objects import Node, is_terminal
from bayplan.api.pod_requests import CPU, PODS, amounts
from bayplan.comparison.metrics.run_metric import Curve, RunMetric
from bayplan.journal import AttemptRecord, BindingRecord, Record
from bayplan.objects.workloads import is_bound_to_node
from bayplan.sim.output.result import SimulationResult
from bayplan.state.pods import PodInfo

# ---- idle allocation ------------------------------------------------------------------------


SECONDS_PER_HOUR = 3600.0
MILLI_PER_CPU = 1000
_BYTES = ("memory", "ephemeral-storage")


@final
class IdleAllocation(RunMetric):
    """Resource-hours from the moment when a pod began to wait at Permit, with its node, to the
    moment when it was bound or gave the node back. For cpu, and for resources that are counted in
    pieces.
    """

    name = "held"

    def __init__(self) -> None:
        self._requests: dict[str, Mapping[str, int]] = {}
        #: uid → the beginning of the wait.
        self._waiting: dict[str, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._resources: set[str] = set()

    def node(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._resources.update(new.status.allocatable or ())

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if new is not None:
            self._requests[new.uid] = new.requests

    def record(self, record: Record) -> None:
        if isinstance(record, AttemptRecord) and record.result == "waiting":
            self._waiting[record.uid] = record.at_seconds
        elif isinstance(record, BindingRecord):
            self._end(record.uid, record.at_seconds)

    def _end(self, uid: str, at_seconds: float) -> None:
        since_seconds = self._waiting.pop(uid, at_seconds)
        for resource, amount in self._requests.get(uid, {}).items():
            self._seconds[resource] += amount * (at_seconds - since_seconds)

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        for uid in list(self._waiting):
            self._end(uid, result.simulated_seconds)
        return {
            f"held_{resource}_hours": self._hours(resource)
            for resource in sorted(self._resources)
            if resource != PODS and not resource.startswith(_BYTES)
        }

    def _hours(self, resource: str) -> float:
        unit = MILLI_PER_CPU if resource == CPU else 1
        return self._seconds[resource] / unit / SECONDS_PER_HOUR


# ---- utilization ----------------------------------------------------------------------------


def is_on_node(pod: PodInfo | None) -> bool:
    """Whether a pod uses resources of a node: it has a node and has not ended."""
    return pod is not None and bool(pod.node_name) and not is_terminal(pod.pod)


def is_workload(pod: PodInfo) -> bool:
    """Whether a pod belongs to a workload. Daemon pods and mirrors of static pods belong to the
    node."""
    return not is_bound_to_node(pod.metadata)


def is_workload_on_node(pod: PodInfo | None) -> bool:
    """Whether the pod makes its node a used one."""
    return pod is not None and is_on_node(pod) and is_workload(pod)


@final
class Utilization(RunMetric):
    """What pods request of each resource, as a percentage of the capacity of the nodes with pods:
    at the end, and as a curve over the requests of all pods that have arrived, as a percentage of
    the capacity of all nodes. Daemon pods and mirrors of static pods do not count, for every node
    has them.
    """

    name = "utilization"

    def __init__(self) -> None:
        self._has: dict[str, Mapping[str, int]] = {}
        self._all: Counter[str] = Counter()
        self._in_use: Counter[str] = Counter()
        self._pods: Counter[str] = Counter()
        self._allocated: Counter[str] = Counter()
        self._arrived: Counter[str] = Counter()
        self._curves: dict[str, list[tuple[float, float]]] = {}

    def node(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        assert node is not None
        name = node.metadata.name
        has = amounts(node.status.allocatable) if new is not None else {}
        for total in (self._all, *([self._in_use] if self._pods[name] else [])):
            total.subtract(self._has.get(name, {}))
            total.update(has)
        self._has[name] = has

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if old is None and new is not None and is_workload(new):
            self._note_points(new.requests)
            self._arrived.update(new.requests)
        if is_workload_on_node(old) and old is not None:
            self._allocated.subtract(old.requests)
            self._pods[old.node_name] -= 1
            if not self._pods[old.node_name]:
                self._in_use.subtract(self._has.get(old.node_name, {}))
        if is_workload_on_node(new) and new is not None:
            self._allocated.update(new.requests)
            if not self._pods[new.node_name]:
                self._in_use.update(self._has.get(new.node_name, {}))
            self._pods[new.node_name] += 1

    def _note_points(self, resources: Mapping[str, int]) -> None:
        """Once per percent of capacity that has arrived: all before this pod has settled."""
        for resource in resources:
            if self._in_use[resource] > 0:
                curve = self._curves.setdefault(resource, [])
                arrived = 100.0 * self._arrived[resource] / self._all[resource]
                if not curve or arrived >= curve[-1][0] + 1:
                    curve.append((arrived, self._percent(resource)))

    def _percent(self, resource: str) -> float:
        return 100.0 * self._allocated[resource] / self._in_use[resource]

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        return {
            f"utilized_{resource}_percent": self._percent(resource)
            for resource in sorted(self._arrived)
            if resource != PODS and self._in_use[resource] > 0
        }

    def curves(self) -> Mapping[str, Curve]:
        return {
            f"{resource} utilized % over {resource} arrived %": points
            for resource, points in self._curves.items()
            if len(points) > 1
        }
