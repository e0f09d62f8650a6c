"""One request to an extender, and in which words it fails."""

import asyncio
import ssl

import pytest
from aiohttp import web

from bayplan.adapters.extenders import sending
from bayplan.adapters.extenders.sending import HttpSender, NoAnswerError, Request
from tests.adapters.extenders.server import CUT, closed_port, extender, never


def sent(url: str, *, timeout_seconds: float = 5.0, repeatable: bool = True) -> tuple[int, bytes]:
    async def main() -> tuple[int, bytes]:
        sender = HttpSender(ssl.create_default_context())
        try:
            return await sender.send(Request(url, b"{}", timeout_seconds, repeatable))
        finally:
            await sender.close()

    return asyncio.run(main())


def refused(url: str, **options: float) -> str:
    with pytest.raises(NoAnswerError) as raised:
        sent(url, **options)  # pyright: ignore[reportArgumentType]
    return str(raised.value)


def test_a_question_is_posted_as_json() -> None:
    seen: list[tuple[str, str]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, request.headers["Content-Type"]))
        return web.Response(status=418, body=b"short and stout")

    async def main() -> tuple[int, bytes]:
        runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        sender = HttpSender(ssl.create_default_context())
        try:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/filter"
            return await sender.send(Request(url, b"{}", 5.0))
        finally:
            await sender.close()
            await runner.cleanup()

    assert asyncio.run(main()) == (418, b"short and stout")
    assert seen == [("POST", "application/json")]


def test_nobody_listens() -> None:
    url = f"http://127.0.0.1:{closed_port()}/filter"
    address = url.removeprefix("http://").removesuffix("/filter")
    assert refused(url) == f'Post "{url}": dial tcp {address}: connect: connection refused'


def test_no_answer_in_time() -> None:
    with extender({"filter": lambda _: never()}) as server:
        url = f"{server.url}/filter"
        said = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        assert refused(url, timeout_seconds=0.05) == f'Post "{url}": {said}'


def test_a_connection_that_breaks_is_tried_once_more() -> None:
    answers = [CUT, {"fine": True}]
    with extender({"filter": lambda _: answers.pop(0)}) as server:
        assert sent(f"{server.url}/filter") == (200, b'{"fine":true}')
        assert len(server.asked("filter")) == 2


@pytest.mark.parametrize(("repeatable", "count"), [(True, 2), (False, 1)])
def test_and_then_given_up(repeatable: bool, count: int) -> None:
    with extender({"filter": CUT}) as server:
        url = f"{server.url}/filter"
        assert refused(url, repeatable=repeatable) == f'Post "{url}": EOF'
        # What may have been done is not asked for twice.
        assert len(server.asked("filter")) == count


def test_a_name_that_nobody_has() -> None:
    url = "http://extender.invalid:80/filter"
    assert refused(url) == f'Post "{url}": dial tcp: lookup extender.invalid: no such host'


def test_proxies_are_the_environments_but_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example.com:3128")
    monkeypatch.setenv("no_proxy", "near.example.com")
    assert sending._proxy("http://far.example.com/x") == "http://proxy.example.com:3128"
    assert sending._proxy("http://near.example.com/x") is None
    assert sending._proxy("http://127.0.0.1:8888/x") is None
    assert sending._proxy("http://localhost:8888/x") is None
    assert sending._proxy("https://far.example.com/x") is None
