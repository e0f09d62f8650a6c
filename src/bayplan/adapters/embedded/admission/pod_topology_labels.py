"""PodTopologyLabels: a pod on a node has the zone and region labels of the node.

Upstream: plugin/pkg/admission/podtopologylabels.
"""

from collections.abc import Mapping
from typing import Any, final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.versioned_store import StoredObject, VersionedStore
from bayplan.api.objects import NODE, POD
from bayplan.objects.keys import Content, ObjectKey, new_key

TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


@final
class PodTopologyLabels(AdmissionPlugin):
    """See the module. The server calls `labelled` for a binding."""

    name = "PodTopologyLabels"
    changed_kinds = (POD,)
    fills_stored = True

    def __init__(self, store: VersionedStore) -> None:
        self._store = store
        #: By the name of a node: the node, and its labels that its pods get.
        self._labels: dict[str, tuple[StoredObject, dict[str, str]]] = {}

    def admit(self, key: ObjectKey, content: Content) -> Content:
        node_name = content["spec"].get("nodeName")
        return self.labelled(content, node_name) if node_name else content

    def labelled(self, pod: Content, node_name: str) -> Content:
        """The pod with the labels of its node, if the node exists."""
        node = self._store.get(new_key((NODE, "", node_name)))
        if node is None:
            return pod
        cached = self._labels.get(node_name)
        if cached is None or cached[0] is not node:
            cached = self._labels[node_name] = (node, topology_labels(node.content))
        return with_labels(pod, cached[1]) if cached[1] else pod


def topology_labels(node: Mapping[str, Any]) -> dict[str, str]:
    """The zone and region labels of a node."""
    labels = (node["metadata"].get("labels") or {}).items()
    return {key: value for key, value in labels if key in TOPOLOGY_LABELS}


def with_labels(pod: Content, labels: dict[str, str]) -> Content:
    """The pod with the labels of its node, which replace the pod's own."""
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}
