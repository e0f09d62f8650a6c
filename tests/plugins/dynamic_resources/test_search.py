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


def test_the_first_alternative_that_can_be_allocated_is_chosen() -> None:
    request = first_of("r", three={"count": 3}, two={"count": 2}, one={})
    assert allocate_on("n1", (models("a", "b"),), claim("c", request)) == [
        ["r/two n1/d0", "r/two n1/d1"]
    ]


def test_all_devices_means_all_devices_that_the_request_selects() -> None:
    content = (models("a", "b", "a"),)
    new_claim = claim("c", all_of(expressions=is_model("a")))
    assert allocate_on("n1", content, new_claim) == [["r n1/d0", "r n1/d2"]]
    assert allocate_on("n1", content, claim("c", exactly("x")), new_claim) == [
        ["x n1/d1"],
        ["r n1/d0", "r n1/d2"],
    ]


def test_a_request_for_all_devices_fails_if_some_break_a_constraint() -> None:
    same = [{"matchAttribute": f"{DRIVER}/model"}]
    message = (
        f"claim default/c, request r: cannot add device {DRIVER}/n1/d1 because a claim constraint"
    )
    with pytest.raises(AllocationError, match=message):
        allocate_on("n1", (models("a", "b"),), claim("c", all_of(), constraints=same))


def test_a_claim_cannot_list_more_devices_than_32() -> None:
    content = (slice_of("n1", *[f"d{i:02}" for i in range(40)]),)
    with pytest.raises(AllocationError) as refused:
        allocate_on("n1", content, claim("c", exactly(count=33)))
    assert str(refused.value) == _too_many("r", 33, before=0)
    large = first_of("r", many={"count": 33}, few={"count": 2})
    result = allocate_on("n1", content, claim("c", large))
    assert result is not None
    assert len(result[0]) == 2
    two = claim("c", first_of("r", a={"count": 20}, b={"count": 1}), exactly("q", count=31))
    result = allocate_on("n1", content, two)
    assert result is not None
    assert len(result[0]) == 32
    twice = first_of("q", a={"count": 20}), first_of("r", a={"count": 20})
    with pytest.raises(AllocationError) as refused:
        allocate_on("n1", content, claim("c", *twice))
    assert str(refused.value) == _too_many("r", 20, before=20)


def _too_many(request: str, count: int, before: int) -> str:
    return (
        f"claim default/c, request {request}: adding {count} devices exceeds the claim limit "
        f"of 32, with {before} already accounted for"
    )


@pytest.mark.parametrize("request_count", [2, 4])
def test_counts_whose_sum_exceeds_64_bits_are_too_many(request_count: int) -> None:
    requests = [exactly(f"r{i}", count=2**62) for i in range(request_count)]
    with pytest.raises(AllocationError) as refused:
        allocate_on("n1", (slice_of("n1", "a"),), claim("c", *requests))
    assert str(refused.value) == _too_many("r0", 2**62, before=0)


def test_a_request_that_is_too_large_is_reported_before_the_requests_after_it() -> None:
    requests = exactly("r0", count=33), exactly("r1", "no-such-class")
    with pytest.raises(AllocationError) as refused:
        allocate_on("n1", (slice_of("n1", "a"),), claim("c", *requests))
    assert str(refused.value) == _too_many("r0", 33, before=0)


@pytest.mark.parametrize("count", [2**63 - 1, 2**63 - 2, 2**62])
def test_an_alternative_that_is_too_large_gives_way_to_the_next(count: int) -> None:
    content = (slice_of("n1", "a", "b", "c"),)
    alternatives = first_of("r", huge={"count": count}, one={"count": 1})
    result = allocate_on("n1", content, claim("c", exactly("q", count=2), alternatives))
    assert result is not None
    assert result == [["q n1/a", "q n1/b", "r/one n1/c"]]


def test_many_claims_do_not_deepen_the_recursion() -> None:
    content = (slice_of("n1", *[f"d{i:03}" for i in range(128)]),)
    claims = [claim(f"c{i}", exactly(count=32)) for i in range(4)]
    result = allocate_on("n1", content, *claims)
    assert result is not None
    assert len({each for one in result for each in one}) == 128
