"""Victims on one node, found by trying: the plugins are asked about the node as it would be.

All pods that may be evicted leave the node at once; if the pod fits then, they come back one by
one, the most important first and those before all others that a disruption budget would rather
keep. Whoever does not fit any more beside the pod is a victim. Upstream: default_preemption.go,
SelectVictimsOnNode (v1.37).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filter_runner import FilterRunner
from bayplan.framework.preemption import Victims
from bayplan.framework.status import Code, Status, is_success, unresolvable
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import importance
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

    def remove(self, victim: PodInfo) -> Status | None:
        self.trial.remove(victim)
        return self.runner.remove_pod(self.state, self.pod, victim, self.node)

    def put_back(self, victim: PodInfo) -> Status | None:
        placed = self.trial.assume(victim, self.node.name)
        return self.runner.add_pod(self.state, self.pod, placed, self.node)

    def verdict(self) -> Status | None:
        return self.runner.filter_with_nominated(self.state, self.pod, self.node.name)


def victims_on(
    node: NodeInfo,
    question: tuple[FilterRunner, CycleState, PodInfo],
    snapshot: Snapshot,
    budgets: Budgets,
) -> Victims | Status:
    """Who has to leave a node for the pod, or why that is of no use. The state is the caller's own
    clone: it is changed."""
    runner, state, pod = question
    possible = sorted((p for p in node.pods if p.priority < pod.priority), key=importance)
    if not possible:
        return unresolvable(NO_VICTIMS)
    with snapshot.trial() as trial:
        tried = _Node(runner, state, pod, node, trial)
        for victim in possible:
            status = tried.remove(victim)
            if status is not None and not is_success(status):
                return status
        status = tried.verdict()
        if status is not None and not is_success(status):
            return status
        found = _reprieved(tried, possible, budgets.violated_by(possible))
    if isinstance(found, Victims) and not found.pods:
        return fits_without(node.name)
    return found


def _reprieved(
    tried: _Node, possible: Sequence[PodInfo], violating: Sequence[bool]
) -> Victims | Status:
    """Those who could not come back."""
    leaving: list[PodInfo] = []
    violation_count = 0
    for turn in (True, False):
        for victim, violates in zip(possible, violating, strict=True):
            if violates is not turn:
                continue
            status = tried.put_back(victim)
            if status is not None and not is_success(status):
                return status
            if is_success(tried.verdict()):
                continue
            status = tried.remove(victim)
            if status is not None and not is_success(status):
                return status
            leaving.append(victim)
            violation_count += violates
    if len(set(violating)) > 1:
        leaving.sort(key=importance)
    return Victims(tuple(leaving), violation_count)
