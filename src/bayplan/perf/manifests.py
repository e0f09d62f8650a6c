"""Objects from the files of a workload: nodes, pods, volumes and other objects to create.

Objects of one text share their content, which is never changed: code that adds a field copies the
parts above the field. Without a file, nodes and pods are upstream's base ones. Upstream:
makeBaseNode, makeBasePod, the node strategies and volume factories of scheduler_perf.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from bayplan.adapters.embedded.api_validation import identity_problems
from bayplan.adapters.embedded.field_validation import stable_suffix, stable_uid
from bayplan.api.objects import HOSTNAME_LABEL, NODE, POD, Node, Pod
from bayplan.api.storage_objects import MIGRATED_PLUGINS
from bayplan.objects.keys import Content, is_namespaced, key_of, kind_of
from bayplan.perf.gotemplate import Template, TemplateError
from bayplan.perf.reading import with_field_names
from bayplan.perf.schema import CreateNodes, NodeAllocatableStrategy
from bayplan.yaml_documents import DocumentError, load_documents

SIGNATURE_LABEL = "signature"

#: The most parsed texts of one template that are cached.
_CACHED_TEXTS_MAX = 1000
_STRUCTS: Mapping[str, type] = {NODE: Node, POD: Pod}

_AMOUNTS = {"cpu": "100m", "memory": "500Mi"}
BASE_POD: Content = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.2",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": _AMOUNTS, "requests": _AMOUNTS},
            }
        ]
    },
}
_CAPACITY = {"pods": "110", "cpu": "4", "memory": "32Gi"}


class ManifestError(Exception):
    """A file that does not contain one object. The message is one line with the file's name."""


@final
class Manifest:
    """A file with one object. Raises ManifestError if the file cannot be read."""

    def __init__(self, path: Path, *, is_template: bool = True) -> None:
        """``is_template``: whether upstream reads the file as a template."""
        self.path = path
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise ManifestError(f"{path}: cannot be read: {reason}") from None
        try:
            self._template = Template(text) if is_template else None
        except TemplateError as problem:
            raise ManifestError(f"{path}: {problem}") from None
        self._text = text
        self._parsed_texts: dict[str, Content] = {}

    def made(self, values: Mapping[str, Any]) -> Content:
        """The object for these values; it may be shared. Raises ManifestError."""
        template = self._template
        if template is None or template.is_constant:
            return self._read(self._text)
        try:
            return self._read(template.filled(values))
        except TemplateError as problem:
            raise ManifestError(f"{self.path}: {problem}") from None

    def _read(self, text: str) -> Content:
        content = self._parsed_texts.get(text)
        if content is None:
            if len(self._parsed_texts) == _CACHED_TEXTS_MAX:
                self._parsed_texts.clear()
            content = self._parsed_texts[text] = self._parsed(text)
        return content

    def _parsed(self, text: str) -> Content:
        try:
            documents = load_documents(text, str(self.path))
        except DocumentError as problem:
            raise ManifestError(f"{self.path}: line {problem.line}: {problem.message}") from None
        if len(documents) != 1 or not isinstance(documents[0].value, dict):
            raise ManifestError(f"{self.path}: wanted one object")
        content: Content = documents[0].value
        struct = _STRUCTS.get(kind_of(content))
        return content if struct is None else with_field_names(content, struct)


# ---- every object ---------------------------------------------------------------------------


def in_namespace(content: Content, namespace: str) -> Content:
    """The object in ``namespace``. An object of a cluster-scoped kind is returned unchanged."""
    if not namespace or not is_namespaced(kind_of(content)):
        return content
    return _with_meta(content, namespace=namespace)


def named(content: Content, name: str) -> Content:
    return _with_meta(content, name=name)


def scope_fault(content: Content, namespace: str) -> str | None:
    """Why upstream cannot create an object in ``namespace``; None: it can. For example, the kind is
    cluster-scoped and there is a namespace."""
    unnamed = {**content, "metadata": {"name": "any", **(content.get("metadata") or {})}}
    nameless = identity_problems(unnamed)
    if nameless:
        return str(nameless[0])
    kind = key_of(unnamed).kind
    if namespace and not is_namespaced(kind):
        return f'found namespace "{namespace}", but {kind} has none'
    if not namespace and is_namespaced(kind):
        return f"found no namespace, wanted one: {kind} has one"
    return None


def _with_meta(content: Content, **members: Any) -> Content:
    return {**content, "metadata": {**(content.get("metadata") or {}), **members}}


def _with_labels(content: Content, labels: Mapping[str, str]) -> Content:
    own = (content.get("metadata") or {}).get("labels") or {}
    return _with_meta(content, labels={**own, **labels})


# ---- pods and their volumes -----------------------------------------------------------------


def signed_pod(pod: Content, index: int, batch_size: int) -> Content:
    """The pod with upstream's label for signatures; ``batch_size`` consecutive pods share its
    value."""
    return _with_labels(pod, {SIGNATURE_LABEL: f"signature-label-{index // batch_size}"})


def with_volume(
    pod: Content, claim: Content, volume: Content, namespace: str, *, index: int
) -> tuple[Content, Content, Content]:
    """(claim, volume, pod): the claim and the volume are bound to each other, and the pod uses the
    claim, as upstream creates them."""
    claim_name, volume_name = f"pvc-{index}", f"{namespace}-vol-{index}"
    claim = {
        **_with_meta(claim, name=claim_name, namespace=namespace),
        "spec": {**(claim.get("spec") or {}), "volumeName": volume_name},
        "status": {"phase": "Bound"},
    }
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": claim_name,
    }
    spec = {**(volume.get("spec") or {}), "claimRef": reference}
    if "csi" in spec:
        spec["csi"] = {**spec["csi"], "volumeHandle": volume_name}
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"] = {**spec["awsElasticBlockStore"], "volumeID": f"vol-{index}"}
    volume = {**named(volume, volume_name), "spec": spec, "status": {"phase": "Bound"}}
    uses = [{"name": "vol", "persistentVolumeClaim": {"claimName": claim_name}}]
    return claim, volume, {**pod, "spec": {**(pod.get("spec") or {}), "volumes": uses}}


# ---- nodes ----------------------------------------------------------------------------------


def base_node(prefix: str) -> Content:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": prefix},
        "status": {
            "capacity": _CAPACITY,
            "allocatable": _CAPACITY,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def prepared_node(node: Content, operation: CreateNodes, index: int, stem: str) -> Content:
    """A node with its name, its hostname label and the changes of the operation's strategy.

    ``stem``: distinguishes the generated names of different operations.
    """
    meta = node.get("metadata") or {}
    prefix = meta.get("generateName") or ""
    name = meta.get("name") or prefix + stable_suffix(f"{stem}/{index}", length=8)
    labels = {HOSTNAME_LABEL: name}
    in_turn = operation.label_node_prepare_strategy
    unique = operation.unique_node_label_strategy
    allocatable = operation.node_allocatable_strategy
    # Upstream follows at most one strategy, in this order.
    if allocatable is not None:
        node = _with_allocatable(node, allocatable.node_allocatable)
    elif in_turn is not None:
        labels[in_turn.label_key] = in_turn.label_values[index % len(in_turn.label_values)]
    elif unique is not None:
        labels[unique.label_key] = stable_uid(key_of(named(node, name)), index)
    return _with_labels(named(node, name), labels)


def _with_allocatable(node: Content, amounts: Mapping[str, str]) -> Content:
    status = node.get("status") or {}
    own = status.get("allocatable") or status.get("capacity") or {}
    return {**node, "status": {**status, "allocatable": {**own, **amounts}}}


def csi_node(node_name: str, strategy: NodeAllocatableStrategy) -> Content:
    """The CSINode of a node: the number of volumes that each driver may attach."""
    drivers: list[Content] = []
    for name, resources in strategy.csi_node_allocatable.items():
        count = {} if resources.count is None else {"count": resources.count}
        drivers.append({"name": name, "nodeID": node_name, "allocatable": count})
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": node_name,
            "annotations": {MIGRATED_PLUGINS: ",".join(strategy.migrated_plugins)},
        },
        "spec": {"drivers": drivers},
    }
