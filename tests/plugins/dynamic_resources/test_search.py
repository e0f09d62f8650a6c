"""The search: all requests of all claims, or nothing; the first solution in order."""

from typing import Any

import pytest

from bayplan.plugins.dynamic_resources.pools import AllocationError
from tests.plugins.devices_kit import (
    DRIVER,
    all_of,
    allocate_on,
    claim,
    device,
    exactly,
    first_of,
    slice_of,
)


def is_model(name: str) -> tuple[str, ...]:
    return (f'device.attributes["{DRIVER}"].model == "{name}"',)


def models(*names: str) -> dict[str, Any]:
    devices = [device(f"d{i}", attributes={"model": name}) for i, name in enumerate(names)]
    return slice_of("n1", *devices)


def test_an_earlier_request_makes_room_for_a_later_one() -> None:
    """The first request accepts any device; the second needs the device that is first in order."""
    new_claim = claim("c", exactly("any"), exactly("a", expressions=is_model("a")))
    assert allocate_on("n1", (models("a", "b"),), new_claim) == [["any n1/d1", "a n1/d0"]]


def test_an_earlier_claim_makes_room_for_a_later_one() -> None:
    any_one, a = claim("c", exactly()), claim("d", exactly(expressions=is_model("a")))
    assert allocate_on("n1", (models("a", "b"),), any_one, a) == [["r n1/d1"], ["r n1/d0"]]


def test_the_first_alternative_that_can_be_allocated_is_chosen() -> None:
    request = first_of("r", three={"count": 3}, two={"count": 2}, one={})
    assert allocate_on("n1", (models("a", "b"),), claim("c", request)) == [
        ["r/two n1/d0", "r/two n1/d1"]
    ]


def test_an_alternative_gives_way_to_a_later_request() -> None:
    request = first_of("r", two={"count": 2}, one={})
    result = allocate_on("n1", (models("a", "b"),), claim("c", request, exactly("q")))
    assert result == [["r/one n1/d0", "q n1/d1"]]


def test_all_devices_means_all_devices_that_the_request_selects() -> None:
    content = (models("a", "b", "a"),)
    new_claim = claim("c", all_of(expressions=is_model("a")))
    assert allocate_on("n1", content, new_claim) == [["r n1/d0", "r n1/d2"]]
    assert allocate_on("n1", content, claim("c", exactly("x")), new_claim) == [
        ["x n1/d1"],
        ["r n1/d0", "r n1/d2"],
    ]


def test_a_request_for_all_devices_needs_at_least_one() -> None:
    assert allocate_on("n1", (models("b"),), claim("c", all_of(expressions=is_model("a")))) is None


def test_a_request_for_all_devices_fails_if_some_break_a_constraint() -> None:
    same = [{"matchAttribute": f"{DRIVER}/model"}]
    message = (
        f"claim default/c, request r: cannot add device {DRIVER}/n1/d1 because a claim constraint"
    )
    with pytest.raises(AllocationError, match=message):
        allocate_on("n1", (models("a", "b"),), claim("c", all_of(), constraints=same))


def test_a_pod_without_unallocated_claims_gets_an_empty_result() -> None:
    assert allocate_on("n1", (models("a"),)) == []


def test_a_claim_cannot_list_more_devices_than_32() -> None:
    content = (slice_of("n1", *[f"d{i:02}" for i in range(40)]),)
    with pytest.raises(AllocationError, match="number of requested devices 33 exceeds"):
        allocate_on("n1", content, claim("c", exactly(count=33)))
    large = first_of("r", many={"count": 33}, few={"count": 2})
    result = allocate_on("n1", content, claim("c", large))
    assert result is not None
    assert len(result[0]) == 2
    two = claim("c", first_of("r", a={"count": 20}, b={"count": 1}), exactly("q", count=31))
    result = allocate_on("n1", content, two)
    assert result is not None
    assert len(result[0]) == 32
    twice = first_of("q", a={"count": 20}), first_of("r", a={"count": 20})
    with pytest.raises(AllocationError, match="number of requested devices 40"):
        allocate_on("n1", content, claim("c", *twice))


def test_many_claims_do_not_deepen_the_recursion() -> None:
    content = (slice_of("n1", *[f"d{i:03}" for i in range(128)]),)
    claims = [claim(f"c{i}", exactly(count=32)) for i in range(4)]
    result = allocate_on("n1", content, *claims)
    assert result is not None
    assert len({each for one in result for each in one}) == 128
