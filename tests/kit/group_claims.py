"""A group whose members share one device, by a template that the group lists."""

from typing import Any

from tests.kit.manifests import Content

_DEVICES, _ENTRY = "resource.k8s.io/v1", {"name": "gpu", "resourceClaimTemplateName": "t"}
GATES = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}


def _made(api_version: str, kind: str, name: str, spec: Content) -> Content:
    meta = {"name": name, "namespace": "default"}
    if kind in ("DeviceClass", "ResourceSlice"):
        del meta["namespace"]
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def one_device(node: str = "n1") -> list[Content]:
    """A device on the node, and a template of claims for a device."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "d", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    return [
        _made(_DEVICES, "DeviceClass", "gpu", {}),
        _made(_DEVICES, "ResourceSlice", node, devices),
        _made(
            _DEVICES,
            "ResourceClaimTemplate",
            "t",
            {"spec": {"devices": {"requests": [request]}}},
        ),
    ]


def group() -> Content:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": [_ENTRY]}
    return _made("scheduling.k8s.io/v1beta1", "PodGroup", "g", spec)


def member_spec(**more: Any) -> Content:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    own = {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [_ENTRY]}
    return {"containers": [container], **own, **more}


def members() -> list[Content]:
    return [_made("v1", "Pod", name, member_spec()) for name in ("a", "b")]
