"""Requests over persistent connections: the part of HTTP/1.1 that an API server needs.

A request is one write; httptools parses the answer. A connection carries one request at a time. The
most recently used idle connection is used next, so that the others age and are closed. Failures
differ by whether anything had been sent: NotSentError or NoAnswerError. Decision 0006 in
docs/decisions explains why this is not aiohttp. `streams` carries watches, and all requests through
a proxy.
"""

import asyncio
import contextlib
import socket
import ssl
import zlib
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, cast, final

import httptools
from yarl import URL

# ---- transport ------------------------------------------------------------------------------


CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 1.0
#: Shorter than the server's limit, so that the server rarely closes a connection in use.
KEEPALIVE_SECONDS = 60.0

#: One answer, after its decompression. A page has 500 objects of at most 1.5 MiB, and most have
#: some KiB.
ANSWER_BYTES_MAX = 256 << 20
#: The header of an answer, with what comes along with its end.
HEAD_BYTES_MAX = 1 << 20
#: Content codings that a client may accept.
IDENTITY = "identity"
GZIP = "gzip"
#: For zlib: a gzip header, and the largest window.
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS

_DEFAULT_PORTS = MappingProxyType({"http": 80, "https": 443})


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response."""

    status: int
    body: bytes
    #: The header Retry-After, "" without one.
    retry_after: str = ""


class NotSentError(Exception):
    """The request was not sent."""

    def __init__(
        self, message: str, *, is_for_ever: bool = False, is_untrusted: bool = False
    ) -> None:
        """``is_untrusted``: the server's certificate is not trusted. ``is_for_ever``: a retry would
        end the same way, for this or another reason."""
        super().__init__(message)
        self.is_untrusted = is_untrusted
        self.is_for_ever = is_for_ever or is_untrusted


class NoAnswerError(Exception):
    """The request was sent and no answer came. The server may or may not have performed it."""


class TooLargeError(NoAnswerError):
    """The answer is larger than the caller allows, as it came or after its decompression."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the answer is larger than {bytes_max >> 20} MiB")


class Transport(Protocol):
    """Sends one request."""

    async def send(
        self,
        method: str,
        path: str,
        head: str,
        body: bytes | None,
        *,
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> Response:
        """``head``: further header lines, each with its end. ``bytes_max``: of the answer's body.
        Raises NotSentError, NoAnswerError (TooLargeError)."""
        ...

    async def close(self) -> None: ...


@final
class Connection(asyncio.Protocol):
    """One connection, which carries one exchange at a time."""

    def __init__(self) -> None:
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._bytes_max = 0
        self._begin()
        #: When the connection became idle.
        self.idle_since = 0.0
        self.is_open = False
        #: Set when the connection is closed.
        self.lost = asyncio.Event()

    async def exchange(self, request: bytes, bytes_max: int = ANSWER_BYTES_MAX) -> Response:
        """Raises NotSentError, NoAnswerError. A cancelled caller must abort the connection."""
        assert self._answer is None, "a connection carries one request at a time"
        if self._transport is None:
            raise NotSentError("Server disconnected")
        self._answer = asyncio.get_running_loop().create_future()
        self._bytes_max = bytes_max
        self._transport.write(request)
        try:
            return await self._answer
        finally:
            self._answer = None

    def abort(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # ---- asyncio.Protocol -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses.
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True
        keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        assert self._parser is not None, "data after the end of a connection"
        if not self._has_head:
            self._head_byte_count += len(data)
            if self._head_byte_count > HEAD_BYTES_MAX:
                self._give_up(TooLargeError(HEAD_BYTES_MAX))
                return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
            self._fail(f"the server does not speak HTTP: {problem}")
            self.abort()

    def eof_received(self) -> None:
        self.is_open = False  # it closes itself

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._has_head and not self._has_length and exc is None:
            # An answer whose end is the end of the connection.
            self.on_message_complete()
        self._fail(str(exc or "") or "Server disconnected")
        # The parser refers to this object, and a TLS transport has 300 KiB of buffers. They must
        # not wait for the garbage collector.
        self._parser = self._transport = None
        self.lost.set()

    # ---- httptools' callbacks ---------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"retry-after":
            self._retry_after = value.decode("latin-1").strip()
        elif name == b"content-encoding":
            self._is_compressed = value.strip().lower() == GZIP.encode()
        elif name in (b"content-length", b"transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._byte_count += len(body)
        if self._byte_count > self._bytes_max:
            self._pieces.clear()
            self._give_up(TooLargeError(self._bytes_max))
            return
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        body, is_compressed = b"".join(self._pieces), self._is_compressed
        retry_after = self._retry_after
        self._begin()
        if status < 200:  # "100 Continue" and the like: the answer is still to come
            return
        if not self._parser.should_keep_alive():
            self.is_open = False
        if self._answer is None or self._answer.done():
            self.abort()  # an answer without a request
            return
        try:
            body = _decompressed(body, self._bytes_max) if is_compressed else body
        except NoAnswerError as problem:
            self._give_up(problem)
        else:
            self._answer.set_result(Response(status, body, retry_after))

    # ---- helpers ----------------------------------------------------------------------------

    def _begin(self) -> None:
        self._pieces: list[bytes] = []
        self._byte_count = 0
        self._head_byte_count = 0
        self._retry_after = ""
        self._is_compressed = False
        self._has_head = False
        self._has_length = False

    def _fail(self, why: str) -> None:
        self._end(NoAnswerError(why))

    def _give_up(self, problem: NoAnswerError) -> None:
        """The rest of the answer is not read."""
        self._end(problem)
        self.abort()

    def _end(self, problem: NoAnswerError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(problem)


def _decompressed(body: bytes, bytes_max: int) -> bytes:
    """Raises NoAnswerError. A few MiB may become many GiB."""
    reader = zlib.decompressobj(_GZIP_WINDOW_BITS)
    try:
        content = reader.decompress(body, bytes_max + 1)
    except zlib.error as problem:
        raise NoAnswerError(f"the answer cannot be decompressed: {problem}") from None
    if len(content) > bytes_max:
        raise TooLargeError(bytes_max)
    if not reader.eof:
        raise NoAnswerError("the answer cannot be decompressed: it is truncated")
    return content


@final
class ConnectionPool:
    """Transport to one server. The caller limits the number of concurrent requests."""

    def __init__(
        self,
        server: str,
        tls: ssl.SSLContext | None,
        server_name: str | None,
        user_agent: str,
        *,
        encoding: str = IDENTITY,
    ) -> None:
        """``server_name``: the name in the server's certificate, if not the URL's host.

        ``encoding``: IDENTITY or GZIP, the content coding that answers may have.
        """
        url = URL(server)
        self._host = url.host or ""
        self._port = url.port or _DEFAULT_PORTS.get(url.scheme, 80)
        self._tls = tls
        self._server_name = (server_name or self._host) if tls is not None else None
        self._prefix = url.raw_path.rstrip("/")
        self._fixed = (
            f"Host: {url.authority}\r\nUser-Agent: {user_agent}\r\nAccept: application/json\r\n"
            f"Accept-Encoding: {encoding}\r\n"
        )
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()

    @property
    def idle_count(self) -> int:
        """The number of open idle connections."""
        return sum(connection.is_open for connection in self._idle)

    async def send(
        self,
        method: str,
        path: str,
        head: str,
        body: bytes | None,
        *,
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> Response:
        """Raises NotSentError, NoAnswerError."""
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        text = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._fixed}{head}{length}\r\n"
        connection = self._latest() or await self._new()
        self._busy.add(connection)
        is_whole = False
        try:
            answer = await connection.exchange(text.encode() + (body or b""), bytes_max)
            is_whole = True
            return answer
        finally:
            self._busy.discard(connection)
            self._put_back(connection, is_whole=is_whole)

    async def close(self) -> None:
        """Close all connections. Exchanges in progress raise NoAnswerError."""
        left = (*self._idle, *self._busy)
        self._idle.clear()
        for connection in left:
            connection.abort()
        # A transport usually closes at once; the time-out is for one that does not.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                for connection in left:
                    await connection.lost.wait()

    def _latest(self) -> Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now - connection.idle_since < KEEPALIVE_SECONDS:
                return connection
            connection.abort()
        return None

    def _put_back(self, connection: Connection, *, is_whole: bool) -> None:
        if not is_whole or not connection.is_open:
            connection.abort()
            return
        now = asyncio.get_running_loop().time()
        connection.idle_since = now
        self._idle.append(connection)
        while now - self._idle[0].idle_since >= KEEPALIVE_SECONDS:
            self._idle.popleft().abort()

    async def _new(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await loop.create_connection(
                    Connection,
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._server_name,
                )
        except TimeoutError:
            message = f"no connection to {self._host}:{self._port} within {CONNECT_SECONDS:g} s"
            raise NotSentError(message) from None
        except ssl.SSLCertVerificationError as problem:
            raise NotSentError(str(problem), is_untrusted=True) from None
        except OSError as problem:
            raise NotSentError(str(problem)) from None
        return connection


def keep_alive(made: Any) -> None:
    """Enable TCP keepalive: the socket detects a silent peer within a minute."""
    if made is None:
        return
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        made.setsockopt(socket.IPPROTO_TCP, option, value)


#: Seconds before the first probe, seconds between probes, number of probes; if supported.
_KEEPALIVE = MappingProxyType(
    {
        getattr(socket, name): value
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    }
)
