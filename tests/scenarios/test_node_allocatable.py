"""Devices that take resources of their node: they count from the choice of the node, are written to
the pod, and are free again with it."""

from typing import Any

from bayplan.api.device_objects import RESOURCE_CLAIM_TEMPLATE
from tests.kit.scenes import scene_of
from tests.plugins.devices_kit import class_of, device, exactly, slice_of
from tests.scenarios.gangs import UPSTREAM, add_members, message, node_of, put_group
from tests.scenarios.world import World, create, play

GATE = "DRANodeAllocatableResources"
PLUGINS = ["GangScheduling", "DynamicResources", "NodeResourcesFit"]
BY_TEMPLATE = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}
#: A device is two of the node's cpus, and costs memory for each container that uses it.
TAKES = {
    "cpu": {"mapping": {"deviceMultiplier": "2"}},
    "memory": {"overhead": {"perPod": "64Mi", "perContainer": "1Gi"}},
}


def played(scene: Any, *, gate: bool = True) -> World:
    return play(scene, plugins=PLUGINS, gates={"GenericWorkload": True, GATE: gate})


def with_devices(world: World) -> None:
    """A node with four cpus and three devices."""
    world.add_node("n1", cpu=4, memory="8Gi")
    create(world, "resource.k8s.io/v1 DeviceClass", class_of("gpu"))
    devices = [device(name, nodeAllocatableResources=TAKES) for name in "xyz"]
    create(world, "resource.k8s.io/v1 ResourceSlice", slice_of("n1", *devices))
    meta = {"name": "t", "namespace": "default"}
    spec = {"spec": {"devices": {"requests": [exactly()]}}}
    create(world, RESOURCE_CLAIM_TEMPLATE, {"metadata": meta, "spec": spec})


def taken(world: World, name: str) -> Any:
    return world.pod(name).content["status"].get("nodeAllocatableResourceClaimStatuses")


@scene_of(played)
async def test_devices_count_with_the_requests_until_the_pod_is_gone(world: World) -> None:
    with_devices(world)
    for name in ("a", "b"):
        world.add_pod(name, cpu=1, spec=BY_TEMPLATE)
    await world.until(1)
    world.add_pod("plain", cpu=2)
    await world.until(5)
    assert [node_of(world, name) for name in ("a", "b", "plain")] == ["n1", "", ""]
    assert message(world, "b") == "0/1 nodes are available: 1 Insufficient cpu."
    assert message(world, "plain") == "0/1 nodes are available: 1 Insufficient cpu."
    (status,) = taken(world, "a")
    assert status["resourceClaimName"].startswith("a-g-")
    assert status["mapping"] == [{"name": "cpu", "quantity": "2"}]
    assert status["overhead"] == [{"name": "memory", "perPod": "64Mi", "perContainer": "1Gi"}]
    world.delete_pod("a")
    await world.until(60)
    assert [node_of(world, name) for name in ("b", "plain")] == ["", "n1"]


@scene_of(played, gate=False)
async def test_without_the_gate_devices_take_nothing_of_the_node(world: World) -> None:
    with_devices(world)
    for name in ("a", "b", "c"):
        world.add_pod(name, cpu=1, spec=BY_TEMPLATE)
    await world.until(5)
    assert [node_of(world, name) for name in "abc"] == ["n1"] * 3
    assert taken(world, "a") is None


@scene_of(played)
async def test_members_of_a_group_see_what_the_devices_of_other_members_take(world: World) -> None:
    with_devices(world)
    put_group(world, "g", 2, UPSTREAM)
    add_members(world, ("a", "b"), "g", UPSTREAM, cpu=1, spec=BY_TEMPLATE)
    await world.until(5)
    assert [node_of(world, name) for name in "ab"] == ["", ""]
    assert "Insufficient cpu" in message(world, "b")
