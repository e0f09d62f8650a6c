"""Diagnosis: what one attempt found at each node, read while the snapshot is lent.

Statuses are by the names of nodes. Amounts are columns, because most questions about them concern
all nodes: which node lacks the least, and whether any node offers enough.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from bayplan.answers.names import in_natural_order
from bayplan.api.device_objects import DEVICE_CLASS, DeviceClass
from bayplan.api.pod_requests import PODS
from bayplan.engine.cycle import Cycle
from bayplan.framework.status import Status
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.plugins.node_volume_limits import DriverCount, NodeVolumeLimits
from bayplan.state.columns import Floats, Int64s
from bayplan.state.device_table import class_by_resource
from bayplan.state.pods import PodInfo


@final
@dataclass(frozen=True, slots=True)
class NodeAmounts:
    """The resources that a pod requests, on some nodes; cpu in millicores."""

    #: Name of the node → its place in each column.
    places: Mapping[str, int] = field(default_factory=dict[str, int])
    #: The columns by resource.
    allocatable: Mapping[str, Int64s] = field(default_factory=dict[str, Int64s])
    #: The part of the request that a node does not have free; 0 if it has all of it.
    lacking: Mapping[str, Int64s] = field(default_factory=dict[str, Int64s])

    def lacking_on(self, node: str) -> dict[str, int]:
        """Resource → how much a node lacks."""
        place = self.places.get(node)
        if place is None:
            return {}
        amounts = ((name, column.item(place)) for name, column in self.lacking.items())
        return {name: amount for name, amount in amounts if amount}

    def distinct_lacking(self, nodes: Iterable[str]) -> list[dict[str, int]]:
        """The distinct results of `lacking_on` for these nodes."""
        places = [self.places[node] for node in nodes]
        columns = [column[places].tolist() for column in self.lacking.values()]
        distinct = dict.fromkeys(zip(*columns, strict=True))
        return [
            {name: amount for name, amount in zip(self.lacking, amounts, strict=True) if amount}
            for amounts in distinct
        ]

    def least_lacking(self, resource: str, nodes: Iterable[str]) -> tuple[str, int]:
        """The node that lacks the least of a resource, and how much.

        Among nodes that lack equally much, one that lacks nothing else comes first.
        """
        names = list(nodes)
        places = [self.places[node] for node in names]
        amounts = self.lacking[resource][places].tolist()
        columns = [column[places] for column in self.lacking.values()]
        others = np.count_nonzero(np.array(columns), axis=0).tolist()
        amount, _, _, name = min(zip(amounts, others, map(len, names), names, strict=True))
        return name, amount

    def shortage(self, requests: Mapping[str, int]) -> Floats:
        """The largest share of a request that each node lacks."""
        shares: Floats = np.zeros(len(self.places))
        for name, column in self.lacking.items():
            np.maximum(shares, column / max(requests.get(name, 1), 1), out=shares)
        return shares

    def most_allocatable(self, resource: str) -> int:
        """What the node with the most offers."""
        column = self.allocatable.get(resource)
        return 0 if column is None or not len(column) else int(column.max())


@final
@dataclass(slots=True)
class NodeDiagnosis:
    """One attempt at one pod."""

    #: The pod whose cycle was read. For a group, that is the first member that fails.
    pod: PodInfo
    #: Node → why it was rejected.
    rejected: Mapping[str, Status] = field(default_factory=dict[str, Status])
    #: The amounts of the rejected nodes. Pods that are nominated there count as placed.
    amounts: NodeAmounts = field(default_factory=NodeAmounts)
    #: Node → pods that are nominated to it, and that the pod must leave room for.
    nominated: Mapping[str, Sequence[PodInfo]] = field(default_factory=dict[str, Sequence[PodInfo]])
    #: Node → the CSI drivers with too many volumes, for nodes that NodeVolumeLimits rejects.
    volume_counts: Mapping[str, Sequence[DriverCount]] = field(
        default_factory=dict[str, Sequence[DriverCount]]
    )
    #: A rejection of the pod as a whole; None: nodes were filtered, or the pod fits.
    whole: Status | None = None
    node_count: int = 0
    feasible_count: int = 0
    #: The outcome of the attempt.
    attempt: Attempt = field(init=False)
    #: Plugin → the nodes that it rejects, in natural order. It has the plugins that were looked up.
    _by_plugin: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def nodes_rejected_by(self, plugin: str) -> Sequence[str]:
        names = self._by_plugin.get(plugin)
        if names is None:
            rejected = self.rejected.items()
            own = (name for name, status in rejected if status.plugin == plugin)
            names = self._by_plugin[plugin] = in_natural_order(own)
        return names


def diagnose(model: ClusterModel, pod: str) -> NodeDiagnosis:
    """One attempt at a pending pod that leaves no trace. Raises KeyError."""
    cycles: dict[str, NodeDiagnosis] = {}
    found = model.pod(pod)
    uid = "" if found is None else found.metadata.uid or ""

    def look(cycle: Cycle) -> None:
        # The cycles of the members of a group come in order, and only those that fail matter.
        if cycle.choice is None or cycle.pod.uid == uid:
            cycles.setdefault(cycle.pod.uid, _read(cycle))

    attempt = model.attempt(pod, look)
    own = cycles.get(uid)
    failing = (each for each in cycles.values() if each.rejected or each.whole is not None)
    if own is None or not (own.rejected or own.whole is not None):
        own = next(failing, own)
    diagnosis = NodeDiagnosis(attempt.pod) if own is None else own
    diagnosis.attempt = attempt
    return diagnosis


def _read(cycle: Cycle) -> NodeDiagnosis:
    pod, snapshot = cycle.pod, cycle.snapshot
    whole = cycle.status if cycle.feasibility is None and cycle.choice is None else None
    diagnosis = NodeDiagnosis(
        pod, whole=whole, node_count=snapshot.node_count, feasible_count=cycle.feasible_count
    )
    if cycle.choice is None and whole is None:
        _read_nodes(cycle, diagnosis)
    return diagnosis


def _read_nodes(cycle: Cycle, diagnosis: NodeDiagnosis) -> None:
    """Read what the cycle says about each node."""
    names, statuses = cycle.snapshot.nodes.names(), cycle.node_to_status()
    diagnosis.rejected = {name: statuses.get(name) for name in names}
    ahead = cycle.framework.nominated_ahead(cycle.pod).items()
    diagnosis.nominated = {name: pods for name, pods in ahead if name in diagnosis.rejected}
    diagnosis.amounts = _amounts(cycle, names, diagnosis.nominated)
    plugins = cycle.framework.plugins.instances()
    limits = next((each for each in plugins if isinstance(each, NodeVolumeLimits)), None)
    if limits is not None:
        diagnosis.volume_counts = {
            name: limits.counts_over_limit(cycle.pod, cycle.snapshot.node(name))
            for name, status in diagnosis.rejected.items()
            if status.plugin == limits.instance_name
        }


def _amounts(
    cycle: Cycle, names: Sequence[str], nominated: Mapping[str, Sequence[PodInfo]]
) -> NodeAmounts:
    nodes, requests = cycle.snapshot.nodes, cycle.pod.requests
    places = {name: place for place, name in enumerate(names)}
    allocatable, lacking = dict[str, Int64s](), dict[str, Int64s]()
    for resource in (*requests, PODS):
        requested = 1 if resource == PODS else requests[resource]
        used = nodes.pods.counts() if resource == PODS else nodes.requested(resource)
        free = nodes.allocatable(resource) - used
        for name, pods in nominated.items():
            left = free.item(places[name]) - sum(requested_amount(pod, resource) for pod in pods)
            free[places[name]] = max(left, 0)
        allocatable[resource] = nodes.allocatable(resource).copy()
        lacking[resource] = np.maximum(requested - np.maximum(free, 0), 0)
    return NodeAmounts(places, allocatable, lacking)


def requested_amount(pod: PodInfo, resource: str) -> int:
    """The amount of a resource that a pod requests. It requests 1 of "pods"."""
    return 1 if resource == PODS else pod.requests.get(resource, 0)


def pods_by_node(model: ClusterModel) -> dict[str, list[PodInfo]]:
    """The placed pods of each node."""
    placed: dict[str, list[PodInfo]] = {}
    for each in model.scheduler.cache.pods():
        placed.setdefault(each.node_name, []).append(each)
    return placed


class EqualLabels(NamedTuple):
    """Placed pods of one namespace with the same labels."""

    namespace: str
    labels: Mapping[str, str]
    #: Node → the number of these pods on it.
    counts: Counter[str]


def pods_by_labels(model: ClusterModel) -> list[EqualLabels]:
    """The placed pods that are not being deleted, by their labels, so that a selector is compared
    with each set of labels once."""
    found: dict[Hashable, EqualLabels] = {}
    for pod in model.scheduler.cache.pods():
        if not pod.is_terminating:
            key = (pod.namespace, frozenset(pod.labels.items()))
            equal = found.get(key)
            if equal is None:
                equal = found[key] = EqualLabels(pod.namespace, pod.labels, Counter())
            equal.counts[pod.node_name] += 1
    return list(found.values())


def pods_on(model: ClusterModel, node: str) -> list[PodInfo]:
    """The placed pods of one node."""
    table = model.scheduler.cache.table
    row = table.row_of.get(node)
    return [] if row is None else list(table.pods[row].values())


def class_behind_each(model: ClusterModel) -> Mapping[str, DeviceClass]:
    """Resource → the class whose devices stand for it."""
    classes = [one for one in model.objects(DEVICE_CLASS) if isinstance(one, DeviceClass)]
    return class_by_resource(sorted(classes, key=lambda one: one.metadata.name))
