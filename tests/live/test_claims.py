"""Volumes and devices against a real API server, with only the computed rights.

The controllers of a real cluster do not run: the test creates the volume for the node that the
scheduler chose, and writes the claims of devices.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bayplan.adapters.live.client import MERGE_PATCH
from bayplan.api.objects import HOSTNAME_LABEL
from bayplan.api.storage_objects import BIND_COMPLETED, SELECTED_NODE
from tests.live.account import Account
from tests.live.kubelet import ready_node
from tests.live.mirror import Object
from tests.live.world import World, scenario

pytestmark = pytest.mark.timeout(400)

STATUS_SECONDS = 60.0
POLL_SECONDS = 0.1
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
RESOURCE = "/apis/resource.k8s.io/v1"


async def until(world: World, path: str, is_so: Callable[[Object], bool], what: str) -> Object:
    """Wait until an object in the API fulfils the condition; returns the object."""
    content: Object = {}
    try:
        async with asyncio.timeout(STATUS_SECONDS):
            while not is_so(content := await world.client.get(path)):
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not {what}: {content}") from None
    return content


# ---- volumes -------------------------------------------------------------------------------


async def add_class(world: World) -> str:
    name = f"late-{world.namespace}"
    content = {
        "metadata": {"name": name},
        "provisioner": "disk.bayplan.test",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await world.client.request("POST", STORAGE, content)
    return name


async def provision(world: World, claim_name: str) -> str:
    """Create a volume for the chosen node, and bind it; returns the node."""
    path = world.path("persistentvolumeclaims", claim_name)
    claim = await until(world, path, lambda each: _chosen(each) != "", "a node is chosen")
    chosen = _chosen(claim)
    volume = f"volume-{world.namespace}"
    here = {"key": HOSTNAME_LABEL, "operator": "In", "values": [chosen]}
    meta = claim["metadata"]
    reference = {"namespace": world.namespace, "name": claim_name, "uid": meta["uid"]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": claim["spec"]["storageClassName"],
        "csi": {"driver": "disk.bayplan.test", "volumeHandle": volume},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
    }
    await world.client.request("POST", VOLUMES, {"metadata": {"name": volume}, "spec": spec})
    bound = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
    await world.client.request("PATCH", path, bound, media_type=MERGE_PATCH)
    status = {"status": {"phase": "Bound"}}
    await world.client.request("PATCH", f"{path}/status", status, media_type=MERGE_PATCH)
    return chosen


def _chosen(claim: Object) -> str:
    return claim["metadata"].get("annotations", {}).get(SELECTED_NODE, "")


@scenario()
async def test_a_wait_for_first_consumer_claim_gets_its_volume_on_the_node_of_its_pod(
    world: World, tmp_path: Path
) -> None:
    account = Account(world, tmp_path)
    await account.begin()
    await world.add_nodes(ready_node("n1"), ready_node("n2"))
    spec = {
        "storageClassName": await add_class(world),
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    path = world.path("persistentvolumeclaims")
    await world.client.request("POST", path, {"metadata": {"name": "data"}, "spec": spec})
    async with account.scheduler() as one:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        await world.add_pods(account.pod("p", volumes=volumes))
        chosen = await provision(world, "data")
        await world.until_bound("p")
        assert world.bound() == {"p": chosen}
        assert "Rights are missing" not in one.output
        assert "forbidden" not in one.output


# ---- devices -------------------------------------------------------------------------------


async def add_devices(world: World) -> str:
    """Create a device class with one device on n2; returns the driver."""
    driver = f"{world.namespace}.bayplan.test"
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    content: Object = {"metadata": {"name": driver}, "spec": {"selectors": selectors}}
    await world.client.request("POST", f"{RESOURCE}/deviceclasses", content)
    spec = {
        "driver": driver,
        "nodeName": "n2",
        "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu"}],
    }
    content = {"metadata": {"name": driver}, "spec": spec}
    await world.client.request("POST", f"{RESOURCE}/resourceslices", content)
    return driver


async def add_claim(world: World, driver: str) -> str:
    """Create the claim; returns its path."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": driver}}]
    path = f"{RESOURCE}/namespaces/{world.namespace}/resourceclaims"
    content = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": requests}}}
    await world.client.request("POST", path, content)
    return f"{path}/gpu"


CLAIMS = [{"name": "g", "resourceClaimName": "gpu"}]


@scenario()
async def test_a_claim_is_allocated_and_reserved_for_all_pods_that_share_it(
    world: World, tmp_path: Path
) -> None:
    account = Account(world, tmp_path)
    await account.begin()
    await world.add_nodes(ready_node("n1"), ready_node("n2"))
    path = await add_claim(world, await add_devices(world))
    async with account.scheduler() as one:
        await world.add_pods(
            account.pod("a", resourceClaims=CLAIMS), account.pod("b", resourceClaims=CLAIMS)
        )
        await world.until_bound("a", "b")
        assert world.bound() == {"a": "n2", "b": "n2"}
        claim = await world.client.get(path)
        (device,) = claim["status"]["allocation"]["devices"]["results"]
        assert (device["pool"], device["device"]) == ("n2", "gpu")
        assert {user["name"] for user in claim["status"]["reservedFor"]} == {"a", "b"}
        assert "Rights are missing" not in one.output
        assert "forbidden" not in one.output


@scenario()
async def test_missing_rights_for_claims_are_logged_at_the_start(
    world: World, tmp_path: Path
) -> None:
    account = Account(world, tmp_path)
    await account.begin(forbidden="resourceclaims/status")
    await world.add_nodes(ready_node("n1"))
    async with account.scheduler() as one:
        await world.add_pods(account.pod("p"))
        await world.until_bound("p")
        missing_right = 'patch resource \\"resourceclaims/status\\" in API group'
        await asyncio.to_thread(one.wait_until_printed, missing_right)
