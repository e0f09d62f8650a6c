"""PodTopologyLabels: a pod on a node has the zone and region labels of the node.

Upstream: plugin/pkg/admission/podtopologylabels.
"""

from collections.abc import Mapping
from typing import Any, final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.objects import NODE, POD
from bayplan.objects.keys import Content, ObjectKey

TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


@final
class PodTopologyLabels(AdmissionPlugin):
    """See the module. The server calls `labelled` for a binding."""

    name = "PodTopologyLabels"
    changed_kinds = (POD,)
    fills_stored = True

    def __init__(self, store: VersionedStore) -> None:
        self._store = store

    def admit(self, key: ObjectKey, content: Content) -> Content:
        node_name = content["spec"].get("nodeName")
        return self.labelled(content, node_name) if node_name else content

    def labelled(self, pod: Content, node_name: str) -> Content:
        """The pod with the labels of its node, if the node exists."""
        node = self._store.get(ObjectKey(NODE, "", node_name))
        return with_topology_labels(pod, None if node is None else node.content)


def with_topology_labels(pod: Content, node: Mapping[str, Any] | None) -> Content:
    """The pod with the zone and region labels of its node, which replace the pod's own."""
    if node is None:
        return pod
    labels = (node["metadata"].get("labels") or {}).items()
    taken = {key: value for key, value in labels if key in TOPOLOGY_LABELS}
    if not taken:
        return pod
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **taken}}}
