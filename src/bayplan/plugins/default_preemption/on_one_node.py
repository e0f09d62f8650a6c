"""Victims on one node, found by trying: the plugins are asked about the node as it would be.

All pods that may be evicted leave the node at once; if the pod fits then, they come back one by
one, the most important first and those before all others that a disruption budget would rather
keep. A group that leaves as one is one of them, with its members on other nodes. Whoever does not
fit any more beside the pod is a victim. Upstream: default_preemption.go, SelectVictimsOnNode
(v1.37).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filter_runner import FilterRunner
from bayplan.framework.preemption import Victims
from bayplan.framework.status import Code, Status, is_success, unresolvable
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.state.disruption_units import Unit, Units
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot, Trial

NO_VICTIMS = "No preemption victims found for incoming pod"


def fits_without(node_name: str) -> Status:
    """The Error of a node that the pod turned out to fit with nobody leaving."""
    return Status(Code.ERROR, (f'expected at least one victim pod on node "{node_name}"',))


@dataclass(slots=True)
class _Node:
    """A node as it would be."""

    runner: FilterRunner
    state: CycleState
    pod: PodInfo
    node: NodeInfo
    trial: Trial

    snapshot: Snapshot

    def remove(self, unit: Unit) -> Status | None:
        for victim in unit.pods:
            node = self._node_of(victim)
            self.trial.remove(victim)
            status = self.runner.remove_pod(self.state, self.pod, victim, node)
            if status is not None and not is_success(status):
                return status
        return None

    def put_back(self, unit: Unit) -> Status | None:
        for victim in unit.pods:
            node = self._node_of(victim)
            placed = self.trial.assume(victim, node.name)
            status = self.runner.add_pod(self.state, self.pod, placed, node)
            if status is not None and not is_success(status):
                return status
        return None

    def _node_of(self, victim: PodInfo) -> NodeInfo:
        """Of a group that leaves as one, members may be elsewhere."""
        if victim.node_name == self.node.name:
            return self.node
        return self.snapshot.node(victim.node_name)

    def verdict(self) -> Status | None:
        return self.runner.filter_with_nominated(self.state, self.pod, self.node.name)


def victims_on(
    node: NodeInfo,
    question: tuple[FilterRunner, CycleState, PodInfo],
    snapshot: Snapshot,
    budgets: Budgets,
    units: Units,
) -> Victims | Status:
    """Who has to leave a node for the pod, or why that is of no use. The state is the caller's own
    clone: it is changed."""
    runner, state, pod = question
    evictable = (unit for unit in units.of(node.pods) if unit.priority < pod.priority)
    possible = sorted(evictable, key=lambda unit: unit.importance)
    if not possible:
        return unresolvable(NO_VICTIMS)
    with snapshot.trial() as trial:
        tried = _Node(runner, state, pod, node, trial, snapshot)
        for unit in possible:
            status = tried.remove(unit)
            if status is not None:
                return status
        status = tried.verdict()
        if status is not None and not is_success(status):
            return status
        found = _reprieved(tried, possible, violations(possible, budgets))
    if isinstance(found, Victims) and not found.pods:
        return fits_without(node.name)
    return found


def violations(units: Sequence[Unit], budgets: Budgets) -> list[int]:
    """Of each unit, the most important first: how many of its pods a budget would rather keep."""
    violating = iter(budgets.violated_by([pod for unit in units for pod in unit.pods]))
    return [sum(next(violating) for _ in unit.pods) for unit in units]


def _reprieved(
    tried: _Node, possible: Sequence[Unit], violations: Sequence[int]
) -> Victims | Status:
    """Those who could not come back."""
    leaving: list[Unit] = []
    violation_count = 0
    for turn in (True, False):
        for unit, count in zip(possible, violations, strict=True):
            if bool(count) is not turn:
                continue
            status = tried.put_back(unit)
            if status is not None:
                return status
            if is_success(tried.verdict()):
                continue
            status = tried.remove(unit)
            if status is not None:
                return status
            leaving.append(unit)
            violation_count += count
    if len(set(map(bool, violations))) > 1:
        leaving.sort(key=lambda unit: unit.importance)
    return Victims(tuple(pod for unit in leaving for pod in unit.pods), violation_count)
