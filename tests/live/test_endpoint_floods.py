"""During a flood of requests at the endpoints, the leader stays leader, and pods are bound."""

import asyncio
import collections
import ssl
from pathlib import Path

import aiohttp
import pytest

from tests.live.control_plane import ControlPlane, token
from tests.live.kubelet import ready_node
from tests.live.processes import free_port, replicas
from tests.live.run_world import (
    LEADS,
    Cluster,
    get,
    run_replicas,
    scheduler,
    wait_until_logged,
)
from tests.live.world import small_pod

pytestmark = pytest.mark.timeout(400)

FLOOD, FRIEND = "127.0.0.1", "127.0.0.3"
JUNK_TOKENS = 3000
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
ELECTION = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}


def unchecked() -> ssl.SSLContext:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


async def flood(url: str, connections: int) -> collections.Counter[str]:
    """Send invalid tokens from one address; returns the count per status."""
    counts: collections.Counter[str] = collections.Counter()
    room = asyncio.Semaphore(600)
    connector = aiohttp.TCPConnector(
        ssl=unchecked(), limit=connections, force_close=connections > 100, local_addr=(FLOOD, 0)
    )

    async def ask(session: aiohttp.ClientSession, number: int) -> None:
        headers = {"Authorization": f"Bearer junk{connections}-{number}"}
        async with room:
            try:
                async with session.get(url, headers=headers) as answer:
                    counts[str(answer.status)] += 1
            except (aiohttp.ClientError, OSError, TimeoutError):
                counts["closed"] += 1

    async with aiohttp.ClientSession(
        connector=connector, timeout=aiohttp.ClientTimeout(total=20)
    ) as session:
        await asyncio.gather(*(ask(session, number) for number in range(JUNK_TOKENS)))
    return counts


async def scrape(url: str) -> int:
    """Read the metrics as an authorized user from another address."""
    connector = aiohttp.TCPConnector(ssl=unchecked(), local_addr=(FRIEND, 0))
    headers = {"Authorization": f"Bearer {token('admin')}"}
    async with (
        aiohttp.ClientSession(connector=connector, headers=headers) as session,
        session.get(url) as answer,
    ):
        return answer.status


async def evict_for(cluster: Cluster, name: str, name_of_scheduler: str) -> None:
    """Create two pods of which the second preempts the first; returns when it is bound."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods"
    for number, priority in enumerate(({}, {"priorityClassName": "system-cluster-critical"})):
        each = small_pod(f"{name}-{number}", name_of_scheduler)
        container = each["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "1500m"}}
        more = {"nodeSelector": {"flood": "1"}, "terminationGracePeriodSeconds": 0}
        each["spec"] |= {**more, **priority}
        await cluster.client.request("POST", path, each)
        await cluster.until_bound(f"{name}-{number}")


@pytest.mark.parametrize("connections", [600, 100], ids=["new connections", "reused connections"])
def test_three_thousand_invalid_tokens_delay_neither_the_lease_nor_a_pod(
    control_plane: ControlPlane, tmp_path: Path, connections: int
) -> None:
    port, name = free_port(), f"run-flood-{connections}"
    authority = f"--client-ca-file={control_plane.client_authority}"
    one = scheduler(
        control_plane,
        tmp_path,
        name,
        port,
        more=(authority,),
        leaderElection={"resourceName": name, **ELECTION},
        clientConnection={"qps": 50, "burst": 100},
    )
    url = f"https://127.0.0.1:{port}/metrics"

    async def scene(cluster: Cluster) -> None:
        await wait_until_logged(one, LEADS)
        tight = ready_node(f"{name}-tight", cpu=2)
        tight["metadata"]["labels"] = {**tight["metadata"].get("labels", {}), "flood": "1"}
        await cluster.client.request("POST", "/api/v1/nodes", tight)
        before = await cluster.client.get(f"{LEASES}/{name}")
        flooding = asyncio.ensure_future(flood(url, connections))
        names = [f"p{number}" for number in range(100)]
        await cluster.add_pods(name, *names)
        await cluster.until_bound(*names)
        await evict_for(cluster, "tight", name)
        assert await scrape(url) == 200
        counts = await flooding
        # The API server reviewed at most as many tokens as the limits of one address allow.
        assert counts["401"] <= 200
        assert counts["429"] + counts["closed"] >= JUNK_TOKENS - 200
        assert await scrape(url) == 200
        after = await cluster.client.get(f"{LEASES}/{name}")
        for field in ("holderIdentity", "leaseTransitions", "acquireTime"):
            assert after["spec"].get(field) == before["spec"].get(field)
        assert after["spec"]["renewTime"] > before["spec"]["renewTime"]
        assert "The lease could not be taken or renewed" not in one.output
        assert "The endpoints refuse" in one.output
        assert (await get(f"https://127.0.0.1:{port}/livez"))[0] == 200
        assert one.end() == 0
        await cluster.client.request("DELETE", f"/api/v1/nodes/{name}-tight")

    with replicas(one):
        run_replicas(control_plane, name, scene)
