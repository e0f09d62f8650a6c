"""The rights that a scheduler needs."""

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from bayplan.adapters.live.access import (
    WRITING,
    Right,
    denial,
    missing_rights,
    rights_to_follow,
)
from bayplan.adapters.live.discovery import Resource
from bayplan.api.objects import NODE
from tests.adapters.live.clients import talking_to

NODES = Resource(NODE, "", "nodes", is_namespaced=False)


def test_missing_rights_are_named_by_verb_and_resource() -> None:
    calls: list[dict[str, Any]] = []

    async def review(request: web.BaseRequest) -> web.StreamResponse:
        spec = msgspec.json.decode(await request.read())["spec"]["resourceAttributes"]
        calls.append(spec)
        allowed = spec["verb"] != "watch" and spec["subresource"] != "binding"
        return web.json_response({"status": {"allowed": allowed}})

    async def main() -> list[Right]:
        async with talking_to(review) as client:
            return await missing_rights(client, [*rights_to_follow([NODES]), *WRITING])

    missing = asyncio.run(main())
    assert missing == [Right("", "nodes", "watch"), Right("", "pods/binding", "create")]
    assert 'cannot watch resource "nodes" in API group ""' in denial(missing)
    assert 'create resource "pods/binding" in API group ""' in denial(missing)
    assert len(calls) == len(WRITING) + 2
