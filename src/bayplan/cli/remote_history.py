"""The decisions of a running scheduler, read over HTTP for `bayplan why --address`.

This is a module of its own, because a run folder is read without HTTP.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from bayplan.adapters.live.streams import content_of
from bayplan.adapters.live.transport import ANSWER_BYTES_MAX, TooLargeError
from bayplan.adapters.live.watching import LIST_BYTES_MAX
from bayplan.cli.event_loop import run_event_loop
from bayplan.history.entries import AttemptStart, StatesError
from bayplan.history.past_state import PastState
from bayplan.problems import BadInputError
from bayplan.serving import decision_history, dry_runs, past_attempts
from bayplan.serving.decision_history import DecisionHistory
from bayplan.serving.dry_runs import DryRun
from bayplan.serving.past_attempts import AttemptHead

_SECONDS_MAX = 10.0
#: For the state of a whole cluster.
_STATE_SECONDS_MAX = 120.0


class NotAnsweredError(BadInputError):
    """The scheduler did not answer or refused; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a scheduler's endpoints, and the credentials for them."""

    url: str
    token: str = ""
    #: "": the certificate is not checked, because a self-signed one proves nothing.
    ca_file: str = ""


def address_of(text: str, token: str, ca_file: str) -> Address:
    """From HOST:PORT or a URL. Raises NotAnsweredError."""
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and parts.hostname and parts.port
    except ValueError:
        is_whole = False
    if not is_whole:
        expected = "wanted HOST:PORT, http://HOST:PORT or https://HOST:PORT"
        raise NotAnsweredError(f"--address: found {text}, {expected}")
    return Address(url.rstrip("/"), token, ca_file)


async def _body(address: Address, path: str, *, is_state: bool = False, **query: str) -> bytes:
    """The answer of an endpoint. Raises NotAnsweredError."""
    headers = {"Authorization": f"Bearer {address.token}"} if address.token else {}
    timeout = aiohttp.ClientTimeout(total=_STATE_SECONDS_MAX if is_state else _SECONDS_MAX)
    bytes_max = LIST_BYTES_MAX if is_state else ANSWER_BYTES_MAX
    url = f"{address.url}{path}?{urlencode(query)}"
    try:
        trust = ssl.create_default_context(cafile=address.ca_file) if address.ca_file else False
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            session.get(url, ssl=trust) as answer,
        ):
            body = await content_of(answer, bytes_max)
    except (aiohttp.ClientError, OSError, TimeoutError, TooLargeError) as problem:
        detail = str(problem) or "no answer in time"
        advice = "does `bayplan run` serve there, and is it HTTP or HTTPS (https://HOST:PORT)?"
        raise NotAnsweredError(f"{address.url}: {detail}; {advice}") from None
    if answer.status != 200:
        detail = body.decode(errors="replace").strip()[:200]
        advice = "; pass a token with --token-file" if answer.status == 401 else ""
        raise NotAnsweredError(f"{address.url}: HTTP {answer.status}: {detail}{advice}")
    return body


@contextmanager
def _decoding(address: Address) -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, UnicodeDecodeError, StatesError):
        raise NotAnsweredError(f"{address.url}: this is not a Bayplan scheduler") from None


async def history_from(address: Address, pod: str) -> DecisionHistory:
    """The decisions about ``pod`` that the scheduler remembers. Raises NotAnsweredError."""
    body = await _body(address, decision_history.PATH, pod=pod)
    with _decoding(address):
        return decision_history.decode(body)


def remote_history(pod: str, address: Address) -> DecisionHistory:
    """As `history_from`, for code outside of an event loop. Raises NotAnsweredError."""
    return run_event_loop(history_from(address, pod))


def remote_dry_run(pod: str, address: Address) -> DryRun:
    """The next attempt at ``pod``, without a decision. Raises NotAnsweredError."""
    body = run_event_loop(_body(address, dry_runs.PATH, pod=pod))
    with _decoding(address):
        return dry_runs.decode(body)


def remote_attempt(
    pod: str, attempt: int | None, address: Address
) -> tuple[AttemptHead, PastState, AttemptStart]:
    """The state before an attempt, the last one if ``attempt`` is None. Raises NotAnsweredError."""
    query = {"pod": pod, **({} if attempt is None else {"attempt": str(attempt)})}
    body = run_event_loop(_body(address, past_attempts.PATH, is_state=True, **query))
    with _decoding(address):
        return past_attempts.read_parts(body)
