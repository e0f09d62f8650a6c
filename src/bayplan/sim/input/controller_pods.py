"""The pods of workload controllers, as the real controllers make them.

Names look like real ones, but they follow from the controller, so that a run repeats itself.

A pod of a DaemonSet names its node in a node affinity, so that the scheduler still places it. A
node gets a pod if the node selector and the affinity of the template match the node and the pod
tolerates the taints of the node. A cordoned node gets a pod, too.

Upstream: pkg/controller/{controller_utils,replicaset,statefulset,daemon,job}, indexed_job_utils.go;
daemon/util/daemonset_util.go (nodeShouldRunDaemonPod).
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, final

import msgspec

from bayplan.adapters.embedded.field_validation import GENERATE_NAME_MAX, stable_suffix, stable_uid
from bayplan.api.objects import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NODE,
    POD,
    REQUIRED,
    Node,
    Pod,
    Toleration,
    decode,
)
from bayplan.api.selectors import NODE_NAME_FIELD, NodeRequirements
from bayplan.objects.keys import key_of
from bayplan.objects.workloads import controller_reference
from bayplan.sim.input.workload import Content, has_ended

# ---- DaemonSets -----------------------------------------------------------------------------


#: The metadata that the pods of one template share.
_COPIED = ("namespace", "labels", "annotations", "ownerReferences")
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
    nodes = {**(affinity.get("nodeAffinity") or {}), REQUIRED: {"nodeSelectorTerms": [term]}}
    own: list[Content] = list(spec.get("tolerations") or ())
    added = [one for one in _tolerations(bool(spec.get("hostNetwork"))) if one not in own]
    changed = {"affinity": {**affinity, "nodeAffinity": nodes}, "tolerations": own + added}
    return {**pod, "spec": {**spec, **changed}}


def daemon_copy(pod: Content, node_name: str) -> Content:
    """A pod for a new node, of a DaemonSet of which only pods are there: as one on another node."""
    meta = pod["metadata"]
    names = {key: meta[key] for key in _COPIED if key in meta}
    spec = {key: one for key, one in pod["spec"].items() if key != "nodeName"}
    named = {**names, "name": f"{meta['name']}-{node_name}"}
    return daemon_pod(
        {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec}, node_name
    )


def is_daemon_pod(pod: Content) -> bool:
    """Whether a DaemonSet controls a pod."""
    owner = controller_reference(pod)
    return owner is not None and owner.get("kind") == "DaemonSet"


def target_node(pod: Content) -> str | None:
    """The node a daemon pod is on, or meant for."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        name: str = spec["nodeName"]
        return name
    affinity: Any = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ():
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


# ---- pod templates --------------------------------------------------------------------------


TEMPLATE_HASH_LENGTH = 10
REVISION_HASH_LABEL = "controller-revision-hash"


def pod_from(
    controller: Content,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Content:
    """A pod that the controller owns; ``labels`` and ``annotations`` besides the template's."""
    template = controller["spec"]["template"]
    meta = template.get("metadata") or {}
    made: Content = {
        "name": name,
        "namespace": key_of(controller).namespace,
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "ownerReferences": [reference(controller)],
    }
    noted = {**(meta.get("annotations") or {}), **(annotations or {})}
    if noted:
        made["annotations"] = noted
    if meta.get("finalizers"):
        made["finalizers"] = meta["finalizers"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template["spec"]}


def reference(owner: Content) -> Content:
    """The owner reference of an object to its controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_active(content: Content) -> bool:
    """Whether the controller counts a pod: it has not ended and is not being deleted."""
    if content["kind"] != "Pod" or content["metadata"].get("deletionTimestamp"):
        return False
    return not has_ended(content)


def is_running(content: Content) -> bool:
    """Whether a pod runs and is ready. A running pod without a condition Ready is ready."""
    if not is_active(content):
        return False
    status = content.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return condition.get("status") == "True"
    has_node = bool((content.get("spec") or {}).get("nodeName"))
    return has_node if "phase" not in status else status["phase"] == "Running"


def is_pending(content: Content) -> bool:
    """Whether a pod has not begun to run."""
    phase: str | None = (content.get("status") or {}).get("phase")
    return phase == "Pending" if phase else not (content.get("spec") or {}).get("nodeName")


def template_hash(template: Content) -> str:
    """Ten letters that follow from a pod template."""
    encoded = msgspec.json.encode(template, order="deterministic").decode()
    return stable_suffix(encoded, length=TEMPLATE_HASH_LENGTH)


def labelled(template: Content, labels: Mapping[str, str]) -> Content:
    """A template with more labels."""
    meta = template.get("metadata") or {}
    return {**template, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}


def with_uid(content: Content) -> Content:
    """The controller with a uid: its pods refer to it before it is created."""
    meta = content["metadata"]
    if meta.get("uid"):
        return content
    return {**content, "metadata": {**meta, "uid": stable_uid(key_of(content), 0)}}


# ---- names ----------------------------------------------------------------------------------


def pod_names(controller: Content, is_taken: Callable[[str], bool]) -> Iterator[str]:
    """Names for pods of a controller, without end, each another one, ending in five letters.

    ``is_taken``: whether a pod has, or once had, the name.
    """
    key = key_of(controller)
    prefix = f"{key.name}-"[:GENERATE_NAME_MAX]
    names: set[str] = set()
    for number in count():
        name = f"{prefix}{stable_suffix(f'{key}/{number}')}"
        if name not in names and not is_taken(name):
            names.add(name)
            yield name


# ---- pods by kind ---------------------------------------------------------------------------


def stateful_pod(controller: Content, ordinal: int) -> tuple[list[Content], Content]:
    """(claims, pod) of one ordinal of a StatefulSet."""
    name = f"{key_of(controller).name}-{ordinal}"
    labels = {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        **revision_label(controller),
    }
    claims = dict(_claims(controller, name))
    pod = pod_from(controller, name, labels=labels)
    return list(claims.values()), _with_claims(pod, claims) if claims else pod


def ordinals(controller: Content) -> range:
    """The ordinals in the spec of a StatefulSet."""
    spec = controller["spec"]
    start: int = (spec.get("ordinals") or {}).get("start") or 0
    return range(start, start + replica_count(controller))


def is_ordered(controller: Content) -> bool:
    """Whether a StatefulSet starts and stops its pods one after the other."""
    return controller["spec"].get("podManagementPolicy") != "Parallel"


def replica_count(controller: Content) -> int:
    """The number of pods in the spec of a controller."""
    replicas: int | None = controller["spec"].get("replicas")
    return 1 if replicas is None else replicas


def _claims(controller: Content, pod_name: str) -> Iterator[tuple[str, Content]]:
    """(volume's name, claim) for each of the controller's claim templates."""
    for template in controller["spec"].get("volumeClaimTemplates") or ():
        meta = template.get("metadata") or {}
        claimed = {"name": f"{meta.get('name')}-{pod_name}"}
        claimed["namespace"] = key_of(controller).namespace
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        yield meta.get("name", ""), {**template, **kind, "metadata": {**meta, **claimed}}


def _with_claims(pod: Content, claims: Mapping[str, Content]) -> Content:
    volumes: list[Content] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for name, claim in claims.items()
    ]
    other_volumes = [
        one for one in pod["spec"].get("volumes") or () if one.get("name") not in claims
    ]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes + other_volumes}}


def pod_for_node(controller: Content, name: str, node_name: str) -> Content:
    """The pod of a DaemonSet for one node."""
    return daemon_pod(pod_from(controller, name, labels=revision_label(controller)), node_name)


def revision_label(controller: Content) -> dict[str, str]:
    """The label for the template from which a pod was created."""
    return {REVISION_HASH_LABEL: template_hash(controller["spec"]["template"])}
