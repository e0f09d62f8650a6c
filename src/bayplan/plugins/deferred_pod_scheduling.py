"""DeferredPodScheduling: whether a running pod can be resized on its node (KEP-1287).

The kubelet defers a resize that finds no room on the node. The scheduler may make room by
preemption on that node only, unless the node disables it. The pod is never bound again: the kubelet
resizes the pod. Upstream: plugins/deferredpodscheduling (v1.37), gate
InPlacePodVerticalScalingSchedulerPreemption.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, final

from bayplan.api.objects import Node
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
)
from bayplan.framework.plugin import (
    Caching,
    EnqueueExtensions,
    PermitPlugin,
    PreFilterPlugin,
    ScalarFilterPlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Status, unresolvable
from bayplan.framework.types import PreFilterResult
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

PREEMPTION_DISABLED = "node had resize preemption disabled"
ELSEWHERE = "pod assigned to different node"
FITS = "pod resize fits, waiting for Kubelet actuation"

_PATH = "spec.podPreemptionPolicy"


@final
class DeferredPodScheduling(
    PreFilterPlugin, ScalarFilterPlugin, PermitPlugin, EnqueueExtensions, SignPlugin
):
    """Restricts pods with a deferred resize to their node, and prevents their binding."""

    name = "DeferredPodScheduling"
    caching = Caching(facets=Facet.DECLARED, facets_if_unconcerned=Facet(0))
    fields = (f"Node.{_PATH}",)

    def setup(self) -> None:
        self._is_on = self.handle.gates.enabled("InPlacePodVerticalScalingSchedulerPreemption")

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        # Upstream evaluates all nodes, with the same result.
        return PreFilterResult(frozenset((pod.node_name,))) if self._concerns(pod) else SKIP

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if not self._concerns(pod):
            return None
        if pod.node_name != node.name:
            return unresolvable(ELSEWHERE)
        policy: Mapping[str, Any] = node.node.declared.get(_PATH) or {}
        return unresolvable(PREEMPTION_DISABLED) if policy.get("disableResizePreemption") else None

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return (unresolvable(FITS) if self._concerns(pod) else None), 0.0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        policy = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_PREEMPTION_POLICY)
        added = ClusterEvent(EventResource.NODE, ActionType.ADD)
        return [
            ClusterEventWithHint(policy, self._after_policy),
            ClusterEventWithHint(added, self._after_policy),
        ]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return (pod.node_name,) if self._concerns(pod) else ()

    def _concerns(self, pod: PodInfo) -> bool:
        return self._is_on and pod.has_deferred_resize

    def _after_policy(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        """Its node came, or allows preemption again."""
        is_own = self._concerns(pod) and pod.node_name == new.metadata.name
        was_closed = old is None or _is_closed(old)
        is_news = is_own and was_closed and not _is_closed(new)
        return queue_if(is_news)


def _is_closed(node: Node) -> bool:
    policy = node.spec.pod_preemption_policy
    return policy is not None and bool(policy.disable_resize_preemption)
