"""What a claim requests: its requests, its constraints, and the devices allocated so far.

A request is for exactly one kind of devices or for alternatives. `Request` is such a request, or
one alternative of it. A constraint names attributes that the devices of a claim must share, or must
differ in. The search adds devices to a constraint and removes them. A constraint that refuses a
device refuses it as long as the devices that were added before stay. Upstream:
matchAttributeConstraint, distinctAttributeConstraint.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, final

from msgspec import Struct, field

from bayplan.api import device_objects
from bayplan.api.objects import NO_EXECUTE, NO_SCHEDULE
from bayplan.plugins.dynamic_resources.pools import AllocationError, Candidate
from bayplan.state.device_table import Amounts

# ---- requests -------------------------------------------------------------------------------


class Request(Struct, frozen=True, eq=False):
    """One request, or one alternative of a request."""

    name: str
    #: The request of which this is an alternative; "": it is no alternative.
    parent: str
    class_name: str
    mode: str
    count: int
    admin_access: bool
    #: Whether the request has the field for admin access, with either value.
    names_admin_access: bool
    selectors: Sequence[device_objects.DeviceSelector]
    tolerations: Sequence[device_objects.DeviceToleration]
    capacity: device_objects.CapacityRequirements | None
    #: Attributes that expressions compute, by name.
    derived_attributes: Mapping[str, str]

    @property
    def full_name(self) -> str:
        """The name of the request in results and constraints."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def parent_or_own_name(self) -> str:
        return self.parent or self.name

    def tolerates_all_of(
        self, taints: Sequence[device_objects.DeviceTaint] | None, *, all_have_effects: bool = False
    ) -> bool:
        """Whether the request tolerates all of these taints. Taints with an unknown effect count
        only with ``all_have_effects``."""
        return all(
            (taint.effect not in (NO_EXECUTE, NO_SCHEDULE) and not all_have_effects)
            or any(_tolerates(toleration, taint) for toleration in self.tolerations)
            for taint in taints or ()
        )


def alternatives_of(device_request: device_objects.DeviceRequest) -> Sequence[Request]:
    """The alternatives of a request in their order. A request without alternatives is its only
    alternative."""
    if device_request.first_available:
        return [
            _request(each, each.name, device_request.name, None)
            for each in device_request.first_available
        ]
    exactly = device_request.exactly or device_objects.ExactDeviceRequest()
    return [_request(exactly, device_request.name, "", exactly.admin_access)]


def _request(
    device_request: device_objects.ExactDeviceRequest | device_objects.DeviceSubRequest,
    name: str,
    parent: str,
    admin: bool | None,
) -> Request:
    return Request(
        name=name,
        parent=parent,
        class_name=device_request.device_class_name,
        mode=device_request.allocation_mode,
        count=device_request.count,
        admin_access=bool(admin),
        names_admin_access=admin is not None,
        selectors=device_request.selectors or (),
        tolerations=device_request.tolerations or (),
        capacity=device_request.capacity,
        derived_attributes={
            each.name: each.expression for each in device_request.derived_attributes or ()
        },
    )


def _tolerates(
    toleration: device_objects.DeviceToleration, taint: device_objects.DeviceTaint
) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (
        taint.value or ""
    )


# ---- constraints ----------------------------------------------------------------------------


class Values(NamedTuple):
    """The values of an attribute; a single value is a set of one."""

    #: The kind of the values, because true and 1 differ.
    kind: str
    values: frozenset[object]

    def common(self, other: "Values") -> "Values | None":
        """The values that both have; None: they have none in common."""
        if self.kind != other.kind or self.values.isdisjoint(other.values):
            return None
        return Values(self.kind, self.values & other.values)


#: An attribute without a value that can be compared.
NO_VALUES = Values("", frozenset())


class Attributes(Protocol):
    """Looks up the attributes of devices."""

    def of(self, candidate: Candidate, request: Request, name: str) -> Values | None:
        """The values of an attribute of a device. None: the device has no such attribute, or its
        value must not be compared. Raises AllocationError."""
        ...


class Constraint(Protocol):
    """Devices are removed in the reverse order in which they were added."""

    def add(self, request: Request, candidate: Candidate) -> bool:
        """Add the device to those that the constraint compares. False: the device must not be among
        them. Raises AllocationError."""
        ...

    def remove(self, request: Request) -> None:
        """Remove the device that was added last for a request."""
        ...


def constraint(
    declared: device_objects.DeviceConstraint, claim: str, index: int, attributes: Attributes
) -> Constraint:
    """Raises AllocationError for an unknown kind of constraint."""
    names = frozenset(declared.requests or ())
    if declared.match_attribute is not None:
        return _SameAttribute(names, declared.match_attribute, attributes)
    if declared.distinct_attribute is not None:
        return _DistinctAttribute(names, declared.distinct_attribute, attributes)
    raise unknown_constraint(claim, index)


def unknown_constraint(claim: str, index: int) -> AllocationError:
    """The error for a constraint that upstream's allocator does not know."""
    empty = "empty constraint (unsupported constraint type?)"
    return AllocationError(f"claim {claim}, constraint #{index}: {empty}")


class _AttributeConstraint:
    """Compares the values of an attribute, device by device."""

    def __init__(
        self, request_names: frozenset[str], attribute: str, attributes: Attributes
    ) -> None:
        self._request_names = request_names
        self._attribute = attribute
        self._attributes = attributes
        #: What the constraint stores for each device.
        self._devices: list[Values] = []

    def add(self, request: Request, candidate: Candidate) -> bool:
        if not _concerns(self._request_names, request):
            return True
        values = self._attributes.of(candidate, request, self._attribute)
        values = None if values is None else self._accepted(values)
        if values is None:
            return False
        self._devices.append(values)
        return True

    def remove(self, request: Request) -> None:
        if _concerns(self._request_names, request):
            self._devices.pop()

    def _accepted(self, values: Values) -> Values | None:
        """What to store for a further device; None: the device breaks the constraint."""
        raise NotImplementedError


@final
class _SameAttribute(_AttributeConstraint):
    """All devices must have a value in common. The constraint stores the common values after each
    device."""

    def _accepted(self, values: Values) -> Values | None:
        return self._devices[-1].common(values) if self._devices else values


@final
class _DistinctAttribute(_AttributeConstraint):
    """No two devices may have a value in common."""

    def _accepted(self, values: Values) -> Values | None:
        if values is NO_VALUES and self._devices:
            return None
        is_shared = any(values.common(each) is not None for each in self._devices)
        return None if is_shared else values


def _concerns(names: frozenset[str], request: Request) -> bool:
    """Whether a constraint concerns a request. A constraint that names no request concerns all of
    them."""
    return not names or request.parent_or_own_name in names or request.full_name in names


# ---- the record of a search -----------------------------------------------------------------


class Alternative(Struct, eq=False):
    """One alternative of a request, with all that follows from the cluster before the search."""

    request: Request
    device_class: device_objects.DeviceClass
    device_count: int
    #: The devices that a request for all devices gets.
    all_devices: Sequence[Candidate] = ()

    @property
    def wants_all(self) -> bool:
        return self.request.mode == device_objects.ALL_DEVICES


class AssignedDevice(Struct, frozen=True, eq=False):
    """A device that a request gets."""

    request: Request
    candidate: Candidate
    #: The capacity that the request consumes of a shared device; None: the request gets the whole
    #: device.
    share: Amounts | None
    #: Whether the device's counters were consumed for it.
    draws_counters: bool
    #: The operations that the kubelet skips for the device.
    skip_node_operations: tuple[str, ...] | None = None


class ClaimSearch(Struct, eq=False):
    """One claim: its requests, and the devices allocated so far."""

    #: "namespace/name"
    name: str
    #: The alternatives of each request. A request without alternatives is its only alternative.
    requests: Sequence[Sequence[Alternative]]
    has_alternatives: Sequence[bool]
    constraints: Sequence[Constraint]
    assigned: list[AssignedDevice] = field(default_factory=list[AssignedDevice])
    #: The alternative that is tried, for each request.
    chosen: list[int] = field(default_factory=list[int])
