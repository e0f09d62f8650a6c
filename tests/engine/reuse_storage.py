"""Storage objects and devices that the machine creates, changes and deletes.

There are few of each, so that pods that name them find them in every state.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import ZONE_LABEL
from tests.plugins.devices_kit import claim as device_claim
from tests.plugins.devices_kit import class_of, exactly, slice_of
from tests.plugins.volume_kit import (
    attachment,
    capacity,
    claim,
    csi,
    csi_driver,
    csi_node,
    storage_class,
    volume,
)

Content = Mapping[str, Any]

MADE: Final = "made"


def _within(key: str, *values: str) -> Content:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def _zone(name: str) -> Content:
    return {"labels": {ZONE_LABEL: name}}


#: The possible states of each object. Objects are deleted, too.
STORAGE: Final[Sequence[Sequence[Content]]] = (
    (claim("c0"), claim("c0", bound_to="v0"), claim("c0", class_name=MADE)),
    (claim("c1", class_name=MADE), claim("c1", bound_to="v1"), claim("c1", bound_to="gone")),
    (
        claim("c2", bound_to="v2", accessModes=["ReadWriteOncePod"]),
        claim("c2", bound_to="v1"),
        claim("c2", class_name="unknown"),
    ),
    (
        volume("v0", nodeAffinity=_within("color", "red", "blue"), **csi("0")),
        volume("v0", nodeAffinity=_within("color", "green"), **csi("0")),
        volume("v0", "1Gi", **csi("0")),
    ),
    (volume("v1", meta=_zone("a"), **csi("1")), volume("v1", meta=_zone("b__c"), **csi("1"))),
    (volume("v2", **csi("2")), volume("v2", nodeAffinity=_within(ZONE_LABEL, "b"), **csi("2"))),
    (storage_class(), storage_class(mode="Immediate")),
    (
        storage_class(MADE, provisioner="disk.test"),
        storage_class(
            MADE,
            provisioner="disk.test",
            allowedTopologies=[
                {"matchLabelExpressions": [{"key": ZONE_LABEL, "values": ["a", "b"]}]}
            ],
        ),
    ),
    (csi_driver(storageCapacity=True), csi_driver()),
    (capacity("room", "100Gi", class_name=MADE), capacity("room", "5Gi", class_name=MADE)),
    (csi_node("n0", {"disk.test": 0}), csi_node("n0", {"disk.test": 2}), csi_node("n0")),
    (csi_node("n1", {"disk.test": 1}), csi_node("n1", {"disk.test": 1, "other": 3})),
    (attachment("a0", "n1", "v2"), attachment("a0", "n0", "v1")),
)


def _device(kind: str, content: Content) -> Content:
    version, _, word = kind.partition(" ")
    return {"apiVersion": version, "kind": word, **content}


#: The possible states of device objects.
DEVICES: Final[Sequence[Sequence[Content]]] = (
    (
        _device(RESOURCE_CLAIM, device_claim("d0", exactly())),
        _device(RESOURCE_CLAIM, device_claim("d0", exactly(class_name="none"))),
    ),
    (
        _device(DEVICE_CLASS, class_of()),
        _device(DEVICE_CLASS, class_of(extendedResourceName="test.example/gpu")),
    ),
    (
        _device(RESOURCE_SLICE, slice_of("n0", "g0")),
        _device(RESOURCE_SLICE, slice_of("n0", "g0", "g1")),
    ),
    (_device(RESOURCE_SLICE, slice_of("n1", "g0")),),
)
