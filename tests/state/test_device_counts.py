"""Columns of device counts: current whenever they are read, and whatever changes them is noted."""

from typing import Any

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node
from tests.plugins.devices_kit import (
    allocated,
    as_claim,
    as_class,
    as_slice,
    claim,
    class_of,
    put,
    slice_of,
)

GPU = "example.com/gpu"
CLASS = class_of("gpu", extendedResourceName=GPU)


def cluster(*contents: dict[str, Any], nodes: tuple[str, ...] = ("n1", "n2")) -> SampleCluster:
    found = SampleCluster()
    found.add(*map(node, nodes))
    put(found.store, CLASS, *contents)
    return found


def counts(found: SampleCluster) -> dict[str, tuple[int, int]]:
    """Node → (devices, taken)."""
    by_row, table = found.devices.counts(GPU), found.cache.table
    assert by_row is not None
    return {name: by_row[row].item() for name, row in table.row_of.items()}


def noted(found: SampleCluster, generation: int) -> set[str]:
    """Nodes that a change is noted of since."""
    table = found.cache.table
    return {table.names[row] for row in table.log.rows_since(generation, Facet.ALLOCATABLE)}


def test_no_class_no_counts() -> None:
    result = cluster(slice_of("n1", "x"))
    assert result.devices.counts("example.com/other") is None
    result.store.of(DEVICE_CLASS).remove(as_class(CLASS))
    assert result.devices.counts(GPU) is None


def test_claims_take_devices_and_give_them_back() -> None:
    found = cluster(slice_of("n1", "x", "y"), slice_of("n2", "x"))
    assert counts(found) == {"n1": (2, 0), "n2": (1, 0)}
    generation, claims = found.cache.table.log.generation, found.store.of(RESOURCE_CLAIM)
    has_x = as_claim(claim("c", status=allocated(("n1", "x"))))
    claims.put(has_x)
    assert noted(found, generation) == {"n1"}
    assert counts(found) == {"n1": (2, 1), "n2": (1, 0)}
    generation = found.cache.table.log.generation
    claims.remove(has_x)
    assert noted(found, generation) == {"n1"}
    assert counts(found) == {"n1": (2, 0), "n2": (1, 0)}


def test_claims_in_flight_count_and_the_apis_report_changes_nothing() -> None:
    found = cluster(claim("c"), slice_of("n1", "x"), slice_of("n2", "x"))
    assert counts(found)["n1"] == (1, 0)
    claims, given = (
        found.devices.resource_claims,
        as_claim(claim("c", status=allocated(("n1", "x")))),
    )
    wants = claims.get("default", "c")
    assert wants is not None and given.allocation is not None
    claims.put_in_flight(wants, given.allocation)
    assert counts(found)["n1"] == (1, 1)
    generation = found.cache.table.log.generation
    found.store.of(RESOURCE_CLAIM).put(given)
    assert noted(found, generation) == set()
    assert counts(found)["n1"] == (1, 1)


def test_a_device_of_all_nodes_concerns_all_nodes() -> None:
    found = cluster(slice_of("net", "x", allNodes=True))
    assert counts(found) == {"n1": (1, 0), "n2": (1, 0)}
    generation = found.cache.table.log.generation
    put(found.store, claim("c", status=allocated(("net", "x"))))
    assert noted(found, generation) == {"n1", "n2"}
    assert counts(found) == {"n1": (1, 1), "n2": (1, 1)}


def test_slices_come_change_and_go() -> None:
    found = cluster()
    assert counts(found) == {"n1": (0, 0), "n2": (0, 0)}
    generation = found.cache.table.log.generation
    put(found.store, slice_of("s", "x", nodeName="n2"))
    assert noted(found, generation) == {"n2"}
    assert counts(found)["n2"] == (1, 0)
    put(found.store, slice_of("s", "x", "y", nodeName="n1"))
    assert counts(found) == {"n1": (2, 0), "n2": (0, 0)}
    found.store.of(RESOURCE_SLICE).remove(as_slice(slice_of("s", nodeName="n1")))
    assert noted(found, generation) == {"n1", "n2"}
    assert counts(found) == {"n1": (0, 0), "n2": (0, 0)}


def test_labels_of_a_node_may_bring_it_devices() -> None:
    expression = {"key": "zone", "operator": "In", "values": ["b"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    found = cluster(slice_of("rack", "x", nodeSelector=selector))
    assert counts(found)["n1"] == (0, 0)
    found.cache.update_node(node("n1", labels={"zone": "b"}))
    assert counts(found)["n1"] == (1, 0)


def test_a_node_that_comes_finds_its_devices_counted() -> None:
    found = cluster(slice_of("n9", "x"), claim("c", status=allocated(("n9", "x"))))
    assert counts(found) == {"n1": (0, 0), "n2": (0, 0)}
    found.add(*(node(f"n{number}") for number in range(3, 200)))
    assert counts(found)["n9"] == (1, 1)
    assert counts(found)["n199"] == (0, 0)


def test_another_class_is_another_count() -> None:
    found = cluster(slice_of("n1", "x"))
    assert counts(found)["n1"] == (1, 0)
    generation = found.cache.table.log.generation
    put(found.store, class_of("gpu", "false", extendedResourceName=GPU))
    assert noted(found, generation) == {"n1", "n2"}
    assert counts(found)["n1"] == (0, 0)


def test_changes_of_devices_are_not_logged_before_the_first_read() -> None:
    found = cluster()
    generation = found.cache.table.log.generation
    put(found.store, slice_of("n1", "x"), claim("c", status=allocated(("n1", "x"))))
    assert noted(found, generation) == set()
    assert counts(found)["n1"] == (1, 1)
