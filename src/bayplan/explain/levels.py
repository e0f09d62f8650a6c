"""The levels of a group's topology: per level, which domain comes nearest, and what it lacks.

For each node label that the group names, the free amounts say how many members the nodes of each
domain can take. Nodes that a plugin rejects for another reason than amounts do not count. For
members of several templates the number is an upper bound, because each template is counted alone.
The nearest domain is the one that can take most members. The pods in the way are the pods on its
nodes that hold what the domain lacks. Members of the group and pods of DaemonSets do not count.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, final

import numpy as np
from msgspec import structs

from bayplan.answers.amounts import amount_text
from bayplan.answers.names import in_natural_order
from bayplan.api.pod_groups import GroupKey
from bayplan.api.pod_requests import PODS
from bayplan.config.topology_levels import TopologyLevels
from bayplan.engine.cycle import Cycle
from bayplan.engine.exclusive_domains import ExclusiveDomains, is_daemon
from bayplan.explain.explanation import GroupLevel
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.columns import Int64s, Mask
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo

#: The most pods in the way that are named.
PODS_MAX: Final = 10


class LevelOfGroup(NamedTuple):
    """A node label that a group names."""

    node_label: str
    constraint: Literal["required", "preferred", "slices"]
    #: The number of members that share a domain.
    size: int


class ComparedLevel(NamedTuple):
    """What a level lacks, and the groups that are in the way, in the order of their pods."""

    answer: GroupLevel
    groups: tuple[GroupKey, ...] = ()


def levels_of(model: ClusterModel, state: GroupState) -> tuple[ComparedLevel, ...]:
    """The levels of a group that waits, the required one first. There are none if the group names
    no node label."""
    named, waiting = list(_named(state)), _waiting(model, state)
    if not named or not waiting:
        return ()
    exclusive, rooms = ExclusiveDomains(model.scheduler.pod_groups), list[_Room]()

    def look(cycle: Cycle) -> None:
        # At the first cycle, no member is placed yet.
        if not rooms:
            barred, _ = exclusive.barred_nodes(cycle.snapshot, cycle.pod)
            rooms.append(_Room(cycle, waiting, [each.node_label for each in named], barred))

    model.attempt(waiting[0].key, look)
    if not rooms:
        return ()
    usable = [_usable(model, rooms[0], pod) for pod in rooms[0].kinds]
    levels = TopologyLevels(model.config.spec.pod_groups.topology)
    return tuple(
        _Level(model, state, each, room=rooms[0], usable=usable).answer(levels) for each in named
    )


def _named(state: GroupState) -> Iterator[LevelOfGroup]:
    group = state.group
    if group is None:
        return
    count = max(1, state.min_member - state.assigned_count)
    if group.required_topology:
        yield LevelOfGroup(group.required_topology, "required", count)
    for key in group.preferred_topologies:
        yield LevelOfGroup(key, "preferred", count)
    for part in group.slices:
        yield LevelOfGroup(part.key, "slices", min(part.size, max(1, state.waiting_count)))


def _waiting(model: ClusterModel, state: GroupState) -> list[PodInfo]:
    """The members that wait for a node, in the order of the queue."""
    uids = {pod.metadata.uid for pod in state.pending()}
    return [pod for pod in model.in_queue_order() if pod.uid in uids]


def _usable(model: ClusterModel, room: "_Room", pod: PodInfo) -> Mask:
    """bool [nodes]: the nodes that a pod could use, if enough were free."""
    _, rejections = model.scheduler.one_shot.rejections(pod.scheduler_name, pod)
    rejected = {
        name for each in rejections if each.plugin != NodeResourcesFit.name for name in each.names
    }
    rejected |= room.barred
    return np.fromiter((name not in rejected for name in room.names), np.bool_, len(room.names))


@final
class _Room:
    """What the nodes have free before the group is tried, and their domains."""

    def __init__(
        self,
        cycle: Cycle,
        members: Sequence[PodInfo],
        labels: Sequence[str],
        barred: frozenset[str],
    ) -> None:
        nodes = cycle.snapshot.nodes
        shapes = {id(pod.shape): pod for pod in members}
        self.names = nodes.names()
        self.members = members
        #: The nodes in domains that the group would not have alone, or that another group has
        #: alone.
        self.barred = barred
        #: One member of each template, and the number of its members.
        self.kinds = list(shapes.values())
        self.counts = [sum(pod.shape is kind.shape for pod in members) for kind in self.kinds]
        self.requests: list[Mapping[str, int]] = [{**kind.requests, PODS: 1} for kind in self.kinds]
        resources = dict.fromkeys(name for each in self.requests for name in each)
        self.free: dict[str, Int64s] = {
            name: np.maximum(nodes.allocatable(name) - nodes.requested(name), 0)
            for name in resources
        }
        #: Node label → the domain of each node; "": none.
        self.domains: dict[str, list[str]] = {}
        for label in labels:
            values = nodes.labels.values(label)
            ids: list[int] = nodes.labels.ids(label).tolist()
            self.domains[label] = [values[value_id] if value_id >= 0 else "" for value_id in ids]

    def places(self, kind: int, usable: Mask) -> Int64s:
        """int64 [nodes]: how many members of a template each node can take."""
        amounts = [(name, amount) for name, amount in self.requests[kind].items() if amount]
        counts = np.array([self.free[name] // amount for name, amount in amounts]).min(axis=0)
        return np.where(usable, np.minimum(counts, self.counts[kind]), 0)


@final
class _Level:
    """One level of a group."""

    def __init__(
        self,
        model: ClusterModel,
        state: GroupState,
        named: LevelOfGroup,
        *,
        room: _Room,
        usable: Sequence[Mask],
    ) -> None:
        self._model = model
        self._state = state
        self._room = room
        #: bool [nodes]: the nodes that some member could use, if enough were free.
        self._usable = np.logical_or.reduce(usable)
        self._named = named
        nodes: dict[str, list[int]] = {}
        for position, domain in enumerate(room.domains[named.node_label]):
            if domain:
                nodes.setdefault(domain, []).append(position)
        self._nodes = {domain: nodes[domain] for domain in in_natural_order(nodes)}
        places = [room.places(kind, usable[kind]) for kind in range(len(room.kinds))]
        #: Domain → the most members that it can take.
        self._fitting = {
            domain: sum(
                min(count, int(of_kind[positions].sum()))
                for of_kind, count in zip(places, room.counts, strict=True)
            )
            for domain, positions in self._nodes.items()
        }

    def answer(self, levels: TopologyLevels) -> ComparedLevel:
        named, size = self._named, self._named.size
        head = GroupLevel(
            level=levels.name(named.node_label),
            node_label=named.node_label,
            constraint=named.constraint,
            size=size,
            domains=len(self._nodes),
            sufficient=sum(count >= size for count in self._fitting.values()),
        )
        if named.constraint == "slices":
            head = self._with_slices(head)
        if head.slices and head.fitting_slices >= head.slices:
            return ComparedLevel(head)
        nearest = self._nearest()
        if nearest is None:
            return ComparedLevel(head)
        lacking = self._lacking(nearest)
        pods = self._in_the_way(nearest, lacking) if self._beyond(nearest) < size else []
        groups = dict.fromkeys(pod.group_key for pod in pods if pod.group_key is not None)
        answer = structs.replace(
            head,
            nearest=nearest,
            fitting=self._beyond(nearest),
            lacking={name: amount_text(name, amount) for name, amount in lacking.items()},
            in_the_way=tuple(pod.key for pod in pods[:PODS_MAX]),
            in_the_way_count=len(pods),
            groups_in_the_way=tuple(dict.fromkeys(map(str, groups))),
        )
        return ComparedLevel(answer, tuple(groups))

    def _with_slices(self, head: GroupLevel) -> GroupLevel:
        size, count = self._named.size, len(self._room.members)
        fitting_slices = sum(fitting // size for fitting in self._fitting.values())
        return structs.replace(head, slices=-(-count // size), fitting_slices=fitting_slices)

    def _beyond(self, domain: str) -> int:
        """The members that a domain can take, beyond its whole slices."""
        fitting, size = self._fitting[domain], self._named.size
        return fitting % size if self._named.constraint == "slices" else fitting

    def _nearest(self) -> str | None:
        """The domain with room for most members; for a group in slices, for most members beyond
        whole slices."""
        return max(self._fitting, key=self._beyond, default=None)

    def _lacking(self, domain: str) -> dict[str, int]:
        """Resource → how much more must be free on the usable nodes of a domain."""
        room, size = self._room, self._named.size
        positions = [each for each in self._nodes[domain] if self._usable[each]]
        wanted: dict[str, int] = {}
        taken_count = self._fitting[domain] - self._beyond(domain)
        requests = {id(k.shape): each for k, each in zip(room.kinds, room.requests, strict=True)}
        for member in (*room.members[:size], *room.members[:taken_count]):
            for name, amount in requests[id(member.shape)].items():
                wanted[name] = wanted.get(name, 0) + amount
        missing = {
            name: amount - int(room.free[name][positions].sum()) for name, amount in wanted.items()
        }
        return {name: amount for name, amount in missing.items() if amount > 0}

    def _in_the_way(self, domain: str, lacking: Mapping[str, int]) -> list[PodInfo]:
        """The pods of other owners that hold what a domain lacks, the lowest priority first."""
        names, usable = self._room.names, self._usable
        is_barred = any(names[each] in self._room.barred for each in self._nodes[domain])
        nodes = {names[each] for each in self._nodes[domain] if is_barred or usable[each]}
        wanted = lacking or dict.fromkeys(self._room.free)
        pods = [
            pod
            for pod in self._model.scheduler.cache.pods()
            if pod.node_name in nodes and pod.group_key != self._state.key and not is_daemon(pod)
        ]
        holding = [pod for pod in pods if is_barred or any(pod.requests.get(n) for n in wanted)]
        return sorted(holding or pods, key=lambda pod: (pod.priority, pod.key))
