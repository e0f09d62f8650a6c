"""Devices about to be given: whole, shared, tainted, looked after."""

from typing import Any

import pytest

from tests.plugins.devices_kit import allocated, claim, device, exactly, found_on, slice_of

TAINT = {"key": "broken", "effect": "NoSchedule"}
TOLERATION = {"key": "broken", "operator": "Exists"}
SHARED = device("s", allowMultipleAllocations=True, capacity={"memory": "10"})


def asks(name: str, memory: str | None) -> dict[str, Any]:
    if memory is None:
        return exactly(name)
    return exactly(name, capacity={"requests": {"memory": memory}})


def test_a_device_is_given_once() -> None:
    content = (slice_of("n1", "a", "b"),)
    assert found_on("n1", content, claim("c", exactly("r"), exactly("q"))) == [["r n1/a", "q n1/b"]]
    assert found_on("n1", content, claim("c", exactly(count=2)), claim("d", exactly())) is None


def test_a_device_that_a_claim_has_is_not_given_again() -> None:
    used = claim("used", exactly(), status=allocated(("n1", "a")))
    assert found_on("n1", (slice_of("n1", "a", "b"), used), claim("c", exactly())) == [["r n1/b"]]


def test_admin_access_is_given_beside_others_but_not_twice_to_one_claim() -> None:
    used = claim("used", exactly(), status=allocated(("n1", "a")))
    admin = exactly("r", adminAccess=True)
    content = (slice_of("n1", "a"), used)
    assert found_on("n1", content, claim("c", admin)) == [["r n1/a"]]
    twice = claim("c", admin, exactly("q", adminAccess=True))
    assert found_on("n1", content, twice) is None


def test_a_tainted_device_is_given_to_those_who_tolerate_it() -> None:
    content = (slice_of("n1", device("a", taints=[TAINT]), "b"),)
    assert found_on("n1", content, claim("c", exactly())) == [["r n1/b"]]
    tolerant = claim("c", exactly(tolerations=[TOLERATION]))
    assert found_on("n1", content, tolerant) == [["r n1/a"]]


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [(("5", "5"), True), (("5", "6"), False), ((None, "1"), False), (("2", "3", "5"), True)],
)
def test_a_shared_device_is_given_while_its_capacity_lasts(
    wanted: tuple[str | None, ...], fits: bool
) -> None:
    requests = [asks(f"r{index}", memory) for index, memory in enumerate(wanted)]
    given = found_on("n1", (slice_of("n1", SHARED),), claim("c", *requests))
    assert (given is not None) is fits


def test_what_other_claims_consume_is_not_left() -> None:
    used = claim("used", exactly(), status=allocated(("n1", "s")))
    result = used["status"]["allocation"]["devices"]["results"][0]
    result |= {"shareID": "1", "consumedCapacity": {"memory": "6"}}
    content = (slice_of("n1", SHARED), used)
    assert found_on("n1", content, claim("c", asks("r", "4"))) == [["r n1/s"]]
    assert found_on("n1", content, claim("c", asks("r", "5"))) is None


def test_a_device_that_is_too_small_is_passed_over() -> None:
    small, large = device("a", capacity={"memory": "4"}), device("b", capacity={"memory": "8"})
    content = (slice_of("n1", small, large),)
    assert found_on("n1", content, claim("c", asks("r", "6"))) == [["r n1/b"]]
    assert found_on("n1", content, claim("c", asks("r", "9"))) is None
