"""Constraints: devices share an attribute, or differ in it."""

from typing import Any

import pytest

from bayplan.api.device_objects import DeviceConstraint
from bayplan.plugins.dynamic_resources.attributes import DeviceAttributes
from bayplan.plugins.dynamic_resources.pools import AllocationError
from bayplan.plugins.dynamic_resources.requests import constraint
from bayplan.plugins.dynamic_resources.selection import SelectorResults
from tests.plugins.devices_kit import DRIVER, allocate_on, device, exactly, first_of, slice_of

NUMA = f"{DRIVER}/numa"


def with_numa(*values: Any) -> dict[str, Any]:
    devices = [
        device(f"d{index}", attributes={} if value is None else {"numa": value})
        for index, value in enumerate(values)
    ]
    return slice_of("n1", *devices)


def allocated_devices(values: tuple[Any, ...], constraint: Any, *requests: Any) -> list[str] | None:
    from_kit = {"constraints": [constraint]}
    devices = allocate_on("n1", (with_numa(*values),), _claim(requests, from_kit))
    return None if devices is None else [each.rpartition("/")[2] for each in devices[0]]


def _claim(requests: tuple[Any, ...], devices: Any) -> Any:
    meta = {"name": "c", "namespace": "default", "uid": "uid-c"}
    return {"metadata": meta, "spec": {"devices": {"requests": list(requests), **devices}}}


def test_a_constraint_concerns_the_requests_it_names() -> None:
    only_a = {"matchAttribute": NUMA, "requests": ["a"]}
    assert allocated_devices((0, 1), only_a, exactly("a"), exactly("b")) == ["d0", "d1"]
    both = {"matchAttribute": NUMA, "requests": ["a", "b"]}
    assert allocated_devices((0, 1), both, exactly("a"), exactly("b")) is None


def test_a_constraint_may_name_an_alternative_or_all_of_a_request() -> None:
    request = first_of("r", pair={"count": 2}, one={})
    on_pair = {"matchAttribute": NUMA, "requests": ["r/pair"]}
    assert allocated_devices((0, 1), on_pair, request) == ["d0"]
    assert allocated_devices((0, 0), on_pair, request) == ["d0", "d1"]
    assert allocated_devices((None, 1), {"matchAttribute": NUMA, "requests": ["r"]}, request) == [
        "d1"
    ]


def test_a_constraint_of_an_unknown_kind_is_an_error() -> None:
    attributes = DeviceAttributes(SelectorResults(), with_lists=False)
    with pytest.raises(AllocationError, match=r"claim default/c, constraint #1: empty constraint"):
        constraint(DeviceConstraint(), "default/c", 1, attributes)
