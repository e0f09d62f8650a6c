"""What is free on each GPU of a node."""

from typing import Any

import pytest
from gpu_sharing.asks import AskError, GpuAsk, ask_of, ask_of_placed
from gpu_sharing.devices import DEVICES_ANNOTATION, Devices, best_fit, devices_of, tag_bit

from bayplan import Node, PodInfo
from bayplan.testing import cluster, node, pod


def gpu_node(name: str, gpus: int = 2, **options: Any) -> Node:
    return node(name, allocatable={"nvidia.com/gpu": gpus}, **options)


def gpu_pod(
    name: str, milli: int | str = 1000, count: int = 1, devices: str = "", on: str = ""
) -> PodInfo:
    notes = {"bayplan.dev/gpu-milli": str(milli)}
    if devices:
        notes[DEVICES_ANNOTATION] = devices
    found = pod(name, requests={"nvidia.com/gpu": count}, annotations=notes)
    return found.on_node(on) if on else found


def test_a_pod_asks_for_devices_and_for_a_share_of_each() -> None:
    assert ask_of(gpu_pod("a", 460)) == GpuAsk(1, 460)
    assert ask_of(pod("b", requests={"nvidia.com/gpu": 2})) == GpuAsk(2, 1000)
    assert ask_of(pod("c")).count == 0
    models = pod(
        "d", requests={"nvidia.com/gpu": 1}, annotations={"bayplan.dev/gpu-spec": "T4|P100"}
    )
    assert ask_of(models).models == ("T4", "P100")


@pytest.mark.parametrize("milli", ["0", "1001", "half", "-1", "٣"])
def test_a_share_that_is_none_is_refused_and_a_placed_pod_with_one_holds_all(milli: str) -> None:
    with pytest.raises(AskError, match=r"bayplan.dev/gpu-milli: found '.*', wanted"):
        ask_of(gpu_pod("a", milli))
    assert ask_of_placed(gpu_pod("a", milli)) == GpuAsk(1, 1000)


def test_what_is_written_on_a_pod_is_what_it_holds() -> None:
    free, tags = devices_of([gpu_pod("a", 300, devices="1")], 2, {})
    assert free == [1000, 700]
    assert tags == tag_bit(GpuAsk(1, 300))


def test_what_is_remembered_counts_until_it_is_written() -> None:
    one = gpu_pod("a", 300)
    assert devices_of([one], 2, {one.uid: (1,)})[0] == [1000, 700]
    written = gpu_pod("a", 300, devices="0")
    assert devices_of([written], 2, {written.uid: (1,)})[0] == [700, 1000]


def test_a_pod_with_neither_holds_the_devices_that_fit_it_best() -> None:
    pods = [gpu_pod("a", 300, devices="1"), gpu_pod("b", 500)]
    assert devices_of(pods, 2, {})[0] == [1000, 200]


def test_more_than_there_is_leaves_nothing() -> None:
    pods = [gpu_pod("a", 800, devices="0"), gpu_pod("b", 800, devices="0,9"), gpu_pod("c", count=4)]
    assert devices_of(pods, 2, {})[0] == [0, 0]


def test_best_fit_takes_the_least_free_that_will_do() -> None:
    assert best_fit([1000, 400, 500, 1000], GpuAsk(1, 450)) == (2,)
    assert best_fit([1000, 400, 500, 1000], GpuAsk(2, 1000)) == (0, 3)
    assert best_fit([100], GpuAsk(1, 450)) == ()


def test_sorts_of_pods_have_bits_of_their_own() -> None:
    bits = [tag_bit(ask) for ask in (GpuAsk(1, 500), GpuAsk(1, 1000), GpuAsk(2, 1000))]
    assert bits == [1, 2, 4]


def test_nodes_are_counted_anew_when_their_pods_change() -> None:
    world = cluster([gpu_node("a"), gpu_node("b", 1)], [gpu_pod("p", 300, devices="1", on="a")])
    devices = Devices()
    free = devices.free(world.lend().nodes)
    assert free[:, :2].tolist() == [[1000, 700], [1000, 0]]
    world.add(gpu_pod("q", 400, devices="0", on="b"))
    nodes = world.lend().nodes
    assert devices.free(nodes)[:, :2].tolist() == [[1000, 700], [600, 0]]
    assert devices.free(nodes.take([1]))[:, :2].tolist() == [[600, 0]]


def test_a_wider_node_makes_room_for_its_devices() -> None:
    world = cluster([gpu_node("a")], [])
    devices = Devices()
    assert devices.free(world.lend().nodes).shape == (1, 8)
    world.add(gpu_node("b", 16))
    assert devices.free(world.lend().nodes).sum(axis=1).tolist() == [2000, 16000]
