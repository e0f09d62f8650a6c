"""A naive scheduler of trees of groups: an oracle that shares no code with the scheduler.

Nodes have cpu and a rack. A pod goes to the first node by name that has room beside the placed pods
and the nominated ones that are not less important. A group places its pods in their order; a group
of groups tries its groups by name, and one that does not fit leaves nothing behind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Group:
    """A group of pods, or of groups."""

    name: str
    #: The group above; "" for none. It may be missing.
    parent: str
    #: The pods, or the groups below, that run together.
    minimum: int
    is_composite: bool = False
    #: Whether an eviction of one pod below evicts all.
    is_whole: bool = False
    #: Whether all pods below share a rack.
    is_on_rack: bool = False


@dataclass(frozen=True)
class TreePod:
    """A pod, with or without a group."""

    name: str
    group: str
    cpu_milli: int
    priority: int


#: Pod → the name of its node.
Placed = dict[str, str]
#: Group → the pods that wait for a node, in their order.
Waiting = Mapping[str, Sequence[TreePod]]


@dataclass
class NaiveTrees:
    """Nodes, groups and pods by name."""

    #: (cpu in milli, rack).
    nodes: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    groups: dict[str, Group] = field(default_factory=dict[str, Group])
    on: dict[str, tuple[TreePod, str]] = field(default_factory=dict[str, tuple[TreePod, str]])
    nominated: dict[str, tuple[TreePod, str]] = field(
        default_factory=dict[str, tuple[TreePod, str]]
    )

    def copy(self) -> "NaiveTrees":
        return replace(
            self,
            nodes=dict(self.nodes),
            groups=dict(self.groups),
            on=dict(self.on),
            nominated=dict(self.nominated),
        )

    # ---- trees ----------------------------------------------------------------------------

    def ancestors(self, name: str) -> list[Group]:
        """The groups above that exist, the nearest first."""
        above: list[Group] = []
        group = self.groups.get(name)
        while group is not None and group.parent in self.groups:
            group = self.groups[group.parent]
            above.append(group)
        return above

    def root_of(self, name: str) -> str:
        """The root above a group of pods; "" if it, or a group above, is missing."""
        if name not in self.groups:
            return ""
        top = [self.groups[name], *self.ancestors(name)][-1]
        return "" if top.parent else top.name

    def below(self, name: str) -> list[Group]:
        return sorted(
            (each for each in self.groups.values() if each.parent == name), key=lambda g: g.name
        )

    def leaves(self, name: str) -> list[Group]:
        group = self.groups[name]
        if not group.is_composite:
            return [group]
        return [leaf for each in self.below(name) for leaf in self.leaves(each.name)]

    def is_met(self, name: str, counts: Mapping[str, int]) -> bool:
        """Whether enough groups have enough pods. ``counts``: by group of pods."""
        group = self.groups[name]
        if not group.is_composite:
            return counts.get(name, 0) >= group.minimum
        met_count = sum(self.is_met(each.name, counts) for each in self.below(name))
        return met_count >= group.minimum

    def counts(self, pods: Iterable[TreePod]) -> dict[str, int]:
        """Pods by group: those with a node, and these."""
        names = [pod.group for pod, _ in self.on.values()] + [pod.group for pod in pods]
        return {name: names.count(name) for name in set(names)}

    # ---- placements -----------------------------------------------------------------------

    def free_milli(self, node_name: str, priority: int) -> int:
        """The cpu that a pod of this priority may use."""
        nominated = [one for one in self.nominated.values() if one[0].priority >= priority]
        used = [pod for pod, where in (*self.on.values(), *nominated) if where == node_name]
        return self.nodes[node_name][0] - sum(pod.cpu_milli for pod in used)

    def choice(self, pod: TreePod, names: Sequence[str]) -> str:
        """The first node with room; "" for none."""
        fitting = (n for n in names if self.free_milli(n, pod.priority) >= pod.cpu_milli)
        return next(fitting, "")

    def tried(self, root: str, waiting: Waiting) -> list[Placed]:
        """The placements of a tree, or of a group of pods: one for each domain in which it fits."""
        pods = [pod for leaf in self.leaves(root) for pod in waiting.get(leaf.name, ())]
        world = self.copy()
        for pod in pods:
            world.nominated.pop(pod.name, None)
        results = [world.copy()._place(root, waiting, names) for names in world._domains(root)]
        return [placed for placed in results if placed]

    def _domains(self, root: str) -> list[list[str]]:
        names = sorted(self.nodes)
        if not self.groups[root].is_on_rack:
            return [names]
        leaves = {leaf.name for leaf in self.leaves(root)}
        racks = {self.nodes[where][1] for pod, where in self.on.values() if pod.group in leaves}
        if len(racks) > 1:
            return []
        racks = racks or {rack for _, rack in self.nodes.values()}
        return [[name for name in names if self.nodes[name][1] == rack] for rack in sorted(racks)]

    def _place(self, name: str, waiting: Waiting, names: Sequence[str]) -> Placed | None:
        """The placements, perhaps none, which are made in this world; None: the group does not
        fit, and nothing is made."""
        group = self.groups[name]
        before = dict(self.on)
        placed = (
            self._place_groups(group, waiting, names)
            if group.is_composite
            else self._place_pods(group, waiting.get(name, ()), names)
        )
        if placed is None:
            self.on = before
        return placed

    def _place_groups(self, group: Group, waiting: Waiting, names: Sequence[str]) -> Placed | None:
        results = [self._place(each.name, waiting, names) for each in self.below(group.name)]
        fitting = [placed for placed in results if placed is not None]
        if len(fitting) < group.minimum:
            return None
        return {pod: where for placed in fitting for pod, where in placed.items()}

    def _place_pods(
        self, group: Group, pods: Sequence[TreePod], names: Sequence[str]
    ) -> Placed | None:
        needed_count = group.minimum - self.counts(()).get(group.name, 0)
        if len(pods) < needed_count:
            return None
        placed: Placed = {}
        for pod in pods:
            where = self.choice(pod, names)
            if where:
                self.on[pod.name] = (pod, where)
                placed[pod.name] = where
        return placed if len(placed) >= needed_count else None

    # ---- evictions ------------------------------------------------------------------------

    def unit_of(self, pod: TreePod) -> str:
        """The highest group that leaves as a whole, or the pod itself."""
        chain = [self.groups[pod.group]] if pod.group in self.groups else []
        chain += self.ancestors(pod.group)
        whole = [f"group {group.name}" for group in chain if group.is_whole]
        return whole[-1] if whole else pod.name

    def without(self, names: Iterable[str]) -> "NaiveTrees":
        """Without these pods."""
        world = self.copy()
        for name in names:
            del world.on[name]
        return world

    def without_less_important(self, priority: int) -> "NaiveTrees":
        return self.without(n for n, (pod, _) in self.on.items() if pod.priority < priority)

    def problems_of_victims(
        self, victims: Iterable[str], placed: Mapping[str, tuple[TreePod, str]], priority: int
    ) -> list[str]:
        """Why these victims are wrong for pods of a priority that are to be ``placed``."""
        gone = set(victims)
        wrong = [f"{name} is too important" for name in gone if self._priority(name) >= priority]
        units = {self.unit_of(self.on[name][0]) for name in gone}
        for unit in units:
            left = {n for n, (pod, _) in self.on.items() if self.unit_of(pod) == unit} - gone
            wrong += [f"{name} stays without the rest of {unit}" for name in left]
        after = self.without(gone)
        for name in placed:
            after.nominated.pop(name, None)
        if not after._hold(placed, priority):
            wrong.append("there is too little room without the victims")
        for unit in units:
            back = after.copy()
            back.on |= {n: one for n, one in self.on.items() if self.unit_of(one[0]) == unit}
            if back._hold(placed, priority):
                wrong.append(f"{unit} leaves for nothing")
        return wrong

    def _priority(self, name: str) -> int:
        return self.on[name][0].priority

    def _hold(self, placed: Mapping[str, tuple[TreePod, str]], priority: int) -> bool:
        """Whether all these pods have room together."""
        world = self.copy()
        world.on |= placed
        return all(world.free_milli(where, priority) >= 0 for _, where in placed.values())
