"""PodTopologyLabels: a pod on a node has the zone and region labels of the node.

Upstream: plugin/pkg/admission/podtopologylabels.
"""

from collections.abc import Mapping
from typing import Any, final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.versioned_store import StoredObject, VersionedStore
from bayplan.api.objects import NODE, POD
from bayplan.objects.keys import Content, ObjectKey

TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


@final
class PodTopologyLabels(AdmissionPlugin):
    """See the module. The server reads `by_node` for a binding."""

    name = "PodTopologyLabels"
    changed_kinds = (POD,)
    fills_stored = True

    def __init__(self, store: VersionedStore) -> None:
        #: The labels that the pods of a node get, by the name of each node that has some.
        self.by_node: dict[str, dict[str, str]] = {}
        for node in store.all(NODE):
            self._observe(None, node)
        store.observe(self._observe, (NODE,))

    def admit(self, key: ObjectKey, content: Content) -> Content:
        labels = self.by_node.get(content["spec"].get("nodeName") or "")
        return content if labels is None else with_labels(content, labels)

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        labels = {} if after is None else topology_labels(after.content)
        if after is not None and labels:
            self.by_node[after.key.name] = labels
        elif before is not None:
            self.by_node.pop(before.key.name, None)


def topology_labels(node: Mapping[str, Any]) -> dict[str, str]:
    """The zone and region labels of a node."""
    labels = (node["metadata"].get("labels") or {}).items()
    return {key: value for key, value in labels if key in TOPOLOGY_LABELS}


def with_labels(pod: Content, labels: dict[str, str]) -> Content:
    """The pod with the labels of its node, which replace the pod's own."""
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}
