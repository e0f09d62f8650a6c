"""Watches, and all requests through a proxy: what aiohttp carries.

`Streams` reads a body as it arrives. `ProxiedSession` is a Transport. The client loads this module
at the first watch, or if there is a proxy: the import of aiohttp takes as long as that of numpy.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, final

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from bayplan.adapters.live import transport
from bayplan.adapters.live.credentials import Credentials
from bayplan.adapters.live.errors import (
    UNAUTHORIZED,
    UnreachableError,
    UntrustedServerError,
    WatchStalledError,
    refusal,
)
from bayplan.adapters.live.impersonation import Headers
from bayplan.ports import WatchDroppedError

#: Time for the response of a stream: the server accepts a watch before it has events.
STREAM_ANSWER_SECONDS = 30.0
READ_BUFFER_BYTES = 2**20
_REFUSAL_BYTES_MAX = 16 << 20

#: Failures before the request left us; the last one is the refusal of a proxy to connect.
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
)
_PROXY_ADVICE = "check HTTPS_PROXY, NO_PROXY and the kubeconfig's proxy-url"


@final
class Streams:
    """Bodies that arrive piece by piece, each over a connection of its own."""

    def __init__(
        self,
        credentials: Credentials,
        user_agent: str,
        *,
        take_turn: Callable[[], Awaitable[None]],
        identity: Callable[[], Headers],
        began: Callable[[int], None],
    ) -> None:
        """``take_turn``: waits for the rate limit. ``identity``: headers that say who asks.
        ``began``: called with the status of each stream."""
        self._credentials = credentials
        self._session = _session(credentials, user_agent)
        self._take_turn = take_turn
        self._identity = identity
        self._began = began

    async def close(self) -> None:
        await self._session.close()

    def proxied(self, *, encoding: str) -> "ProxiedSession":
        """A transport through the proxy of the credentials, over the same session."""
        credentials = self._credentials
        server, server_name, proxy = credentials.server, credentials.server_name, credentials.proxy
        return ProxiedSession(self._session, server, server_name, proxy or "", encoding=encoding)

    async def pieces(self, path: str, silence_seconds_max: float) -> AsyncGenerator[bytes]:
        """See `ApiClient.stream`."""
        request, server = f"GET {path.partition('?')[0]}", self._credentials.server
        limits = aiohttp.ClientTimeout(
            sock_connect=transport.CONNECT_SECONDS, sock_read=silence_seconds_max
        )
        await self._take_turn()
        seconds = min(STREAM_ANSWER_SECONDS, silence_seconds_max)
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(seconds):
                    answer = await stack.enter_async_context(self._opened(path, limits))
                seconds = silence_seconds_max
                self._began(answer.status)
                await self._expect_success(request, answer)
                async for piece in answer.content.iter_any():
                    yield piece
        except aiohttp.ClientConnectorCertificateError as problem:
            raise UntrustedServerError(request, server, problem) from None
        except _NOT_SENT as problem:
            why = _text_of(problem)
            raise UnreachableError(f"{request}: no answer from {server}: {why}") from None
        except TimeoutError:
            raise WatchStalledError(f"{request}: nothing came for {seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as problem:
            raise WatchDroppedError(f"{request}: {problem}") from None

    def _opened(
        self, path: str, limits: aiohttp.ClientTimeout
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return _answered(
            self._session.get(
                URL(self._credentials.server + path, encoded=True),
                headers=self._identity(),
                timeout=limits,
                server_hostname=self._credentials.server_name,
                proxy=self._credentials.proxy,
            )
        )

    async def _expect_success(self, request: str, answer: aiohttp.ClientResponse) -> None:
        if answer.status < 300:
            return
        if answer.status == UNAUTHORIZED:
            await self._credentials.after_refusal()
        try:
            text = await content_of(answer, _REFUSAL_BYTES_MAX)
        except transport.TooLargeError:
            text = b""
        raise refusal(answer.status, text, request)


def _session(credentials: Credentials, user_agent: str) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=0, ssl=credentials.ssl_context or True, socket_factory=keepalive_socket
    )
    # Events of a watch are short, so they are not compressed. `ProxiedSession` replaces this.
    headers = {
        "Accept-Encoding": transport.IDENTITY,
        "Accept": "application/json",
        "User-Agent": user_agent,
    }
    return aiohttp.ClientSession(
        connector=connector,
        response_class=_Response,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        timeout=aiohttp.ClientTimeout(sock_connect=transport.CONNECT_SECONDS),
        read_bufsize=READ_BUFFER_BYTES,
    )


class _Response(aiohttp.ClientResponse):
    """A response whose connection is aborted if its header does not come."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        try:
            return await super().start(connection)
        except BaseException:
            await _abort(connection)
            raise


@contextlib.asynccontextmanager
async def _answered(
    request: AbstractAsyncContextManager[aiohttp.ClientResponse],
) -> AsyncGenerator[aiohttp.ClientResponse]:
    """The answer, whose connection is closed at the exit unless all of the body was read."""
    async with request as answer:
        try:
            yield answer
        finally:
            if answer.connection is not None:  # else the whole body was read
                await _abort(answer.connection)


async def _abort(connection: Connection) -> None:
    """Close a connection at once.

    By itself aiohttp would begin a TLS shutdown and forget the connection: a server that does not
    answer the shutdown keeps the socket open after the session is closed.
    """
    protocol = connection.protocol
    if protocol is not None:
        closed = protocol.closed
        protocol.abort()
        if closed is not None:
            await asyncio.wait((closed,), timeout=transport.CLOSE_SECONDS)


async def content_of(answer: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """The body of an answer. Raises TooLargeError."""
    content = bytearray()
    async for piece in answer.content.iter_any():
        content += piece
        if len(content) > bytes_max:
            raise transport.TooLargeError(bytes_max)
    return bytes(content)


def keepalive_socket(address: Any) -> socket.socket:
    """A socket factory for aiohttp with TCP keepalive."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    transport.keep_alive(made)
    return made


# ---- proxied --------------------------------------------------------------------------------


@final
class ProxiedSession:
    """Transport through a proxy, over a session that the caller owns."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        server: str,
        server_name: str | None,
        proxy: str,
        *,
        encoding: str = transport.IDENTITY,
    ) -> None:
        """``encoding``: see `ConnectionPool`; the session decompresses."""
        self._session = session
        self._encoding = encoding
        self._server = server
        self._server_name = server_name
        self._proxy = proxy

    async def send(
        self,
        method: str,
        path: str,
        head: str,
        body: bytes | None,
        *,
        bytes_max: int = transport.ANSWER_BYTES_MAX,
    ) -> transport.Response:
        """Raises NotSentError, NoAnswerError."""
        lines = [line.split(": ", 1) for line in head.split("\r\n") if line]
        headers = [(name, value) for name, value in lines]
        headers.append(("Accept-Encoding", self._encoding))
        try:
            request = self._session.request(
                method,
                URL(self._server + path, encoded=True),
                data=body,
                headers=headers,
                server_hostname=self._server_name,
                proxy=self._proxy,
            )
            async with _answered(request) as answer:
                read = await content_of(answer, bytes_max)
                return transport.Response(
                    answer.status, read, answer.headers.get("Retry-After", "")
                )
        except aiohttp.ClientConnectorCertificateError as problem:
            raise transport.NotSentError(_text_of(problem), is_untrusted=True) from None
        except aiohttp.InvalidURL as problem:
            raise transport.NotSentError(_text_of(problem), is_for_ever=True) from None
        except _NOT_SENT as problem:
            raise transport.NotSentError(_text_of(problem)) from None
        except (aiohttp.ClientError, OSError) as problem:
            raise transport.NoAnswerError(_text_of(problem)) from None

    async def close(self) -> None:
        """Does nothing: the owner closes the session."""


def _text_of(problem: Exception) -> str:
    if isinstance(problem, aiohttp.ClientProxyConnectionError):
        place, why = f"{problem.host}:{problem.port}", problem.os_error.strerror or problem
        return f"the proxy {place} cannot be reached: {why}; {_PROXY_ADVICE}"
    if isinstance(problem, aiohttp.ClientHttpProxyError):
        found = f"HTTP {problem.status} {problem.message}".strip()
        return f"the proxy refuses the connection: {found}; {_PROXY_ADVICE}"
    return str(problem) or type(problem).__name__
