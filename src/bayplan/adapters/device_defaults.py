"""The defaults of claims and their templates. Upstream: pkg/apis/resource/v1/defaults.go."""

from typing import Any

from bayplan.adapters.object_names import Content
from bayplan.api.device_objects import EXACT_COUNT


def claim(content: Content) -> Content:
    """A ResourceClaim with its defaults."""
    return {**content, "spec": _spec(content.get("spec") or {})}


def template(content: Content) -> Content:
    """A ResourceClaimTemplate with the defaults of the claims it makes."""
    spec: Content = content.get("spec") or {}
    return {**content, "spec": {**spec, "spec": _spec(spec.get("spec") or {})}}


def _spec(spec: Content) -> Content:
    devices: Content = spec.get("devices") or {}
    requests = devices.get("requests")
    if not requests:
        return spec
    return {**spec, "devices": {**devices, "requests": [_request(each) for each in requests]}}


def _request(request: Content) -> Content:
    filled = dict(request)
    if request.get("exactly"):
        filled["exactly"] = _wanted(request["exactly"])
    if request.get("firstAvailable"):
        filled["firstAvailable"] = [_wanted(each) for each in request["firstAvailable"]]
    return filled


def _wanted(wanted: Content) -> Content:
    """One device, unless something else is said."""
    filled: dict[str, Any] = {**wanted}
    filled["allocationMode"] = wanted.get("allocationMode") or EXACT_COUNT
    if filled["allocationMode"] == EXACT_COUNT and not wanted.get("count"):
        filled["count"] = 1
    tolerations = wanted.get("tolerations")
    if tolerations:
        filled["tolerations"] = [{"operator": "Equal", **each} for each in tolerations]
    return filled
