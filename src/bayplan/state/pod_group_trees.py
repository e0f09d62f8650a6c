"""Trees of groups: CompositePodGroups above the PodGroups whose pods are placed.

A group names its parent, so a tree is what the links between names make of the objects that exist.
A link is remembered whether or not the parent exists, and the tree changes with each object. The
pods below a root wait together and are tried together; the pods of a group whose ancestors do not
all exist wait for them. Upstream: backend/queue/workload_forest.go (v1.37).
"""

from collections.abc import Callable, Iterator
from typing import Final, final

from msgspec import Struct

from bayplan.api.composite_pod_groups import CompositePodGroup, composite_key
from bayplan.api.objects import Pod
from bayplan.api.pod_groups import GroupKey
from bayplan.state.pod_groups import GroupState, PodGroups
from bayplan.state.pods import PodInfo

#: CompositePodGroups above a PodGroup. Upstream: WorkloadMaxTreeDepth.
_HEIGHT_MAX: Final = 4


@final
class GroupRules(Struct, frozen=True):
    """What counts of groups."""

    #: Whether groups have groups above them: the gate CompositePodGroup.
    has_trees: bool = False
    #: Whether a pod of a group of Kubernetes has the priority of its group as a victim, and
    #: outranks a plain pod of equal priority.
    members_outrank: bool = False
    #: Whether one pod with a scheduling gate holds all waiting pods of its group or tree.
    gated_pods_hold: bool = False


NO_GROUP_RULES = GroupRules()


@final
class GroupTree(Struct, frozen=True, eq=False):
    """A CompositePodGroup with everything below it."""

    group: CompositePodGroup
    #: In the order in which they are tried: the oldest first, then by name.
    children: "tuple[GroupTree | GroupState, ...]"

    @property
    def key(self) -> GroupKey:
        return self.group.key

    def leaves(self) -> Iterator[GroupState]:
        for child in self.children:
            if isinstance(child, GroupTree):
                yield from child.leaves()
            else:
                yield child

    @property
    def assigned_count(self) -> int:
        """Pods below that have a node: bound or assumed."""
        return sum(leaf.assigned_count for leaf in self.leaves())

    def assigned(self) -> list[Pod | PodInfo]:
        """Pods below that hold a node."""
        return [pod for leaf in self.leaves() for pod in leaf.assigned()]

    @property
    def has_gated(self) -> bool:
        """Whether a pod below has a scheduling gate."""
        return any(leaf.has_gated for leaf in self.leaves())

    def is_met(self, count_of: Callable[[GroupState], int]) -> bool:
        """Whether enough groups have enough pods, down to the leaves. ``count_of``: the pods of a
        leaf that count. Upstream: isCPGTreeReady."""
        met = (
            child.is_met(count_of)
            if isinstance(child, GroupTree)
            else count_of(child) >= child.min_member
            for child in self.children
        )
        return sum(met) >= self.group.min_group_count

    @property
    def is_complete(self) -> bool:
        """Whether enough pods exist for an attempt."""
        return self.is_met(lambda leaf: leaf.here_count)


@final
class PodGroupTrees:
    """The CompositePodGroups of a cluster, and what belongs to them."""

    def __init__(self, pod_groups: PodGroups, rules: GroupRules = NO_GROUP_RULES) -> None:
        """``pod_groups``: all PodGroups."""
        self.rules = rules
        self.is_on = rules.has_trees
        self.pod_groups = pod_groups
        self._groups: dict[GroupKey, CompositePodGroup] = {}
        self._parents: dict[GroupKey, GroupKey] = {}
        #: By parent, whether it exists or not.
        self._children: dict[GroupKey, set[GroupKey]] = {}

    # ---- changes --------------------------------------------------------------------------

    def put(self, group: CompositePodGroup) -> CompositePodGroup | None:
        """Add or replace an object. Returns the earlier version."""
        old = self._groups.get(group.key)
        self._groups[group.key] = group
        self._link(group.key, group.parent_key)
        return old

    def remove(self, key: GroupKey) -> CompositePodGroup | None:
        """Remove an object. Returns it."""
        self._link(key, None)
        return self._groups.pop(key, None)

    def follow(self, key: GroupKey) -> None:
        """Follow a change of the object of a PodGroup."""
        state = self.pod_groups.get(key)
        group = None if state is None or not self.is_on else state.group
        parent = "" if group is None else group.parent
        self._link(key, composite_key(key.namespace, parent) if parent else None)

    def _link(self, key: GroupKey, parent: GroupKey | None) -> None:
        old = self._parents.pop(key, None)
        if old is not None:
            self._children[old].discard(key)
            if not self._children[old]:
                del self._children[old]
        if parent is not None:
            self._parents[key] = parent
            self._children.setdefault(parent, set()).add(key)

    # ---- looking --------------------------------------------------------------------------

    def get(self, key: GroupKey) -> CompositePodGroup | None:
        return self._groups.get(key)

    def has_parent(self, key: GroupKey) -> bool:
        """Whether a group names a parent, which may not exist."""
        return key in self._parents

    def ancestors(self, key: GroupKey) -> list[CompositePodGroup]:
        """The groups above a group that exist, the nearest first; up to a missing one, or to one
        that is above itself."""
        ancestors: dict[GroupKey, CompositePodGroup] = {}
        parent = self._parents.get(key)
        while parent is not None and parent in self._groups and parent not in ancestors:
            ancestors[parent] = self._groups[parent]
            parent = self._parents.get(parent)
        return list(ancestors.values())

    def root_of(self, key: GroupKey) -> CompositePodGroup | None:
        """The root above a PodGroup; None: it has no parent, a group above it is missing or above
        itself, or there are too many."""
        ancestors = self.ancestors(key)
        if not ancestors or len(ancestors) > _HEIGHT_MAX or self.has_parent(ancestors[-1].key):
            return None
        return ancestors[-1]

    def top_of(self, key: GroupKey) -> GroupKey:
        """The key of the root above a group, or of the first one above that is missing; the group
        itself if it has no parent."""
        above = [key, *(group.key for group in self.ancestors(key))][-1]
        return self._parents.get(above, above)

    def highest_whole(self, state: GroupState) -> GroupKey | None:
        """The highest group, the PodGroup itself or one above it, of which an eviction evicts all
        pods below. Upstream: getHighestAllAncestor."""
        group = state.group
        whole = state.key if group is not None and group.leaves_whole else None
        return [whole, *(one.key for one in self.ancestors(state.key) if one.leaves_whole)][-1]

    def priority_of(self, state: GroupState) -> int | None:
        """The priority of the highest group above a PodGroup, or of the PodGroup itself; None: it
        has none. Upstream: GetPodPriority."""
        ancestors = self.ancestors(state.key)
        if ancestors:
            return ancestors[-1].spec.priority or 0
        return None if state.group is None else state.group.priority

    def priority_of_pod(self, pod: PodInfo) -> int:
        """The priority of a pod as a victim: that of the highest group above it, where it counts.
        Upstream: GetPodPriority."""
        state = self.pod_groups.of(pod) if self.rules.members_outrank else None
        if state is None or not state.is_upstream:
            return pod.priority
        return self.priority_of(state) or 0

    def other_priority(self, state: GroupState) -> int | None:
        """The priority that the pods of a group have as victims, if a pod with a node has another
        one; else None."""
        if not (self.rules.members_outrank and state.is_upstream):
            return None
        priority = self.priority_of(state) or 0
        return priority if state.places_other_than(priority) else None

    def tree(self, root: CompositePodGroup) -> GroupTree:
        """A root with everything below it that exists."""
        children = [self._child(key) for key in self._children.get(root.key, ())]
        there = [child for child in children if child is not None]
        return GroupTree(root, tuple(sorted(there, key=_age)))

    def _child(self, key: GroupKey) -> GroupTree | GroupState | None:
        if not key.is_composite:
            return self.pod_groups.get(key)
        group = self._groups.get(key)
        return None if group is None else self.tree(group)

    def leaves(self, key: GroupKey) -> list[GroupState]:
        """The PodGroups below a group, or the PodGroup itself. The group need not exist."""
        keys, leaves = {key: None}, list[GroupState]()
        for each in iter(waiting := [key]):
            state = self.pod_groups.get(each)
            if state is not None:
                leaves.append(state)
            below = [child for child in sorted(self._children.get(each, ())) if child not in keys]
            keys |= dict.fromkeys(below)
            waiting += below
        return leaves


def _age(child: GroupTree | GroupState) -> tuple[str, str]:
    """Stamps of the API are in the order of their text."""
    if isinstance(child, GroupTree):
        metadata = child.group.metadata
    else:
        assert child.group is not None, "only a group with an object names a parent"
        metadata = child.group.metadata
    return metadata.creation_timestamp or "", metadata.name
