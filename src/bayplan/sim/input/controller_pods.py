"""The pods of workload controllers, as the real controllers make them.

Names look like real ones, but they follow from the controller, so that a run repeats itself.

Upstream: pkg/controller/{controller_utils,replicaset,statefulset,daemon,job}, indexed_job_utils.go.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count

import msgspec

from bayplan.adapters.embedded.field_validation import key_of, stable_suffix, stable_uid
from bayplan.sim.input.daemon_pods import daemon_pod
from bayplan.sim.input.workload import Content, has_ended

# ---- pod templates --------------------------------------------------------------------------


TEMPLATE_HASH_LENGTH = 10
TEMPLATE_HASH_LABEL = "pod-template-hash"
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
    """Names for pods of a controller, without end, each ending in five letters.

    ``is_taken``: whether a pod has, or once had, the name.
    """
    key = key_of(controller)
    for number in count():
        name = f"{key.name}-{stable_suffix(f'{key}/{number}')}"
        if not is_taken(name):
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
