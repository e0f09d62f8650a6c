"""Manifests in older versions are converted to the stored version."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_defaults import in_stored_version

V1 = "resource.k8s.io/v1"


def written(version: str, kind: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def test_an_object_in_its_stored_version_is_returned_unchanged() -> None:
    content = written(V1, "DeviceClass", {})
    assert in_stored_version(content) is content
    assert in_stored_version({}) == {}


def test_v1beta2_has_the_schema_of_the_stored_version() -> None:
    spec = {"selectors": [{"cel": {"expression": "true"}}]}
    beta = written("resource.k8s.io/v1beta2", "DeviceClass", spec)
    assert in_stored_version(beta) == written(V1, "DeviceClass", spec)


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_v1beta1_request_becomes_a_request_for_exactly_one_device_class(kind: str) -> None:
    def around(requests: Any) -> Any:
        spec = {"devices": {"requests": requests}}
        return spec if kind == "ResourceClaim" else {"spec": spec}

    first = {"name": "b", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}]}
    beta = around([{"name": "a", "deviceClassName": "gpu", "count": 2}, first])
    now = around([{"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}}, first])
    result = in_stored_version(written("resource.k8s.io/v1beta1", kind, beta))
    assert result == written(V1, kind, now)


def test_a_v1beta1_device_has_its_content_in_basic() -> None:
    beta = {"driver": "d", "devices": [{"name": "g", "basic": {"capacity": {"m": {"value": 1}}}}]}
    now = {"driver": "d", "devices": [{"name": "g", "capacity": {"m": {"value": 1}}}]}
    result = in_stored_version(written("resource.k8s.io/v1beta1", "ResourceSlice", beta))
    assert result == written(V1, "ResourceSlice", now)


def test_v1beta1_capacities_become_todays_capacities() -> None:
    beta = written("storage.k8s.io/v1beta1", "CSIStorageCapacity", {})
    assert in_stored_version(beta)["apiVersion"] == "storage.k8s.io/v1"
