"""Who decides about a pod: the controller whose template or size a person changes.

The owner of a pod is the topmost controller of a kind that is known here. For a pod of a
ReplicaSet, that is the Deployment. A controller that was not read is inferred from the names in the
owner references, and from its pods, whose number is its size. Tools that write a controller again
and again (Helm, Argo CD, Flux) are recognized by the labels and annotations that they leave.
"""

from itertools import islice
from typing import Any, final

import msgspec

from bayplan.api.object_meta import controller_of
from bayplan.api.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    ApiObject,
    ObjectMeta,
    Pod,
    Unstructured,
    Workload,
)
from bayplan.explain.fixes.edits import plain
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import Content, ObjectKey, key_of_metadata, key_of_owner
from bayplan.objects.workloads import deployment_of
from bayplan.printable import printable
from bayplan.sim.input.controller_pods import pod_names
from bayplan.state.pods import PodInfo

#: The controllers whose pods have names that end in random letters.
_WITH_RANDOM_NAMES = frozenset((REPLICA_SET, REPLICATION_CONTROLLER, DAEMON_SET, JOB))
#: The most contents of pods that are stored.
_CONTENTS_MAX = 4096
_HELM_RELEASE = "meta.helm.sh/release-name"
_MANAGED_BY = "app.kubernetes.io/managed-by"
#: Label or annotation → the kind of tool that its value names.
_MANAGERS = {
    "argocd.argoproj.io/tracking-id": "Argo CD application",
    "argocd.argoproj.io/instance": "Argo CD application",
    "kustomize.toolkit.fluxcd.io/name": "Flux Kustomization",
    "helm.toolkit.fluxcd.io/name": "Flux HelmRelease",
    _HELM_RELEASE: "Helm release",
}


@final
class Owners:
    """The controllers of a model's pods, as they are when this is made; see `owners_of`."""

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        #: ReplicaSets that a trial makes, and their Deployments.
        self._adopted: dict[ObjectKey, ObjectKey] = {}
        #: Controller → the names that its expansion gives to its pods.
        self._made_up_names: dict[ObjectKey, frozenset[str]] = {}
        #: By the identity of a pod's parts. The stored pod keeps the parts alive.
        self._pod_contents: dict[tuple[int, int, int, str], tuple[Pod, Content]] = {}
        #: The contents by the identity of the pod.
        self._pod_outlines: dict[int, tuple[Pod, Content]] = {}
        #: Controller that a pod names → the topmost one.
        self._tops: dict[ObjectKey, ObjectKey] = {}
        self._names = self._named()

    def parent(self, meta: ObjectMeta, namespace: str) -> ObjectKey | None:
        """The controller that an object names."""
        owner = controller_of(meta)
        return None if owner is None else key_of_owner(owner, namespace)

    def parent_of(self, key: ObjectKey) -> ObjectKey | None:
        """The controller that an object of the model names."""
        present = self._model.get(*key)
        return None if present is None else self.parent(present.metadata, key.namespace)

    def of(self, pod: PodInfo | Pod) -> ObjectKey | None:
        """The topmost controller of a pod; None: it has none."""
        pod = pod.pod if isinstance(pod, PodInfo) else pod
        namespace = pod.metadata.namespace or ""
        parent = self.parent(pod.metadata, namespace)
        if parent is None or parent.kind != REPLICA_SET:
            return parent
        replica_set = self._model.get(REPLICA_SET, namespace, parent.name)
        if replica_set is not None:
            return self.parent(replica_set.metadata, namespace) or parent
        # The ReplicaSet was not read: its Deployment gave it a name that ends in the hash.
        deployment = deployment_of(parent.name, pod.metadata.labels)
        return parent if deployment is None else ObjectKey(DEPLOYMENT, namespace, deployment)

    def top(self, controller: ObjectKey) -> ObjectKey:
        """The topmost controller above a controller, itself if there is none."""
        if controller.kind != REPLICA_SET:
            return controller
        if controller in self._adopted:
            return self._adopted[controller]
        present = self._model.get(*controller)
        if present is not None:
            return self.parent(present.metadata, controller.namespace) or controller
        return self._tops.get(controller, controller)

    def adopt(self, replica_set: ObjectKey, deployment: ObjectKey) -> None:
        """Note the Deployment of a new ReplicaSet."""
        self._adopted[replica_set] = deployment

    def uid(self, controller: ObjectKey) -> str:
        """The uid of a controller; "": nothing names it."""
        present = self._model.get(*controller)
        if present is not None and present.metadata.uid:
            return present.metadata.uid
        for pod in self.pods(self.top(controller)):
            owner = controller_of(pod.metadata)
            if owner is not None and owner.name == controller.name:
                return owner.uid
        return ""

    def is_made_up(self, pod: Pod) -> bool:
        """Whether the name of a pod comes from the expansion of a controller in a file, so that no
        cluster has a pod of this name."""
        if pod.metadata.generate_name:
            return False  # A controller of a cluster gave the pod its name.
        parent = self.parent(pod.metadata, pod.metadata.namespace or "")
        content = None if parent is None else self.content(parent)
        if parent is None or content is None or parent.kind not in _WITH_RANDOM_NAMES:
            return False
        names = self._made_up_names.get(parent)
        if names is None:
            count = 2 * len(self.pods(self.top(parent)))
            made = islice(pod_names(content, lambda _: False), count)
            names = self._made_up_names[parent] = frozenset(made)
        return pod.metadata.name in names

    def pods(self, owner: ObjectKey) -> list[Pod]:
        """The pods that the controller decides about, as they are now, those that wait included."""
        namespace, get = owner.namespace, self._model.get
        present = (get(POD, namespace, name) for name in self._names.get(owner, ()))
        return [pod for pod in present if isinstance(pod, Pod)]

    def _named(self) -> dict[ObjectKey, list[str]]:
        """Controller → the names of its pods, which are in its namespace. Visits every pod of the
        cluster."""
        names: dict[ObjectKey, list[str]] = {}
        #: Namespace and uid of a pod's controller → the names of the topmost one.
        by_uid: dict[tuple[str | None, str], list[str]] = {}
        for each in self._model.objects(POD):
            meta = each.metadata
            controller = controller_of(meta)
            if controller is None or not isinstance(each, Pod):
                continue
            key = (meta.namespace, controller.uid)
            own = by_uid.get(key)
            if own is None:
                owner, parent = self.of(each), self.parent(meta, meta.namespace or "")
                own = by_uid[key] = [] if owner is None else names.setdefault(owner, [])
                if owner is not None and parent is not None:
                    self._tops.setdefault(parent, owner)
            own.append(meta.name)
        return names

    def pod_content(self, pod: Pod, *, is_new: bool) -> Content:
        """A pod as plain values; a pod that is not new is as it was read. Callers must not change
        the values, which are made once for all trials."""
        # An undo makes a new object with other metadata, whose labels are read here.
        parts = (id(pod.spec), id(pod.status), id(pod.metadata.labels), pod.metadata.name)
        made = self._pod_contents.get(parts)
        if made is None:
            key = key_of_metadata(POD, pod.metadata)
            content = None if is_new else self._model.source.content(key)
            if len(self._pod_contents) >= _CONTENTS_MAX:
                self._pod_contents.clear()
            made = self._pod_contents[parts] = (pod, content or plain(pod))
        return made[1]

    def pod_outline(self, pod: Pod) -> Content:
        """What a ReplicaSet reads of a pod, except the number of restarts, from the fields that a
        scheduler reads. A pod that got its node in a trial runs. Callers must not change the
        result."""
        made = self._pod_outlines.get(id(pod))
        if made is None:
            if len(self._pod_outlines) >= _CONTENTS_MAX:
                self._pod_outlines.clear()
            made = self._pod_outlines[id(pod)] = (pod, self._outlined(pod))
        return made[1]

    def _outlined(self, pod: Pod) -> Content:
        meta, status, node = pod.metadata, pod.status, pod.spec.node_name
        seen: Content = {} if status.phase is None else {"phase": status.phase}
        if node and not self.had_node(pod):
            seen["phase"] = "Running"
        else:
            ready = (plain(each) for each in status.conditions or () if each.type == "Ready")
            seen |= {"startTime": status.start_time, "conditions": list(ready)}
        metadata = {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "creationTimestamp": meta.creation_timestamp,
            "deletionTimestamp": meta.deletion_timestamp,
            "annotations": meta.annotations,
        }
        spec = {"nodeName": node} if node else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": spec,
            "status": seen,
        }

    def content(self, key: ObjectKey) -> Content | None:
        """A controller as plain values; None: it was not read, or only the parts that a scheduler
        reads."""
        version, _, kind = key.kind.rpartition(" ")
        content = self._model.source.content(key)
        if content is None:
            present = self._model.get(*key)
            content = present.content if isinstance(present, Unstructured) else None
        if content is None or "spec" not in content:
            return None
        copied: Content = msgspec.json.decode(msgspec.json.encode(content))
        return {**copied, "apiVersion": version, "kind": kind}

    def had_node(self, pod: Pod) -> bool:
        """Whether a pod had its node when the cluster was read. Pods that get a node later run at
        once here."""
        key = self._model.source.objects.key_of_uid(pod.metadata.uid or "")
        original = None if key is None else self._model.source.objects.get(key)
        return isinstance(original, Pod) and bool(original.spec.node_name)

    def outline(self, key: ObjectKey) -> Content:
        """A controller that was not read as a whole, with its metadata and an empty template."""
        version, _, kind = key.kind.rpartition(" ")
        present = self._model.get(*key)
        meta: Content = {"name": key.name, "namespace": key.namespace}
        if present is not None:
            meta = msgspec.json.decode(msgspec.json.encode(present.metadata))
        spec = {"template": {"metadata": {}, "spec": {}}}
        return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}

    def is_of_the_workload(self, key: ObjectKey) -> bool:
        """Whether the object is of a workload to be added, not of the cluster that was read."""
        if self._model.get(*key) is None:
            return False
        source = self._model.source
        return source.content(key) is None and key not in source.objects

    def size(self, owner: ObjectKey) -> int:
        """How many pods a controller wants, as its spec says; without a spec, as many as there
        are."""
        content = self.content(owner)
        field = "parallelism" if owner.kind == JOB else "replicas"
        if content is not None:
            count = content["spec"].get(field)
            return 1 if count is None else count
        present = self._model.get(*owner)
        if isinstance(present, Workload) and present.spec.replicas is not None:
            return present.spec.replicas
        return len(self.pods(owner))

    def missing(self, owner: ObjectKey | None) -> int:
        """How many pods a StatefulSet has not created yet, because it waits for the pods that it
        has."""
        if owner is None or owner.kind != STATEFUL_SET:
            return 0
        return max(self.size(owner) - len(self.pods(owner)), 0)

    def template_content(self, owner: ObjectKey) -> Content | None:
        """The controller with its pod template. A Deployment that was not read has the template of
        its ReplicaSet. None: neither was read."""
        content = self.content(owner)
        if content is not None and content["spec"].get("template"):
            return content
        if owner.kind != DEPLOYMENT:
            return None
        for replica_set in self.replica_sets(owner):
            inner = self.content(replica_set)
            if inner is not None and inner["spec"].get("template"):
                version, _, kind = owner.kind.rpartition(" ")
                meta = {"name": owner.name, "namespace": owner.namespace}
                spec = {"replicas": self.size(owner), "template": inner["spec"]["template"]}
                return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}
        return None

    def replica_sets(self, deployment: ObjectKey) -> list[ObjectKey]:
        """The ReplicaSets of a Deployment, from those that were read and from the pods."""
        keys: dict[ObjectKey, None] = {}
        for each in self._model.objects(REPLICA_SET):
            namespace = each.metadata.namespace or ""
            if self.parent(each.metadata, namespace) == deployment:
                keys[ObjectKey(REPLICA_SET, namespace, each.metadata.name)] = None
        for pod in self.pods(deployment):
            parent = self.parent(pod.metadata, deployment.namespace)
            if parent is not None:
                keys[parent] = None
        return list(keys)


def owners_of(model: ClusterModel) -> Owners:
    """The controllers of a model's pods as they are now, made once for each state of the model."""
    return model.once(Owners)


def owner_text(key: ObjectKey) -> str:
    """`Deployment default/web`, safe to print."""
    return printable(str(key))


def manager_of(content: Content | ApiObject | None) -> str:
    """The tool that writes an object, such as "Helm release shop"; "": no tool is known."""
    if content is None:
        return ""
    if isinstance(content, dict):
        meta: Any = content.get("metadata") or {}
        labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    else:
        labels = content.metadata.labels or {}
        annotations = content.metadata.annotations or {}
    for name, what in _MANAGERS.items():
        value = annotations.get(name) or labels.get(name)
        if value:
            # A tracking id is application:group/kind:namespace/name.
            return printable(f"{what} {str(value).partition(':')[0]}")
    return "Helm" if labels.get(_MANAGED_BY) == "Helm" else ""
