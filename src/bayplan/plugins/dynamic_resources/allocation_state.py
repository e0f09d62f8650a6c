"""The record of a search: the requests of each claim, and the devices allocated so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bayplan.api.device_objects import ALL_DEVICES, DeviceClass
from bayplan.plugins.dynamic_resources.constraints import Constraint
from bayplan.plugins.dynamic_resources.pools import Candidate
from bayplan.plugins.dynamic_resources.requests import Request
from bayplan.state.device_table import Amounts


@dataclass(slots=True, eq=False)
class Alternative:
    """One alternative of a request, with all that follows from the cluster before the search."""

    request: Request
    device_class: DeviceClass
    device_count: int
    #: Of a request for all devices: which those are.
    all_devices: Sequence[Candidate] = ()

    @property
    def wants_all(self) -> bool:
        return self.request.mode == ALL_DEVICES


@dataclass(frozen=True, slots=True, eq=False)
class AssignedDevice:
    """A device that a request gets."""

    request: Request
    candidate: Candidate
    #: The capacity that the request consumes of a shared device; None: the request gets the whole
    #: device.
    share: Amounts | None
    #: Whether the device's counters were consumed for it.
    draws_counters: bool


@dataclass(slots=True, eq=False)
class ClaimSearch:
    """One claim: its requests, and the devices allocated so far."""

    #: "namespace/name"
    name: str
    #: Per request its alternatives; a request without any has one.
    requests: Sequence[Sequence[Alternative]]
    has_alternatives: Sequence[bool]
    constraints: Sequence[Constraint]
    assigned: list[AssignedDevice] = field(default_factory=list[AssignedDevice])
    #: Per request the alternative that is tried.
    chosen: list[int] = field(default_factory=list[int])
