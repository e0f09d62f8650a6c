"""DaemonSets: which nodes get a pod, and the fields of such a pod.

A daemon pod names its node in a node affinity, so that the scheduler still places it. A node gets a
pod if the node selector and the affinity of the template match the node and the pod tolerates the
taints of the node. A cordoned node gets a pod, too.

Upstream: pkg/controller/daemon (nodeShouldRunDaemonPod), daemon/util/daemonset_util.go.
"""

from typing import Any, final

from bayplan.api.objects import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NODE,
    POD,
    Node,
    Pod,
    Toleration,
    decode,
)
from bayplan.api.selectors import NODE_NAME_FIELD, NodeRequirements
from bayplan.sim.input.workload import Content

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_EXECUTE_TAINTS = ("not-ready", "unreachable")
_NO_SCHEDULE_TAINTS = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")


@final
class DaemonTemplate:
    """The conditions of a DaemonSet on nodes, compiled once for all nodes."""

    def __init__(self, controller: Content) -> None:
        template = decode(POD, {"spec": controller["spec"]["template"]["spec"]})
        assert isinstance(template, Pod)
        spec = template.spec
        own = spec.tolerations or ()
        added = map(_toleration, _tolerations(bool(spec.host_network)))
        self._node_name = spec.node_name
        tolerations = (*own, *added)
        self._requirements = NodeRequirements(spec, tolerations)
        no_schedule = Toleration(operator="Exists", effect=NO_SCHEDULE)
        self._requirements_to_stay = NodeRequirements(spec, (*tolerations, no_schedule))

    def is_meant_for(self, content: Content) -> bool:
        """Whether a node gets a pod."""
        return self._admits(content, self._requirements)

    def may_stay(self, content: Content) -> bool:
        """Whether a pod may stay on a node: a taint NoSchedule does not drive it away."""
        return self._admits(content, self._requirements_to_stay)

    def _admits(self, content: Content, requirements: NodeRequirements) -> bool:
        node = decode(NODE, content)
        assert isinstance(node, Node)
        if self._node_name and self._node_name != node.metadata.name:
            return False
        return requirements.admits(node)


def daemon_pod(pod: Content, node_name: str) -> Content:
    """The pod, for this node and no other, with the tolerations all daemon pods get."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    term = {"matchFields": [{"key": NODE_NAME_FIELD, "operator": "In", "values": [node_name]}]}
    nodes = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [term]}}
    own: list[Content] = list(spec.get("tolerations") or ())
    added = [one for one in _tolerations(bool(spec.get("hostNetwork"))) if one not in own]
    changed = {"affinity": {**affinity, "nodeAffinity": nodes}, "tolerations": own + added}
    return {**pod, "spec": {**spec, **changed}}


def is_daemon_pod(pod: Content) -> bool:
    """Whether a DaemonSet controls a pod."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(one.get("kind") == "DaemonSet" and one.get("controller") for one in owners)


def target_node(pod: Content) -> str | None:
    """The node a daemon pod is on, or meant for."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        name: str = spec["nodeName"]
        return name
    affinity: Any = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == NODE_NAME_FIELD and field.get("values"):
                named: str = field["values"][0]
                return named
    return None


def _tolerations(on_host: bool) -> list[Content]:
    """The tolerations that the controller adds: a daemon stays on a node in trouble."""
    tolerations = [_tolerated(name, NO_EXECUTE) for name in _NO_EXECUTE_TAINTS]
    tolerations += [_tolerated(name, NO_SCHEDULE) for name in _NO_SCHEDULE_TAINTS]
    if on_host:
        tolerations.append(_tolerated("network-unavailable", NO_SCHEDULE))
    return tolerations


def _tolerated(name: str, effect: str) -> Content:
    return {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}


def _toleration(content: Content) -> Toleration:
    return Toleration(key=content["key"], operator=content["operator"], effect=content["effect"])
