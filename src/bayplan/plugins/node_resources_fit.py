"""NodeResourcesFit: a node must have room for what a pod requests; how full it gets is its score.

What a pod requests is compiled once per shape. Filter then compares one amount per resource with
what the nodes have left; Score passes the pod's demand to one of three strategies. Filter and Score
count differently: Filter honours spec.resources; Score adds up containers alone, and counts a
container without cpu or memory as 100m or 200Mi. If devices stand for a scored resource, they are
counted on nodes that do not offer the resource themselves. For a running pod that waits for a
deferred resize only events on its own node matter. Upstream: plugins/noderesources, fit.go.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, final

import msgspec
import numpy as np

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    DEVICE_CLASS_RESOURCE_PREFIX,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DeviceClass,
)
from bayplan.api.objects import Node, Pod, PodStatus
from bayplan.api.pod_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    NON_ZERO_DEFAULTS,
    PODS,
    Amounts,
    amounts,
    is_counted,
    is_extended,
    may_be_devices,
    requested,
)
from bayplan.api.selectors import is_label_key
from bayplan.config.feature_gates import FeatureGates
from bayplan.framework import plugin
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    QueueingHintFn,
    queue_if,
)
from bayplan.framework.resource_scorers import (
    DEFAULT_RESOURCES,
    Demands,
    NodesWithDevices,
    NodeWithDevices,
    ResourceSpec,
    Scorer,
    UtilizationShapePoint,
    counted,
    demands,
    least_allocated,
    most_allocated,
    percents_used_together,
    requested_to_capacity_ratio,
    shape_problems,
)
from bayplan.framework.status import Code, Rejection, Status
from bayplan.framework.types import PreFilterResult, Verdict
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask, NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo, PodShape

TOO_MANY_PODS = "Too many pods"
#: The order of reasons; other resources follow by name.
NAMED_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"


#: The beginning of the reason of a node that has too little of a resource.
INSUFFICIENT: Final = "Insufficient "


def insufficient(resource: str) -> str:
    """The reason of a node that has too little of a resource."""
    return f"{INSUFFICIENT}{resource}"


# ---- args ----------------------------------------------------------------------------------


class _Arg(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the args."""


class RequestedToCapacityRatioParam(_Arg, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(_Arg, frozen=True):
    """How full a node should be. No resources means cpu and memory."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def __post_init__(self) -> None:
        if not self.resources:
            msgspec.structs.force_setattr(self, "resources", DEFAULT_RESOURCES)


class NodeResourcesFitArgs(plugin.PluginArgs, frozen=True):
    """Resources that are not compared (another component manages them), and how nodes are
    scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)

    def problems(self) -> Iterable[tuple[str, str]]:
        for index, name in enumerate(self.ignored_resources):
            if not is_label_key(name):
                yield f"ignoredResources[{index}]", f'"{name}"; wanted example.com/gpu or such'
        for index, name in enumerate(self.ignored_resource_groups):
            if "/" in name or not is_label_key(name):
                yield f"ignoredResourceGroups[{index}]", f'"{name}"; wanted example.com or such'

    def problems_in_version(self, gates: FeatureGates) -> Iterable[tuple[str, str]]:
        is_own_field = gates.behaviour.ratio_shape_is_own_field
        ratio = self.scoring_strategy.requested_to_capacity_ratio
        path = "scoringStrategy.requestedToCapacityRatio"
        if self.scoring_strategy.type == REQUESTED_TO_CAPACITY_RATIO:
            shape_path = f"{path}.shape" if is_own_field else "scoringStrategy.shape"
            yield from shape_problems(shape_path, ratio.shape if ratio is not None else ())
        elif ratio is not None and is_own_field:
            yield path, f"unwanted; belongs to the type {REQUESTED_TO_CAPACITY_RATIO}"


def _scorer(strategy: ScoringStrategy) -> Scorer:
    if strategy.type == LEAST_ALLOCATED:
        return least_allocated()
    if strategy.type == MOST_ALLOCATED:
        return most_allocated()
    ratio = strategy.requested_to_capacity_ratio
    assert ratio is not None and ratio.shape, "args are checked before a plugin is made"
    return requested_to_capacity_ratio([(p.utilization, p.score) for p in ratio.shape])


# ---- the plugin ----------------------------------------------------------------------------


_CACHING: Final = plugin.Caching(
    facets=Facet.REQUESTED | Facet.ALLOCATABLE | Facet.LABELS,
    signs_template=True,
    pre_state_per_template=True,
    kinds_in_facets=(RESOURCE_SLICE, RESOURCE_CLAIM),
)


@final
class NodeResourcesFit(
    plugin.PreFilterPlugin[NodeResourcesFitArgs],
    plugin.FilterPlugin,
    plugin.RowFilter,
    plugin.PreScorePlugin,
    plugin.ScorePlugin,
    plugin.RowScore,
    plugin.PlacementScorePlugin,
    plugin.JointPlacementScore,
    plugin.EnqueueExtensions,
    plugin.SignPlugin,
):
    """Rejects nodes without room for a pod, and scores how full it would make them."""

    name = "NodeResourcesFit"
    #: Labels may decide which nodes devices are for.
    caching = _CACHING
    #: Devices may stand for a resource; a change of the classes is logged as a change of all rows.
    kinds = (DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM)
    optional_kinds = kinds

    def setup(self) -> None:
        args: NodeResourcesFitArgs = self.args or NodeResourcesFitArgs()
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._resources = args.scoring_strategy.resources
        self._scorer = _scorer(args.scoring_strategy)
        # Devices that stand for a resource are not among the node's amounts.
        amounts_only = not any(may_be_devices(spec.name) for spec in self._resources)
        self.caching = replace(_CACHING, amounts_only=amounts_only)
        effective = (sorted(self._ignored), sorted(self._ignored_groups), self._resources)
        self._tries_resizes = self.handle.gates.enabled(
            "InPlacePodVerticalScalingSchedulerPreemption"
        )
        self._wants_key = f"NodeResourcesFit.wants {effective!r} {self._tries_resizes}"

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        """Never skips: a pod that requests nothing still takes a place among the pods."""
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        """Reports every insufficient resource. A node whose allocatable amount is too small is
        unresolvable: evicting pods does not help."""
        full = nodes.resources.insufficient(PODS, 1)
        if full is not None:
            yield Rejection(full, Code.UNSCHEDULABLE, (TOO_MANY_PODS,))
        for need in self._wants(pod).needs:
            short = nodes.resources.insufficient(need.resource, need.more)
            if short is None:
                continue
            allocatable = nodes.allocatable(need.resource)
            if self._are_devices(need.resource):
                # Where the node does not offer it, DynamicResources finds a device, or rejects.
                short = short & (allocatable > 0)
            yield _too_little(need, short, allocatable)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """Never skips."""
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: 0..100 by the configured strategy."""
        demanded = self._wants(pod).demands
        if demanded.devices and (counts := counted(self.handle.devices, demanded.devices)):
            return self._scorer.of_nodes(demanded, NodesWithDevices(nodes, counts))
        return self._scorer.of_nodes(demanded, nodes)

    def filter_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
        reasons_by_code: list[tuple[Code, tuple[str, ...]]] = []
        if node.amounts(PODS).free < 1:
            reasons_by_code.append(_FULL)
        for resource, amount, more, reasons in self._wants(pod).needs:
            has = node.amounts(resource)
            if has.free < more and not (has.allocatable <= 0 and self._are_devices(resource)):
                reasons_by_code.append(
                    (_HOPELESS if has.allocatable < amount else _FOR_NOW, reasons)
                )
        return tuple(reasons_by_code)

    def score_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        demanded = self._wants(pod).demands
        if demanded.devices and (counts := counted(self.handle.devices, demanded.devices)):
            return self._scorer.of_node(demanded, NodeWithDevices(node, counts))
        return self._scorer.of_node(demanded, node)

    def score_placement(
        self, group: GroupState | GroupTree, placement: plugin.PlacementAssignments
    ) -> int:
        """0..100: how full the nodes would be together, by MostAllocated with any strategy."""
        return self.score_placements(group, [placement])[0]

    def score_placements(
        self, group: GroupState | GroupTree, placements: Sequence[plugin.PlacementAssignments]
    ) -> Sequence[int]:
        """The same for many placements. The demands of members are added once."""
        demands_by_pods: dict[int, Demands] = {}
        for placement in placements:
            if id(placement.pods) not in demands_by_pods:
                demands_by_pods[id(placement.pods)] = self._demands_together(placement.pods)
        demanded = [demands_by_pods[id(placement.pods)] for placement in placements]
        parts = [placement.positions for placement in placements]
        return percents_used_together(demanded, placements[0].all_nodes, parts)

    def _demands_together(self, pods: Sequence[PodInfo]) -> Demands:
        totals = Counter[str]()
        for pod in pods:
            for demand in self._wants(pod).demands.each:
                totals[demand.resource] += demand.amount
        return demands(self._resources, totals)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_gone = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
        node_action = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        node_changed = ClusterEvent(EventResource.NODE, node_action)
        class_changed = ClusterEvent(DEVICE_CLASS, ActionType.ADD | UPDATE)
        scale_down = ActionType.UPDATE_POD_SCALE_DOWN
        other_shrunk = ClusterEvent(EventResource.ASSIGNED_POD, scale_down)
        itself_shrunk = ClusterEvent(EventResource.TARGET_POD, scale_down)
        events = [
            ClusterEventWithHint(pod_gone, _after_pod_gone),
            ClusterEventWithHint(node_changed, self._after_node),
        ]
        if self.handle.gates.enabled("InPlacePodVerticalScaling"):
            events.append(ClusterEventWithHint(other_shrunk, _after_other_shrunk))
            events.append(ClusterEventWithHint(itself_shrunk, _after_itself_shrunk))
        if self.handle.gates.enabled("DRAExtendedResource"):
            events.append(ClusterEventWithHint(class_changed, _after_class))
        return with_resizes(events) if self._tries_resizes else events

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """The amounts that Filter compares and those that Score counts; they differ."""
        wants = self._wants(pod)
        if self._tries_resizes and pod.has_deferred_resize:
            return wants.needs, wants.demands.each, pod.node_name
        return wants.needs, wants.demands.each

    def _after_node(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        """QUEUE if the pod fits the empty node, and the node offers more than before.

        Upstream compares ignored resources here, too, and so misses nodes that its own Filter
        accepts.
        """
        after = amounts(new.status.allocatable)
        has_room = all(
            after.get(need.resource, 0) >= need.amount
            for need in self._wants(pod).needs
            if need.resource not in self._from_devices(pod, after)
        )
        if not has_room or after.get(PODS, 0) < 1:
            return QueueingHint.QUEUE_SKIP
        if old is None:
            return QueueingHint.QUEUE
        before = amounts(old.status.allocatable)
        requested_names = self._wants(pod).requested_names
        grew = any(after.get(name, 0) > before.get(name, 0) for name in (PODS, *requested_names))
        grew = grew or bool(self._from_devices(pod, after))
        return queue_if(grew)

    # ---- devices --------------------------------------------------------------------------

    def _are_devices(self, resource: str) -> bool:
        """Whether a DeviceClass stands for the resource."""
        if resource in NAMED_FIRST:
            return False
        return self.handle.devices.device_classes.behind(resource) is not None

    def _from_devices(self, pod: PodInfo, allocatable: Amounts) -> set[str]:
        """Requested resources that a node does not offer itself and that devices stand for."""
        names = (need.resource for need in self._wants(pod).needs)
        return {n for n in names if allocatable.get(n, 0) <= 0 and self._are_devices(n)}

    # ---- what a pod wants -----------------------------------------------------------------

    def _wants(self, pod: PodInfo) -> "_Wants":
        return pod.shape.once_per_spec(self._wants_key, self._compiled)

    def _compiled(self, shape: PodShape) -> "_Wants":
        compared = _compared(shape)
        is_resize = self._tries_resizes and shape.has_deferred_resize
        needs = tuple(
            _Need(resource, amount, 0 if is_resize else amount, (insufficient(resource),))
            for resource, amount in compared.items()
            if not self._is_ignored(resource) and not (is_resize and resource not in NAMED_FIRST)
        )
        scored = requested(Pod(spec=shape.spec), defaults=NON_ZERO_DEFAULTS, pod_level=False)
        return _Wants(needs, demands(self._resources, scored), tuple(compared))

    def _is_ignored(self, resource: str) -> bool:
        group = resource.partition("/")[0]
        listed = resource in self._ignored or group in self._ignored_groups
        return listed and is_extended(resource)


class _Need(NamedTuple):
    """An amount a node must have left, in millicores of cpu or units of all else."""

    resource: str
    amount: int
    #: The amount that the node must have left. 0 for a running pod that is resized: the node counts
    #: the pod with its new requests already, and the pod fits unless these are too large. Of such a
    #: pod upstream reads only the resources of `NAMED_FIRST`.
    more: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Wants:
    #: In the order of their reasons; nothing is needed where nothing is requested.
    needs: tuple[_Need, ...]
    demands: Demands
    #: Of all resources, ignored ones too.
    requested_names: tuple[str, ...]


def _compared(shape: PodShape) -> Mapping[str, int]:
    """The requests of a pod by its spec, as Filter compares them, in the order of reasons.

    By its spec and its claims, as before any kubelet has seen the pod; a running pod may count
    more.
    """
    claimed = PodStatus(node_allocatable_resource_claim_statuses=shape.claim_amounts or None)
    amounts = requested(Pod(spec=shape.spec, status=claimed), rules=shape.rules)
    requested_names = [name for name, amount in amounts.items() if amount > 0 and is_counted(name)]
    scalar_names = sorted(name for name in requested_names if name not in NAMED_FIRST)
    return {
        name: amounts[name] for name in (*NAMED_FIRST, *scalar_names) if name in requested_names
    }


def _too_little(need: _Need, short: Mask, allocatable: Int64s) -> Rejection:
    hopeless = allocatable < need.amount
    hopeless &= short  # where devices will do, nothing is short, however little is offered
    hopeless_count = np.count_nonzero(hopeless)
    if not hopeless_count:
        return Rejection(short, Code.UNSCHEDULABLE, need.reasons)
    if hopeless_count == np.count_nonzero(short):
        return Rejection(short, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, need.reasons)
    codes = np.where(hopeless, _UNRESOLVABLE, _UNSCHEDULABLE)
    return Rejection(short, Code.UNSCHEDULABLE, need.reasons, codes)


_FOR_NOW = Code.UNSCHEDULABLE
_HOPELESS = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_FULL = (_FOR_NOW, (TOO_MANY_PODS,))
_UNSCHEDULABLE = np.uint8(Code.UNSCHEDULABLE)
_UNRESOLVABLE = np.uint8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


# ---- hints about pods ----------------------------------------------------------------------


def _after_pod_gone(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """Any pod that was placed, or about to be, leaves room."""
    has_room = old.node_name or old.nominated_node_name
    return queue_if(has_room)


def _after_other_shrunk(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    """QUEUE if a placed pod releases an amount that this pod requests."""
    before, after = old.requests, new.requests
    shrunk = new.node_name and any(
        amount and before.get(name, 0) > after.get(name, 0) for name, amount in pod.requests.items()
    )
    return queue_if(shrunk)


def _after_itself_shrunk(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """It may fit now."""
    return QueueingHint.QUEUE


def _after_class(pod: PodInfo, old: DeviceClass | None, new: DeviceClass) -> QueueingHint:
    """QUEUE if devices begin to stand for a resource that the pod requests."""
    stands_for = new.spec.extended_resource_name or ""
    names = [stands_for]
    if old is None:
        names.append(DEVICE_CLASS_RESOURCE_PREFIX + new.metadata.name)
    elif (old.spec.extended_resource_name or "") == stands_for:
        return QueueingHint.QUEUE_SKIP
    is_requested = any(name in pod.requests for name in names)
    return queue_if(is_requested)


# ---- hints of pods that wait for a deferred resize ------------------------------------------


def with_resizes(events: Iterable[ClusterEventWithHint]) -> list[ClusterEventWithHint]:
    """The events with narrower hints for pods that wait for a resize, and two further events.

    Events of other nodes do not queue such a pod. An increase of its own requests, or of the
    requests of other pods on its node, does: the node's free amounts may have changed.
    """
    narrowed = [
        event if event.hint is None else ClusterEventWithHint(event.event, _on_own_node(event.hint))
        for event in events
    ]
    grown = (EventResource.ASSIGNED_POD, EventResource.TARGET_POD)
    return narrowed + [
        ClusterEventWithHint(
            ClusterEvent(resource, ActionType.UPDATE_POD_SCALE_UP), _on_own_node(_after_growth)
        )
        for resource in grown
    ]


def _on_own_node(hint: QueueingHintFn) -> QueueingHintFn:
    def hint_on_own_node(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        changed = old if new is None else new
        if pod.has_deferred_resize and _node_name(pod, changed) != pod.node_name:
            return QueueingHint.QUEUE_SKIP
        return hint(pod, old, new)

    return hint_on_own_node


def _node_name(pod: PodInfo, changed: Any) -> str:
    """The node of an event; the pod's own node if the object has no node."""
    if isinstance(changed, PodInfo):
        return changed.node_name
    return changed.metadata.name if isinstance(changed, Node) else pod.node_name


def _after_growth(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    return queue_if(pod.has_deferred_resize)
