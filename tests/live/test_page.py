"""`bayplan run --ui` against a real API server: the page's contents and its access control."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bayplan.cli import ui
from bayplan.ui.subjects import ClusterSubject, Subject
from tests.cli.command_line import bayplan
from tests.kit.manifests import api_object, container, node
from tests.live.control_plane import LOOPBACK, ControlPlane, token
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


_LABELS = {"app": "web"}
_REPLICA_SET = api_object(
    "apps/v1 ReplicaSet",
    "web",
    spec={
        "replicas": 3,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": [container()]}},
    },
)
_CLUSTER_OBJECTS = (
    ("/api/v1/nodes", node("only")),
    ("/apis/apps/v1/namespaces/default/replicasets", _REPLICA_SET),
    ("/api/v1/namespaces/default/pods", small_pod("huge", cpu="900")),
)


def test_the_page_of_a_cluster_has_the_objects_that_why_answers_about(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody creates the pods of the ReplicaSet, so neither of them has any."""
    for path, content in _CLUSTER_OBJECTS:
        status, created = control_plane.request("POST", path, content)
        assert status == 201, created
    config = control_plane.kubeconfig("admin")
    subjects: list[Subject] = []
    monkeypatch.setattr(ui, "serve", lambda shown, _: subjects.extend(shown))
    assert bayplan("ui", "--kubeconfig", config).exit_code == 0
    (subject,) = subjects
    assert isinstance(subject, ClusterSubject)
    subject.load()
    source, line = subject.answer(), subject.timeline
    assert (source.name, source.phase) == (f"https://{LOOPBACK}:{control_plane.port}", "ready")
    assert source.notes[0].startswith("the cluster was read at 20")
    assert list(line.node_names) == ["only"]
    assert [pod.name for pod in line.pods] == ["default/huge"]
    assert line.created["default/huge"]
    why = bayplan("why", "--all-pending", "-A", "--kubeconfig", config, "-o", "json")
    groups = json.loads(why.stdout)["groups"]
    assert [(each["pods"], each["examples"]) for each in groups] == [(1, ["default/huge"])]


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
