"""Callers are reviewed with the credentials that the flags name."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bayplan.adapters.live.client import ClientOptions, open_client
from bayplan.ports import ApiError
from bayplan.serving.access import ACCESS_REVIEWS, TOKEN_REVIEWS
from bayplan.serving.delegation import AUTHENTICATION_CONFIG, DelegationOptions, open_delegation
from tests.adapters.live.serving import kubeconfig, serving

AUTHORITIES = "-----BEGIN CERTIFICATE-----"


class Api:
    """Records the requests; ``config``: the config map about client certificates."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        self.requests: list[tuple[str, str]] = []
        self._config = config

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.headers.get("Authorization", ""), request.path))
        if request.method == "POST":
            return web.json_response({"status": {"allowed": True}})
        if self._config is None:
            return web.json_response({"message": "no such config map"}, status=404)
        return web.json_response(self._config)


def published_authorities(
    folder: Path, api: Api, *, authentication: bool, authorization: bool, **options: Any
) -> str:
    """The authorities, after one review of each kind; every kubeconfig has its own token."""

    async def main() -> str:
        async with serving(api) as server:
            paths: dict[str, str] = {}
            for name in ("own", "authentication", "authorization"):
                part = folder / name
                part.mkdir()
                paths[name] = kubeconfig(part, server, {"token": name})
            delegation_options = DelegationOptions(
                authentication_kubeconfig=paths["authentication"] if authentication else "",
                authorization_kubeconfig=paths["authorization"] if authorization else "",
                **options,
            )
            rates = ClientOptions()
            async with (
                open_client(paths["own"], rates) as client,
                open_delegation(delegation_options, client, paths["own"], rates) as delegation,
            ):
                await delegation.review(TOKEN_REVIEWS, {})
                await delegation.review(ACCESS_REVIEWS, {})
                return await delegation.client_authorities()

    return asyncio.run(main())


@pytest.mark.parametrize("authentication", [False, True])
@pytest.mark.parametrize("authorization", [False, True])
def test_each_kind_of_review_has_its_credentials(
    tmp_path: Path, authentication: bool, authorization: bool
) -> None:
    api = Api()
    published_authorities(tmp_path, api, authentication=authentication, authorization=authorization)
    assert api.requests[:2] == [
        (f"Bearer {'authentication' if authentication else 'own'}", TOKEN_REVIEWS),
        (f"Bearer {'authorization' if authorization else 'own'}", ACCESS_REVIEWS),
    ]


def test_client_certificate_authorities_come_from_the_cluster(tmp_path: Path) -> None:
    api = Api({"data": {"client-ca-file": AUTHORITIES}})
    assert (
        published_authorities(tmp_path, api, authentication=True, authorization=False)
        == AUTHORITIES
    )
    assert api.requests[-1] == ("Bearer authentication", AUTHENTICATION_CONFIG)


@pytest.mark.parametrize(
    ("authentication", "options"), [(False, {}), (True, {"skips_lookup": True})]
)
def test_without_the_flags_nothing_is_looked_up(
    tmp_path: Path, authentication: bool, options: dict[str, bool]
) -> None:
    api = Api({"data": {"client-ca-file": AUTHORITIES}})
    result = published_authorities(
        tmp_path, api, authentication=authentication, authorization=True, **options
    )
    assert result == ""
    assert [path for _, path in api.requests] == [TOKEN_REVIEWS, ACCESS_REVIEWS]


def test_a_failed_lookup_is_logged_or_ends_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a").mkdir()
    assert (
        published_authorities(tmp_path / "a", Api(), authentication=True, authorization=False) == ""
    )
    assert "Client certificates are not accepted" in caplog.messages
    (tmp_path / "b").mkdir()
    strict = {"tolerates_lookup_failure": False}
    with pytest.raises(ApiError):
        published_authorities(
            tmp_path / "b", Api(), authentication=True, authorization=False, **strict
        )


def test_a_config_map_without_authorities_means_none(tmp_path: Path) -> None:
    api = Api(json.loads('{"data": {"requestheader-client-ca-file": "x"}}'))
    assert published_authorities(tmp_path, api, authentication=True, authorization=False) == ""
