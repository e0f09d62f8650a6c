"""A naive scheduler of groups: an oracle that shares no code with the scheduler.

A node takes a pod that its zone, its taint, its cpu, its number of pods and the loners on it allow.
Members are placed one by one in a given order, each on the node with most cpu left in percent, or
just on the first by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations

ORDERS_MAX = 120


@dataclass(frozen=True)
class Room:
    """A node."""

    cpu_milli: int
    pods: int
    zone: str
    is_tainted: bool = False


@dataclass(frozen=True)
class Member:
    """A pod, with or without a group."""

    name: str
    group: str = ""
    cpu_milli: int = 0
    #: The only zone for the pod; "" for any zone.
    zone: str = ""
    tolerates: bool = False
    #: Whether the pod shares no node with another loner.
    is_loner: bool = False


@dataclass
class NaiveCluster:
    """Nodes by name, and pods by name with the name of their node, which may be gone."""

    nodes: dict[str, Room] = field(default_factory=dict[str, Room])
    on: dict[str, tuple[Member, str]] = field(default_factory=dict[str, tuple[Member, str]])
    #: Whether the emptiest node is chosen, or the first by name.
    is_spreading: bool = True
    #: Groups that have their zones alone.
    exclusive: set[str] = field(default_factory=set[str])

    def copy(self) -> "NaiveCluster":
        return replace(
            self, nodes=dict(self.nodes), on=dict(self.on), exclusive=set(self.exclusive)
        )

    # ---- one pod --------------------------------------------------------------------------

    def there(self, node_name: str) -> list[Member]:
        return [member for member, where in self.on.values() if where == node_name]

    def why_not(self, pod: Member, node_name: str) -> str:
        """ "" where the node takes it."""
        node, neighbours = self.nodes.get(node_name), self.there(node_name)
        if node is None:
            return "there is no such node"
        if pod.zone and pod.zone != node.zone:
            return f"zone {node.zone}, wanted {pod.zone}"
        if node.is_tainted and not pod.tolerates:
            return "tainted"
        if pod.cpu_milli and sum(o.cpu_milli for o in neighbours) + pod.cpu_milli > node.cpu_milli:
            return "too little cpu"
        if len(neighbours) + 1 > node.pods:
            return "too many pods"
        if any(self._excludes(pod, other) for other in self._in_zone(node.zone)):
            return "another group is in the zone, and one of them wants to be alone"
        return "a loner is there" if pod.is_loner and any(o.is_loner for o in neighbours) else ""

    def _in_zone(self, zone: str) -> list[Member]:
        zones = {name: node.zone for name, node in self.nodes.items()}
        return [member for member, where in self.on.values() if zones.get(where) == zone]

    def _excludes(self, one: Member, other: Member) -> bool:
        is_of_one_group = one.group == other.group != ""
        return not is_of_one_group and bool({one.group, other.group} & self.exclusive)

    def choice(self, pod: Member, names: Iterable[str]) -> str:
        """The node that the naive scheduler chooses; "" for none."""
        fitting = [name for name in names if not self.why_not(pod, name)]
        return min(fitting, key=lambda name: (-self._worth(pod, name), name), default="")

    def _worth(self, pod: Member, node_name: str) -> int:
        if not self.is_spreading:
            return 0
        has = self.nodes[node_name].cpu_milli
        left = has - pod.cpu_milli - sum(other.cpu_milli for other in self.there(node_name))
        return left * 100 // has

    # ---- groups ---------------------------------------------------------------------------

    def placed_members(self, group: str) -> list[str]:
        """The nodes of the placed members, one per member."""
        return [where for member, where in self.on.values() if member.group == group]

    def placed(self, members: Sequence[Member], names: Iterable[str]) -> dict[str, str]:
        """Members that are placed one after another, with their nodes."""
        world, names = self.copy(), list(names)
        node_names: dict[str, str] = {}
        for member in members:
            where = world.choice(member, names)
            if where:
                world.on[member.name] = (member, where)
                node_names[member.name] = where
        return node_names

    def domains(self, group: str, *, is_narrow: bool) -> list[list[str]]:
        """The sets of nodes for its members: all nodes, or each zone with all placed members."""
        if not is_narrow:
            return [sorted(self.nodes)]
        members, zones = self.placed_members(group), {node.zone for node in self.nodes.values()}
        zone_nodes = [[n for n, node in self.nodes.items() if node.zone == zone] for zone in zones]
        return [sorted(names) for names in zone_nodes if set(members) <= set(names)]

    def most(self, members: Sequence[Member], domains: Iterable[Sequence[str]]) -> int:
        """The largest number of members that fit in this order, over all domains."""
        return max((len(self.placed(members, names)) for names in domains), default=0)

    def most_in_any_order(self, members: Sequence[Member], domains: Sequence[Sequence[str]]) -> int:
        """The same for other orders of members, with a limit on their number."""
        largest_first = sorted(members, key=lambda member: -member.cpu_milli)
        orders = [largest_first, *islice(permutations(members), ORDERS_MAX)]
        return max(self.most(order, domains) for order in orders)

    def problems(self, placed: Mapping[str, tuple[Member, str]]) -> list[str]:
        """The problems of placements that are already made."""
        wrong: list[str] = []
        for name, (member, where) in placed.items():
            world = self.copy()
            del world.on[name]
            why = world.why_not(member, where)
            if why:
                wrong.append(f"{name} on {where}: {why}")
        return wrong
