"""Asking a running scheduler what it decided, over its endpoints."""

import ssl
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from bayplan.serving.stories import PATH, StoryAnswer, decode

_SECONDS_MAX = 10.0


class NotAnsweredError(Exception):
    """The scheduler did not answer, or did not want to; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a scheduler serves, and how it is asked there."""

    url: str
    token: str = ""
    #: "": a certificate is not checked, for a self-signed one proves nothing.
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
        wanted = "wanted HOST:PORT, http://HOST:PORT or https://HOST:PORT"
        raise NotAnsweredError(f"--address: found {text}, {wanted}")
    return Address(url.rstrip("/"), token, ca_file)


async def story_from(address: Address, pod: str) -> StoryAnswer:
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
        said = str(problem) or "no answer in time"
        advice = "is `bayplan run` there, and is it HTTP or HTTPS (https://HOST:PORT)?"
        raise NotAnsweredError(f"{address.url}: {said}; {advice}") from None
    if answer.status != 200:
        said = body.decode(errors="replace").strip()[:200]
        advice = "; give a token with --token-file" if answer.status == 401 else ""
        raise NotAnsweredError(f"{address.url}: HTTP {answer.status}: {said}{advice}")
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise NotAnsweredError(f"{address.url}: this is no bayplan scheduler") from None
