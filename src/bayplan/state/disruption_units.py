"""Disruption units: the pods that are evicted together or not at all.

A pod is a unit of its own, unless its group has `disruptionMode: {all: {}}`. Then all members with
a node are one unit. The priority of a unit is the group's priority or, without one, that of its
most important pod. Upstream: framework/preemption/types.go, Victim (KEP-5710).
"""

from collections.abc import Iterable, Sequence
from typing import final

from msgspec import Struct

from bayplan.api.pod_groups import GroupKey
from bayplan.state.nodes import NodeView
from bayplan.state.pod_groups import GroupState, PodGroups
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import started_seconds


@final
class Unit(Struct, frozen=True):
    """Pods that are evicted together, the most important first."""

    pods: tuple[PodInfo, ...]
    priority: int
    is_group: bool = False

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """Sorts units, the most important first. Upstream: MoreImportantVictim."""
        started = min(map(started_seconds, self.pods))
        return (-self.priority, not self.is_group, -len(self.pods), started)


@final
class Units:
    """The units of one snapshot."""

    def __init__(self, groups: PodGroups, nodes: NodeView) -> None:
        self._nodes = nodes
        # Read for every attempt at a group: in a full cluster many groups wait.
        self._groups = {
            state.key: state
            for state in groups.all()
            if (group := state.group) is not None and group.leaves_whole and state.node_names()
        }
        self._unit_by_group: dict[GroupKey, Unit] = {}

    @property
    def are_single(self) -> bool:
        """Whether every pod is a unit by itself."""
        return not self._groups

    def node_names(self) -> set[str]:
        """Nodes of members of groups that are one unit."""
        return {name for state in self._groups.values() for name in state.node_names()}

    def of(self, pods: Iterable[PodInfo]) -> list[Unit]:
        """The units of these placed pods, in the order of their first pods."""
        if not self._groups:
            return [Unit((pod,), pod.priority) for pod in pods]
        units: list[Unit] = []
        taken = set[GroupKey]()
        for pod in pods:
            key = pod.group_key
            state = None if key is None else self._groups.get(key)
            if state is None:
                units.append(Unit((pod,), pod.priority))
            elif state.key not in taken:
                taken.add(state.key)
                units.append(self._of_group(state))
        return units

    def all_groups(self) -> list[Unit]:
        """The units that are whole groups."""
        return [self._of_group(state) for state in self._groups.values()]

    def _of_group(self, state: GroupState) -> Unit:
        unit = self._unit_by_group.get(state.key)
        if unit is None:
            pods = self._members(state)
            own = None if state.group is None else state.group.priority
            priority = max(pod.priority for pod in pods) if own is None else own
            unit = self._unit_by_group[state.key] = Unit(pods, priority, is_group=True)
        return unit

    def _members(self, state: GroupState) -> tuple[PodInfo, ...]:
        positions: Sequence[int] = self._nodes.positions(sorted(state.node_names())).tolist()
        pods = (pod for at in positions for pod in self._nodes.info(at).pods)
        members = [pod for pod in pods if pod.group_key == state.key]
        return tuple(sorted(members, key=lambda pod: (-pod.priority, started_seconds(pod))))
