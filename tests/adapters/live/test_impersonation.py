"""The user of a kubeconfig whom requests are made for."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bayplan.adapters.live.client import open_client
from bayplan.adapters.live.credentials import CredentialsError, load_credentials
from bayplan.adapters.live.impersonation import Headers
from bayplan.clock import ManualClock
from tests.kit.api_server import kubeconfig, serving

_TOKEN = {"token": "secret"}
_PASSWORD = {"username": "u", "password": "p"}


async def _headers_of_requests(folder: Path, user: dict[str, Any]) -> list[Headers]:
    """The headers for impersonation of a get and of a watch."""
    requests: list[Headers] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        pairs = tuple(request.headers.items())
        requests.append(tuple(pair for pair in pairs if pair[0].startswith("Impersonate")))
        return web.json_response({})

    async with (
        serving(answer) as server,
        open_client(kubeconfig(folder, server, user)) as client,
    ):
        await client.get("/api/v1/nodes/a")
        async for _ in client.stream("/api/v1/nodes?watch=1", 5.0):
            pass
    return requests


@pytest.mark.parametrize("login", [_TOKEN, _PASSWORD], ids=["plain", "of the library"])
@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({"as": "jane"}, (("Impersonate-User", "jane"),)),
        (
            {"as": "jane", "as-uid": "7", "as-groups": ["b", "a"]},
            (
                ("Impersonate-User", "jane"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Group", "a"),
            ),
        ),
        (
            {"as": "jane", "as-user-extra": {"acme.com/project %x": ["one", "two"]}},
            (
                ("Impersonate-User", "jane"),
                ("Impersonate-Extra-acme.com%2Fproject%20%25x", "one"),
                ("Impersonate-Extra-acme.com%2Fproject%20%25x", "two"),
            ),
        ),
        ({"as": "jäne"}, (("Impersonate-User", "jäne"),)),
        ({"as": " jane "}, (("Impersonate-User", "jane"),)),
        ({"as": "jane", "as-groups": [], "as-uid": ""}, (("Impersonate-User", "jane"),)),
        ({"as": ""}, ()),
    ],
)
def test_each_request_and_each_watch_names_the_user(
    tmp_path: Path, login: dict[str, str], fields: dict[str, Any], headers: Headers
) -> None:
    requests = asyncio.run(_headers_of_requests(tmp_path, {**login, **fields}))
    assert requests == [headers, headers]


@pytest.mark.parametrize("login", [_TOKEN, _PASSWORD], ids=["plain", "of the library"])
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"as": "jane\r\nX-Evil: 1"}, 'as: found "jane\\r\\nX-Evil: 1", which cannot be a header'),
        ({"as": "a\0"}, "as: found"),
        ({"as": "  "}, "as: found only spaces, wanted a user name"),
        ({"as": "jane", "as-uid": "\x1f"}, "as-uid: found"),
        ({"as": "jane", "as-groups": ["a", "b\n"]}, 'as-groups: found "b\\n"'),
        ({"as": "jane", "as-user-extra": {"k": ["\x1b[2J"]}}, "as-user-extra: found"),
        ({"as-groups": ["a"]}, "wanted as, too"),
        ({"as-uid": "7"}, "wanted as, too"),
        ({"as-user-extra": {"k": ["v"]}}, "wanted as, too"),
        ({"as": 7}, "Expected `str`, got `int`"),
        ({"as": ["jane"]}, "Expected `str`, got `array`"),
        ({"as": "jane", "as-groups": "a"}, "Expected `array | null`, got `str`"),
    ],
)
def test_a_user_that_cannot_be_named_is_refused(
    tmp_path: Path, login: dict[str, str], fields: dict[str, Any], problem: str
) -> None:
    path = kubeconfig(tmp_path, "http://localhost:1", {**login, **fields})
    with pytest.raises(CredentialsError) as error:
        asyncio.run(load_credentials(path, ManualClock()))
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_user_of_joined_files_is_named(tmp_path: Path) -> None:
    first = Path(kubeconfig(tmp_path, "http://localhost:1", {"token": "abc", "as": "jane"}))
    second = tmp_path / "second"
    second.write_text("apiVersion: v1\nkind: Config\n")
    loaded = load_credentials(os.pathsep.join((str(first), str(second))), ManualClock())
    assert asyncio.run(loaded).impersonation == (("Impersonate-User", "jane"),)
