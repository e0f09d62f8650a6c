"""Limits of the HTTP server: connections and rates by peer, and requests of foreign web pages."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
import uvloop
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from bayplan.clock import ManualClock
from bayplan.serving.certificates import self_signed_context
from bayplan.serving.http_server import (
    PEERS_MAX,
    HttpLimits,
    HttpServer,
    PeerRates,
    Rate,
    answer_everybody,
    peer_of,
    refuse_foreign_names,
    refuse_pages,
)

# ---- http server ----------------------------------------------------------------------------


FIRST, SECOND = "127.0.0.1", "127.0.0.2"
#: A deadline that a test waits for.
SOON_SECONDS = 0.1
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
FREE = Rate(per_second=1000.0, burst=1000)

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def limits(**changed: Any) -> HttpLimits:
    free = {"connection_rate": FREE, "connection_rate_per_peer": FREE}
    return HttpLimits(**{**free, **changed})


class Server:
    """A server with a short page, a page that reads the body, and a long page."""

    def __init__(self, port: int, server: HttpServer) -> None:
        self.port = port
        self._server = server
        self._connected: list[Connected] = []

    def close(self) -> None:
        """The connections of the clients."""
        for _, writer in self._connected:
            writer.transport.abort()

    async def connect(self, peer: str = FIRST, tls: ssl.SSLContext | None = None) -> Connected:
        connected = await asyncio.open_connection(
            "127.0.0.1", self.port, local_addr=(peer, 0), ssl=tls
        )
        self._connected.append(connected)
        return connected

    async def answer(self, peer: str = FIRST, request: bytes = REQUEST) -> bytes:
        """The first line of the answer; empty if the connection is closed without an answer."""
        reader, writer = await self.connect(peer)
        with contextlib.suppress(ConnectionError):
            writer.write(request)
            return (await reader.readline()).strip()
        return b""

    def refusals(self) -> dict[str, float]:
        registry = CollectorRegistry()
        self._server.register(registry)
        lines = generate_latest(registry).decode().splitlines()
        samples = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name.split('"')[1]: float(value) for name, value in samples}


@contextlib.asynccontextmanager
async def serving(
    bounds: HttpLimits, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncGenerator[Server]:
    async def greet(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def read(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    async def long(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 2**26)

    app = web.Application()
    app.router.add_get("/", greet)
    app.router.add_post("/read", read)
    app.router.add_get("/long", long)
    server = HttpServer(app, limits=bounds, **options)
    port = await server.start("127.0.0.1", 0, tls)
    clients = Server(port, server)
    try:
        yield clients
    finally:
        await server.stop()
        clients.close()
        await asyncio.sleep(0)


@pytest.fixture(params=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    """The event loops that `bayplan run` may have."""
    return uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop


on_each_loop = pytest.mark.usefixtures("loop_factory")


async def ended(connected: Connected) -> bool:
    """Wait until the server closes the connection."""
    with contextlib.suppress(ConnectionError):
        await connected[0].read()
    return True


@on_each_loop
async def test_connections_above_the_rate_of_a_peer_are_closed_and_others_get_answers() -> None:
    bounds = limits(connection_rate_per_peer=Rate(per_second=0.001, burst=3))
    async with serving(bounds) as server:
        answers = [await server.answer() for _ in range(5)]
        assert answers == [b"HTTP/1.1 200 OK"] * 3 + [b""] * 2
        assert await server.answer(SECOND) == b"HTTP/1.1 200 OK"
        assert server.refusals() == {"connection rate": 2}


@on_each_loop
async def test_the_peer_with_the_most_connections_loses_its_oldest() -> None:
    async with serving(limits(connections_max=4)) as server:
        connections = [await server.connect() for _ in range(4)]
        for connected in connections:
            connected[1].write(REQUEST)
            assert await connected[0].readline()
        other = await server.connect(SECOND)
        assert await ended(connections[0])
        assert await server.answer(FIRST) == b"HTTP/1.1 200 OK"
        assert await ended(connections[1])
        other[1].write(REQUEST)
        assert await other[0].readline() == b"HTTP/1.1 200 OK\r\n"
        assert server.refusals() == {"too many connections": 2}


@on_each_loop
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX-slow: "])
async def test_a_missing_header_ends_its_connection(sent: bytes) -> None:
    async with serving(limits(header_seconds=SOON_SECONDS)) as server:
        connected = await server.connect()
        connected[1].write(sent)
        assert await ended(connected)
        assert server.refusals() == {"too slow": 1}


@on_each_loop
async def test_a_later_request_has_the_same_header_timeout() -> None:
    async with serving(limits(header_seconds=SOON_SECONDS)) as server:
        connected = await server.connect()
        connected[1].write(REQUEST)
        await connected[0].readuntil(b"hello")
        connected[1].write(b"GET / HT")
        assert await ended(connected)
        assert server.refusals() == {"too slow": 1}


@on_each_loop
async def test_an_idle_connection_ends_and_is_not_counted_as_refused() -> None:
    async with serving(limits(idle_seconds=SOON_SECONDS)) as server:
        connected = await server.connect()
        connected[1].write(REQUEST)
        assert await ended(connected)
        assert server.refusals() == {}


@on_each_loop
@pytest.mark.parametrize(
    "sent",
    [
        b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx",
        b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=["a body that does not come", "an answer that is not read"],
)
@on_each_loop
async def test_a_request_that_takes_too_long_ends(sent: bytes) -> None:
    async with serving(limits(answer_seconds=SOON_SECONDS)) as server:
        connected = await server.connect()
        connected[1].write(sent)
        connected[1].transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        while not server.refusals():
            await asyncio.sleep(0)
        assert server.refusals() == {"too slow": 1}


@on_each_loop
async def test_a_connection_without_a_handshake_ends_and_delays_no_other() -> None:
    tls = self_signed_context("127.0.0.1", 1_767_225_600.0)
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    async with serving(limits(header_seconds=1.0), tls) as server:
        silent = [await server.connect() for _ in range(20)]
        reader, writer = await server.connect(FIRST, unchecked)
        writer.write(REQUEST)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert all([await ended(connected) for connected in silent])
        assert server.refusals()["TLS handshake"] == 20


@on_each_loop
async def test_a_pending_handshake_is_replaced_by_a_connection_of_another_peer() -> None:
    tls = self_signed_context("127.0.0.1", 1_767_225_600.0)
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    async with serving(limits(connections_max=3), tls) as server:
        silent = [await server.connect() for _ in range(3)]
        reader, writer = await server.connect(SECOND, unchecked)
        writer.write(REQUEST)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert await ended(silent[0])


@on_each_loop
async def test_a_client_that_disconnects_causes_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(limits()) as server:
        for request in (
            b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx",
            b"POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nx",
            b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n",
            b"nonsense\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost : b\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
            b"GET /\r\n\r\n",
            b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ):
            _, writer = await server.connect()
            writer.write(request)
            await writer.drain()
            assert await server.answer() == b"HTTP/1.1 200 OK"
            writer.transport.abort()
            assert await server.answer() == b"HTTP/1.1 200 OK"
    assert [record for record in caplog.records if record.exc_info] == []


@on_each_loop
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: localhost:1\r\n", b"200 OK"),
        ("Host: evil.example\r\n", b"403 Forbidden"),
        ("Host: localhost\r\nOrigin: https://evil.example\r\n", b"403 Forbidden"),
    ],
)
@on_each_loop
async def test_a_request_from_a_foreign_page_is_refused(headers: str, status: bytes) -> None:
    async with serving(limits(), guard=refuse_foreign_names) as server:
        request = f"GET / HTTP/1.1\r\n{headers}\r\n".encode()
        assert await server.answer(request=request) == b"HTTP/1.1 " + status


@on_each_loop
async def test_the_server_stops_with_open_connections() -> None:
    async with serving(limits()) as server:
        connections = [await server.connect() for _ in range(5)]
        connections[0][1].write(REQUEST)
        connections[1][1].write(b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx")
        assert await connections[0][0].readline()
    for connected in connections:
        assert await ended(connected)


@on_each_loop
async def test_an_address_in_use_is_an_os_error() -> None:
    async with serving(limits()) as server:
        second = HttpServer(web.Application())
        with pytest.raises(OSError, match="in use"):
            await second.start("127.0.0.1", server.port)
        await second.stop()


# ---- peer rates -----------------------------------------------------------------------------


def takes(rates: PeerRates, address: str, count: int) -> int:
    """The number of tries that get a token."""
    return sum(rates.try_take(address) for _ in range(count))


def test_each_peer_has_its_own_rate() -> None:
    clock = ManualClock()
    rates = PeerRates(Rate(2, 3), clock, total=Rate(100, 100))
    assert [takes(rates, "10.0.0.1", 9), takes(rates, "10.0.0.2", 9)] == [3, 3]
    clock.advance_to(1.0)
    assert takes(rates, "10.0.0.1", 9) == 2


def test_all_peers_together_have_a_rate() -> None:
    rates = PeerRates(Rate(1, 1), ManualClock(), total=Rate(1, 5))
    assert sum(rates.try_take(f"10.0.0.{number}") for number in range(100)) == 5


def test_the_most_recent_peers_are_remembered() -> None:
    rates = PeerRates(Rate(1, 1), ManualClock(), total=Rate(1, 10 * PEERS_MAX))
    assert takes(rates, "first", 2) == 1
    for number in range(PEERS_MAX - 1):
        rates.try_take(f"p{number}")
    assert not rates.try_take("first")
    for number in range(PEERS_MAX):
        rates.try_take(f"q{number}")
    assert rates.try_take("first")


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
    ],
)
def test_an_ipv6_network_of_one_host_is_one_peer(address: str, peer: str) -> None:
    assert peer_of(address) == peer


# ---- browser guard --------------------------------------------------------------------------


LOCAL = ["localhost", "localhost:10259", "127.0.0.1:10259", "127.9.9.9", "[::1]:10259", "LOCALHOST"]
FOREIGN = ["evil.example", "10.0.0.1:80", "localhost.evil.example", "127.0.0.1.evil.example", "[::"]


@pytest.mark.parametrize("host", LOCAL)
def test_a_local_name_is_accepted(host: str) -> None:
    assert refuse_foreign_names({"Host": host}) == ""
    assert refuse_foreign_names({"Host": "localhost", "Origin": f"http://{host}"}) == ""


@pytest.mark.parametrize("host", FOREIGN)
def test_another_name_is_refused(host: str) -> None:
    text = f"Forbidden: Host is '{host}', wanted localhost or an address of loopback"
    assert refuse_foreign_names({"Host": host}) == text
    origin = f"https://{host}"
    assert "Origin is" in refuse_foreign_names({"Host": "localhost", "Origin": origin})


@pytest.mark.parametrize("origin", ["null", "", "file://", "chrome-extension://abc"])
def test_an_origin_without_a_local_name_is_refused(origin: str) -> None:
    assert "Origin is" in refuse_foreign_names({"Host": "localhost", "Origin": origin})


def test_without_configured_names_pages_are_recognized_by_their_origin() -> None:
    assert refuse_pages({"Host": "anything.example"}) == ""
    assert refuse_pages({"Host": "localhost", "Origin": "http://localhost"}).startswith("Forbidden")


def test_refused_values_are_printed_short_and_without_control_characters() -> None:
    assert refuse_foreign_names({"Host": "\x1b" + "x" * 5000}).count("x") < 110
    assert "\x1b" not in refuse_foreign_names({"Host": "\x1b[2J.example"})


def test_a_server_with_credentials_accepts_every_name() -> None:
    assert answer_everybody({"Host": "evil.example", "Origin": "https://evil.example"}) == ""
