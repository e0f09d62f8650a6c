"""Claims of devices and their templates and classes, as the API server checks them.

Upstream: pkg/apis/resource/validation.
"""

from collections.abc import Iterable, Iterator
from typing import cast

from bayplan.adapters.embedded.decoding_problems import of_decoding
from bayplan.adapters.embedded.field_validation import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    Content,
    is_dns_label,
    is_dns_subdomain,
)
from bayplan.adapters.embedded.pod_validation import choice, quantities
from bayplan.api.device_objects import (
    RESOURCE_CLAIM,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from bayplan.api.device_selectors import CelError, compile_selector
from bayplan.api.objects import DecodeError, decode
from bayplan.problems import Problem, joined, wrong

EXACT_COUNT, ALL = "ExactCount", "All"
ALLOCATION_MODES = (EXACT_COUNT, ALL)


def claim(claim: ResourceClaim) -> Iterator[Problem]:
    return _devices(claim.spec.devices, "spec.devices")


def claim_template(content: Content) -> Iterator[Problem]:
    """A template itself is not decoded; the spec of its claims is."""
    spec = content.get("spec")
    inner: Content = {"metadata": {}, "spec": spec.get("spec") if isinstance(spec, dict) else None}
    if not isinstance(inner["spec"], dict):
        yield wrong("spec.spec", inner["spec"], "the spec of the claims that it makes")
        return
    try:
        problems = list(claim(cast(ResourceClaim, decode(RESOURCE_CLAIM, inner))))
    except DecodeError as failure:
        problems = [of_decoding(failure, inner)]
    for problem in problems:
        yield problem.under("spec")


def device_class(device_class: DeviceClass) -> Iterator[Problem]:
    return _selectors(device_class.spec.selectors, "spec.selectors")


def _devices(devices: DeviceClaim, path: str) -> Iterator[Problem]:
    names: set[str] = set()
    for index, request in enumerate(devices.requests or ()):
        place = f"{path}.requests[{index}]"
        if request.name in names:
            yield wrong(joined(place, "name"), request.name, "each name once")
        names.add(request.name)
        names.update(f"{request.name}/{each.name}" for each in request.first_available or ())
        yield from _request(request, place)
    for index, constraint in enumerate(devices.constraints or ()):
        yield from _constraint(constraint, names, f"{path}.constraints[{index}]")


def _request(request: DeviceRequest, path: str) -> Iterator[Problem]:
    yield from _label(request.name, joined(path, "name"))
    if (request.exactly is None) == (not request.first_available):
        value = "both" if request.exactly is not None else None
        yield wrong(path, value, "one of exactly and firstAvailable")
    if request.exactly is not None:
        yield from _device_request(request.exactly, joined(path, "exactly"))
    for index, each in enumerate(request.first_available or ()):
        place = f"{path}.firstAvailable[{index}]"
        yield from _label(each.name, joined(place, "name"))
        yield from _device_request(each, place)


def _device_request(request: ExactDeviceRequest | DeviceSubRequest, path: str) -> Iterator[Problem]:
    name = request.device_class_name
    if not is_dns_subdomain(name):
        yield wrong(joined(path, "deviceClassName"), name or None, DNS_SUBDOMAIN)
    # An absent count means one device; the default is set later.
    mode = request.allocation_mode or None
    yield from choice(mode, joined(path, "allocationMode"), ALLOCATION_MODES)
    if request.count < 0 or (mode == EXACT_COUNT and not request.count):
        yield wrong(joined(path, "count"), request.count, "more than nothing")
    elif mode == ALL and request.count:
        yield wrong(joined(path, "count"), request.count, f"nothing beside allocationMode {ALL}")
    yield from _selectors(request.selectors, joined(path, "selectors"))
    if request.capacity is not None:
        yield from quantities(request.capacity.requests, joined(path, "capacity.requests"))


def _selectors(selectors: Iterable[DeviceSelector] | None, path: str) -> Iterator[Problem]:
    for index, each in enumerate(selectors or ()):
        place = f"{path}[{index}].cel.expression"
        expression = each.cel.expression if each.cel is not None else ""
        compiled = compile_selector(expression) if expression else None
        if compiled is None:
            yield wrong(place, None, "an expression about a device")
        elif isinstance(compiled, CelError):
            why = str(compiled).splitlines()[0]
            yield wrong(place, expression, f"an expression about a device ({why})")


def _constraint(constraint: DeviceConstraint, names: set[str], path: str) -> Iterator[Problem]:
    for index, name in enumerate(constraint.requests or ()):
        if name not in names:
            place = f"{path}.requests[{index}]"
            yield wrong(place, name, "the name of a request of the claim", sorted(names))


def _label(name: str, path: str) -> Iterator[Problem]:
    if not is_dns_label(name):
        yield wrong(path, name or None, DNS_LABEL)
