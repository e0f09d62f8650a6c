"""S-08, devices: one after the other, claims from templates, one claim for several pods."""

from typing import Any

import pytest

from bayplan.api.device_objects import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, ResourceClaim
from tests.plugins.devices_kit import claim, class_of, exactly, slice_of
from tests.scenarios.world import World, play

PLUGINS = ["DynamicResources", "NodeResourcesFit"]
GPU = "example.com/gpu"
BY_TEMPLATE = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}
NAMED = {"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}


def create(world: World, kind: str, content: Any) -> None:
    api_version, _, name = kind.partition(" ")
    content["metadata"].pop("resourceVersion", None)
    world.cluster.create({"apiVersion": api_version, "kind": name, **content})


def with_two_gpus(world: World) -> None:
    for name in ("n1", "n2"):
        world.add_node(name, cpu=8, memory="8Gi")
    create(world, "resource.k8s.io/v1 DeviceClass", class_of("gpu", extendedResourceName=GPU))
    create(world, "resource.k8s.io/v1 ResourceSlice", slice_of("n1", "x", "y"))
    meta = {"name": "t", "namespace": "default"}
    spec = {"spec": {"devices": {"requests": [exactly()]}}}
    create(world, RESOURCE_CLAIM_TEMPLATE, {"metadata": meta, "spec": spec})


def claims(world: World) -> list[ResourceClaim]:
    found = [one.object for one in world.cluster.objects(RESOURCE_CLAIM)]
    return [one for one in found if isinstance(one, ResourceClaim)]


@pytest.mark.parametrize("options", [{"spec": BY_TEMPLATE}, {"requests": {GPU: 1}}])
def test_the_third_pod_gets_the_device_of_the_first_when_that_is_gone(options: Any) -> None:
    async def story(world: World) -> None:
        with_two_gpus(world)
        for name in ("a", "b", "c"):
            world.add_pod(name, **options)
        await world.until(29)
        assert world.bound("a") == (0.0, "n1")
        assert world.bound("b") == (0.0, "n1")
        assert world.bound("c") is None
        world.delete_pod("a")
        await world.until(35)
        bound = world.bound("c")
        assert bound is not None
        assert bound[1] == "n1"
        assert len(claims(world)) == 2
        devices = [each.allocation.results[0].device for each in claims(world) if each.allocation]
        assert sorted(devices) == ["x", "y"]

    play(story, plugins=PLUGINS)


def test_pods_that_share_a_claim_go_to_one_node_and_it_is_free_after_them() -> None:
    async def story(world: World) -> None:
        with_two_gpus(world)
        create(world, RESOURCE_CLAIM, claim("c", exactly(count=2)))
        world.add_pod("a", spec=NAMED)
        world.add_pod("b", spec=NAMED)
        await world.until(10)
        assert [bound and bound[1] for bound in map(world.bound, "ab")] == ["n1", "n1"]
        (found,) = claims(world)
        assert [user.name for user in found.status.reserved_for or ()] == ["a", "b"]
        for name in "ab":
            world.delete_pod(name)
        await world.until(20)
        assert [each.allocation for each in claims(world)] == [None]

    play(story, plugins=PLUGINS)
