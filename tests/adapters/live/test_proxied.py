"""Requests through a proxy."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from bayplan.adapters.live.client import ClientOptions, open_client
from bayplan.adapters.live.errors import UnreachableError
from bayplan.ports import OutcomeUnknownError
from tests.adapters.live.serving import Handler, Naps, cut, kubeconfig, serving

FAR = "http://cluster.example"


def through(
    folder: Path, monkeypatch: pytest.MonkeyPatch, handler: Handler, method: str = "POST"
) -> bytes:
    """The answer to a request at a server that only a proxy reaches."""

    async def main() -> bytes:
        async with serving(handler) as proxy:
            monkeypatch.setenv("http_proxy", proxy)
            config = kubeconfig(folder, FAR)
            async with open_client(config, ClientOptions(sleep=Naps())) as client:
                return await client.request(method, "/x?a=b%2Cc", b"{}")

    return asyncio.run(main())


def test_a_proxy_is_asked_for_the_whole_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, str]] = []

    async def proxy(request: web.BaseRequest) -> web.StreamResponse:
        headers = request.headers
        asked.append((request.raw_path, headers["Authorization"], headers["Content-Type"]))
        return web.Response(body=b'{"fine":1}')

    assert through(tmp_path, monkeypatch, proxy) == b'{"fine":1}'
    assert asked == [(f"{FAR}/x?a=b%2Cc", "Bearer secret", "application/json")]


def test_what_breaks_on_its_way_may_have_been_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def proxy(request: web.BaseRequest) -> web.StreamResponse:
        return cut(request)

    with pytest.raises(OutcomeUnknownError):
        through(tmp_path, monkeypatch, proxy)


def test_a_proxy_that_is_not_there_means_that_nothing_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async def nobody(_: web.BaseRequest) -> web.StreamResponse:
            raise AssertionError

        async with serving(nobody) as gone:
            monkeypatch.setenv("http_proxy", gone)
        async with open_client(kubeconfig(tmp_path, FAR), ClientOptions(sleep=Naps())) as client:
            await client.request("POST", "/x", b"{}")

    with pytest.raises(UnreachableError):
        asyncio.run(main())
