"""An HTTP server with limits per peer.

aiohttp parses and answers; this module adds limits. Connections are accepted at a rate per peer
address. When there are too many, the peer with the most connections loses its oldest one. A
request's header must arrive within seconds: counted from the opening of the connection for its
first request, and from the first byte for later ones. Body, work and answer together have a minute.
So a peer that opens thousands of connections, or sends one byte a minute, loses only its own
connections.

`PeerRates` is a rate per peer, with a total rate for all. A peer is an IPv4 address or the first 64
bits of an IPv6 address, which one host owns. When there are too many peers, the least recently seen
are forgotten.

`refuse_foreign_names` protects a server on loopback that requires no credentials. Every page in a
user's browser can reach such a server, by a cross-origin request or by DNS rebinding, where the
name of the page suddenly resolves to 127.0.0.1. The headers Origin and Host distinguish these
requests. A request for an image, a script or a frame has no Origin, and Sec-Fetch-Site tells it.
"""

import asyncio
import logging
import socket
import ssl
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address, ip_address
from typing import Any, cast, final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import CollectorRegistry

from bayplan.adapters.live.rate_limit import TokenBucket
from bayplan.clock import Clock, RealClock
from bayplan.metrics import COUNTER, ScrapedFamily
from bayplan.serving.log_lines import Log

# ---- peer rates -----------------------------------------------------------------------------


PEERS_MAX = 1000
_IPV6_HOST_BITS = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """How many connections or requests are accepted: ``burst`` at once, then ``per_second``."""

    per_second: float
    burst: int


@final
class PeerRates:
    """A token bucket for each peer, and one for all of them."""

    def __init__(self, rate: Rate, clock: Clock, *, total: Rate) -> None:
        self._rate = rate
        self._clock = clock
        self._total = self._bucket(total)
        #: By peer; the peer seen last stands last.
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def try_take(self, address: str) -> bool:
        """Take a token of this peer and one of all, if both are there now."""
        peer = peer_of(address)
        bucket = self._buckets.pop(peer, None) or self._bucket(self._rate)
        self._buckets[peer] = bucket
        if len(self._buckets) > PEERS_MAX:
            self._buckets.popitem(last=False)
        return bucket.try_take() and self._total.try_take()

    def _bucket(self, rate: Rate) -> TokenBucket:
        return TokenBucket(rate.per_second, rate.burst, self._clock, asyncio.sleep)


def peer_of(address: str) -> str:
    """The part of an address that identifies a host."""
    try:
        ipv6 = IPv6Address(address.partition("%")[0])
    except AddressValueError:
        return address
    if ipv6.ipv4_mapped is not None:
        return str(ipv6.ipv4_mapped)
    return str(IPv6Address(int(ipv6) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS))


# ---- browser guard --------------------------------------------------------------------------


#: The headers of a request → the reason of a refusal; "": the request is accepted.
Guard = Callable[[Mapping[str, str]], str]

_TEXT_LENGTH_MAX = 100


def refuse_foreign_names(headers: Mapping[str, str]) -> str:
    """The guard of a server on loopback: Host and, if present, Origin must name this machine."""
    host, origin = headers.get("Host", ""), headers.get("Origin")
    if host and not _is_local(f"//{host}"):
        return _forbidden("Host", host)
    if origin is not None and not _is_local(origin):
        return _forbidden("Origin", origin)
    return refuse_cross_site(headers)


def refuse_cross_site(headers: Mapping[str, str]) -> str:
    """Refuse what a page of another site asks for: images, scripts, frames and fetches without an
    Origin. A page of another port of this machine is one, too. A link is followed.

    Browsers send the headers Sec-Fetch-*, and no page can change them; other programs have none.
    """
    if headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return ""
    if (headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")) == ("navigate", "document"):
        return ""
    return "Forbidden: a page of another site may not ask here"


def refuse_pages(headers: Mapping[str, str]) -> str:
    """The guard of a server that refuses requests of web pages, whatever the server's name is."""
    origin = headers.get("Origin")
    return "" if origin is None else f"Forbidden: a page of {_shown(origin)} may not ask here"


def answer_everybody(headers: Mapping[str, str]) -> str:
    """No guard: the server requires credentials that a browser does not send by itself."""
    return ""


def is_loopback(name: str) -> bool:
    """Whether a host name or address is this machine's loopback."""
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _is_local(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def _forbidden(header: str, text: str) -> str:
    return f"Forbidden: {header} is {_shown(text)}, wanted localhost or an address of loopback"


def _shown(text: str) -> str:
    return ascii(text[:_TEXT_LENGTH_MAX])


# ---- http server ----------------------------------------------------------------------------


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_BACKLOG = 128
#: The delay before the next accept if the process has no descriptor left.
_ACCEPT_AGAIN_SECONDS = 1.0
#: aiohttp waits twice as long: for the handler, and for its cancellation.
SHUTDOWN_SECONDS = 1.0
_RATE_PER_PEER = Rate(per_second=20.0, burst=50)
_RATE = Rate(per_second=100.0, burst=200)
#: The minimum time between two log lines with the same reason.
_LOG_AGAIN_SECONDS = 60.0
_log = Log("endpoints")
#: aiohttp's own.
_http_log = logging.getLogger("bayplan.serving.http")


def _is_own_failure(record: logging.LogRecord) -> bool:
    """Whether a record is about this program. A peer that sends no HTTP is none of ours."""
    problem = record.exc_info[1] if record.exc_info else None
    return not isinstance(problem, HttpProcessingError | ConnectionError)


_http_log.addFilter(_is_own_failure)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpLimits:
    """The limits of a server; docs/operations.md explains them."""

    connections_max: int = 256
    #: The rate of accepted connections, per peer and in total.
    connection_rate_per_peer: Rate = _RATE_PER_PEER
    connection_rate: Rate = _RATE
    #: A TLS handshake, and the header of a request.
    header_seconds: float = 10.0
    #: A request's body, its work and the sending of its answer.
    answer_seconds: float = 60.0
    #: The longest pause between an answer and the next request of the connection.
    idle_seconds: float = 75.0


DEFAULT_LIMITS = HttpLimits()


@final
class HttpServer:
    """Serves an application on one address. Use it once."""

    def __init__(
        self,
        app: web.Application,
        *,
        limits: HttpLimits = DEFAULT_LIMITS,
        clock: Clock | None = None,
        guard: Guard = answer_everybody,
    ) -> None:
        """``app``: gets this server's middleware before its own."""
        self._limits = limits
        self._clock = clock or RealClock()
        self._guard = guard
        app.middlewares.insert(0, self._bounded)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_http_log,
            shutdown_timeout=SHUTDOWN_SECONDS,
            handle_signals=False,
            keepalive_timeout=limits.idle_seconds,
        )
        self._rates = PeerRates(
            limits.connection_rate_per_peer, self._clock, total=limits.connection_rate
        )
        self._connections = _Connections(limits.connections_max)
        self._listening: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        #: Reason → connections closed and requests refused.
        self._refusals: Counter[str] = Counter()
        self._logged_seconds: dict[str, float] = {}

    def register(self, registry: CollectorRegistry) -> None:
        """Show what was refused as a metric."""
        registry.register(
            ScrapedFamily(
                COUNTER,
                "bayplan_endpoint_refusals",
                "Connections closed and requests refused by a limit of the endpoints, by reason.",
                ("reason",),
                read=self._refusal_counts,
            )
        )

    async def start(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        *,
        is_port_shared: bool = False,
    ) -> int:
        """Serve; returns the port, which the system chooses for 0. Raises OSError.

        ``is_port_shared``: other processes may serve the same address and port (SO_REUSEPORT).
        """
        await self._runner.setup()
        addresses = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, address in {(family, address) for family, *_, address in addresses}:
            listening = _listening_socket(family, address, is_port_shared=is_port_shared)
            self._listening.append(listening)
            self._begin(self._accept_all(listening, tls))
        return self._listening[0].getsockname()[1]

    async def stop(self) -> None:
        """Accept nothing more; answers under way have two seconds."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listening in self._listening:
            listening.close()
        await self._runner.cleanup()
        for connection in list(self._connections):
            connection.abort()

    # ---- connections ------------------------------------------------------------------------

    async def _accept_all(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as problem:
                _log.warning("Cannot accept a connection", err=str(problem))
                await asyncio.sleep(_ACCEPT_AGAIN_SECONDS)
                continue
            peer = peer_of(address[0])
            if self._rates.try_take(peer):
                self._begin(self._open(accepted, peer, tls))
            else:
                accepted.close()
                self._refused("connection rate", peer)

    async def _open(self, accepted: socket.socket, peer: str, tls: ssl.SSLContext | None) -> None:
        """Turn an accepted socket into a connection, with TLS after the handshake."""
        server, opening = self._runner.server, asyncio.current_task()
        assert server is not None
        assert opening is not None
        connection = _Connection(server(), self._limits, opening)
        connection.on_late = lambda: self._refused("too slow", peer)
        connection.on_lost = lambda: self._connections.discard(peer, connection)
        displaced = self._connections.add(peer, connection)
        if displaced is not None:
            displaced.abort()
            self._refused("too many connections", peer)
        try:
            async with asyncio.timeout(self._limits.header_seconds):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: connection, accepted, ssl=tls
                )
        except (OSError, TimeoutError):
            self._refused("TLS handshake", peer)
        finally:
            if not connection.is_open:
                self._connections.discard(peer, connection)
                accepted.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- requests ---------------------------------------------------------------------------

    @web.middleware
    async def _bounded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The time limit includes sending the answer, so the answer is sent here."""
        connection = self._connections.of(request.protocol)
        if connection is None:  # it is closed already
            return web.Response(status=503)
        connection.begin_answer()
        try:
            answer = await self._answer(request, handler)
            await answer.prepare(request)
            await answer.write_eof()
            return answer
        except (ConnectionError, web.RequestPayloadError):
            # The peer closed the connection or sends no HTTP. aiohttp closes the connection.
            return web.Response(status=400)
        finally:
            connection.end_answer()

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self._guard(request.headers)
        if refusal:
            self._refused("foreign page", request.remote or "")
            return web.Response(status=403, text=refusal + "\n")
        answer = await handler(request)
        if answer.status == web.HTTPTooManyRequests.status_code:
            self._refused("too many requests", request.remote or "")
        return answer

    def _refused(self, reason: str, peer: str) -> None:
        """Count a refusal, and log the first of each reason in a minute."""
        self._refusals[reason] += 1
        now = self._clock.now()
        if now - self._logged_seconds.get(reason, -_LOG_AGAIN_SECONDS) >= _LOG_AGAIN_SECONDS:
            self._logged_seconds[reason] = now
            count = self._refusals[reason]
            _log.warning("The endpoints refuse", reason=reason, peer=peer, sinceStart=count)

    def _refusal_counts(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for reason, count in sorted(self._refusals.items()):
            yield (reason,), count


@final
class _Connection(asyncio.Protocol):
    """Hands everything to aiohttp's protocol, and ends when a deadline passes."""

    def __init__(
        self, inner: web.RequestHandler, limits: HttpLimits, opening: "asyncio.Task[None]"
    ) -> None:
        self.inner = inner
        self._limits = limits
        self._opening = opening
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        #: Whether the connection waits for the first byte of the next request.
        self._is_idle = False
        self.on_late: Callable[[], None] = _nothing
        self.on_lost: Callable[[], None] = _nothing

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        else:
            self._opening.cancel()

    def begin_answer(self) -> None:
        """The header of a request is complete."""
        self._is_idle = False
        self._end_within(self._limits.answer_seconds)

    def end_answer(self) -> None:
        """The next request may come."""
        self._is_idle = True
        self._end_within(self._limits.idle_seconds)

    def _end_within(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._transport is not None:
            self._deadline = asyncio.get_running_loop().call_later(seconds, self._end_late)

    def _end_late(self) -> None:
        if not self._is_idle:
            self.on_late()
        self.abort()

    # ---- asyncio.Protocol -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses.
        self._transport = cast(asyncio.Transport, transport)
        self._end_within(self._limits.header_seconds)
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_idle:
            self._is_idle = False
            self._end_within(self._limits.header_seconds)
        self.inner.data_received(data)

    def eof_received(self) -> None:
        self.inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._deadline is not None:
            self._deadline.cancel()
        self.on_lost()
        self.inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()


@final
class _Connections:
    """The open connections by peer, oldest first."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._count = 0
        #: Peer → its connections; a dict for its order.
        self._peers: dict[str, dict[_Connection, None]] = {}
        #: aiohttp's protocol → its connection, until it is closed.
        self._by_inner: dict[object, _Connection] = {}

    def __iter__(self) -> Iterator[_Connection]:
        return iter(self._by_inner.values())

    def of(self, inner: object) -> _Connection | None:
        return self._by_inner.get(inner)

    def add(self, peer: str, connection: _Connection) -> _Connection | None:
        """Add a connection. Returns the connection to close for it: the oldest of the peer with the
        most."""
        displaced: _Connection | None = None
        if self._count >= self._count_max:
            largest = max(self._peers, key=lambda peer: len(self._peers[peer]))
            displaced = next(iter(self._peers[largest]))
            self._uncount(largest, displaced)
        self._peers.setdefault(peer, {})[connection] = None
        self._count += 1
        self._by_inner[connection.inner] = connection
        return displaced

    def discard(self, peer: str, connection: _Connection) -> None:
        """Remove a closed connection."""
        self._by_inner.pop(connection.inner, None)
        self._uncount(peer, connection)

    def _uncount(self, peer: str, connection: _Connection) -> None:
        connections = self._peers.get(peer, {})
        if connection in connections:
            del connections[connection]
            self._count -= 1
            if not connections:
                del self._peers[peer]


def _nothing() -> None: ...


def _listening_socket(
    family: int, address: tuple[object, ...], *, is_port_shared: bool
) -> socket.socket:
    """Raises OSError."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_port_shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made
