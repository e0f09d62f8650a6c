"""Pods for which each node answers by itself: whether a node can take such a pod follows from that
node and the pods on it.

The proof does not cover pods with required (anti-)affinity, hard spread constraints, host ports,
volumes, claims or a pod group, and profiles with plugins from outside of the tree or with
extenders. Of the pods that it covers, each that is placed takes amounts of its own node from the
next one, and nothing else. So the nodes that can take one of them, and what is free there, say how
many of them fit, in whichever order and wherever they go. No further one fits, unless preemption
makes room.
"""

from collections.abc import Hashable
from typing import Final, NamedTuple, final

import msgspec
import numpy as np
from msgspec import structs

from bayplan.api.device_objects import RESOURCE_SLICE
from bayplan.api.objects import PodSpec, TopologySpreadConstraint
from bayplan.api.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from bayplan.api.selectors import NOTHING, Selector, SelectorError, label_selector
from bayplan.engine.cycle import Cycle
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.state.disruption_units import Units
from bayplan.state.nodes import NodeView
from bayplan.state.pods import NO_VOLUMES, PodInfo, PodShape
from bayplan.state.ranked_pods import NO_PRIORITY

_HARD = "DoNotSchedule"
#: Resources that no device stands for.
_PLAIN_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)


class Room(NamedTuple):
    """How many pods fit that are equal to one that was placed."""

    #: So many get a node for certain.
    pod_count: int
    #: Whether no further one gets a node.
    is_exact: bool


UNKNOWN_ROOM: Final = Room(0, is_exact=False)


@final
class IndependentPods:
    """Which pods of a model the proof covers."""

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        #: Whether all plugins are in the tree, and none has hard constraints for all pods.
        self.has_known_plugins = _depends_on_rows_only(model)
        self._has_devices = any(True for _ in model.objects(RESOURCE_SLICE))

    def covers(self, shape: PodShape) -> bool:
        """Whether the feasibility of a node for the shape follows from that node's pods alone."""
        return (
            self.has_known_plugins
            and shape.once("model.is_plain", _is_plain)
            and not (
                self._has_devices and any(name not in _PLAIN_RESOURCES for name in shape.requests)
            )
        )

    def signed(self, pod: PodInfo) -> Hashable | None:
        """What the answers of the Filter plugins for a pod on no node depend on; None: one of them
        does not sign. Spreading is no part of it: the shape has no hard constraint.

        Shapes of one workload differ where each pod has a volume of its own for its token. One
        attempt answers for all pods of which the Filter plugins sign the same, and which have one
        priority: a nominated pod takes room from pods up to its own priority.
        """
        framework, waiting = self._model.scheduler.framework(pod.scheduler_name), pod.on_node("")
        filters = (*framework.plugins.pre_filter, *framework.plugins.filter)
        names = {p.instance_name: None for p in filters if not isinstance(p, PodTopologySpread)}
        parts = tuple(framework.signer.part(name, waiting) for name in names)
        return None if None in parts else (pod.scheduler_name, pod.priority, parts)

    def template(self, pod: PodInfo) -> Hashable | None:
        """What the answer for a pod depends on in a cluster that stays as it is; None: it may
        depend on more. Also pods have it that the proof does not cover.

        Pods of one template differ in their names, and in volumes that no plugin reads.
        """
        shape, spec = pod.shape, pod.spec
        has_own = shape.volumes != NO_VOLUMES or spec.resource_claims or pod.nominated_node_name
        if not self.has_known_plugins or has_own or shape.group_key is not None:
            return None
        parts = (pod.labels, pod.annotations, pod.metadata.owner_references)
        encoded = msgspec.json.encode((parts, structs.replace(spec, volumes=None)))
        return pod.namespace, pod.priority, encoded

    def place(self, pod: str) -> tuple[Attempt, Room]:
        """Place a pod as `ClusterModel.place`, and count the pods that fit after it."""
        rooms: list[Room] = []

        def look(cycle: Cycle) -> None:
            if self.covers(cycle.pod.shape):
                rooms.append(self._room_after(cycle))

        attempt = self._model.place(pod, look)
        return attempt, rooms[-1] if rooms else UNKNOWN_ROOM

    def _room_after(self, cycle: Cycle) -> Room:
        """The room when the pod of the cycle is on its node."""
        is_whole = cycle.within is None and cycle.node_names is None
        if cycle.choice is None or cycle.answer is None or not is_whole:
            return UNKNOWN_ROOM
        if cycle.framework.nominated_ahead(cycle.pod):
            return UNKNOWN_ROOM
        nodes = cycle.snapshot.nodes
        feasible = cycle.answer.feasible_nodes(nodes)
        # A cycle may be seen before its pod counts on the node, or after.
        there = cycle.snapshot.node(cycle.choice.node_name).pods
        is_counted = any(each.uid == cycle.pod.uid for each in there)
        return Room(
            _room(feasible, cycle.pod) + is_counted - 1,
            is_exact=cycle.answer.evaluated_count == len(nodes)
            and _is_limited_by_amounts(cycle)
            and self._preempts_nothing(cycle),
        )

    def _preempts_nothing(self, cycle: Cycle) -> bool:
        """Whether no pod has to leave for pods like that of the cycle."""
        nodes = cycle.snapshot.nodes
        if cycle.pod.spec.preemption_policy == "Never":
            return True
        lowest = cycle.snapshot.ranked_pods(nodes).lowest.min(initial=NO_PRIORITY)
        units = Units(self._model.scheduler.group_trees, nodes)
        return bool(lowest >= cycle.pod.priority) and units.are_single


def _is_limited_by_amounts(cycle: Cycle) -> bool:
    """Whether a node takes no more pods than it has room for."""
    filters = cycle.framework.plugins.filter
    is_checked = any(isinstance(plugin, NodeResourcesFit) for plugin in filters)
    return is_checked and all(name in _PLAIN_RESOURCES for name in cycle.pod.requests)


def _room(nodes: NodeView, pod: PodInfo) -> int:
    """How many pods that request the same have room on these nodes together."""
    room = nodes.allocatable(PODS) - nodes.pods.counts()
    for resource, amount in pod.requests.items():
        if amount > 0:
            free = nodes.allocatable(resource) - nodes.requested(resource)
            room = np.minimum(room, free // amount)
    return int(np.maximum(room, 0).sum())


def _depends_on_rows_only(model: ClusterModel) -> bool:
    """Whether all plugins are in the tree, and none has hard constraints for all pods."""
    scheduler = model.scheduler
    if scheduler.extenders:
        return False
    for name in scheduler.profile_names:
        for plugin in scheduler.framework(name).plugins.instances():
            if not type(plugin).__module__.startswith("bayplan.plugins."):
                return False
            if isinstance(plugin, PodTopologySpread) and plugin.args.default_constraints:
                return False
    return True


def _is_plain(shape: PodShape) -> bool:
    spec = shape.spec
    return not (
        shape.affinity.required
        or shape.anti_affinity.required
        or shape.host_ports
        or shape.volumes != NO_VOLUMES
        or spec.resource_claims
        or shape.group_key is not None
        or hard_selectors(spec)
    )


def hard_selectors(spec: PodSpec) -> list[Selector]:
    """The selectors of the hard spread constraints; one that is invalid selects nothing."""
    constraints = spec.topology_spread_constraints or ()
    return [_selector(each) for each in constraints if each.when_unsatisfiable == _HARD]


def _selector(constraint: TopologySpreadConstraint) -> Selector:
    try:
        return label_selector(constraint.label_selector)
    except SelectorError:
        return NOTHING
