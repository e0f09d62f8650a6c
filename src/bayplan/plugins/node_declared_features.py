"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet fits nodes that declare the
feature.

The needs follow from the pod's spec; status.declaredFeatures lists the features of a node
(KEP-5328). Upstream: plugins/nodedeclaredfeatures, component-helpers/nodedeclaredfeatures (v1.37).
Features that concern only changes of running pods are left out.
"""

from collections.abc import Hashable, Sequence
from typing import Any, final

from bayplan.api.objects import Container, Node
from bayplan.api.pod_requests import all_containers
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    UPDATE,
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
    PreFilterPlugin,
    ScalarFilterPlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Status, unresolvable
from bayplan.framework.types import PreFilterResult
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
VOLUME_BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"

_PATH = "status.declaredFeatures"
_RESTARTS_ALL = "RestartAllContainers"


@final
class NodeDeclaredFeatures(PreFilterPlugin, ScalarFilterPlugin, EnqueueExtensions, SignPlugin):
    """Rejects nodes that lack a declared feature that the pod needs."""

    name = "NodeDeclaredFeatures"
    caching = Caching(facets=Facet.DECLARED, signs_template=True, pre_state_per_template=True)
    fields = (f"Node.{_PATH}",)
    ignores_resizes = True

    def setup(self) -> None:
        self._is_on = self.handle.gates.enabled("NodeDeclaredFeatures")
        self._text = self.handle.behaviour.declared_features_text

    def concerns(self, shape: PodShape) -> bool:
        return self._is_on and bool(_required(shape))

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        return None if self._is_on and required(pod) else SKIP

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        missing = required(pod).difference(node.node.declared.get(_PATH) or ())
        return unresolvable(self._text.format(", ".join(sorted(missing)))) if missing else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        if not self._is_on:
            return []
        node_action = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        node_changed = ClusterEvent(EventResource.NODE, node_action)
        itself_changed = ClusterEvent(EventResource.TARGET_POD, UPDATE)
        return [
            ClusterEventWithHint(node_changed, _after_node),
            ClusterEventWithHint(itself_changed, _after_itself),
        ]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """None while the gate is off: upstream's fails then."""
        return tuple(sorted(required(pod))) if self._is_on else None


def required(pod: PodInfo) -> frozenset[str]:
    """Features that a node must declare to run the pod."""
    return pod.shape.once_per_spec("NodeDeclaredFeatures.required", _required)


def _required(shape: PodShape) -> frozenset[str]:
    spec, containers = shape.spec, list(all_containers(shape.spec))
    needed = {
        RESTART_ALL_CONTAINERS: any(map(_may_restart_all, containers)),
        USER_NAMESPACES_HOST_NETWORK: bool(spec.host_network) and spec.host_users is False,
        VOLUME_BIND_MOUNT_OPTIONS: any(map(_has_mount_options, containers)),
    }
    return frozenset(name for name, is_needed in needed.items() if is_needed)


def _may_restart_all(container: Container) -> bool:
    return any(rule.action == _RESTARTS_ALL for rule in container.restart_policy_rules or ())


def _has_mount_options(container: Container) -> bool:
    return any(mount.bind_mount_options for mount in container.volume_mounts or ())


def _after_node(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """Upstream does not check whether the declared features are those that the pod needs."""
    before = old.status.declared_features or () if old is not None else None
    is_news = before is None or before != (new.status.declared_features or ())
    return queue_if(is_news)


def _after_itself(pod: PodInfo, old: Any, new: PodInfo) -> QueueingHint:
    """QUEUE if the pod needs other features than before."""
    is_news = required(old) != required(new)
    return queue_if(is_news)
