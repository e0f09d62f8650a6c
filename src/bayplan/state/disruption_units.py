"""Disruption units: the pods that are evicted together or not at all.

A pod is a unit of its own, unless its group or a group above has `disruptionMode: {all: {}}`. Then
all pods with a node below the highest of these groups are one unit. The priority of a unit is that
of the highest group above that exists or, without one, that of its most important pod. Where pods
of groups outrank plain pods, each of them has the priority of the highest group, too. Upstream:
framework/preemption/types.go, Victim (KEP-5710, KEP-6012).
"""

from collections.abc import Iterable, Sequence
from typing import final

from msgspec import Struct

from bayplan.api.pod_groups import GroupKey
from bayplan.state.nodes import NodeView
from bayplan.state.pod_group_trees import PodGroupTrees
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import started_seconds


@final
class Unit(Struct, frozen=True):
    """Pods that are evicted together, the most important first."""

    pods: tuple[PodInfo, ...]
    priority: int
    #: The group that leaves as a whole; None: a pod.
    group: GroupKey | None = None
    #: Whether the unit is a pod of a group and outranks plain pods.
    is_member: bool = False

    @property
    def importance(self) -> tuple[int, int, int, float]:
        """Sorts units, the most important first: groups of groups, groups of pods and members,
        pods. Upstream: MoreImportantVictim."""
        started = min(map(started_seconds, self.pods))
        rank = 2 - self.is_member if self.group is None else 1 - self.group.is_composite
        return (-self.priority, rank, -len(self.pods), started)


@final
class Units:
    """The units of one snapshot."""

    def __init__(self, trees: PodGroupTrees, nodes: NodeView) -> None:
        self._nodes = nodes
        self._trees = trees
        #: By the key of a group of pods with a node: the group that leaves as a whole.
        self._whole: dict[GroupKey, GroupKey] = {}
        #: By that group: the groups of pods.
        self._groups: dict[GroupKey, list[GroupState]] = {}
        #: The priorities of groups that leave pod by pod, and whose pods have another one.
        self._other_priorities: dict[GroupKey, int] = {}
        # Read for every attempt at a group: in a full cluster many groups wait.
        for state in trees.pod_groups.all():
            whole = trees.highest_whole(state)
            if whole is not None and state.node_names():
                self._whole[state.key] = whole
                self._groups.setdefault(whole, []).append(state)
            elif whole is None and (priority := trees.other_priority(state)) is not None:
                self._other_priorities[state.key] = priority
        self._unit_by_group: dict[GroupKey, Unit] = {}

    @property
    def are_single(self) -> bool:
        """Whether every pod is a unit by itself, with its own priority."""
        return not self._groups and not self._other_priorities

    def node_names(self) -> set[str]:
        """Nodes of members of groups that are one unit or have another priority than their
        pods."""
        by_key = self._trees.pod_groups.by_key
        states = [state for group in self._groups.values() for state in group]
        states += [by_key[key] for key in self._other_priorities]
        return {name for state in states for name in state.node_names()}

    def of(self, pods: Iterable[PodInfo]) -> list[Unit]:
        """The units of these placed pods, in the order of their first pods."""
        if self.are_single and not self._trees.rules.members_outrank:
            return [Unit((pod,), pod.priority) for pod in pods]
        units: list[Unit] = []
        taken = set[GroupKey]()
        for pod in pods:
            key = pod.group_key
            whole = None if key is None else self._whole.get(key)
            if whole is None:
                units.append(self._of_pod(pod))
            elif whole not in taken:
                taken.add(whole)
                units.append(self._of_group(whole))
        return units

    def priorities_of_groups(self) -> set[int]:
        """The priorities of groups that are one unit or have another priority than their pods."""
        wholes = {self._of_group(whole).priority for whole in self._groups}
        return wholes.union(self._other_priorities.values())

    def _of_pod(self, pod: PodInfo) -> Unit:
        outranks = self._trees.rules.members_outrank
        is_member = outranks and pod.spec.scheduling_group is not None
        key = pod.group_key
        other = None if key is None else self._other_priorities.get(key)
        return Unit((pod,), pod.priority if other is None else other, is_member=is_member)

    def _of_group(self, whole: GroupKey) -> Unit:
        unit = self._unit_by_group.get(whole)
        if unit is None:
            states = self._groups[whole]
            pods = self._members(states)
            own = self._trees.priority_of(states[0])
            priority = max(pod.priority for pod in pods) if own is None else own
            unit = self._unit_by_group[whole] = Unit(pods, priority, whole)
        return unit

    def _members(self, states: Sequence[GroupState]) -> tuple[PodInfo, ...]:
        keys = {state.key for state in states}
        names = {name for state in states for name in state.node_names()}
        positions: Sequence[int] = self._nodes.positions(sorted(names)).tolist()
        pods = (pod for at in positions for pod in self._nodes.info(at).pods)
        members = [pod for pod in pods if pod.group_key in keys]
        return tuple(sorted(members, key=lambda pod: (-pod.priority, started_seconds(pod))))
