"""One request: what is retried and what is not."""

import asyncio
import contextlib
import gc
import re
import socket
import ssl
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from bayplan.adapters.live import streams as streams_module
from bayplan.adapters.live.client import (
    IN_FLIGHT_MAX,
    TRIES_FAILED,
    TRIES_PUT_OFF,
    ApiClient,
    ClientOptions,
    all_results,
    open_client,
)
from bayplan.adapters.live.errors import (
    AccessDeniedError,
    UnreachableError,
    UntrustedServerError,
    WatchStalledError,
)
from bayplan.adapters.live.rate_limit import Lane
from bayplan.clock import RealClock
from bayplan.ports import ApiError, NotFoundError, OutcomeUnknownError, WatchDroppedError
from bayplan.serving.certificates import self_signed_context
from tests.kit.api_server import (
    FakeApiServer,
    Handler,
    Naps,
    cut,
    fine,
    kubeconfig,
    serving,
    silent,
    status,
)

T = TypeVar("T")


def response_and_naps(
    folder: Path, handler: Handler, ask: Callable[[ApiClient], Awaitable[T]], **options: float
) -> tuple[T, list[float]]:
    """The result of ``ask`` with a server of this ``handler``, and the durations of its sleeps."""
    naps = Naps()

    async def main() -> T:
        async with serving(handler) as server:
            config = kubeconfig(folder, server)
            chosen = ClientOptions(sleep=naps, **options)  # pyright: ignore[reportArgumentType]
            async with open_client(config, chosen) as client:
                return await ask(client)

    return asyncio.run(main()), naps.durations


def test_a_request_has_a_user_agent_and_credentials(tmp_path: Path) -> None:
    server = FakeApiServer(fine)
    answer, _ = response_and_naps(tmp_path, server, lambda client: client.get("/version?a=b%2Cc"))
    assert answer == {"fine": True}
    assert server.received[0].target == "/version?a=b%2Cc"
    assert server.received[0].headers["Authorization"] == "Bearer secret"
    assert server.received[0].headers["User-Agent"] == "bayplan"


def test_content_is_sent_as_json_with_its_media_type(tmp_path: Path) -> None:
    server = FakeApiServer(fine)
    patch = "application/merge-patch+json"
    response_and_naps(
        tmp_path, server, lambda client: client.request("PATCH", "/x", {"a": 1}, media_type=patch)
    )
    assert [each.body for each in server.received] == [b'{"a":1}']
    assert server.received[0].headers["Content-Type"] == patch


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_throttled_request_waits_as_long_as_the_server_says(tmp_path: Path, method: str) -> None:
    later = lambda: status(429, "TooManyRequests", "later", **{"Retry-After": "7"})  # noqa: E731
    _, naps = response_and_naps(
        tmp_path, FakeApiServer(later, later, fine), lambda client: client.request(method, "/x")
    )
    assert naps == [7, 7]


def test_a_server_that_throttles_forever_raises_in_the_end(tmp_path: Path) -> None:
    busy = lambda: status(429, "TooManyRequests", "later")  # noqa: E731
    server = FakeApiServer(*[busy] * (TRIES_PUT_OFF + 1))
    with pytest.raises(ApiError, match="later") as error:
        response_and_naps(tmp_path, server, lambda client: client.get("/x"))
    assert error.value.code == 429


def test_only_idempotent_requests_are_retried_at_an_unavailable_server(tmp_path: Path) -> None:
    away = lambda: status(503, "ServiceUnavailable", "soon", **{"Retry-After": "1"})  # noqa: E731
    _, naps = response_and_naps(
        tmp_path, FakeApiServer(away, fine), lambda client: client.request("PATCH", "/x")
    )
    assert naps == [1]
    with pytest.raises(ApiError, match="soon"):
        response_and_naps(
            tmp_path, FakeApiServer(away), lambda client: client.request("POST", "/x")
        )


def test_a_refusal_is_raised_at_once(tmp_path: Path) -> None:
    refusal = lambda: status(404, "NotFound", "pods web")  # noqa: E731
    with pytest.raises(NotFoundError, match="pods web"):
        response_and_naps(tmp_path, FakeApiServer(refusal), lambda client: client.get("/x"))


class Cutting:
    """Breaks the first `count` connections, then answers."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.calls = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.calls += 1
        self.left -= 1
        return cut(request) if self.left >= 0 else fine()


def test_idempotent_requests_are_retried_with_growing_delays(tmp_path: Path) -> None:
    _, naps = response_and_naps(tmp_path, Cutting(3), lambda client: client.request("PATCH", "/x"))
    assert len(naps) == 3
    assert 0.1 <= naps[0] <= 0.2 <= naps[1] <= 0.4 <= naps[2] <= 0.8


def test_a_write_without_an_answer_is_not_retried(tmp_path: Path) -> None:
    cutting = Cutting(1)
    with pytest.raises(OutcomeUnknownError, match="POST /x: no answer"):
        response_and_naps(tmp_path, cutting, lambda client: client.request("POST", "/x"))
    assert cutting.calls == 1


def test_a_patch_without_an_answer_has_an_unknown_outcome(tmp_path: Path) -> None:
    with pytest.raises(OutcomeUnknownError):
        response_and_naps(tmp_path, Cutting(99), lambda client: client.request("PATCH", "/x"))


def test_a_request_to_an_unreachable_server_has_no_effect(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with serving(FakeApiServer()) as server:
            config = kubeconfig(tmp_path, server)
        async with open_client(config, ClientOptions(sleep=naps)) as client:
            await client.request("POST", "/x")

    naps = Naps()
    with pytest.raises(UnreachableError, match="POST /x: no answer from http://"):
        asyncio.run(main())
    assert len(naps.durations) == TRIES_FAILED - 1


def test_a_timeout_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    with pytest.raises(OutcomeUnknownError, match="within"):
        response_and_naps(
            tmp_path, silent, lambda client: client.request("POST", "/x", timeout_seconds=0.05)
        )
    with pytest.raises(UnreachableError, match="within"):
        response_and_naps(tmp_path, silent, lambda client: client.get("/x", timeout_seconds=0.05))


def test_refused_credentials_are_reloaded_once(tmp_path: Path) -> None:
    async def picky(request: web.BaseRequest) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer new":
            return fine()
        kubeconfig(tmp_path, f"http://{request.host}", {"token": "new"})
        return status(401, "Unauthorized", "Unauthorized")

    answer, _ = response_and_naps(tmp_path, picky, lambda client: client.get("/x"))
    assert answer == {"fine": True}


def test_credentials_that_stay_refused_are_reported(tmp_path: Path) -> None:
    unknown = lambda: status(401, "Unauthorized", "Unauthorized")  # noqa: E731
    with pytest.raises(AccessDeniedError, match="does not accept our credentials"):
        response_and_naps(
            tmp_path, FakeApiServer(unknown, unknown), lambda client: client.get("/x")
        )


def test_a_full_lane_does_not_block_other_lanes(tmp_path: Path) -> None:
    async def ask(client: ApiClient) -> None:
        for _ in range(3):
            await client.request("POST", "/events", lane=Lane.EVENTS)
        await client.request("POST", "/binding", lane=Lane.BINDINGS)

    _, naps = response_and_naps(tmp_path, FakeApiServer(*[fine] * 4), ask, qps=0.001, burst=1)
    assert len(naps) == 2


def test_a_request_whose_turn_comes_after_its_deadline_is_not_sent(tmp_path: Path) -> None:
    async def ask(client: ApiClient) -> None:
        await client.request("POST", "/first")
        with pytest.raises(UnreachableError, match=r"POST /late: not sent: .* within 5 s"):
            await client.request("POST", "/late", timeout_seconds=5)

    server = FakeApiServer(fine)
    _, naps = response_and_naps(tmp_path, server, ask, qps=0.1, burst=1)
    assert (naps, len(server.received)) == ([], 1)


def test_a_request_that_gets_no_place_in_its_lane_before_its_deadline_is_not_sent(
    tmp_path: Path,
) -> None:
    async def ask(client: ApiClient) -> None:
        requests = [
            asyncio.ensure_future(client.request("POST", "/x", lane=Lane.REVIEWS))
            for _ in range(IN_FLIGHT_MAX[Lane.REVIEWS])
        ]
        await asyncio.sleep(0)
        with pytest.raises(UnreachableError, match="not sent"):
            await client.request("POST", "/late", lane=Lane.REVIEWS, timeout_seconds=0.05)
        for each in requests:
            each.cancel()
        await asyncio.wait(requests)

    response_and_naps(tmp_path, silent, ask)


@pytest.mark.parametrize("body", [b"", b"<html>log in first</html>", b'{"truncated":', b"[]"])
def test_a_write_with_a_foreign_answer_has_an_unknown_outcome(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(OutcomeUnknownError, match="POST /x: found an answer that is not an API"):
        response_and_naps(
            tmp_path,
            FakeApiServer(lambda: web.Response(body=body)),
            lambda client: client.request("POST", "/x"),
        )


# ---- streams ---------------------------------------------------------------------------------


async def pieces(client: ApiClient, silence_seconds: float = 60.0) -> list[bytes]:
    return [piece async for piece in client.stream("/watch", silence_seconds)]


def test_a_stream_ends_when_the_server_ends_it(tmp_path: Path) -> None:
    received, _ = response_and_naps(
        tmp_path, FakeApiServer(lambda: web.Response(body=b"abc")), pieces
    )
    assert b"".join(received) == b"abc"


async def begun(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"begun")
    return response


def test_a_silent_stream_is_closed(tmp_path: Path) -> None:
    async def silent(request: web.BaseRequest) -> web.StreamResponse:
        await begun(request)
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(WatchDroppedError, match="nothing came for"):
        response_and_naps(tmp_path, silent, lambda client: pieces(client, 0.05))


def test_an_accepted_stream_without_an_answer_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "STREAM_ANSWER_SECONDS", 0.05)
    with pytest.raises(WatchStalledError, match=r"GET /watch: nothing came for 0\.05 s"):
        response_and_naps(tmp_path, silent, pieces)


def test_a_stream_with_a_broken_connection_is_closed(tmp_path: Path) -> None:
    async def breaking(request: web.BaseRequest) -> web.StreamResponse:
        await begun(request)
        return cut(request)

    with pytest.raises(WatchDroppedError):
        response_and_naps(tmp_path, breaking, pieces)


def test_a_refused_stream_raises_the_reason(tmp_path: Path) -> None:
    refusal = lambda: status(410, "Expired", "too old")  # noqa: E731
    with pytest.raises(ApiError, match="too old") as error:
        response_and_naps(tmp_path, FakeApiServer(refusal), pieces)
    assert error.value.code == 410


def test_every_attempt_is_counted(tmp_path: Path) -> None:
    registry = CollectorRegistry()

    async def ask(client: ApiClient) -> None:
        client.metrics.register(registry)
        await client.request("PATCH", "/x")
        await pieces(client)

    later = lambda: status(429, "TooManyRequests", "later")  # noqa: E731
    response_and_naps(tmp_path, FakeApiServer(later, fine, fine), ask)
    counted = {
        (sample.labels["method"], sample.labels["code"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "rest_client_requests_total"
    }
    assert counted == {("PATCH", "429"): 1, ("PATCH", "200"): 1, ("GET", "200"): 1}


def test_an_untrusted_certificate_is_reported_and_not_retried(
    tmp_path: Path,
) -> None:
    tls = self_signed_context("127.0.0.1", RealClock().epoch_seconds())

    async def main() -> None:
        runner = web.ServerRunner(web.Server(FakeApiServer()))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        config = kubeconfig(tmp_path, f"https://127.0.0.1:{runner.addresses[0][1]}")
        try:
            async with open_client(config, ClientOptions(sleep=naps)) as client:
                for ask in (client.get("/x"), client.request("POST", "/x"), pieces(client)):
                    with pytest.raises(
                        UntrustedServerError, match=r"is not trusted: .*self-signed"
                    ):
                        await ask
        finally:
            await runner.cleanup()

    naps = Naps()
    asyncio.run(main())
    assert naps.durations == []


@contextlib.contextmanager
def serving_in_a_thread(tls: ssl.SSLContext, answer: bytes) -> Iterator[int]:
    """The port of a server that begins one answer, and then neither reads nor writes."""

    def serve() -> None:
        with contextlib.suppress(OSError):  # the client closes the connection
            connection, _ = listener.accept()
            with tls.wrap_socket(connection, server_side=True) as accepted:
                accepted.recv(2**16)
                accepted.sendall(answer)
                is_over.wait()

    listener, is_over = socket.create_server(("127.0.0.1", 0)), threading.Event()
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        is_over.set()
        thread.join()
        listener.close()


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", b"HTTP/1.1 "]
)
def test_a_stream_that_is_left_over_tls_closes_its_socket(tmp_path: Path, answer: bytes) -> None:
    """The server does not answer the shutdown of TLS, as a busy server does not."""

    async def main(port: int) -> None:
        config = kubeconfig(tmp_path, f"https://127.0.0.1:{port}", is_verified=False)
        async with open_client(config, ClientOptions(sleep=Naps())) as client:
            stream = client.stream("/watch", 60.0 if answer.endswith(b"\n") else 0.3)
            with contextlib.suppress(WatchStalledError):  # the header does not come
                assert await anext(stream) == b"x"
            await stream.aclose()

    tls = self_signed_context("127.0.0.1", RealClock().epoch_seconds())
    with serving_in_a_thread(tls, answer) as port, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main(port))
        gc.collect()
    assert [str(each.message) for each in caught if each.category is ResourceWarning] == []


async def test_a_failure_is_raised_after_all_other_requests_have_ended() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("waits")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        await all_results([waits(), fails()])
    assert ended == ["waits"]


def test_a_long_message_of_the_server_is_cut(tmp_path: Path) -> None:
    server = FakeApiServer(lambda: status(500, "InternalError", "x" * 1_000_000))
    with pytest.raises(ApiError) as error:
        response_and_naps(tmp_path, server, lambda client: client.get("/x"))
    assert str(error.value) == f"{'x' * 4000}… (1,000,000 characters)"


def test_an_answer_that_is_late_is_announced_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    released = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await released.wait()
        return fine()

    async def ask(client: ApiClient) -> None:
        requests = [asyncio.ensure_future(client.get(f"/x{number}")) for number in range(3)]
        while not caplog.messages:
            await asyncio.sleep(0.01)
        released.set()
        await asyncio.gather(*requests)

    response_and_naps(tmp_path, handler, ask, notice_seconds=0.05)
    (line,) = caplog.messages
    assert re.fullmatch(
        r"GET /x\d: no answer from http://\S+ for 0\.05 s; waiting up to 65 s", line
    )
