"""The endpoint of the webhook, on a cluster that a test defines."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import aiohttp
import msgspec
import pytest

from bayplan.api.objects import NODE, POD, ApiObject
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_kinds import ClusterKinds
from bayplan.plugins.registry import default_registry
from bayplan.ports import EventType, WatchEvent
from bayplan.testing import node
from bayplan.webhook import judgement
from bayplan.webhook.judgement import Judgement
from bayplan.webhook.server import BODY_BYTES_MAX, WebhookOptions, serve
from tests.kit.scenes import scene_of
from tests.kit.scripted_cluster import ScriptedCluster
from tests.live.processes import free_port
from tests.webhook.bodies import review

OPTIONS = WebhookOptions(config=SchedulerConfig(), registry=default_registry(()), budget_seconds=30)


class Cluster(ScriptedCluster):
    """One node of 2 cpu, and further nodes when a test adds them."""

    def __init__(self) -> None:
        super().__init__({NODE: [[versioned(node("n1", cpu="2"), 1)]], POD: [[]]}, hurries=True)

    def add(self, name: str, cpu: str) -> None:
        self.tell(NODE, WatchEvent(EventType.ADDED, NODE, versioned(node(name, cpu=cpu), 2)))


def versioned(content: ApiObject, version: int) -> ApiObject:
    metadata = msgspec.structs.replace(content.metadata, resource_version=str(version))
    return msgspec.structs.replace(content, metadata=metadata)


Ask = Callable[[str, bytes | None], Awaitable[tuple[int, str]]]
Scene = Callable[[Cluster, Ask], Awaitable[None]]


def play(scene: Scene, options: WebhookOptions = OPTIONS, *, is_listed: bool = True) -> None:
    """Serve as long as the scene takes."""

    async def work() -> None:
        cluster, stop, port = Cluster(), asyncio.Event(), free_port()
        if not is_listed:
            cluster.answers.clear()
        followed = ClusterKinds("https://api.example", (NODE, POD))
        task = asyncio.ensure_future(serve(replace(options, port=port), cluster, followed, stop))
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

            async def ask(path: str, body: bytes | None = None) -> tuple[int, str]:
                method = "GET" if body is None else "POST"
                async with session.request(method, path, data=body and io.BytesIO(body)) as answer:
                    return answer.status, await answer.text()

            await until(ask, "/readyz" if is_listed else "/livez")
            await scene(cluster, ask)
        stop.set()
        await task

    asyncio.run(work())


async def until(ask: Ask, path: str) -> None:
    async with asyncio.timeout(60.0):
        while True:
            try:
                if (await ask(path, None))[0] == 200:
                    return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.01)


async def warnings(ask: Ask, cpu: str) -> list[str]:
    status, text = await ask("/validate", review(cpu))
    response: dict[str, Any] = json.loads(text)["response"]
    assert (status, response["allowed"]) == (200, True)
    return response.get("warnings", [])


async def results(ask: Ask) -> dict[str, float]:
    _, text = await ask("/metrics", None)
    lines = (line for line in text.splitlines() if line.startswith("bayplan_webhook_reviews_total"))
    return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}


@scene_of(play, 2)
async def test_a_pod_is_judged_on_the_newest_state_of_the_cluster(
    cluster: Cluster, ask: Ask
) -> None:
    assert await warnings(ask, "2") == []
    (warning,) = await warnings(ask, "3")
    assert warning.endswith("1 Insufficient cpu, nearest n1 lacks 1 cpu")
    cluster.add("n2", "4")
    async with asyncio.timeout(60.0):
        while await warnings(ask, "3"):
            await asyncio.sleep(0.01)
    assert (await results(ask))["fits"] == 2


@scene_of(play, 2, is_listed=False)
async def test_before_the_first_list_every_creation_is_allowed_without_a_warning(
    cluster: Cluster, ask: Ask
) -> None:
    assert (await ask("/readyz", None))[0] == 500
    assert await warnings(ask, "3") == []
    assert await results(ask) == {"not-ready": 1}
    cluster.answers.set()
    await until(ask, "/readyz")
    assert await warnings(ask, "3") != []


def test_a_late_answer_has_no_warning() -> None:
    async def scene(cluster: Cluster, ask: Ask) -> None:
        assert await warnings(ask, "3") == []
        assert await results(ask) == {"late": 1}

    play(scene, replace(OPTIONS, budget_seconds=1e-9))


@scene_of(play, 2)
async def test_a_defect_allows_the_creation_and_is_counted(
    cluster: Cluster, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Judgement:
        raise KeyError("defect")

    monkeypatch.setattr(judgement.Judge, "judge", fail)
    assert await warnings(ask, "3") == []
    assert await results(ask) == {"failed": 1}


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"no review", 400), (b"[" * 100_000, 400), (b" " * (BODY_BYTES_MAX + 1), 413)],
    ids=["no JSON", "nested", "too large"],
)
@scene_of(play, 2)
async def test_a_body_that_is_no_review_is_refused_and_the_webhook_goes_on(
    cluster: Cluster, ask: Ask, body: bytes, status: int
) -> None:
    assert (await ask("/validate", body))[0] == status
    assert await warnings(ask, "3") != []
