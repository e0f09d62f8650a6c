"""S-08, devices: one after the other, claims from templates, one claim for several pods, slow
writes and slow watches of claims; rows F-091 and F-092."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bayplan.api.device_objects import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, ResourceClaim
from bayplan.framework.handle import SharedDRAManager
from bayplan.ports import ApiError, WatchEvent
from tests.plugins.devices_kit import claim, class_of, exactly, slice_of
from tests.scenarios.world import World, create, play, scenario

PLUGINS = ["DynamicResources", "NodeResourcesFit"]
GPU = "example.com/gpu"
BY_TEMPLATE = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}
NAMED = {"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}


def with_two_gpus(world: World) -> None:
    for name in ("n1", "n2"):
        world.add_node(name, cpu=8, memory="8Gi")
    create(world, "resource.k8s.io/v1 DeviceClass", class_of("gpu", extendedResourceName=GPU))
    create(world, "resource.k8s.io/v1 ResourceSlice", slice_of("n1", "x", "y"))
    meta = {"name": "t", "namespace": "default"}
    spec = {"spec": {"devices": {"requests": [exactly()]}}}
    create(world, RESOURCE_CLAIM_TEMPLATE, {"metadata": meta, "spec": spec})


def claims(world: World) -> list[ResourceClaim]:
    objects = [one.object for one in world.cluster.objects(RESOURCE_CLAIM)]
    return [one for one in objects if isinstance(one, ResourceClaim)]


@pytest.mark.parametrize("options", [{"spec": BY_TEMPLATE}, {"requests": {GPU: 1}}])
@scenario(plugins=PLUGINS)
async def test_the_third_pod_gets_the_device_of_the_deleted_first_pod(
    world: World, options: Any
) -> None:
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


@scenario(plugins=PLUGINS)
async def test_pods_that_share_a_claim_share_a_node_and_release_the_claim_at_the_end(
    world: World,
) -> None:
    with_two_gpus(world)
    create(world, RESOURCE_CLAIM, claim("c", exactly(count=2)))
    world.add_pod("a", spec=NAMED)
    world.add_pod("b", spec=NAMED)
    await world.until(10)
    assert [bound and bound[1] for bound in map(world.bound, "ab")] == ["n1", "n1"]
    (shared,) = claims(world)
    assert [user.name for user in shared.status.reserved_for or ()] == ["a", "b"]
    for name in "ab":
        world.delete_pod(name)
    await world.until(20)
    assert [each.allocation for each in claims(world)] == [None]


# ---- allocations in flight ------------------------------------------------------------------


class Slow:
    """A cluster in which writes of claims, or the events of their watch, take seconds."""

    def __init__(self, cluster: Any, *, writes: float = 0.0, tells: float = 0.0) -> None:
        self._cluster, self._writes, self._tells = cluster, writes, tells
        #: Names of claims that cannot be written.
        self.refused: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def patch(self, kind: str, namespace: str, name: str, patch: Any, part: str = "") -> Any:
        if kind == RESOURCE_CLAIM and part == "status":
            await asyncio.sleep(self._writes)
            if name in self.refused:
                raise ApiError(500, "InternalError", "the disk is full")
        return await self._cluster.patch(kind, namespace, name, patch, part)

    async def watch(self, kind: str, resource_version: str) -> AsyncIterator[WatchEvent]:
        async for event in self._cluster.watch(kind, resource_version):
            if kind == RESOURCE_CLAIM:
                await asyncio.sleep(self._tells)
            yield event


def named(number: int) -> Any:
    return {"resourceClaims": [{"name": "g", "resourceClaimName": f"c{number}"}]}


def with_three_claims(world: World) -> None:
    world.add_node("n1", cpu=8, memory="8Gi")
    create(world, "resource.k8s.io/v1 DeviceClass", class_of("gpu"))
    create(world, "resource.k8s.io/v1 ResourceSlice", slice_of("n1", "x", "y"))
    for number in (1, 2, 3):
        create(world, RESOURCE_CLAIM, claim(f"c{number}", exactly()))


def add_pods(world: World) -> None:
    for number in (1, 2, 3):
        world.add_pod(f"d{number}", spec=named(number))


def manager(world: World) -> SharedDRAManager:
    return world.plugin("DynamicResources").handle.devices


def allocated_devices(world: World) -> set[str]:
    return {each.device for each in manager(world).resource_claims.allocated.devices()}


def in_the_api(world: World) -> set[str]:
    allocations = {one.metadata.name: one.allocation for one in claims(world)}
    return {name for name, allocation in allocations.items() if allocation is not None}


def test_a_failed_allocation_activates_pods_that_wait_for_the_device() -> None:
    async def scene(world: World) -> None:
        with_three_claims(world)
        add_pods(world)
        slow[0].refused.add("c1")
        await world.until(4)
        assert world.attempt_times("d3") == [0.0]
        await world.until(5)
        world.delete_pod("d1")
        await world.until(12)
        assert world.incoming("resource.k8s.io/ResourceClaimUpdate") == {"active": 1.0}

    slow: list[Slow] = []

    def reach(cluster: Any) -> Any:
        slow.append(Slow(cluster, writes=5.0))
        return slow[-1]

    world = play(scene, plugins=PLUGINS, reach=reach)
    bound = world.bound("d3")
    assert bound is not None
    assert bound[1] == "n1"


@scenario(plugins=PLUGINS, reach=lambda cluster: Slow(cluster, tells=5.0))
async def test_a_written_allocation_counts_before_the_watch_reports_it(world: World) -> None:
    with_three_claims(world)
    await world.until(20)
    add_pods(world)
    await world.until(21)
    tracker = manager(world).resource_claims
    allocated_claims = {
        each.metadata.name for each in tracker.list() if each.allocation is not None
    }
    assert allocated_claims == in_the_api(world) == {"c1", "c2"}
    store = world.plugin("DynamicResources").handle.objects(RESOURCE_CLAIM)
    assert [each.allocation for each in store.list()] == [None, None, None]
    assert allocated_devices(world) == {"x", "y"}
    await world.until(60)
    assert [each.allocation is not None for each in store.list()] == [True, True, False]
