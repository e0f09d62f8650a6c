"""The amount that a request consumes of a shared capacity."""

from typing import Any

import pytest

from bayplan.api.device_objects import CapacityRequirements, Device
from bayplan.api.quantity import NANOS
from bayplan.plugins.dynamic_resources.capacity import CapacityRules, consumed_by, fits, written
from bayplan.plugins.dynamic_resources.pools import AllocationError
from tests.plugins.devices_kit import as_slice, device, slice_of


def with_memory(value: Any = "10", **policy: Any) -> Device:
    capacity: dict[str, Any] = {"value": value}
    if policy:
        capacity["requestPolicy"] = policy
    devices = as_slice(slice_of("n", device("d", capacity={"memory": capacity}))).spec.devices
    assert devices is not None
    return devices[0]


def consumed(device: Device, expected: Any = None) -> float | None:
    """The consumed amount in units."""
    request = None if expected is None else CapacityRequirements(requests={"memory": expected})
    amounts = consumed_by(request, device)
    return None if amounts is None else amounts["memory"] / NANOS


RANGE = {"default": "3", "validRange": {"min": "2", "max": "8", "step": "2"}}
VALUES = {"default": "2", "validValues": ["2", "4"]}


@pytest.mark.parametrize(
    ("policy", "expected_value", "expected"),
    [
        ({}, None, 10),
        ({}, "1500m", 1.5),
        (RANGE, None, 3),
        (RANGE, "1", 2),
        (RANGE, "2", 2),
        (RANGE, "3", 4),
        (RANGE, "3500m", 4),
        (RANGE, "9", 10),
        ({"validRange": {"min": "2"}}, "3", 3),
        (VALUES, None, 2),
        (VALUES, "3", 4),
        (VALUES, "5", 5),
    ],
)
def test_a_request_is_rounded_up_as_the_policy_says(
    policy: dict[str, Any], expected_value: Any, expected: float
) -> None:
    assert consumed(with_memory(**policy), expected_value) == expected


def test_a_capacity_that_the_device_does_not_have_cannot_be_consumed() -> None:
    request = CapacityRequirements(requests={"cores": "1"})
    assert consumed_by(request, with_memory()) is None


@pytest.mark.parametrize(
    ("policy", "expected", "taken", "allocating", "does"),
    [
        ({}, "4", 3, 3, True),
        ({}, "4", 4, 3, False),
        (RANGE, "9", 0, 0, False),
        (RANGE, None, 0, 0, True),
        (VALUES, "5", 0, 0, False),
        (VALUES, "4", 6, 0, True),
    ],
)
def test_a_request_fits_beside_consumed_amounts_if_the_policy_allows_it(
    policy: dict[str, Any], expected: Any, taken: int, allocating: int, does: bool
) -> None:
    device = with_memory(**policy)
    request = None if expected is None else CapacityRequirements(requests={"memory": expected})
    amounts = consumed_by(request, device)
    assert amounts is not None
    beside = ({"memory": taken * NANOS}, {"memory": allocating * NANOS})
    assert fits(amounts, device, beside) is does


@pytest.mark.parametrize(
    ("policy", "expected", "message"),
    [
        (RANGE, "1E19", "cannot be represented"),
        ({}, "-1", "capacity value is negative"),
        ({}, "x", "wanted a quantity"),
    ],
)
def test_an_invalid_amount_ends_the_allocation(
    policy: dict[str, Any], expected: str, message: str
) -> None:
    with pytest.raises(AllocationError, match=message):
        consumed(with_memory(**policy), expected)


@pytest.mark.parametrize("expected", ["9223372036854775807", "20E", "100E"])
def test_before_1_37_a_request_that_cannot_be_represented_fitted(expected: str) -> None:
    """As recorded from kube-scheduler 1.36.3: the sum wraps around, and is not checked."""
    policy = {"validRange": {"min": "10Gi", "step": "10Gi", "max": "40Gi"}}
    device = with_memory("40Gi", **policy)
    request = CapacityRequirements(requests={"memory": expected})
    rules = CapacityRules(wraps=True)
    amounts = consumed_by(request, device, rules)
    assert amounts is not None
    assert fits(amounts, device, rules=rules)


def test_amounts_are_written_as_the_api_writes_quantities() -> None:
    amounts = {"a": 2 * NANOS, "b": NANOS // 2, "c": 1, "d": NANOS // 10**6}
    assert written(amounts) == {"a": "2", "b": "500m", "c": "1n", "d": "1u"}
