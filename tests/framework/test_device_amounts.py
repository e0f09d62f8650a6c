"""The amounts that a strategy reads if devices represent some resources."""

import numpy as np
import pytest

from bayplan.framework.resource_scorers import NodesWithDevices, NodeWithDevices, counted
from bayplan.state.nodes import NodeView
from bayplan.state.resources import Bundle, RowAmounts
from bayplan.testing import SampleCluster, node, pod
from tests.plugins.devices_kit import allocated, claim, class_of, put, slice_of

GPU, NIC = "example.com/gpu", "example.com/nic"
#: Nodes with devices, with the resource itself, or with neither.
BACKED, OWN, NEITHER = "backed", "own", "neither"


def cluster(*more: str) -> SampleCluster:
    sample = SampleCluster()
    sample.add(
        node(BACKED, cpu=4),
        node(OWN, cpu=4, allocatable={GPU: 8}),
        node(NEITHER, cpu=4, allocatable={GPU: 0}),
        *(node(name, cpu=4, allocatable={GPU: 8}) for name in more),
        # A node's pods count if the node offers the resource itself.
        pod("on-own", requests={GPU: 2}, node=OWN),
        pod("on-backed", requests={GPU: 7}, node=BACKED),
    )
    reserved_claim = claim("c", status=allocated((BACKED, "a")))
    put(sample.store, class_of("gpu", extendedResourceName=GPU), reserved_claim)
    put(sample.store, slice_of(BACKED, "a", "b", "c"), slice_of(OWN, "a", "b"))
    return sample


def amounts(cluster: SampleCluster, name: str) -> RowAmounts:
    view = cluster.lend().nodes
    position = view.position(name)
    assert position is not None
    counts = counted(cluster.devices, (GPU, NIC))
    assert list(counts) == [GPU]
    return NodeWithDevices(view.info(position), counts).amounts(GPU)


def test_devices_count_where_the_node_does_not_offer_the_resource_itself() -> None:
    sample = cluster()
    assert amounts(sample, BACKED) == RowAmounts(3, requested=1, scored=1, free=2)
    assert amounts(sample, OWN) == RowAmounts(8, requested=2, scored=2, free=6)
    assert amounts(sample, NEITHER) == RowAmounts(0, requested=0, scored=0, free=0)


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("amount", [1, 2**50])
def test_arrays_and_single_nodes_have_equal_values(scored: bool, amount: int) -> None:
    sample = cluster()
    nodes = sample.lend().nodes
    counts = counted(sample.devices, (GPU,))
    bundle = Bundle(("cpu", GPU), (0, 0), (500, amount))
    for view in (nodes, nodes.take([2, 0])):
        usage = NodesWithDevices(view, counts).usage(bundle, scored=scored)
        assert usage.offered is not None and not usage.is_within
        for position, info in enumerate(view.infos()):
            for place, resource in enumerate(bundle.resources):
                has = NodeWithDevices(info, counts).amounts(resource)
                assert usage.offered[place, position] == bool(has.allocatable)
                assert usage.allocatable[place, position] == max(has.allocatable, 1)
                taken = has.scored if scored else has.requested
                if has.allocatable:
                    expected = [taken, taken + (500, amount)[place]]
                    assert usage.used[:, place, position].tolist() == expected


def used_on(view: NodeView, cluster: SampleCluster) -> list[float]:
    usage = NodesWithDevices(view, counted(cluster.devices, (GPU,))).usage(
        Bundle((GPU,), (1,)), scored=False
    )
    assert usage.offered is None
    return usage.used[0].tolist()


def test_a_resource_is_offered_by_all_nodes_as_devices_or_as_an_amount() -> None:
    sample = cluster()
    view = sample.lend().nodes
    assert used_on(view.take([0, 1]), sample) == [2, 3]
    assert used_on(view.take([1]), sample) == [3]


def test_one_node_can_be_read_as_an_array() -> None:
    sample = cluster()
    counts = counted(sample.devices, (GPU,))
    view = NodeWithDevices(sample.lend().nodes.info(0), counts).view
    usage = view.resources.usage(Bundle((GPU,), (1,)), scored=False)
    assert len(view) == 1
    assert (usage.used.item(), usage.allocatable.item()) == (2, 3)


def test_arrays_of_the_node_table_are_not_written() -> None:
    sample = cluster()
    view = sample.lend().nodes
    NodesWithDevices(view, counted(sample.devices, (GPU,))).usage(Bundle((GPU,), (1,)), scored=True)
    assert np.array_equal(view.allocatable(GPU), [0, 8, 0])
