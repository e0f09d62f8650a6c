"""Counters that devices of a pool share: partitions of one chip.

Tentative allocations: whole, shared and tainted devices, and admin access.
"""

from typing import Any

import pytest

from tests.plugins.devices_kit import allocate_on, allocated, claim, device, exactly, slice_of

# ---- counters -------------------------------------------------------------------------------


def pool(name: str, count: int = 2) -> dict[str, Any]:
    return {"name": name, "generation": 1, "resourceSliceCount": count}


def partition(name: str, memory: str, **fields: Any) -> dict[str, Any]:
    consumption = {"counterSet": "chip", "counters": {"memory": {"value": memory}}}
    return device(name, consumesCounters=[consumption], **fields)


def chip(memory: str = "8") -> dict[str, Any]:
    counters = [{"name": "chip", "counters": {"memory": {"value": memory}}}]
    return slice_of("counters", pool=pool("p"), nodeName="n1", sharedCounters=counters)


def parts(*devices: Any, **spec: Any) -> dict[str, Any]:
    return slice_of("parts", *devices, pool=pool("p"), **{"nodeName": "n1", **spec})


HALVES = parts(partition("whole", "8"), partition("half-1", "4"), partition("half-2", "4"))


def test_partitions_fit_while_the_counters_last() -> None:
    devices = allocate_on("n1", (chip(), HALVES), claim("c", exactly(count=2)))
    assert devices == [["r p/half-1", "r p/half-2"]]
    assert allocate_on("n1", (chip(), HALVES), claim("c", exactly(count=3))) is None
    assert allocate_on("n1", (chip("6"), HALVES), claim("c", exactly())) == [["r p/half-1"]]


def test_partitions_for_other_nodes_draw_on_the_same_counters() -> None:
    counters = slice_of(
        "counters",
        pool=pool("p", 3),
        allNodes=True,
        sharedCounters=[{"name": "chip", "counters": {"memory": {"value": "8"}}}],
    )
    mine = slice_of("mine", partition("a", "8"), pool=pool("p", 3), nodeName="n1")
    hers = slice_of("hers", partition("b", "8"), pool=pool("p", 3), nodeName="n2")
    assert allocate_on("n1", (counters, mine, hers), claim("c", exactly())) == [["r p/a"]]
    used = claim("used", exactly(), status=allocated(("p", "b")))
    assert allocate_on("n1", (counters, mine, hers, used), claim("c", exactly())) is None


# ---- takings --------------------------------------------------------------------------------


TAINT = {"key": "broken", "effect": "NoSchedule"}
TOLERATION = {"key": "broken", "operator": "Exists"}
SHARED = device("s", allowMultipleAllocations=True, capacity={"memory": "10"})


def capacity_request(name: str, memory: str | None) -> dict[str, Any]:
    if memory is None:
        return exactly(name)
    return exactly(name, capacity={"requests": {"memory": memory}})


def test_admin_access_shares_a_device_with_other_claims_but_not_within_one_claim() -> None:
    used = claim("used", exactly(), status=allocated(("n1", "a")))
    admin = exactly("r", adminAccess=True)
    content = (slice_of("n1", "a"), used)
    assert allocate_on("n1", content, claim("c", admin)) == [["r n1/a"]]
    twice = claim("c", admin, exactly("q", adminAccess=True))
    assert allocate_on("n1", content, twice) is None


def test_a_tainted_device_is_allocated_to_pods_that_tolerate_the_taint() -> None:
    content = (slice_of("n1", device("a", taints=[TAINT]), "b"),)
    assert allocate_on("n1", content, claim("c", exactly())) == [["r n1/b"]]
    tolerant = claim("c", exactly(tolerations=[TOLERATION]))
    assert allocate_on("n1", content, tolerant) == [["r n1/a"]]


@pytest.mark.parametrize(
    ("expected", "fits"),
    [(("5", "5"), True), (("5", "6"), False), ((None, "1"), False), (("2", "3", "5"), True)],
)
def test_a_shared_device_is_allocated_while_its_capacity_lasts(
    expected: tuple[str | None, ...], fits: bool
) -> None:
    requests = [capacity_request(f"r{index}", memory) for index, memory in enumerate(expected)]
    devices = allocate_on("n1", (slice_of("n1", SHARED),), claim("c", *requests))
    assert (devices is not None) is fits
