"""`bayplan run --ui` against a real API server: the page's contents and its access control."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.live.control_plane import ControlPlane, token
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

_PLACED = 5


async def answer(page: str, question: str, **headers: Any) -> Any:
    status, text = await get(f"{page}api/{question}", **headers)
    assert status == 200, text
    return json.loads(text)


async def until(page: str, question: str, holds: Callable[[Any], bool], **headers: Any) -> Any:
    async with asyncio.timeout(60):
        while not holds(view := await answer(page, question, **headers)):
            await asyncio.sleep(0.1)
    return view


async def add_huge(cluster: Cluster, profile: str) -> None:
    huge = small_pod("huge", profile)
    huge["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "900"
    path = f"/api/v1/namespaces/{cluster.namespace}/pods"
    await cluster.client.request("POST", path, huge)


@asynccontextmanager
async def ticks(page: str) -> AsyncIterator[Callable[[], Any]]:
    async with aiohttp.ClientSession() as session, session.get(f"{page}api/events") as stream:

        async def tick() -> Any:
            async for line in stream.content:
                if line.startswith(b"data: "):
                    return json.loads(line[6:])
            raise AssertionError("the stream ended")

        yield tick


def test_the_page_shows_the_cluster_and_follows_it(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    port, name = free_port(), "run-page"
    one = scheduler(control_plane, tmp_path, name, port, more=("--ui",))
    page = f"http://127.0.0.1:{port}/ui/"

    async def scene(cluster: Cluster) -> None:
        await wait_until_logged(one, LEADS)
        pods = [f"p{number}" for number in range(_PLACED)]
        await cluster.add_pods(name, *pods)
        await add_huge(cluster, name)
        await cluster.until_bound(*pods)
        is_own = f"search={name}/"
        rows = await until(
            page, f"pods?{is_own}", lambda view: view["total"] == _PLACED + 1 and _are_decided(view)
        )
        on_page = {row["name"]: row["node"] for row in rows["rows"]}
        bound = {
            f"{namespace}/{pod}": content["spec"].get("nodeName", "")
            for (namespace, pod), content in cluster.mirror.pods.items()
            if namespace == name
        }
        assert on_page == bound
        source = (await answer(page, "sources"))[0]
        assert (source["kind"], source["name"], source["replica"]) == ("live", name, "leading")
        nodes = await answer(page, f"nodes?search={name}-&limit=50")
        assert nodes["total"] == 10
        waiting = await answer(page, "waiting")
        reasons = [
            part["reason"] for group in waiting["groups"] for part in group["cause"]["parts"]
        ]
        assert "Insufficient cpu" in reasons
        decision = await answer(page, f"decision?pod={name}/huge&attempt=1")
        assert decision["record"]["result"] == "unschedulable"
        assert (await get(page))[1].startswith("<!doctype html>")
        async with ticks(page) as tick:
            first = await tick()
            await cluster.add_pods(name, "late")
            while (await tick())["change"] <= first["change"]:
                pass
        late = await until(page, f"pod?name={name}/late", lambda view: view["pod"]["node"])
        assert late["pod"]["state"] == "placed"
        assert one.end() == 0

    with replicas(one):
        run_replicas(control_plane, name, scene)


def _are_decided(view: Any) -> bool:
    """Whether each pod has an attempt and, except the pod huge, a node."""
    return all(
        row["attempts"] and bool(row["node"]) != row["name"].endswith("/huge")
        for row in view["rows"]
    )


def test_requests_from_pages_of_other_hosts_are_refused(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    port, name = free_port(), "run-page-host"
    one = scheduler(control_plane, tmp_path, name, port, more=("--ui",))
    page = f"http://127.0.0.1:{port}/ui/"

    async def scene(cluster: Cluster) -> None:
        await wait_until_logged(one, LEADS)
        for path in ("", "api/overview", "api/events"):
            assert (await get(page + path, Host="example.com"))[0] == 403
            assert (await get(page + path, Origin="https://example.com"))[0] == 403
        assert (await get(page))[0] == 200
        assert one.end() == 0

    with replicas(one):
        run_replicas(control_plane, name, scene)


def test_with_tls_the_api_server_decides_who_reads_the_page(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    port, name = free_port(), "run-page-token"
    flags = ("--ui", "--bind-address=0.0.0.0")
    one = scheduler(control_plane, tmp_path, name, port, more=flags)
    page = f"https://127.0.0.1:{port}/ui/"
    admin: dict[str, Any] = {"Authorization": f"Bearer {token('admin')}"}

    async def scene(cluster: Cluster) -> None:
        await wait_until_logged(one, LEADS)
        await cluster.add_pods(name, "p")
        await cluster.until_bound("p")
        for path in ("", "static/app.js", "api/overview", "api/events"):
            assert (await get(page + path))[0] in {401, 403}
            assert (await get(page + path, Authorization="Bearer junk"))[0] == 401
        view = await until(page, "overview", lambda view: view["placed"] >= 1, **admin)
        assert view["nodes"] >= 10
        cookie: dict[str, Any] = {"Cookie": f"bayplan-ui-token={token('admin')}"}
        assert await answer(page, "sources", **cookie)
        foreign: dict[str, Any] = {**cookie, "Origin": "https://example.com"}
        assert (await get(f"{page}api/overview", **foreign))[0] == 403
        assert one.end() == 0

    with replicas(one):
        run_replicas(control_plane, name, scene)
