"""Claims that the pods of a group share: made from a template of the group, reserved for the group,
and released when the group is gone."""

from typing import Any

from bayplan.api.device_objects import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, ResourceClaim
from bayplan.journal import AttemptRecord
from bayplan.objects.keys import object_key
from tests.kit.scenes import scene_of
from tests.plugins.devices_kit import class_of, exactly, slice_of
from tests.scenarios.gangs import UPSTREAM, add_members, node_of, put_group
from tests.scenarios.world import World, create, play

GATE = "DRAWorkloadResourceClaims"
PLUGINS = ["GangScheduling", "DynamicResources", "NodeResourcesFit"]
SHARED = {"name": "g", "resourceClaimTemplateName": "t"}


def played(scene: Any, *, gate: bool = True, **options: Any) -> World:
    return play(scene, plugins=PLUGINS, gates={"GenericWorkload": True, GATE: gate}, **options)


def claims(world: World) -> list[ResourceClaim]:
    objects = [one.object for one in world.cluster.objects(RESOURCE_CLAIM)]
    return [one for one in objects if isinstance(one, ResourceClaim)]


def with_gpus(world: World, count: int = 1, minimum: int = 2) -> None:
    """A node for two members with a device, another node, and the group."""
    for name in ("n1", "n2"):
        world.add_node(name, cpu=2, memory="8Gi")
    create(world, "resource.k8s.io/v1 DeviceClass", class_of("gpu"))
    create(world, "resource.k8s.io/v1 ResourceSlice", slice_of("n1", *"xyz"[:count]))
    spec = {"spec": {"devices": {"requests": [exactly()]}}}
    meta = {"name": "t", "namespace": "default"}
    create(world, RESOURCE_CLAIM_TEMPLATE, {"metadata": meta, "spec": spec})
    put_group(world, "g", minimum, UPSTREAM, resourceClaims=[SHARED])


def add_sharing(world: World, *names: str) -> None:
    add_members(world, names, "g", UPSTREAM, cpu=1, spec={"resourceClaims": [SHARED]})


def attempts(world: World, name: str) -> list[float]:
    """When a pod was tried."""
    records = world.journal.records
    return [r.at_seconds for r in records if isinstance(r, AttemptRecord) and r.pod.endswith(name)]


@scene_of(played)
async def test_a_group_shares_one_device_until_it_is_gone(world: World) -> None:
    with_gpus(world)
    add_sharing(world, "a", "b")
    await world.until(5)
    assert [node_of(world, name) for name in "ab"] == ["n1", "n1"]
    (shared,) = claims(world)
    users = [(each.resource, each.name) for each in shared.status.reserved_for or ()]
    assert users == [("podgroups", "g")]
    world.cluster.delete(object_key(UPSTREAM, "default", "g"))
    await world.until(6)
    assert [each.allocation is not None for each in claims(world)] == [True]
    for name in "ab":
        world.delete_pod(name)
    await world.until(60)
    assert claims(world) == []


@scene_of(played, gate=False)
async def test_without_the_gate_each_member_takes_a_device(world: World) -> None:
    with_gpus(world, count=2)
    add_sharing(world, "a", "b")
    await world.until(5)
    assert [node_of(world, name) for name in "ab"] == ["n1", "n1"]
    users = [[each.name for each in one.status.reserved_for or ()] for one in claims(world)]
    assert users == [["a"], ["b"]]


def test_a_member_that_found_no_place_waits_for_its_delay_after_the_claim_is_written() -> None:
    """The second attempt follows the first at once, as upstream. The claim is then written."""

    async def scene(world: World) -> None:
        with_gpus(world)
        add_sharing(world, "a", "b", "c")
        await world.until(10)
        assert [node_of(world, name) for name in "abc"] == ["n1", "n1", ""]
        assert attempts(world, "c") == [0.0, 0.0, 2.0]

    gates = {"GenericWorkload": True, GATE: True, "SchedulerPopFromBackoffQ": True}
    play(scene, plugins=PLUGINS, gates=gates)
