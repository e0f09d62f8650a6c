"""The search for victims, on one node and on many nodes at once.

On one node: all pods that may be evicted leave the node. If the preemptor fits then, they come back
one by one (reprieve): pods that a disruption budget protects first, then by falling priority. A pod
that no longer fits beside the preemptor is a victim. A group that is evicted as a whole counts as
one, with its members on other nodes. Upstream: default_preemption.go, SelectVictimsOnNode (v1.37).

On many nodes: the same search for all nodes side by side, where only amounts of resources decide. A
matrix says which pods of each node are away, and the Filters that read amounts run once per step.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.handle import FilterRunner, Verdicts
from bayplan.framework.preemption import Victims
from bayplan.framework.status import Code, Status, is_success, unresolvable
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.default_preemption.candidates import PRIORITY_OFFSET, Batch, Costs
from bayplan.state.amounts_overlay import VictimAmounts, without_victims
from bayplan.state.cache import Snapshot, Trial
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.columns import Int64s, Mask, Rows, is_any, places_of
from bayplan.state.disruption_units import Unit, Units
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import RankedView

# ---- on one node ----------------------------------------------------------------------------


NO_VICTIMS = "No preemption victims found for incoming pod"


def fits_without(node_name: str) -> Status:
    """The Error for a node that the pod fits without any victim."""
    return Status(Code.ERROR, (f'expected at least one victim pod on node "{node_name}"',))


class _Node(Struct):
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
    *,
    units: Units,
) -> Victims | Status:
    """The victims on a node for the pod, or why evictions do not help. Without victims, the pod
    fits the node as it is. Changes ``state``, which is the caller's own clone."""
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
        return _reprieved(tried, possible, violations(possible, budgets))


def violations(units: Sequence[Unit], budgets: Budgets) -> list[int]:
    """For each unit, the most important first: the number of its pods that a budget protects."""
    violating = iter(budgets.violated_by([pod for unit in units for pod in unit.pods]))
    return [sum(next(violating) for _ in unit.pods) for unit in units]


def _reprieved(
    tried: _Node, possible: Sequence[Unit], violations: Sequence[int]
) -> Victims | Status:
    """The units that are not reprieved."""
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


# ---- on many nodes --------------------------------------------------------------------------


_NONE_NOMINATED: Mapping[str, Sequence[PodInfo]] = {}

#: So many nodes at least are searched at once.
SIDE_BY_SIDE_MIN = 128

Places = npt.NDArray[np.bool_]  # [nodes, places]


class Side(Struct):
    """The results of a search for its nodes."""

    #: Positions among all nodes, where the pod fits once all have left, and victims are needed.
    batch: Batch
    #: The victims of each of these nodes, and the pods that a budget protects; None: no pod.
    leaving: Places
    violating: Places | None
    #: Names of nodes that the pod fits without any victim.
    needless: list[str]
    #: The Filter results of all nodes without their pods.
    without_all: Verdicts


class _Search(Struct):
    """Some nodes with their pods, the most important ones first."""

    runner: FilterRunner
    state: CycleState
    pod: PodInfo
    nodes: NodeView
    ranked: RankedView
    #: The pods that may be evicted.
    evictable: Places
    #: Position among these nodes → the pods nominated there that must fit, too.
    nominated: Mapping[int, Sequence[PodInfo]]

    def ask(self, away: Places, reading: Facet = ALL_FACETS) -> Verdicts:
        """The Filter results of the nodes without the pods that are away. Nodes with nominated pods
        have to be feasible with these and without."""
        relieved = without_victims(self.nodes, VictimAmounts(self.ranked, away))
        verdicts = self.runner.filter_overlay(self.state, self.pod, relieved, reading)
        if self.nominated and verdicts.error is None:
            at: Rows = np.array(list(self.nominated), np.intp)
            nodes, added = self.nodes.take(at), list(self.nominated.values())
            amounts = VictimAmounts(self.ranked.take(at), away[at])
            with_added = without_victims(nodes, amounts, added)
            outcome = self.runner.filter_overlay(self.state, self.pod, with_added, reading)
            verdicts.error = outcome.error
            verdicts.feasible[at] &= outcome.feasible
        return verdicts


def victims_on_all(
    snapshot: Snapshot,
    positions: Rows,
    question: tuple[FilterRunner, CycleState, PodInfo],
    budgets: Budgets,
    *,
    nominated: Mapping[str, Sequence[PodInfo]] = _NONE_NOMINATED,
) -> Side | None:
    """Search these positions of all nodes. None: amounts do not decide.

    ``nominated``: node name → the nominated pods that have to fit there, too. The verdicts of such
    nodes have no reasons.
    """
    runner, state, pod = question
    chosen = snapshot.nodes.take(positions)
    ranked = snapshot.ranked_pods(chosen)
    evictable, ahead = ranked.priorities < pod.priority, _on_nodes(chosen, nominated)
    every = _Search(runner, state, pod, chosen, ranked, evictable, ahead)
    without_all = every.ask(every.evictable)
    if without_all.error is not None:
        return None
    if not is_any(without_all.feasible):
        return _no_side(every.evictable, without_all, budgets)
    fitting = np.flatnonzero(without_all.feasible)
    fitting_nodes = chosen.take(fitting)
    ranked = snapshot.ranked_pods(fitting_nodes)
    evictable, ahead = ranked.priorities < pod.priority, _on_nodes(fitting_nodes, nominated)
    search = _Search(runner, state, pod, fitting_nodes, ranked, evictable, ahead)
    violating = _violating(search, budgets)
    leaving = _reprieved_on_nodes(search, violating)
    is_needed = leaving.any(axis=1)
    needless = [fitting_nodes.name(index) for index in np.flatnonzero(~is_needed).tolist()]
    needed = np.flatnonzero(is_needed)
    costs = _costs(ranked, leaving, violating).take(needed)
    everybody = positions[fitting]
    leaving, violating = leaving[needed], None if violating is None else violating[needed]

    def victims(index: int) -> Victims:
        violated = None if violating is None else violating[index]
        return victims_at(
            fitting_nodes, ranked, int(needed[index]), leaving[index], violated=violated
        )

    return Side(Batch(everybody[needed], costs, victims), leaving, violating, needless, without_all)


def _on_nodes(
    nodes: NodeView, nominated: Mapping[str, Sequence[PodInfo]]
) -> dict[int, Sequence[PodInfo]]:
    """Position among these nodes → the pods to add there."""
    if not nominated:
        return {}
    names = nodes.names()
    at = [position for position, name in enumerate(names) if name in nominated]
    pods = nodes.take(at).not_placed([nominated[names[position]] for position in at])
    return dict(zip(at, pods, strict=True))


def _no_side(evictable: Places, without_all: Verdicts, budgets: Budgets) -> Side:
    """No node fits the pod, even without all of its pods that may be evicted."""
    no_pods = evictable[:0]
    none: Int64s = np.zeros(0, np.int64)
    costs = Costs(none, none, none, none, np.zeros(0, np.float64))
    batch = Batch(np.zeros(0, np.intp), costs, _no_victims)
    return Side(batch, no_pods, no_pods if len(budgets) else None, [], without_all)


def _no_victims(index: int) -> Victims:
    raise IndexError(index)


def _reprieved_on_nodes(search: _Search, violating: Places | None) -> Places:
    """The victims: all pods that may be evicted, except those that are reprieved one by one."""
    away = search.evictable.copy()
    order = _order_of_return(search.evictable, violating)
    every = np.arange(len(away))
    for place in order.T if len(away) else ():
        back = search.evictable[every, place]
        if not back.any():
            continue
        tried = away.copy()
        tried[every, place] = False
        feasible = search.ask(tried, Facet.REQUESTED).feasible
        away[every[feasible], place[feasible]] = False
    return away


def _order_of_return(evictable: Places, violating: Places | None) -> npt.NDArray[Any]:
    """intp[nodes, places]: in which order the pods of each node come back."""
    if violating is None or not violating.any():
        # Columns without evictable pods are skipped.
        places = np.flatnonzero(evictable.any(axis=0))
        return np.tile(places, (len(evictable), 1))
    return np.argsort(~violating, axis=1, kind="stable")


def _violating(search: _Search, budgets: Budgets) -> Places | None:
    """The pods that a budget protects, among those that may be evicted; None: there is no
    budget."""
    if not len(budgets):
        return None
    violating = np.zeros_like(search.evictable)
    for index, evictable in enumerate(search.evictable):
        ranked = search.ranked.pods(index)
        pods = [(place, ranked[place]) for place in np.flatnonzero(evictable).tolist()]
        if any(budgets.selecting(pod) for _, pod in pods):
            flags = budgets.violated_by([pod for _, pod in pods])
            for (place, _), violates in zip(pods, flags, strict=True):
                violating[index, place] = violates
    return violating


def _costs(ranked: RankedView, leaving: Places, violating: Places | None) -> Costs:
    """Costs of every node; undefined for nodes without victims."""
    first = np.argmax(leaving, axis=1)
    highest = ranked.priorities[np.arange(len(leaving)), first]
    is_highest = leaving & (ranked.priorities == highest[:, np.newaxis])
    counts = np.count_nonzero(leaving, axis=1).astype(np.int64)
    sums = np.where(leaving, ranked.priorities, 0).sum(axis=1) + counts * PRIORITY_OFFSET
    none = np.zeros(len(leaving), np.int64)
    violations = none if violating is None else np.count_nonzero(leaving & violating, axis=1)
    return Costs(
        violations.astype(np.int64),
        highest,
        sums,
        counts,
        np.where(is_highest, ranked.starts, np.inf).min(axis=1, initial=np.inf),
    )


def victims_at(
    nodes: NodeView, ranked: RankedView, position: int, leaving: Mask, *, violated: Mask | None
) -> Victims:
    """The victims in their newest versions. Among equals, pods that a budget protects come first:
    they were the first that could not be reprieved."""
    newest = {pod.uid: pod for pod in nodes.info(position).pods}
    there = ranked.pods(position)
    places: list[int] = places_of(leaving).tolist()
    count = 0
    if violated is not None:
        places.sort(key=lambda place: (ranked.importance(there[place]), not violated[place]))
        count = int(np.count_nonzero(leaving & violated))
    return Victims(tuple([newest[there[place].uid] for place in places]), count)
