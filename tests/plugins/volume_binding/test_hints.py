"""Changes of storage that may help a rejected pod."""

from typing import Any

import pytest

from bayplan.api.objects import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    decode,
)
from bayplan.framework.events import UPDATE, ActionType, QueueingHint, resource_of_kind
from bayplan.plugins.volume_binding import VolumeBinding
from bayplan.testing.clusters import SampleCluster
from tests.plugins.row_kit import hint
from tests.plugins.volume_kit import (
    capacity,
    claim,
    csi_driver,
    csi_node,
    instance,
    storage_class,
    volume,
    with_claims,
)

TOPOLOGY = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
NOTE = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}


@pytest.mark.parametrize(
    ("kind", "old", "new", "is_worth_it"),
    [
        pytest.param(STORAGE_CLASS, None, storage_class(), True, id="a new class"),
        pytest.param(
            STORAGE_CLASS,
            storage_class(),
            storage_class(allowedTopologies=TOPOLOGY),
            True,
            id="other topologies",
        ),
        pytest.param(
            STORAGE_CLASS,
            storage_class(),
            storage_class(parameters={}),
            False,
            id="an unchanged class",
        ),
        pytest.param(PERSISTENT_VOLUME, None, volume("pv"), True, id="a new volume"),
        pytest.param(
            PERSISTENT_VOLUME, volume("pv"), volume("pv"), True, id="any change of a volume"
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIM, None, claim("data"), True, id="a change of its claim"
        ),
        pytest.param(
            PERSISTENT_VOLUME_CLAIM, None, claim("p-tmp"), True, id="a new claim of the pod"
        ),
        pytest.param(PERSISTENT_VOLUME_CLAIM, None, claim("other"), False, id="another claim"),
        pytest.param(CSI_NODE, None, csi_node("n1"), True, id="a new CSI node"),
        pytest.param(
            CSI_NODE,
            csi_node("n1"),
            csi_node("n1", annotations=NOTE),
            True,
            id="newly migrated drivers",
        ),
        pytest.param(
            CSI_NODE, csi_node("n1"), csi_node("n1", {"d": 1}), False, id="a changed limit"
        ),
        pytest.param(
            CSI_DRIVER,
            csi_driver("inline.test", storageCapacity=True),
            csi_driver("inline.test"),
            True,
            id="its inline driver stops counting",
        ),
        pytest.param(
            CSI_DRIVER, csi_driver(storageCapacity=True), csi_driver(), False, id="another driver"
        ),
        pytest.param(CSI_STORAGE_CAPACITY, None, capacity("c", "1Gi"), True, id="new capacity"),
        pytest.param(
            CSI_STORAGE_CAPACITY,
            capacity("c", "1Gi"),
            capacity("c", "2Gi"),
            True,
            id="more capacity",
        ),
        pytest.param(
            CSI_STORAGE_CAPACITY,
            capacity("c", "2Gi"),
            capacity("c", "1Gi"),
            False,
            id="less capacity",
        ),
        pytest.param(
            CSI_STORAGE_CAPACITY,
            capacity("c", "1Gi", maximumVolumeSize="1Gi"),
            capacity("c", "2Gi", maximumVolumeSize="1Gi"),
            False,
            id="more capacity with the same volume size",
        ),
    ],
)
def test_changes_that_queue_the_pod(kind: str, old: Any, new: Any, is_worth_it: bool) -> None:
    plugin = instance(VolumeBinding, SampleCluster())
    sources: Any = {"tmp": {"ephemeral": {}}, "inline": {"csi": {"driver": "inline.test"}}}
    asking = with_claims("p", "data", **sources)
    action = ActionType.ADD if old is None else UPDATE
    before = None if old is None else decode(kind, old)
    result = hint(plugin, (resource_of_kind(kind), action), asking, before, decode(kind, new))
    assert result is (QueueingHint.QUEUE if is_worth_it else QueueingHint.QUEUE_SKIP)


def test_drivers_are_compared_only_when_they_change() -> None:
    plugin = instance(VolumeBinding, SampleCluster())
    event = (resource_of_kind(CSI_DRIVER), ActionType.ADD)
    assert hint(plugin, event, with_claims("p", "data"), None, None) is None
