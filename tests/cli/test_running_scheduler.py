"""Asking a running scheduler."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.running_scheduler import Address, NotAnsweredError, address_of, story_from
from bayplan.serving.access import Denial
from bayplan.serving.certificates import self_signed_context
from bayplan.serving.endpoints import Endpoints
from tests.serving.test_endpoints import BOUND, sources


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:10259", "http://127.0.0.1:10259"),
        ("https://host:1/", "https://host:1"),
        ("[::1]:9", "http://[::1]:9"),
    ],
)
def test_an_address_may_be_short(text: str, url: str) -> None:
    assert address_of(text, "", "").url == url


@pytest.mark.parametrize("text", ["host", "ftp://host:1", "host:port", "http://:1", "host:99999"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(NotAnsweredError, match="wanted HOST:PORT"):
        address_of(text, "", "")


class TokenWanted:
    async def denial(
        self, path: str, authorization: str, owner: Any, peer: str = ""
    ) -> Denial | None:
        return None if authorization == "Bearer t" else Denial(401, "Unauthorized: no token")


def asked(make: Callable[[int], Address], *, tls: bool = False, access: Any = None) -> Any:
    async def main() -> Any:
        endpoints = Endpoints(sources(), access)
        context = self_signed_context("127.0.0.1", 1_767_225_600.0) if tls else None
        port = await endpoints.start("127.0.0.1", 0, context)
        try:
            return await story_from(make(port), "a/p")
        finally:
            await endpoints.stop()

    return asyncio.run(main())


def test_the_story_comes_over_http_and_https() -> None:
    for scheme, tls in (("http", False), ("https", True)):
        answer = asked(lambda port, s=scheme: Address(f"{s}://127.0.0.1:{port}"), tls=tls)
        assert answer.records == (BOUND,)


def test_who_vouches_for_it_is_asked_where_that_is_wanted(tmp_path: Path) -> None:
    other = tmp_path / "ca.pem"
    other.write_text("nobody")
    with pytest.raises(NotAnsweredError):
        asked(lambda port: Address(f"https://127.0.0.1:{port}", ca_file=str(other)), tls=True)


def test_a_token_is_sent_and_its_absence_told() -> None:
    answer = asked(lambda port: Address(f"http://127.0.0.1:{port}", "t"), access=TokenWanted())
    assert answer.records == (BOUND,)
    with pytest.raises(NotAnsweredError, match=r"HTTP 401: Unauthorized.*--token-file"):
        asked(lambda port: Address(f"http://127.0.0.1:{port}"), access=TokenWanted())


def test_nobody_there_is_said_with_what_to_do() -> None:
    with pytest.raises(NotAnsweredError, match="is `bayplan run` there"):
        asyncio.run(story_from(Address("http://127.0.0.1:1"), "a/p"))
    with pytest.raises(NotAnsweredError, match="HTTP or HTTPS"):
        asked(lambda port: Address(f"http://127.0.0.1:{port}"), tls=True)
