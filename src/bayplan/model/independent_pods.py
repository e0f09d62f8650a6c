"""Pods for which each node answers by itself: whether a node can take such a pod follows from that
node and the pods on it.

The proof does not cover pods with required (anti-)affinity, hard spread constraints, host ports,
volumes, claims or a pod group, and profiles with plugins from outside of the tree or with
extenders. Of the pods that it covers, each that is placed takes amounts of its own node from the
next one, and nothing else. So the nodes that can take one of them, and what is free there, say how
many of them fit, in whichever order and wherever they go.
"""

from collections.abc import Hashable
from typing import final

import numpy as np

from bayplan.api.device_objects import RESOURCE_SLICE
from bayplan.api.objects import PodSpec
from bayplan.api.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from bayplan.api.selectors import Selector, label_selector
from bayplan.engine.cycle import Cycle
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.state.nodes import NodeView
from bayplan.state.pods import NO_VOLUMES, PodInfo, PodShape

_HARD = "DoNotSchedule"
#: Resources that no device stands for.
_PLAIN_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)


@final
class IndependentPods:
    """Which pods of a model the proof covers."""

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._is_applicable = _depends_on_rows_only(model)
        self._has_devices = any(True for _ in model.objects(RESOURCE_SLICE))

    def covers(self, shape: PodShape) -> bool:
        """Whether the feasibility of a node for the shape follows from that node's pods alone."""
        return (
            self._is_applicable
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

    def certain_count(self, pod: str) -> int:
        """How many pods certainly get a node that are equal to a pod that waits, itself among them;
        the proof covers it. Raises KeyError as `ClusterModel.attempt`."""
        counts: list[int] = []

        def look(cycle: Cycle) -> None:
            is_whole = cycle.within is None and cycle.node_names is None
            if cycle.choice is None or cycle.answer is None or not is_whole:
                return
            if not cycle.framework.nominated_ahead(cycle.pod):
                feasible = cycle.answer.feasible_nodes(cycle.snapshot.nodes)
                # A cycle may be seen before its pod counts on the node, or after.
                there = cycle.snapshot.node(cycle.choice.node_name).pods
                is_counted = any(each.uid == cycle.pod.uid for each in there)
                counts.append(_room(feasible, cycle.pod) + is_counted)

        self._model.attempt(pod, look)
        return counts[0] if counts else 0


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
    """The selectors of the hard spread constraints."""
    constraints = spec.topology_spread_constraints or ()
    return [
        label_selector(each.label_selector)
        for each in constraints
        if each.when_unsatisfiable == _HARD
    ]
