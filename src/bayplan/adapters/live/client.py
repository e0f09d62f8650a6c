"""Requests to the API server: rate limits, retries, and the meaning of each failure.

Whether a request is retried depends on what is known of the last attempt. A request that never
reached the server, or that the server postponed (429, or 5xx with Retry-After), is retried. A
request without an answer is retried only if repeating it has the same effect. Otherwise the caller
gets OutcomeUnknownError and must read back. Delays double, with jitter from the seeded stream.

    async with open_client(kubeconfig) as client:
        lease = await client.get("/apis/coordination.k8s.io/v1/namespaces/x/leases/y")
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

import msgspec

from bayplan.adapters.live import errors, transport
from bayplan.adapters.live.credentials import Credentials, load_credentials
from bayplan.adapters.live.impersonation import Headers
from bayplan.adapters.live.rate_limit import Lane, LateTurnError, RequestMetrics, Sleep, TokenBucket
from bayplan.clock import Clock, RealClock
from bayplan.lazy_loader import load
from bayplan.ports import ApiError, OutcomeUnknownError
from bayplan.rng import stream

if TYPE_CHECKING:
    from bayplan.adapters.live.streams import Streams

T = TypeVar("T")

_log = logging.getLogger(__name__)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

#: As client-go: how often the server may postpone a request.
TRIES_PUT_OFF = 10
#: How many attempts a request has that fails without an answer from the server.
TRIES_FAILED = 5
DELAY_SECONDS_MIN = 0.1
DELAY_SECONDS_MAX = 5.0
#: One attempt; the API server itself gives up after a minute.
ANSWER_SECONDS = 65.0
#: Maximum number of concurrent requests. Each watch has a connection of its own.
IN_FLIGHT_MAX = MappingProxyType(
    {
        Lane.BINDINGS: 50,
        Lane.STATUS: 20,
        Lane.EVENTS: 10,
        Lane.LEASES: 2,
        Lane.REVIEWS: 10,
        Lane.OTHER: 20,
    }
)

_REPEATABLE = frozenset(("GET", "PATCH", "DELETE"))


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Options of a client. The defaults of qps and burst are upstream's clientConnection."""

    qps: float = 50.0
    burst: int = 100
    seed: int = 0
    #: The URL of the API server; "": the URL of the kubeconfig.
    master: str = ""
    #: A context of the kubeconfig; "": its current context.
    context_name: str = ""
    clock: Clock = field(default_factory=RealClock)
    user_agent: str = "bayplan"
    #: Time-out of one request with all its attempts, unless the call has its own.
    answer_seconds: float = ANSWER_SECONDS
    sleep: Sleep = asyncio.sleep
    #: After how long the log has a line that a request waits for its answer; 0: never.
    notice_seconds: float = 0.0
    #: Whether the server may compress long answers: worth it for a client that reads long lists,
    #: because the decompression of a page costs less than its decryption.
    accepts_gzip: bool = False


@dataclass(slots=True)
class _Attempts:
    """The failures of a request so far."""

    failed: int = 0
    put_off: int = 0
    has_renewed: bool = False


@final
class ApiClient:
    """Requests to one API server. Made by `open_client`."""

    def __init__(self, credentials: Credentials, options: ClientOptions) -> None:
        self._credentials = credentials
        self._random = stream(options.seed, "api client")
        self._sleep = options.sleep
        self._answer_seconds = options.answer_seconds
        self._buckets = {lane: _bucket(options) for lane in Lane}
        self._room = {lane: asyncio.Semaphore(count) for lane, count in IN_FLIGHT_MAX.items()}
        self._user_agent = options.user_agent
        self._encoding = transport.GZIP if options.accepts_gzip else transport.IDENTITY
        self._now = options.clock.now
        self._notice_seconds = options.notice_seconds
        self._is_noticed = False
        self.metrics = RequestMetrics(credentials.server)
        self._opened_streams: Streams | None = None
        self._calls = self._transport()

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._credentials.server

    async def close(self) -> None:
        await self._credentials.close()
        await self._calls.close()
        if self._opened_streams is not None:
            await self._opened_streams.close()

    def _transport(self) -> transport.Transport:
        """The session of the streams if there is a proxy, else a connection pool."""
        credentials, encoding = self._credentials, self._encoding
        server, server_name, proxy = credentials.server, credentials.server_name, credentials.proxy
        if proxy:
            return self._streams().proxied(encoding=encoding)
        tls, agent = credentials.ssl_context, self._user_agent
        return transport.ConnectionPool(server, tls, server_name, agent, encoding=encoding)

    # ---- requests ---------------------------------------------------------------------------

    async def get(self, path: str, *, timeout_seconds: float | None = None) -> Any:
        """An object as plain values. Raises ApiError."""
        body = await self.request("GET", path, timeout_seconds=timeout_seconds)
        return errors.read_answer(body, object, f"GET {path.partition('?')[0]}")

    async def request(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | bytes | None = None,
        *,
        lane: Lane = Lane.OTHER,
        media_type: str = JSON,
        timeout_seconds: float | None = None,
        bytes_max: int = transport.ANSWER_BYTES_MAX,
    ) -> bytes:
        """The body of the answer, of at most ``bytes_max``. ``path`` with its query,
        percent-encoded.

        ``timeout_seconds`` includes the wait for the rate limit. Without it a request waits for the
        rate limit without a time-out, as in kube-scheduler, and all attempts together have
        `answer_seconds`. Raises ApiError when the server refuses or cannot be reached,
        OutcomeUnknownError when a writing request got no answer.
        """
        body = content if isinstance(content, bytes | None) else msgspec.json.encode(content)
        kind = "" if body is None else f"Content-Type: {media_type}\r\n"
        request = _Request(method, path, kind, body, bytes_max)
        is_sent = False
        attempts_seconds = self._answer_seconds if timeout_seconds is None else None
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._wait_for_turn(lane, request, timeout_seconds)
                async with self._room[lane], asyncio.timeout(attempts_seconds):
                    is_sent = True
                    with self._notice(request):
                        answer = await self._tried(request)
        except TimeoutError:
            seconds = timeout_seconds or self._answer_seconds
            if not is_sent:
                raise _late(request, seconds) from None
            message = f"{request}: no answer from {self.server} within {seconds:g} s"
            raise _unanswered(method, message) from None
        if method != "GET":  # callers of GET decode the answer
            _check_written(request, answer)
        return answer

    @contextlib.contextmanager
    def _notice(self, request: "_Request") -> Generator[None]:
        """Log that there is no answer yet, once for all requests that wait at the same time."""
        if not self._notice_seconds or self._is_noticed:
            yield
            return
        timer = asyncio.get_running_loop().call_later(self._notice_seconds, self._log_wait, request)
        try:
            yield
        finally:
            timer.cancel()

    def _log_wait(self, request: "_Request") -> None:
        if not self._is_noticed:
            self._is_noticed = True
            _log.warning(
                "%s: no answer from %s for %g s; waiting up to %g s",
                *(request, self.server, self._notice_seconds, self._answer_seconds),
            )

    async def _wait_for_turn(
        self, lane: Lane, request: "_Request", seconds_max: float | None
    ) -> None:
        """Wait for the rate limit. Raises UnreachableError if the wait would be too long."""
        start_seconds = self._now()
        try:
            await self._buckets[lane].take(seconds_max)
        except LateTurnError:
            raise _late(request, seconds_max or 0.0) from None
        self.metrics.waited(request.method, self._now() - start_seconds)

    async def _tried(self, request: "_Request") -> bytes:
        """The body of the first attempt that succeeds. Raises the error of the last attempt."""
        attempts = _Attempts()
        while True:
            identity = "".join(f"{name}: {value}\r\n" for name, value in self._identity())
            head, begun = identity + request.head, self._now()
            try:
                answer = await self._calls.send(
                    request.method, request.path, head, request.body, bytes_max=request.bytes_max
                )
            except (transport.NotSentError, transport.NoAnswerError) as problem:
                self.metrics.unanswered(request.method, self._now() - begun)
                delay, status = self._delay_after_failure(request, problem, attempts), None
            else:
                status = answer.status
                self.metrics.answered(request.method, status, self._now() - begun)
                if status < 300:
                    return answer.body
                delay = await self._delay_after_refusal(request, answer, attempts)
            self.metrics.retried(request.method, status)
            await self._sleep(delay)

    def _delay_after_failure(
        self,
        request: "_Request",
        problem: transport.NotSentError | transport.NoAnswerError,
        attempts: _Attempts,
    ) -> float:
        """Seconds until the next attempt. Raises the error if this was the last attempt."""
        attempts.failed += 1
        was_sent = isinstance(problem, transport.NoAnswerError)
        if isinstance(problem, transport.NotSentError) and problem.is_untrusted:
            raise errors.UntrustedServerError(str(request), self.server, problem)
        # The next answer would be as large.
        is_for_ever = isinstance(problem, transport.TooLargeError) or (
            isinstance(problem, transport.NotSentError) and problem.is_for_ever
        )
        is_last = attempts.failed >= TRIES_FAILED or is_for_ever
        if is_last or (was_sent and request.method not in _REPEATABLE):
            message = f"{request}: no answer from {self.server}: {problem}"
            raise (
                _unanswered(request.method, message)
                if was_sent
                else errors.UnreachableError(message)
            )
        return self._jittered(attempts.failed)

    async def _delay_after_refusal(
        self, request: "_Request", answer: transport.Response, attempts: _Attempts
    ) -> float:
        """Seconds until the next attempt. Raises the refusal if there is no next attempt."""
        if answer.status == errors.UNAUTHORIZED and not attempts.has_renewed:
            attempts.has_renewed = True
            await self._credentials.after_refusal()
            return 0.0
        wait = _put_off_seconds(request.method, answer)
        attempts.put_off += 1
        if wait is None or attempts.put_off > TRIES_PUT_OFF:
            raise errors.refusal(answer.status, answer.body, str(request))
        return max(wait, self._jittered(1))

    def _jittered(self, failed_count: int) -> float:
        delay = min(DELAY_SECONDS_MIN * 2.0 ** (failed_count - 1), DELAY_SECONDS_MAX)
        return delay * (1.0 + self._random.random())

    # ---- streams ----------------------------------------------------------------------------

    def stream(self, path: str, silence_seconds_max: float) -> AsyncGenerator[bytes]:
        """The body of a GET as it arrives, in pieces of any length.

        Raises ApiError when the server refuses, WatchStalledError when it does not answer or sends
        nothing for too long, WatchDroppedError when the connection breaks.
        """
        return self._streams().pieces(path, silence_seconds_max)

    def _streams(self) -> "Streams":
        """The streams, opened at their first use. A command that only lists does without them."""
        if self._opened_streams is None:
            self._opened_streams = load("bayplan.adapters.live.streams:Streams")(
                self._credentials,
                self._user_agent,
                take_turn=self._buckets[Lane.OTHER].take,
                identity=self._identity,
                began=self.metrics.began,
            )
        return cast("Streams", self._opened_streams)

    # ---- authorization ----------------------------------------------------------------------

    def _identity(self) -> Headers:
        """The headers that say who asks, and for whom. Raises AccessDeniedError."""
        authorization = self._authorization()
        own = (("Authorization", authorization),) if authorization else ()
        return own + self._credentials.impersonation

    def _authorization(self) -> str:
        """The value of the header. Raises AccessDeniedError if the value is not one ASCII line."""
        authorization = self._credentials.authorization()
        if authorization.isascii() and (authorization.isprintable() or not authorization):
            return authorization
        message = (
            f"{self._credentials.place}: found a token with characters that no token has, wanted "
            f"one line of ASCII; is there a line break in it?"
        )
        raise errors.AccessDeniedError(errors.UNAUTHORIZED, "Unauthorized", message)


@contextlib.asynccontextmanager
async def open_client(
    kubeconfig: str | None = None, options: ClientOptions | None = None
) -> AsyncGenerator[ApiClient]:
    """A client for the cluster of a kubeconfig, or for the cluster of this pod.

    ``kubeconfig`` None: the ServiceAccount of the pod, else $KUBECONFIG or ~/.kube/config.
    Raises CredentialsError.
    """
    options = options or ClientOptions()
    credentials = await load_credentials(
        kubeconfig, options.clock, options.master, options.context_name
    )
    client = ApiClient(credentials, options)
    try:
        yield client
    finally:
        await client.close()


def _bucket(options: ClientOptions) -> TokenBucket:
    return TokenBucket(options.qps, options.burst, options.clock, options.sleep)


async def all_results(requests: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of requests that are made side by side, in order.

    The first failure is raised when all other requests have ended: nothing may use the client after
    that.
    """
    tasks = list(map(asyncio.ensure_future, requests))
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Request:
    """The parts of a request that are equal in all its attempts."""

    method: str
    path: str
    head: str = ""
    body: bytes | None = None
    bytes_max: int = transport.ANSWER_BYTES_MAX

    def __str__(self) -> str:
        """For messages: without the query, which differs between watches."""
        return f"{self.method} {self.path.partition('?')[0]}"


def _late(request: _Request, seconds: float) -> errors.UnreachableError:
    return errors.UnreachableError(
        f"{request}: not sent: the client's own rate limit gives it no turn within {seconds:g} s"
    )


class _AnyObject(msgspec.Struct):
    """Any JSON object."""


def _check_written(request: _Request, body: bytes) -> None:
    """Check that a successful answer is JSON: a 200 from a proxy may have written nothing.

    Raises OutcomeUnknownError.
    """
    try:
        errors.read_answer(body, _AnyObject, str(request))
    except errors.UnreadableAnswerError as problem:
        raise OutcomeUnknownError(str(problem)) from None


def _unanswered(method: str, message: str) -> ApiError | OutcomeUnknownError:
    return errors.UnreachableError(message) if method == "GET" else OutcomeUnknownError(message)


def _put_off_seconds(method: str, answer: transport.Response) -> float | None:
    """The delay that the server requests before a retry; None if the request must not be retried.

    After a 5xx the outcome of a write is unknown, so only repeatable methods are retried.
    """
    after = answer.retry_after
    if answer.status == errors.TOO_MANY_REQUESTS:
        return float(after) if after.isdecimal() else 1.0
    if answer.status >= errors.SERVER_ERRORS and after.isdecimal() and method in _REPEATABLE:
        return float(after)
    return None
