"""Devices and claims decode as the API writes them, and are written back the same."""

import msgspec

from bayplan.api.device_objects import RESOURCE_CLAIM, RESOURCE_SLICE, ResourceClaim, ResourceSlice
from bayplan.api.objects import decode

CLAIM = {
    "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "exactly": {"deviceClassName": "gpu", "adminAccess": True},
                },
                {"name": "s", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]},
            ],
            "constraints": [{"requests": ["r"], "matchAttribute": "d/numa"}],
            "config": [{"opaque": {"driver": "d", "parameters": {"x": 1}}}],
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "r", "driver": "d", "pool": "p", "device": "x", "shareID": "s-1"}
                ]
            }
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
    },
}


def test_a_claim_lists_its_consumers() -> None:
    resource_claim = decode(RESOURCE_CLAIM, CLAIM)
    assert isinstance(resource_claim, ResourceClaim)
    assert resource_claim.key == "ns/c"
    assert resource_claim.is_reserved_for("uid-p")
    assert not resource_claim.is_reserved_for("uid-q")
    assert [result.share_id for result in resource_claim.allocation.results] == ["s-1"]  # pyright: ignore[reportOptionalMemberAccess]


def test_attributes_of_different_types_are_different() -> None:
    attributes = {
        "a": {"int": 1},
        "b": {"bool": True},
        "c": {"string": "x"},
        "d": {"version": "1.0.0"},
    }
    spec = {"driver": "d", "devices": [{"name": "x", "attributes": attributes}]}
    resource_slice = decode(RESOURCE_SLICE, {"metadata": {"name": "s"}, "spec": spec})
    assert isinstance(resource_slice, ResourceSlice)
    assert msgspec.to_builtins(resource_slice.spec.devices)[0]["attributes"] == attributes
