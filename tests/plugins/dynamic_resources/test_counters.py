"""Counters that devices of a pool share: partitions of one chip."""

from typing import Any

from tests.plugins.devices_kit import (
    allocated,
    claim,
    device,
    exactly,
    found_on,
    slice_of,
)


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
    given = found_on("n1", (chip(), HALVES), claim("c", exactly(count=2)))
    assert given == [["r p/half-1", "r p/half-2"]]
    assert found_on("n1", (chip(), HALVES), claim("c", exactly(count=3))) is None
    assert found_on("n1", (chip("6"), HALVES), claim("c", exactly())) == [["r p/half-1"]]


def test_what_is_allocated_has_consumed_its_counters() -> None:
    used = claim("used", exactly(), status=allocated(("p", "half-1")))
    assert found_on("n1", (chip(), HALVES, used), claim("c", exactly())) == [["r p/half-2"]]
    whole = claim("used", exactly(), status=allocated(("p", "whole")))
    assert found_on("n1", (chip(), HALVES, whole), claim("c", exactly())) is None


def test_partitions_for_other_nodes_draw_on_the_same_counters() -> None:
    counters = slice_of(
        "counters",
        pool=pool("p", 3),
        allNodes=True,
        sharedCounters=[{"name": "chip", "counters": {"memory": {"value": "8"}}}],
    )
    mine = slice_of("mine", partition("a", "8"), pool=pool("p", 3), nodeName="n1")
    hers = slice_of("hers", partition("b", "8"), pool=pool("p", 3), nodeName="n2")
    assert found_on("n1", (counters, mine, hers), claim("c", exactly())) == [["r p/a"]]
    used = claim("used", exactly(), status=allocated(("p", "b")))
    assert found_on("n1", (counters, mine, hers, used), claim("c", exactly())) is None


def test_a_second_share_of_a_device_consumes_no_counters() -> None:
    shared = partition("s", "8", allowMultipleAllocations=True, capacity={"slots": "4"})
    one = exactly("r", capacity={"requests": {"slots": "1"}})
    two = exactly("q", capacity={"requests": {"slots": "1"}})
    given = found_on("n1", (chip(), parts(shared)), claim("c", one, two))
    assert given == [["r p/s", "q p/s"]]
