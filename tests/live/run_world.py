"""Replicas of `bayplan run` beside a namespace with nodes and fake kubelets."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import aiohttp

from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import Kubelet, ready_node
from tests.live.mirror import Mirror
from tests.live.processes import SchedulerProcess, apply, config_file
from tests.live.world import small_pod

LEADS = "This replica leads"


class Cluster:
    """A namespace with nodes and fake kubelets."""

    def __init__(self, client: ApiClient, mirror: Mirror, namespace: str) -> None:
        self.client, self.mirror, self.namespace = client, mirror, namespace

    async def add_pods(self, scheduler: str, *names: str) -> None:
        room = asyncio.Semaphore(16)
        path = f"/api/v1/namespaces/{self.namespace}/pods"

        async def add(name: str) -> None:
            async with room:
                await self.client.request("POST", path, small_pod(name, scheduler))

        await asyncio.gather(*(add(name) for name in names))

    def bound(self) -> set[str]:
        return {
            name
            for (namespace, name), pod in self.mirror.pods.items()
            if namespace == self.namespace and pod["spec"].get("nodeName")
        }

    def each_was_placed_once(self, names: Iterable[str]) -> None:
        """Raise AssertionError if a pod has had another number of nodes than one."""
        uids = {name: self.mirror.pods[self.namespace, name]["metadata"]["uid"] for name in names}
        moved = {name for name, uid in uids.items() if len(self.mirror.nodes_of[uid]) != 1}
        assert not moved, moved

    async def until_bound(self, *names: str) -> None:
        await self.mirror.until(lambda: self.bound() >= set(names), f"{len(names)} pods bound")


@contextlib.asynccontextmanager
async def cluster(control_plane: ControlPlane, namespace: str) -> AsyncGenerator[Cluster]:
    options = ClientOptions(qps=-1)
    async with open_client(control_plane.kubeconfig("admin"), options) as client:
        mirror = Mirror(client)
        kubelet = Kubelet(client, mirror)
        tasks = [asyncio.ensure_future(work) for work in (mirror.follow(), kubelet.run())]
        meta = {"name": namespace}
        namespace_object = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        nodes = [ready_node(f"{namespace}-{number}", cpu=32) for number in range(10)]
        await apply(client, [namespace_object])
        for each in nodes:
            await client.request("POST", "/api/v1/nodes", each)
        try:
            yield Cluster(client, mirror, namespace)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            pods = f"/api/v1/namespaces/{namespace}/pods"
            await client.request("DELETE", pods, {"gracePeriodSeconds": 0})
            await client.request("DELETE", "/api/v1/nodes")


def run_replicas(
    control_plane: ControlPlane, namespace: str, scene: Callable[[Cluster], Awaitable[None]]
) -> None:
    async def main() -> None:
        async with cluster(control_plane, namespace) as opened:
            await scene(opened)

    asyncio.run(main())


def scheduler(
    control_plane: ControlPlane,
    folder: Path,
    name: str,
    port: int = 0,
    more: tuple[str, ...] = (),
    **fields: Any,
) -> SchedulerProcess:
    """A replica of the scheduler ``name``, with the rights of the administrator."""
    defaults = {
        "profiles": [{"schedulerName": name}],
        "leaderElection": {"resourceName": name},
        "clientConnection": {"qps": 5000, "burst": 5000},
    }
    number = sum(1 for _ in folder.iterdir())
    arguments = [
        "run",
        f"--kubeconfig={control_plane.kubeconfig('admin')}",
        f"--config={config_file(folder / f'config-{number}.yaml', {**defaults, **fields})}",
        f"--secure-port={port}",
        "--v=4",
        *more,
    ]
    return SchedulerProcess(f"{name}-{number}", arguments, folder / f"log-{number}")


async def get(
    url: str, *, certificate: tuple[Path, Path] | None = None, **headers: str
) -> tuple[int, str]:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        tls.load_cert_chain(*certificate)
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(url, ssl=tls) as opened,
    ):
        return opened.status, await opened.text()


async def wait_until_logged(process: SchedulerProcess, *texts: str) -> None:
    await asyncio.to_thread(process.wait_until_printed, *texts)
