"""Volumes and devices against a real API server, under no more rights than are computed.

The controllers of a real cluster are not here: a provisioner of the test's own makes the volume for
the node that the scheduler chose, and claims of devices are written by hand.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.adapters.live.client import MERGE_PATCH
from bayplan.api.objects import HOSTNAME_LABEL
from bayplan.api.storage_objects import BIND_COMPLETED, SELECTED_NODE
from tests.cli.command_line import answer
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import node
from tests.live.mirror import Object
from tests.live.processes import (
    SchedulerProcess,
    apply,
    config_file,
    kubeconfig_with,
    replicas,
    service_account_token,
)
from tests.live.world import World, play, pod

pytestmark = pytest.mark.timeout(400)

STATUS_SECONDS = 60.0
POLL_SECONDS = 0.1
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
RESOURCE = "/apis/resource.k8s.io/v1"


class Account:
    """A scheduler that logs in as a ServiceAccount which may do what `config rbac` prints."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.name, self._folder = world, world.namespace, folder
        self._kubeconfig = ""

    async def begin(self, *, forbidden: str = "") -> None:
        """``forbidden``: a resource that its role leaves out."""
        client = self.world.client
        path = f"/api/v1/namespaces/{self.name}/serviceaccounts"
        await client.request("POST", path, {"metadata": {"name": self.name}})
        names = ("--name", "--namespace", "--service-account")
        options = [part for name in names for part in (name, self.name)]
        printed = await asyncio.to_thread(answer, "config", "rbac", self._config(), *options)
        role, binding, *_ = yaml.safe_load_all(printed)
        role["rules"] = [rule for rule in role["rules"] if forbidden not in rule["resources"]]
        await apply(client, [role, binding])
        token = await service_account_token(client, self.name, self.name)
        model = self.world.control_plane.kubeconfig("admin")
        self._kubeconfig = kubeconfig_with(token, model, f"kubeconfig-{self.name}")

    def _config(self) -> str:
        content: Object = {
            "profiles": [{"schedulerName": self.name}],
            "leaderElection": {"leaderElect": False},
        }
        return config_file(self._folder / "config.yaml", content)

    @asynccontextmanager
    async def scheduler(self) -> AsyncGenerator[SchedulerProcess]:
        """One at work, until the block ends."""
        arguments = ["run", f"--kubeconfig={self._kubeconfig}", f"--config={self._config()}"]
        log = self._folder / "log"
        one = SchedulerProcess(self.name, [*arguments, "--secure-port=0", "--v=4"], log)
        with replicas(one):
            yield one
            assert "Traceback" not in one.said, one.said[-3000:]

    def pod(self, name: str, **spec: Any) -> Object:
        return pod(name, scheduler=self.name, spec=spec)


async def until(world: World, path: str, is_so: Callable[[Object], bool], what: str) -> Object:
    """Until an object, as the API has it, is as wanted; returns it."""
    found: Object = {}
    try:
        async with asyncio.timeout(STATUS_SECONDS):
            while not is_so(found := await world.client.get(path)):
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not {what}: {found}") from None
    return found


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
    """Make a volume for the node that was chosen, and bind it; returns the node."""
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


def test_a_claim_that_waits_gets_its_volume_where_its_pod_goes(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async def story(world: World) -> None:
        account = Account(world, tmp_path)
        await account.begin()
        await world.add_nodes(node("n1"), node("n2"))
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
            assert "Rights are missing" not in one.said
            assert "forbidden" not in one.said

    play(control_plane, story)


# ---- devices -------------------------------------------------------------------------------


async def add_devices(world: World) -> str:
    """A class, and one device of it on n2; returns the driver."""
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
    """Returns its path."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": driver}}]
    path = f"{RESOURCE}/namespaces/{world.namespace}/resourceclaims"
    content = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": requests}}}
    await world.client.request("POST", path, content)
    return f"{path}/gpu"


CLAIMS = [{"name": "g", "resourceClaimName": "gpu"}]


def test_a_claim_is_allocated_and_reserved_for_all_pods_that_share_it(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async def story(world: World) -> None:
        account = Account(world, tmp_path)
        await account.begin()
        await world.add_nodes(node("n1"), node("n2"))
        path = await add_claim(world, await add_devices(world))
        async with account.scheduler() as one:
            await world.add_pods(
                account.pod("a", resourceClaims=CLAIMS), account.pod("b", resourceClaims=CLAIMS)
            )
            await world.until_bound("a", "b")
            assert world.bound() == {"a": "n2", "b": "n2"}
            claim = await world.client.get(path)
            (given,) = claim["status"]["allocation"]["devices"]["results"]
            assert (given["pool"], given["device"]) == ("n2", "gpu")
            assert {user["name"] for user in claim["status"]["reservedFor"]} == {"a", "b"}
            assert "Rights are missing" not in one.said
            assert "forbidden" not in one.said

    play(control_plane, story)


def test_what_its_role_lacks_for_claims_is_told_at_the_start(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async def story(world: World) -> None:
        account = Account(world, tmp_path)
        await account.begin(forbidden="resourceclaims/status")
        await world.add_nodes(node("n1"))
        async with account.scheduler() as one:
            await world.add_pods(account.pod("p"))
            await world.until_bound("p")
            wanted = 'patch resource \\"resourceclaims/status\\" in API group'
            await asyncio.to_thread(one.wait_until_said, wanted)

    play(control_plane, story)
