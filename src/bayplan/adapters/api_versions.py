"""One stored version per kind, whatever version a manifest is written in.

A real API server serves some kinds in several versions and stores them in one. Those that the
scheduler reads in another version than a manifest may have are converted when they come in.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bayplan.adapters.object_names import Content

_DEVICES = "resource.k8s.io"
_STORAGE = "storage.k8s.io"


def in_stored_version(content: Content) -> Content:
    """The same object in the version it is kept in; itself where that is its own."""
    convert = _CONVERSIONS.get(content.get("apiVersion", ""))
    return content if convert is None else convert(content)


def _renamed(version: str) -> Callable[[Content], Content]:
    return lambda content: {**content, "apiVersion": version}


def _from_first_beta(content: Content) -> Content:
    """In v1beta1 a request is what it asks for, and a device's content stands under `basic`."""
    spec = content.get("spec") or {}
    kind = content.get("kind")
    if kind == "ResourceClaim":
        spec = _claim_spec(spec)
    elif kind == "ResourceClaimTemplate":
        spec = {**spec, "spec": _claim_spec(spec.get("spec") or {})}
    elif kind == "ResourceSlice":
        devices = [_device(device) for device in spec.get("devices") or ()]
        spec = {**spec, "devices": devices}
    return {**content, "apiVersion": f"{_DEVICES}/v1", "spec": spec}


def _claim_spec(spec: Mapping[str, Any]) -> Content:
    devices = spec.get("devices") or {}
    requests = [_request(request) for request in devices.get("requests") or ()]
    return {**spec, "devices": {**devices, "requests": requests}}


def _request(request: Content) -> Content:
    if "exactly" in request or "firstAvailable" in request:
        return request
    rest = {key: value for key, value in request.items() if key != "name"}
    return {"name": request.get("name"), "exactly": rest}


def _device(device: Content) -> Content:
    rest = {key: value for key, value in device.items() if key != "basic"}
    return {**rest, **(device.get("basic") or {})}


_CONVERSIONS: Mapping[str, Callable[[Content], Content]] = {
    f"{_DEVICES}/v1beta1": _from_first_beta,
    f"{_DEVICES}/v1beta2": _renamed(f"{_DEVICES}/v1"),
    f"{_STORAGE}/v1beta1": _renamed(f"{_STORAGE}/v1"),
}
