"""`bayplan serve-extender` over files: it lists, answers, and stops."""

import asyncio
import os
import signal
from typing import Any

import aiohttp

from bayplan.config import config_from
from bayplan.plugins.registry import Registry
from bayplan.serving.extender_server import ExtenderServerOptions, serve_extender
from tests.adapters.extenders.server import closed_port
from tests.kit import manifests
from tests.scenarios.world import PROFILE, Setup, config_dict


def test_the_server_answers_about_the_objects_of_the_files_until_it_is_stopped() -> None:
    """An existing pod reduces the free resources of its node."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    placed = manifests.pod("there", nodeName="n1", containers=[manifests.container("4")])
    objects = [namespace, manifests.node("n1"), manifests.node("n2"), placed]
    options = ExtenderServerOptions(
        config=config_from(config_dict(Setup(plugins=["NodeResourcesFit"]))),
        registry=Registry(),
        profile=PROFILE,
        objects=objects,
        port=closed_port(),
    )
    waiting: dict[str, Any] = manifests.pod("p")
    waiting["metadata"]["uid"] = "u"
    url = f"http://127.0.0.1:{options.port}"

    async def main() -> Any:
        serving = asyncio.create_task(serve_extender(options))
        async with aiohttp.ClientSession() as session:
            while not serving.done() and not await _is_ready(session, url):
                await asyncio.sleep(0)
            question = {"Pod": waiting, "NodeNames": ["n1", "n2"]}
            async with session.post(f"{url}/filter", json=question) as answer:
                result = await answer.json()
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
        return result

    result = asyncio.run(main())
    assert result["NodeNames"] == ["n2"]
    assert result["FailedNodes"] == {"n1": "Insufficient cpu"}


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False
