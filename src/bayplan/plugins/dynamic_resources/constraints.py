"""Constraints of a claim: attributes that its devices must share, or must differ in.

Devices come and go while the search tries them; a constraint that refuses a device refuses it as
long as those before it stay. Upstream: matchAttributeConstraint, distinctAttributeConstraint.
"""

from typing import Protocol, final

from bayplan.api.device_objects import DeviceAttribute, DeviceConstraint
from bayplan.plugins.dynamic_resources.pools import AllocationError, Candidate
from bayplan.plugins.dynamic_resources.requests import Request

#: Kind of the value and the value: true and 1 differ.
_Value = tuple[str, object]


class Constraint(Protocol):
    """Devices are removed in the reverse order in which they were added."""

    def add(self, request: Request, candidate: Candidate) -> bool:
        """Count the device in, unless it must not be among those that are."""
        ...

    def remove(self, request: Request) -> None:
        """The device that was added last for a request is not among them any more."""
        ...


def constraint(declared: DeviceConstraint, claim: str, index: int) -> Constraint:
    """Raises AllocationError for an unknown kind of constraint."""
    names = frozenset(declared.requests or ())
    if declared.match_attribute is not None:
        return _SameAttribute(names, declared.match_attribute)
    if declared.distinct_attribute is not None:
        return _DistinctAttribute(names, declared.distinct_attribute)
    empty = "empty constraint (unsupported constraint type?)"
    raise AllocationError(f"claim {claim}, constraint #{index}: {empty}")


@final
class _SameAttribute:
    """All devices have the same value."""

    def __init__(self, request_names: frozenset[str], attribute: str) -> None:
        self._request_names = request_names
        self._attribute = attribute
        self._value: _Value | None = None
        self._device_count = 0

    def add(self, request: Request, candidate: Candidate) -> bool:
        if not _concerns(self._request_names, request):
            return True
        value = _value_of(candidate, self._attribute)
        if value is None or (self._device_count and value != self._value):
            return False
        self._value = value
        self._device_count += 1
        return True

    def remove(self, request: Request) -> None:
        if _concerns(self._request_names, request):
            self._device_count -= 1


@final
class _DistinctAttribute:
    """No two devices have the same value."""

    def __init__(self, request_names: frozenset[str], attribute: str) -> None:
        self._request_names = request_names
        self._attribute = attribute
        self._values: list[_Value] = []

    def add(self, request: Request, candidate: Candidate) -> bool:
        if not _concerns(self._request_names, request):
            return True
        value = _value_of(candidate, self._attribute)
        if value is None or value in self._values:
            return False
        self._values.append(value)
        return True

    def remove(self, request: Request) -> None:
        if _concerns(self._request_names, request):
            self._values.pop()


def _concerns(names: frozenset[str], request: Request) -> bool:
    """A constraint that names no request means all of them."""
    return not names or request.parent_or_own_name in names or request.full_name in names


def _value_of(candidate: Candidate, name: str) -> _Value | None:
    """By its full name, or without the domain where that is the driver's."""
    attributes = candidate.device.attributes or {}
    attribute = attributes.get(name)
    if attribute is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == candidate.id.driver:
            attribute = attributes.get(identifier)
    return None if attribute is None else _value(attribute)


def _value(attribute: DeviceAttribute) -> _Value | None:
    values = (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    )
    return next(((kind, value) for kind, value in values if value is not None), None)
