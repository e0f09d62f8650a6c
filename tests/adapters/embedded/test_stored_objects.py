"""Complete objects of a cluster in memory, for extenders."""

import json

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObjects
from bayplan.api.objects import NODE, POD
from bayplan.clock import ManualClock
from tests.kit import manifests


def test_objects_are_complete_and_current() -> None:
    cluster = EmbeddedCluster(ManualClock())
    objects = StoredObjects(cluster.get)
    assert objects.whole(NODE, "", "n1") is None
    cluster.create(manifests.node("n1", spec={"podCIDR": "10.0.0.0/24"}))
    cluster.create(manifests.pod("p"))
    node, pod = objects.whole(NODE, "", "n1"), objects.whole(POD, "default", "p")
    assert node is not None
    assert pod is not None
    assert json.loads(node)["spec"] == {"podCIDR": "10.0.0.0/24"}
    assert "kind" not in json.loads(pod)
