"""Diagnosis: what one attempt found at each node, read while the snapshot is lent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import msgspec

from bayplan.answers.names import in_natural_order
from bayplan.api.pod_requests import PODS
from bayplan.engine.cycle import Cycle
from bayplan.framework.status import Status
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.plugins.node_volume_limits import DriverCount, NodeVolumeLimits
from bayplan.state.pods import PodInfo
from bayplan.state.resources import RowAmounts


@final
@dataclass(slots=True)
class Diagnosis:
    """One attempt at one pod."""

    #: The pod whose cycle was read: of a group, the first member that fails.
    pod: PodInfo
    #: Node → why it was rejected.
    rejected: Mapping[str, Status] = field(default_factory=dict[str, Status])
    #: Node → resource → amounts, of rejected nodes, for the resources that the pod requests.
    amounts: Mapping[str, Mapping[str, RowAmounts]] = field(
        default_factory=dict[str, Mapping[str, RowAmounts]]
    )
    #: Node → pods that are nominated to it, and that the pod must leave room for. ``amounts``
    #: counts them as placed.
    nominated: Mapping[str, Sequence[PodInfo]] = field(default_factory=dict[str, Sequence[PodInfo]])
    #: Node → CSI drivers with too many volumes, of nodes that NodeVolumeLimits rejects.
    volume_counts: Mapping[str, Sequence[DriverCount]] = field(
        default_factory=dict[str, Sequence[DriverCount]]
    )
    #: A rejection of the pod as a whole; None: nodes were filtered, or the pod fits.
    whole: Status | None = None
    node_count: int = 0
    feasible_count: int = 0
    #: What the attempt came to.
    attempt: Attempt = field(init=False)

    def nodes_rejected_by(self, plugin: str) -> list[str]:
        rejected = self.rejected.items()
        return in_natural_order(name for name, status in rejected if status.plugin == plugin)


def diagnose(model: ClusterModel, pod: str) -> Diagnosis:
    """One attempt at a pending pod that leaves no trace. Raises KeyError."""
    cycles: dict[str, Diagnosis] = {}
    found = model.pod(pod)
    uid = "" if found is None else found.metadata.uid or ""

    def look(cycle: Cycle) -> None:
        # Attempts at the members of a group are read in order: only those that fail matter.
        if cycle.choice is None or cycle.pod.uid == uid:
            cycles.setdefault(cycle.pod.uid, _read(cycle))

    attempt = model.attempt(pod, look)
    own = cycles.get(uid)
    failing = (each for each in cycles.values() if each.rejected or each.whole is not None)
    if own is None or not (own.rejected or own.whole is not None):
        own = next(failing, own)
    diagnosis = Diagnosis(attempt.pod) if own is None else own
    diagnosis.attempt = attempt
    return diagnosis


def _read(cycle: Cycle) -> Diagnosis:
    pod, snapshot = cycle.pod, cycle.snapshot
    whole = cycle.status if cycle.feasibility is None and cycle.choice is None else None
    diagnosis = Diagnosis(
        pod, whole=whole, node_count=snapshot.node_count, feasible_count=cycle.feasible_count
    )
    if cycle.choice is None and whole is None:
        _read_nodes(cycle, diagnosis)
    return diagnosis


def _read_nodes(cycle: Cycle, diagnosis: Diagnosis) -> None:
    """Read what the cycle says about each node."""
    rejected: dict[str, Status] = {}
    amounts: dict[str, Mapping[str, RowAmounts]] = {}
    nominated: dict[str, Sequence[PodInfo]] = {}
    volume_counts: dict[str, Sequence[DriverCount]] = {}
    plugins = cycle.framework.plugins.instances()
    limits = next((each for each in plugins if isinstance(each, NodeVolumeLimits)), None)
    statuses, resources = cycle.node_to_status(), (*cycle.pod.requests, PODS)
    for name in cycle.snapshot.nodes.names():
        status = rejected[name] = statuses.get(name)
        node = cycle.snapshot.node(name)
        ahead = cycle.framework.nominated_ahead(cycle.pod, name)
        if ahead:
            nominated[name] = ahead
        amounts[name] = {
            resource: _with_nominated(resource, node.amounts(resource), ahead)
            for resource in resources
        }
        if limits is not None and status.plugin == limits.instance_name:
            volume_counts[name] = limits.counts_over_limit(cycle.pod, node)
    diagnosis.rejected, diagnosis.amounts = rejected, amounts
    diagnosis.nominated, diagnosis.volume_counts = nominated, volume_counts


def _with_nominated(resource: str, there: RowAmounts, nominated: Iterable[PodInfo]) -> RowAmounts:
    """The amounts as they are with the nominated pods on the node."""
    more = sum(1 if resource == PODS else pod.requests.get(resource, 0) for pod in nominated)
    if not more:
        return there
    return msgspec.structs.replace(
        there,
        requested=there.requested + more,
        scored=there.scored + more,
        free=there.free - more,
    )


def pods_by_node(model: ClusterModel) -> dict[str, list[PodInfo]]:
    """The placed pods of each node."""
    placed: dict[str, list[PodInfo]] = {}
    for each in model.scheduler.cache.pods():
        placed.setdefault(each.node_name, []).append(each)
    return placed


def pods_on(model: ClusterModel, node: str) -> list[PodInfo]:
    """The placed pods of one node."""
    table = model.scheduler.cache.table
    row = table.row_of.get(node)
    return [] if row is None else list(table.pods[row].values())
