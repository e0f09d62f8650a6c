"""The part of HTTP/1.1 that an API server needs, byte by byte, also through a proxy."""

import asyncio
import contextlib
import gc
import gzip
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from aiohttp import web

from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from bayplan.adapters.live.errors import UnreachableError
from bayplan.adapters.live.transport import (
    KEEPALIVE_SECONDS,
    Connection,
    ConnectionPool,
    NoAnswerError,
    NotSentError,
    Response,
    TooLargeError,
)
from bayplan.ports import OutcomeUnknownError
from tests.kit.api_server import Handler, Naps, cut, kubeconfig, serving

# ---- transport ------------------------------------------------------------------------------


#: The server ends the connection here.
END = b"<end>"
FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"


class Server:
    """Answers requests in turn with these bytes."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.connection_count = 0
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        self.writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while self._answers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
                self.requests.append(head + await reader.readexactly(int(length or 0)))
                answer = self._answers.pop(0)
                writer.write(answer.removesuffix(END))
                if answer.endswith(END):
                    break
            else:
                await reader.read()
        writer.close()


@contextlib.asynccontextmanager
async def connected(server: Server, prefix: str = "") -> AsyncGenerator[ConnectionPool]:
    listening = await asyncio.start_server(server.accept, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()
    pool = ConnectionPool(f"http://{host}:{port}{prefix}", None, None, "me")
    try:
        yield pool
    finally:
        await pool.close()
        listening.close()
        for writer in server.writers:
            writer.transport.abort()
        await asyncio.sleep(0)


async def get(transport: ConnectionPool) -> Response:
    return await transport.send("GET", "/x", "", None)


async def get_again_after_close(transport: ConnectionPool, server: Server) -> None:
    """Two requests; the server closes the connection between them."""
    await get(transport)
    server.writers[0].close()
    while transport.idle_count:
        await asyncio.sleep(0)
    await get(transport)


async def test_a_request_is_valid_http_and_connections_are_reused() -> None:
    server = Server(FINE, FINE)
    async with connected(server, "/prefix") as transport:
        for _ in range(2):
            head = "Authorization: Bearer a\r\n"
            answer = await transport.send("POST", "/x?y=z", head, b"{}")
            assert answer == Response(200, b"fine")
    assert server.connection_count == 1
    line, *headers = server.requests[0].decode().split("\r\n")
    assert line == "POST /prefix/x?y=z HTTP/1.1"
    assert {"Authorization: Bearer a", "Content-Length: 2", "User-Agent: me"} <= set(headers)
    assert headers[-2:] == ["", "{}"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nfi\r\n2\r\nne\r\n0\r\n\r\n",
            id="in chunks",
        ),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + FINE, id="after an interim response"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\nfine" + END, id="until the connection ends"),
        pytest.param(
            FINE.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"),
            id="last response of the connection",
        ),
    ],
)
async def test_an_answer_is_complete_for_each_kind_of_length(answer: bytes) -> None:
    async with connected(Server(answer, FINE)) as transport:
        assert await get(transport) == Response(200, b"fine")
        assert await get(transport) == Response(200, b"fine")


def compressed(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def test_a_compressed_answer_is_decompressed_and_the_next_one_is_read_as_it_is() -> None:
    async with connected(Server(compressed(gzip.compress(b"fine")), FINE)) as transport:
        assert await get(transport) == Response(200, b"fine")
        assert await get(transport) == Response(200, b"fine")


async def test_an_answer_that_cannot_be_decompressed_is_no_answer() -> None:
    async with connected(Server(compressed(b"fine"))) as transport:
        with pytest.raises(NoAnswerError, match="cannot be decompressed"):
            await get(transport)


_SMALL = 1 << 20


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(compressed(gzip.compress(bytes(64 << 20))), id="after decompression"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + bytes(2_000_000), id="as it is"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + (b"10000\r\n" + bytes(1 << 16) + b"\r\n") * 20,
            id="without a length or an end",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"a" * (3 << 20), id="header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 400_000, id="headers"),
    ],
)
async def test_an_answer_has_a_size(answer: bytes) -> None:
    async with connected(Server(answer + END, FINE)) as transport:
        with pytest.raises(TooLargeError, match="the answer is larger than 1 MiB"):
            await transport.send("GET", "/x", "", None, bytes_max=_SMALL)
        assert await get(transport) == Response(200, b"fine")


async def test_a_compressed_answer_without_its_end_is_no_answer() -> None:
    async with connected(Server(compressed(gzip.compress(b"fine" * 1000)[:-12]))) as transport:
        with pytest.raises(NoAnswerError, match="it is truncated"):
            await get(transport)


@pytest.mark.parametrize("proxied", [False, True])
def test_an_answer_that_is_too_large_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, proxied: bool
) -> None:
    requests: list[str] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        requests.append(request.path)
        return web.Response(body=bytes(2 * _SMALL))

    async def main() -> None:
        async with serving(handler) as url:
            if proxied:
                monkeypatch.setenv("http_proxy", url)
            server = "http://api.example" if proxied else url
            async with open_client(None, ClientOptions(master=server)) as client:
                await client.request("GET", "/x", bytes_max=_SMALL)

    with pytest.raises(UnreachableError, match="the answer is larger than 1 MiB"):
        asyncio.run(main())
    assert len(requests) == 1


def test_the_server_may_compress_only_if_the_client_accepts_it() -> None:
    async def requested(*, accepts_gzip: bool) -> str | None:
        encodings: list[str | None] = []

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            encodings.append(request.headers.get("Accept-Encoding"))
            return web.json_response({})

        async with serving(handler) as url:
            options = ClientOptions(master=url, accepts_gzip=accepts_gzip)
            async with open_client(None, options) as client:
                await client.get("/x")
        return encodings[0]

    assert asyncio.run(requested(accepts_gzip=True)) == "gzip"
    assert asyncio.run(requested(accepts_gzip=False)) == "identity"


async def test_retry_after_is_read_from_the_answer() -> None:
    busy = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
    async with connected(Server(busy)) as transport:
        answer = await get(transport)
        assert (answer.status, answer.retry_after) == (429, "7")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (END, "Server disconnected"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf" + END, "Server disconnected"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
    ],
)
async def test_a_missing_answer_has_an_unknown_outcome(answer: bytes, why: str) -> None:
    async with connected(Server(answer)) as transport:
        with pytest.raises(NoAnswerError, match=why):
            await get(transport)


async def test_over_a_refused_connection_nothing_is_sent() -> None:
    async with connected(Server()) as transport:
        pass
    with pytest.raises(NotSentError) as error:
        await get(transport)
    assert not error.value.is_for_ever


async def test_a_connection_closed_by_the_server_is_not_reused() -> None:
    server = Server(FINE, FINE)
    async with connected(server) as transport:
        await get_again_after_close(transport, server)
    assert server.connection_count == 2


async def test_a_closed_connection_leaves_nothing_to_the_garbage_collector() -> None:
    """A TLS connection has 300 KiB of buffers, and the collector runs seldom in `bayplan run`."""
    server = Server(FINE, FINE)
    gc.collect()
    before_count = sum(isinstance(each, Connection) for each in gc.get_objects())
    gc.disable()
    try:
        async with connected(server) as transport:
            await get_again_after_close(transport, server)
            for _ in range(10):
                await asyncio.sleep(0)
            left = [each for each in gc.get_objects() if isinstance(each, Connection)]
            assert len(left) == before_count + 1
    finally:
        gc.enable()


async def test_a_connection_that_is_idle_for_long_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(FINE, FINE)
    async with connected(server) as transport:
        await get(transport)
        loop = asyncio.get_running_loop()
        later = loop.time() + KEEPALIVE_SECONDS + 1
        with monkeypatch.context() as patched:
            patched.setattr(loop, "time", lambda: later)
            await get(transport)
    assert server.connection_count == 2


async def test_a_cancelled_request_closes_its_connection() -> None:
    server = Server(b"", FINE)
    async with connected(server) as transport:
        sending = asyncio.ensure_future(get(transport))
        while not server.requests:
            await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait((sending,))
        assert transport.idle_count == 0
        assert await get(transport) == Response(200, b"fine")
    assert server.connection_count == 2


# ---- through a proxy ------------------------------------------------------------------------


FAR = "http://cluster.example"


def through(
    folder: Path, monkeypatch: pytest.MonkeyPatch, handler: Handler, method: str = "POST"
) -> bytes:
    """The answer to a request to a server that is reached only through a proxy."""

    async def main() -> bytes:
        async with serving(handler) as proxy:
            monkeypatch.setenv("http_proxy", proxy)
            config = kubeconfig(folder, FAR)
            async with open_client(config, ClientOptions(sleep=Naps())) as client:
                return await client.request(method, "/x?a=b%2Cc", b"{}")

    return asyncio.run(main())


def test_a_proxy_gets_the_whole_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str, str]] = []

    async def proxy(request: web.BaseRequest) -> web.StreamResponse:
        headers = request.headers
        calls.append((request.raw_path, headers["Authorization"], headers["Content-Type"]))
        return web.Response(body=b'{"fine":1}')

    assert through(tmp_path, monkeypatch, proxy) == b'{"fine":1}'
    assert calls == [(f"{FAR}/x?a=b%2Cc", "Bearer secret", "application/json")]


def test_a_connection_broken_at_the_proxy_has_an_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def proxy(request: web.BaseRequest) -> web.StreamResponse:
        return cut(request)

    with pytest.raises(OutcomeUnknownError):
        through(tmp_path, monkeypatch, proxy)


async def refusing(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=407, reason="Proxy Authentication Required")


@pytest.mark.parametrize(
    ("is_up", "why"),
    [
        (True, r"the proxy refuses the connection: HTTP 407 Proxy Authentication Required; check"),
        (False, r"the proxy 127\.0\.0\.1:\d+ cannot be reached: .*; check HTTPS_PROXY, NO_PROXY"),
    ],
)
def test_a_proxy_that_does_not_connect_is_named_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str, *, is_up: bool
) -> None:
    async def watch(client: ApiClient) -> None:
        await anext(client.stream("/watch", 60.0))

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            proxy = await stack.enter_async_context(serving(refusing))
            if not is_up:
                await stack.aclose()
            monkeypatch.setenv("https_proxy", proxy)
            config = kubeconfig(tmp_path, FAR.replace("http", "https"))
            async with open_client(config, ClientOptions(sleep=Naps())) as client:
                for ask in (client.request("POST", "/x", b"{}"), watch(client)):
                    with pytest.raises(UnreachableError, match=why):
                        await ask

    asyncio.run(main())
