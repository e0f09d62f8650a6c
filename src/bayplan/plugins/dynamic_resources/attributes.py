"""The attributes of devices that constraints compare.

An attribute is found by its full name, or by its name without the domain if that is the domain of
the driver. A request may derive attributes from others by expressions (gate DRADerivedAttributes),
and these are looked up first. With the gate DRAListTypeAttributes an attribute may be a list, of
which each value counts. Upstream: lookupAttribute, attributeAsSet in
structured/internal/experimental.
"""

from typing import final

from bayplan.api.device_objects import DeviceAttribute
from bayplan.api.device_selectors import CelError
from bayplan.plugins.dynamic_resources.pools import AllocationError, Candidate
from bayplan.plugins.dynamic_resources.requests import NO_VALUES, Request, Values
from bayplan.plugins.dynamic_resources.selection import SelectorResults
from bayplan.state.device_table import DeviceId


@final
class DeviceAttributes:
    """Implements requests.Attributes."""

    def __init__(self, results: SelectorResults, *, with_lists: bool) -> None:
        self._results = results
        self._with_lists = with_lists
        #: (name or expression, device) → its values.
        self._values: dict[tuple[str, DeviceId], Values | None] = {}

    def of(self, candidate: Candidate, request: Request, name: str) -> Values | None:
        key = (request.derived_attributes.get(name, name), candidate.id)
        try:
            return self._values[key]
        except KeyError:
            values = self._values[key] = self._read(candidate, request, name)
            return values

    def _read(self, candidate: Candidate, request: Request, name: str) -> Values | None:
        attribute = self._attribute(candidate, request, name)
        if attribute is None:
            return None
        values = (self._with_lists and _of_list(attribute)) or _of_scalar(attribute)
        if values is None and not self._with_lists:
            return NO_VALUES
        return values

    def _attribute(
        self, candidate: Candidate, request: Request, name: str
    ) -> DeviceAttribute | None:
        expression = request.derived_attributes.get(name)
        if expression is None:
            return _published(candidate, name)
        try:
            return self._results.derived(expression, candidate)
        except CelError as problem:
            text = f"evaluate derived attribute {name} on device {candidate.id} failed: {problem}"
            raise AllocationError(text) from None


def _published(candidate: Candidate, name: str) -> DeviceAttribute | None:
    attributes = candidate.device.attributes or {}
    attribute = attributes.get(name)
    if attribute is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == candidate.id.driver:
            attribute = attributes.get(identifier)
    return attribute


def _of_list(attribute: DeviceAttribute) -> Values | None:
    lists = (
        ("int", attribute.int_values),
        ("bool", attribute.bool_values),
        ("string", attribute.string_values),
        ("version", attribute.version_values),
    )
    return next((Values(kind, frozenset(values)) for kind, values in lists if values), None)


def _of_scalar(attribute: DeviceAttribute) -> Values | None:
    scalars = (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    )
    return next(
        (Values(kind, frozenset((value,))) for kind, value in scalars if value is not None), None
    )
