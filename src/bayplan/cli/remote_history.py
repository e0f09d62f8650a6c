"""What a running scheduler remembers, for `bayplan why --address`: asked over HTTP.

Apart from `why`, because a run folder is read without HTTP.
"""

import ssl
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from bayplan.cli.event_loop import run_event_loop
from bayplan.problems import BadInputError
from bayplan.serving.decision_history import PATH, DecisionHistory, decode

_SECONDS_MAX = 10.0


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


async def history_from(address: Address, pod: str) -> DecisionHistory:
    """What it remembers of ``pod``. Raises NotAnsweredError."""
    headers = {"Authorization": f"Bearer {address.token}"} if address.token else {}
    limits = aiohttp.ClientTimeout(total=_SECONDS_MAX)
    url = f"{address.url}{PATH}?{urlencode({'pod': pod})}"
    try:
        trust = ssl.create_default_context(cafile=address.ca_file) if address.ca_file else False
        async with (
            aiohttp.ClientSession(headers=headers, timeout=limits) as session,
            session.get(url, ssl=trust) as answer,
        ):
            body = await answer.read()
    except (aiohttp.ClientError, OSError, TimeoutError) as problem:
        detail = str(problem) or "no answer in time"
        advice = "does `bayplan run` serve there, and is it HTTP or HTTPS (https://HOST:PORT)?"
        raise NotAnsweredError(f"{address.url}: {detail}; {advice}") from None
    if answer.status != 200:
        detail = body.decode(errors="replace").strip()[:200]
        advice = "; pass a token with --token-file" if answer.status == 401 else ""
        raise NotAnsweredError(f"{address.url}: HTTP {answer.status}: {detail}{advice}")
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise NotAnsweredError(f"{address.url}: this is not a Bayplan scheduler") from None


def remote_history(pod: str, address: str, token: str, ca_file: str) -> tuple[str, DecisionHistory]:
    """(URL, what the scheduler there remembers of ``pod``). Raises NotAnsweredError."""
    target = address_of(address, token, ca_file)
    return target.url, run_event_loop(history_from(target, pod))
