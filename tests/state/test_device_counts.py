"""Columns of device counts are current when they are read, and every change of them is logged."""

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
    sample = SampleCluster()
    sample.add(*map(node, nodes))
    put(sample.store, CLASS, *contents)
    return sample


def counts(cluster: SampleCluster) -> dict[str, tuple[int, int]]:
    """Node → (devices, taken)."""
    by_row, table = cluster.devices.counts(GPU), cluster.cache.table
    assert by_row is not None
    return {name: by_row[row].item() for name, row in table.row_of.items()}


def noted(cluster: SampleCluster, generation: int) -> set[str]:
    """Nodes with a logged change since ``generation``."""
    table = cluster.cache.table
    return {table.names[row] for row in table.log.rows_since(generation, Facet.ALLOCATABLE)}


def test_a_missing_class_has_no_counts() -> None:
    result = cluster(slice_of("n1", "x"))
    assert result.devices.counts("example.com/other") is None
    result.store.of(DEVICE_CLASS).remove(as_class(CLASS))
    assert result.devices.counts(GPU) is None


def test_claims_take_and_release_devices() -> None:
    sample = cluster(slice_of("n1", "x", "y"), slice_of("n2", "x"))
    assert counts(sample) == {"n1": (2, 0), "n2": (1, 0)}
    generation, claims = sample.cache.table.log.generation, sample.store.of(RESOURCE_CLAIM)
    has_x = as_claim(claim("c", status=allocated(("n1", "x"))))
    claims.put(has_x)
    assert noted(sample, generation) == {"n1"}
    assert counts(sample) == {"n1": (2, 1), "n2": (1, 0)}
    generation = sample.cache.table.log.generation
    claims.remove(has_x)
    assert noted(sample, generation) == {"n1"}
    assert counts(sample) == {"n1": (2, 0), "n2": (1, 0)}


def test_claims_in_flight_count_and_the_report_of_the_api_changes_no_count() -> None:
    sample = cluster(claim("c"), slice_of("n1", "x"), slice_of("n2", "x"))
    assert counts(sample)["n1"] == (1, 0)
    claims, allocated_claim = (
        sample.devices.resource_claims,
        as_claim(claim("c", status=allocated(("n1", "x")))),
    )
    stored_claim = claims.get("default", "c")
    assert stored_claim is not None and allocated_claim.allocation is not None
    claims.put_in_flight(stored_claim, allocated_claim.allocation)
    assert counts(sample)["n1"] == (1, 1)
    generation = sample.cache.table.log.generation
    sample.store.of(RESOURCE_CLAIM).put(allocated_claim)
    assert noted(sample, generation) == set()
    assert counts(sample)["n1"] == (1, 1)


def test_a_change_of_a_device_of_all_nodes_is_logged_for_all_nodes() -> None:
    sample = cluster(slice_of("net", "x", allNodes=True))
    assert counts(sample) == {"n1": (1, 0), "n2": (1, 0)}
    generation = sample.cache.table.log.generation
    put(sample.store, claim("c", status=allocated(("net", "x"))))
    assert noted(sample, generation) == {"n1", "n2"}
    assert counts(sample) == {"n1": (1, 1), "n2": (1, 1)}


def test_slices_are_added_updated_and_removed() -> None:
    sample = cluster()
    assert counts(sample) == {"n1": (0, 0), "n2": (0, 0)}
    generation = sample.cache.table.log.generation
    put(sample.store, slice_of("s", "x", nodeName="n2"))
    assert noted(sample, generation) == {"n2"}
    assert counts(sample)["n2"] == (1, 0)
    put(sample.store, slice_of("s", "x", "y", nodeName="n1"))
    assert counts(sample) == {"n1": (2, 0), "n2": (0, 0)}
    sample.store.of(RESOURCE_SLICE).remove(as_slice(slice_of("s", nodeName="n1")))
    assert noted(sample, generation) == {"n1", "n2"}
    assert counts(sample) == {"n1": (0, 0), "n2": (0, 0)}


def test_a_label_of_a_node_may_make_devices_available() -> None:
    expression = {"key": "zone", "operator": "In", "values": ["b"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    sample = cluster(slice_of("rack", "x", nodeSelector=selector))
    assert counts(sample)["n1"] == (0, 0)
    sample.cache.update_node(node("n1", labels={"zone": "b"}))
    assert counts(sample)["n1"] == (1, 0)


def test_changes_of_devices_are_not_logged_before_the_first_read() -> None:
    sample = cluster()
    generation = sample.cache.table.log.generation
    put(sample.store, slice_of("n1", "x"), claim("c", status=allocated(("n1", "x"))))
    assert noted(sample, generation) == set()
    assert counts(sample)["n1"] == (1, 1)


def test_an_added_node_has_its_device_counts() -> None:
    sample = cluster(slice_of("n9", "x"), claim("c", status=allocated(("n9", "x"))))
    assert counts(sample) == {"n1": (0, 0), "n2": (0, 0)}
    sample.add(*(node(f"n{number}") for number in range(3, 200)))
    assert counts(sample)["n9"] == (1, 1)
    assert counts(sample)["n199"] == (0, 0)
