"""S-08: ports, volumes, and devices whose claims are still being written."""

from typing import Any, cast

from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim
from bayplan.api.objects import HOSTNAME_LABEL, ApiObject
from bayplan.objects.keys import object_key
from bayplan.ports import Cluster
from tests.plugins.devices_kit import claim as device_claim
from tests.plugins.devices_kit import class_of, exactly, slice_of
from tests.plugins.volume_kit import claim, csi, storage_class, volume
from tests.scenarios.world import PROFILE, World, create, play, scenario

SMALL: dict[str, Any] = {"cpu": "100m", "memory": "100Mi"}
ADDED = "preemption: 0/{0} nodes are available: {1} No preemption victims found for incoming pod"

# ---- part A: ports -------------------------------------------------------------------------

PORTS = ["NodeAffinity", "NodePorts", ("NodeResourcesFit", 1), "DefaultPreemption"]
TAKEN = "node(s) didn't have free ports for the requested pod ports"
EVERYWHERE = f"0/3 nodes are available: 3 {TAKEN}. {ADDED.format(3, 3)}."


def port(number: int, **fields: Any) -> dict[str, Any]:
    return {"containerPort": 80, "hostPort": number, **fields}


async def four_want_a_port(world: World) -> None:
    for name in ("n1", "n2", "n3"):
        world.add_node(name, cpu=8, memory="8Gi", labels={HOSTNAME_LABEL: name})
    for number in range(1, 5):
        world.add_pod(f"h{number}", host_ports=[80], **SMALL)
    await world.until(0)


@scenario(plugins=PORTS)
async def test_part_a_three_of_four_pods_get_a_free_port(world: World) -> None:
    await four_want_a_port(world)
    places = [world.bound(f"h{number}") for number in range(1, 4)]
    assert sorted(where for _, where in filter(None, places)) == ["n1", "n2", "n3"]
    assert world.message("h4") == EVERYWHERE
    # Three rows for the first pod, and for each further pod the row of the previous pod's node.
    assert world.scheduler.reuse(PROFILE).row_counts()["NodePorts"].evaluated == 3 + 1 + 1 + 1


async def ports_up_to_21(world: World) -> None:
    await four_want_a_port(world)
    await world.until(10)
    world.add_pod("u1", host_ports=[port(80, protocol="UDP")], **SMALL)
    await world.until(11)
    world.add_pod("l1", host_ports=[port(80, hostIP="127.0.0.1")], **SMALL)
    await world.until(20)
    there: dict[str, Any] = {**SMALL, "node_selector": {HOSTNAME_LABEL: "n1"}}
    for name, address in (("k1", "10.0.0.1"), ("k2", "10.0.0.2")):
        world.add_pod(name, host_ports=[port(8080, hostIP=address)], **there)
    await world.until(21)
    world.add_pod("k3", host_ports=[8080], **there)
    await world.until(49)


@scenario(plugins=PORTS)
async def test_part_a_protocol_and_address_count_and_no_address_means_all(world: World) -> None:
    await ports_up_to_21(world)
    result = world.bound("u1")
    assert result is not None and result[0] == 10
    assert world.message("l1") == EVERYWHERE
    assert world.bound("k1") == world.bound("k2") == (20.0, "n1")
    assert world.message("k3") == (
        f"0/3 nodes are available: 1 {TAKEN}, 2 node(s) didn't match Pod's node "
        f"affinity/selector. {ADDED.format(3, 1)}, 2 Preemption is not helpful for scheduling."
    )


@scenario(plugins=PORTS)
async def test_part_a_the_pod_that_waited_longest_gets_the_released_port(world: World) -> None:
    await ports_up_to_21(world)
    (holder,) = [n for n in ("h1", "h2", "h3") if (world.bound(n) or ("", ""))[1] == "n2"]
    await world.until(50)
    world.delete_pod(holder)
    await world.until(60)
    assert world.bound("h4") == (50.0, "n2")
    assert world.bound("l1") is None
    assert world.bound("k3") is None


# ---- part B: volumes -----------------------------------------------------------------------

VOLUMES = ["VolumeRestrictions", "VolumeBinding", "NodeResourcesFit", "DefaultPreemption"]
ONCE: dict[str, Any] = {"accessModes": ["ReadWriteOncePod"]}


def create_as_user(world: World, content: dict[str, Any]) -> None:
    """Create the object without a version, which the API server sets."""
    del content["metadata"]["resourceVersion"]
    world.cluster.create(content)


def add_bound_claim(world: World, name: str) -> None:
    """Create a claim for one pod at a time, and its volume, which every node reaches."""
    bound = {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}
    source: dict[str, Any] = {**csi(f"disk-{name}"), **ONCE}
    create_as_user(world, volume(f"pv-{name}", claim=name, phase="Bound", meta=bound, **source))
    create_as_user(world, claim(name, bound_to=f"pv-{name}", **ONCE))


def add_user(world: World, name: str, claim_name: str) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]
    world.add_pod(name, spec={"volumes": volumes}, **SMALL)


def is_used(world: World, key: str) -> bool:
    snapshot = world.scheduler.cache.lend()
    try:
        return snapshot.is_pvc_used(key)
    finally:
        snapshot.end()


@scenario(plugins=VOLUMES)
async def test_part_b_one_read_write_once_pod_claim_and_one_missing_claim(world: World) -> None:
    for name in ("n1", "n2"):
        world.add_node(name, cpu=8, memory="8Gi")
    create_as_user(world, storage_class())
    add_bound_claim(world, "data")
    add_user(world, "v1", "data")
    await world.until(1)
    assert (world.bound("v1") or (-1,))[0] == 0
    assert is_used(world, "default/data")
    add_user(world, "v2", "data")
    await world.until(2)
    assert world.message("v2") == (
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with "
        "ReadWriteOncePod access mode already in-use by another pod. "
        f"{ADDED.format(2, 2)}."
    )
    add_user(world, "v3", "nope")
    await world.until(9)
    assert world.message("v3") == (
        '0/2 nodes are available: persistentvolumeclaim "nope" not found. preemption: '
        "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    await world.until(10)
    add_bound_claim(world, "nope")
    await world.until(20)
    assert (world.bound("v3") or (-1,))[0] == 10
    world.delete_pod("v1")
    await world.until(21)
    assert (world.bound("v2") or (-1,))[0] == 20
    world.delete_pod("v2")
    await world.until(22)
    assert not is_used(world, "default/data")


# ---- part C: devices -----------------------------------------------------------------------


class SlowClaims:
    """A cluster that takes five seconds to write the status of a claim."""

    def __init__(self, inner: Cluster) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def patch(
        self, kind: str, namespace: str, name: str, patch: Any, subresource: str = ""
    ) -> ApiObject:
        if (kind, subresource) == (RESOURCE_CLAIM, "status"):
            await self._inner.sleep(5)
        return await self._inner.patch(kind, namespace, name, patch, subresource)


def reserved_devices(world: World) -> list[str]:
    """The devices that the scheduler counts as allocated."""
    allocated = world.plugin("DynamicResources").handle.devices.resource_claims.allocated.devices()
    return sorted({each.device for each in allocated})


def written_devices(world: World) -> list[str]:
    """The devices of the allocations in the API."""
    claims = (one.object for one in world.cluster.objects(RESOURCE_CLAIM))
    allocations = [c.allocation for c in claims if isinstance(c, ResourceClaim) and c.allocation]
    return sorted(result.device for each in allocations for result in each.results)


def test_part_c_devices_are_in_use_from_the_decision_on() -> None:
    async def scene(world: World) -> None:
        world.add_node("n1", cpu=8, memory="8Gi")
        create(world, "resource.k8s.io/v1 DeviceClass", class_of("gpu"))
        create(world, "resource.k8s.io/v1 ResourceSlice", slice_of("n1", "x", "y"))
        for number in (1, 2, 3):
            create(world, RESOURCE_CLAIM, device_claim(f"c{number}", exactly()))
            named = [{"name": "g", "resourceClaimName": f"c{number}"}]
            world.add_pod(f"d{number}", spec={"resourceClaims": named}, **SMALL)
        for moment in (0, 4):
            await world.until(moment)
            assert (reserved_devices(world), written_devices(world)) == (["x", "y"], [])
        assert "cannot allocate all claims" in world.message("d3")
        assert world.bound("d1") is None
        await world.until(29)
        assert (world.bound("d1"), world.bound("d2")) == ((5.0, "n1"), (5.0, "n1"))
        assert written_devices(world) == ["x", "y"]
        await world.until(30)
        world.delete_pod("d1")
        world.cluster.delete(object_key(RESOURCE_CLAIM, "default", "c1"))
        await world.until(40)
        assert world.bound("d3") == (35.0, "n1")

    plugins = ["DynamicResources", "NodeResourcesFit"]
    play(scene, plugins=plugins, reach=lambda cluster: cast(Cluster, SlowClaims(cluster)))
