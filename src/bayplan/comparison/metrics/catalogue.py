"""The built-in metrics, and a note for each metric: its meaning, its unit, and the better
direction.

Names of metrics follow from the run: a resource, a label, a reason. So notes are looked up by
pattern. A metric of another package has no note, and neither direction is better.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from bayplan.api.objects import Node
from bayplan.api.pod_requests import PODS, amounts
from bayplan.comparison.metrics.emptiable import Emptiable
from bayplan.comparison.metrics.run_metric import Curve, RunMetric
from bayplan.comparison.metrics.scheduling import Gangs, Preemptions
from bayplan.comparison.metrics.utilization import (
    IdleAllocation,
    Utilization,
    is_on_node,
    is_workload_on_node,
)
from bayplan.comparison.statistics import span_metrics
from bayplan.journal import AttemptRecord, Record
from bayplan.sim.output.pod_counts import PodEnd
from bayplan.sim.output.result import SimulationResult
from bayplan.state.pods import PodInfo

# ---- metric notes ---------------------------------------------------------------------------


HIGHER: Final = "higher"
LOWER: Final = "lower"


@dataclass(frozen=True, slots=True)
class MetricNote:
    meaning: str = ""
    unit: str = ""
    #: HIGHER, LOWER, or "": neither is better.
    better: str = ""


_NOTES: Final = tuple(
    (re.compile(pattern), MetricNote(meaning, unit, better))
    for pattern, meaning, unit, better in (
        ("placed", "pods that the run bound and that are on nodes at the end", "pods", HIGHER),
        ("ended", "pods that ran to their end", "pods", HIGHER),
        ("unschedulable", "pods that wait at the end", "pods", LOWER),
        (
            "unschedulable: .*",
            "waiting pods whose last attempt, or that of their group, met this reason",
            "pods",
            LOWER,
        ),
        (
            "allocated_.*_percent",
            "what pods request at the end, of what all nodes have",
            "%",
            HIGHER,
        ),
        (
            "peak_.*_percent",
            "the most that pods requested at any time, of what all nodes had then",
            "%",
            "",
        ),
        (
            "utilized_.*_percent",
            "what pods request at the end, of what the nodes in use have",
            "%",
            HIGHER,
        ),
        (
            "fragmented_.*_percent",
            "what is free at the end and of no use to a pod of this workload, on average",
            "%",
            LOWER,
        ),
        ("nodes_used", "nodes that hold pods at the end", "nodes", LOWER),
        ("nodes_emptiable", "nodes whose pods would fit elsewhere", "nodes", HIGHER),
        ("domains_used: .*", "values of this label whose nodes hold pods", "values", ""),
        ("(gang_)?waiting_seconds_.*", "virtual time until pods are bound", "s", LOWER),
        ("gangs_placed", "groups whose minimum of members was bound", "groups", HIGHER),
        ("gangs_waiting", "groups that wait at the end", "groups", LOWER),
        ("held_.*_hours", "what pods held while a plugin made them wait", "hours", LOWER),
        ("preemptions", "attempts that nominated a node for preemption", "attempts", LOWER),
        ("preemption_victims", "pods that were preempted", "pods", LOWER),
        ("decisions_per_second", "attempts per second of real time", "1/s", HIGHER),
    )
)
_NONE: Final = MetricNote()


def metric_note(metric: str) -> MetricNote:
    """The note of a metric; empty if there is none."""
    for pattern, note in _NOTES:
        if pattern.fullmatch(metric):
            return note
    return _NONE


# ---- metrics --------------------------------------------------------------------------------


@final
class PlacedPods(RunMetric):
    """How many pods are placed at the end, how many have ended, how many wait, and the reasons of
    their last attempts. One pod may have several reasons, on different nodes."""

    name = "placed"

    def __init__(self) -> None:
        self._reasons: dict[str, frozenset[str]] = {}

    def record(self, record: Record) -> None:
        if isinstance(record, AttemptRecord):
            self._reasons[record.pod] = frozenset(one.reason for one in record.rejections)

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        messages = result.unschedulable
        # The members of a group have one message, and few of them are evaluated.
        by_message = {messages[pod]: own for pod in messages if (own := self._reasons.get(pod))}
        counts: Counter[str] = Counter()
        for pod, message in messages.items():
            counts.update(self._reasons.get(pod) or by_message.get(message, ()))
        reasons = {f"unschedulable: {reason}": float(counts[reason]) for reason in sorted(counts)}
        return {
            "placed": float(result.counts.scheduled),
            "ended": float(result.counts.gone.get(PodEnd.ENDED, 0)),
            "unschedulable": float(result.counts.unschedulable),
            **reasons,
        }


@final
class WaitingTime(RunMetric):
    """Virtual seconds from the creation of a pod to its binding, for bound pods."""

    name = "waiting"

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        spans = [
            pod.bound_at - pod.created_at
            for _, pod in result.bound_pods()
            if pod.bound_at is not None and pod.created_at is not None
        ]
        return span_metrics("waiting_seconds", spans)


@final
class Allocation(RunMetric):
    """What pods request of each resource, as a percentage of the capacity of all nodes: at the end,
    at the peak, and as a curve over the requests of all pods that have arrived."""

    name = "allocation"

    def __init__(self) -> None:
        self._has: Counter[str] = Counter()
        self._arrived: Counter[str] = Counter()
        self._allocated: Counter[str] = Counter()
        self._curves: dict[str, list[tuple[float, float]]] = {}

    def node(self, old: Node | None, new: Node | None) -> None:
        for node, sign in ((old, -1), (new, 1)):
            if node is not None:
                for resource, amount in amounts(node.status.allocatable).items():
                    self._has[resource] += sign * amount

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if old is None and new is not None:
            self._note_points(new.requests)
            self._arrived.update(new.requests)
        if is_on_node(old) and old is not None:
            self._allocated.subtract(old.requests)
        if is_on_node(new) and new is not None:
            self._allocated.update(new.requests)

    def _note_points(self, resources: Mapping[str, int]) -> None:
        """Once per percent of capacity that has arrived: all before this pod has settled."""
        for resource in resources:
            has = self._has[resource]
            if has > 0:
                curve = self._curves.setdefault(resource, [])
                arrived = 100.0 * self._arrived[resource] / has
                if not curve or arrived >= curve[-1][0] + 1:
                    curve.append((arrived, 100.0 * self._allocated[resource] / has))

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        values: dict[str, float] = {}
        for usage in result.usage:
            if usage.resource != PODS:
                # Nodes that are gone have no pods.
                share = 100.0 / (usage.allocatable or 1)
                values[f"allocated_{usage.resource}_percent"] = usage.requested * share
                peak_percent = 100.0 * usage.peak / usage.peak_allocatable
                values[f"peak_{usage.resource}_percent"] = peak_percent
        return values

    def curves(self) -> Mapping[str, Curve]:
        return {
            f"{resource} allocated % over {resource} arrived %": points
            for resource, points in self._curves.items()
            if len(points) > 1
        }


@final
class Fragmentation(RunMetric):
    """The percentage of free resources that a pod of this workload cannot use, as the mean over its
    pods: the node lacks another resource, or has too little of this one."""

    name = "fragmentation"

    def __init__(self) -> None:
        self._has: dict[str, Mapping[str, int]] = {}
        self._allocated: dict[str, Counter[str]] = {}
        #: Requests of a pod → number of pods.
        self._asks: Counter[tuple[tuple[str, int], ...]] = Counter()

    def node(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            self._has.pop(old.metadata.name, None)
        else:
            self._has[new.metadata.name] = amounts(new.status.allocatable)

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if old is None and new is not None:
            self._asks[tuple(sorted({**new.requests, PODS: 1}.items()))] += 1
        for pod, sign in ((old, -1), (new, 1)):
            if is_on_node(pod) and pod is not None:
                allocated = self._allocated.setdefault(pod.node_name, Counter())
                for resource, amount in (*pod.requests.items(), (PODS, 1)):
                    allocated[resource] += sign * amount

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        resources = sorted({name for ask in self._asks for name, _ in ask})
        if not self._has or not resources:
            return {}
        free = self._free(resources)
        unusable = np.zeros(len(resources))
        for ask, count in self._asks.items():
            requests = dict(ask)
            amounts_requested = np.array([requests.get(name, 0) for name in resources])
            fits = ((free >= amounts_requested) | (amounts_requested == 0)).all(axis=1)
            unusable += count * free[~fits].sum(axis=0)
        total = free.sum(axis=0) * self._asks.total()
        return {
            f"fragmented_{name}_percent": float(100 * unusable[place] / total[place])
            for place, name in enumerate(resources)
            if name != PODS and total[place] > 0
        }

    def _free(self, resources: Sequence[str]) -> npt.NDArray[np.float64]:
        """[nodes, resources]; 0 if more is allocated than exists."""
        rows = [
            [has.get(name, 0) - self._allocated.get(node, Counter())[name] for name in resources]
            for node, has in self._has.items()
        ]
        return np.maximum(np.array(rows, np.float64), 0.0)


@final
class DomainsInUse(RunMetric):
    """How many nodes have pods at the end, and how many values of a topology label these nodes
    have. Daemon pods and mirrors of static pods do not count, for every node has them."""

    name = "domains"

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = keys
        self._labels: dict[str, Mapping[str, str]] = {}
        self._pods: Counter[str] = Counter()

    def node(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._labels[new.metadata.name] = new.metadata.labels or {}

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        for pod, sign in ((old, -1), (new, 1)):
            if is_workload_on_node(pod) and pod is not None:
                self._pods[pod.node_name] += sign

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        used = [self._labels.get(node, {}) for node, count in self._pods.items() if count > 0]
        counts = {"nodes_used": float(len(used))}
        for key in self._keys:
            if any(key in labels for labels in self._labels.values()):
                values = {labels[key] for labels in used if key in labels}
                counts[f"domains_used: {key}"] = float(len(values))
        return counts


#: In the order in which they are shown.
BUILT_IN: tuple[type[RunMetric], ...] = (
    PlacedPods,
    Allocation,
    Utilization,
    Fragmentation,
    DomainsInUse,
    Emptiable,
    WaitingTime,
    Gangs,
    IdleAllocation,
    Preemptions,
)
