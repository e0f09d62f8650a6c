"""Requests of a claim in one form, whether they ask for exactly one thing or for alternatives."""

from collections.abc import Sequence
from dataclasses import dataclass

from bayplan.api.device_objects import (
    CapacityRequirements,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
)

_NO_EXECUTE = "NoExecute"
_NO_SCHEDULE = "NoSchedule"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One request, or one alternative of a request."""

    name: str
    #: The request that this is an alternative of, "" for none.
    parent: str
    class_name: str
    mode: str
    count: int
    admin_access: bool
    selectors: Sequence[DeviceSelector]
    tolerations: Sequence[DeviceToleration]
    capacity: CapacityRequirements | None
    has_derived_attributes: bool

    @property
    def full_name(self) -> str:
        """As results and constraints name it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def parent_or_own_name(self) -> str:
        return self.parent or self.name

    def tolerates_all_of(self, taints: Sequence[DeviceTaint] | None) -> bool:
        """Taints with an unknown effect have no effect."""
        return all(
            taint.effect not in (_NO_EXECUTE, _NO_SCHEDULE)
            or any(_tolerates(toleration, taint) for toleration in self.tolerations)
            for taint in taints or ()
        )


def alternatives_of(device_request: DeviceRequest) -> Sequence[Request]:
    """A request with alternatives: those, in their order; else itself alone."""
    if device_request.first_available:
        return [
            _request(each, each.name, device_request.name, None)
            for each in device_request.first_available
        ]
    exactly = device_request.exactly or ExactDeviceRequest()
    return [_request(exactly, device_request.name, "", exactly.admin_access)]


def _request(
    device_request: ExactDeviceRequest | DeviceSubRequest,
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
        selectors=device_request.selectors or (),
        tolerations=device_request.tolerations or (),
        capacity=device_request.capacity,
        has_derived_attributes=bool(device_request.derived_attributes),
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in (None, "", "Equal") and (toleration.value or "") == (
        taint.value or ""
    )
