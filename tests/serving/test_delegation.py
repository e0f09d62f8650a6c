"""Callers are reviewed with the credentials that the flags name."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.live.client import ClientOptions, open_client
from bayplan.ports import ApiError
from bayplan.serving.access import ACCESS_REVIEWS, TOKEN_REVIEWS
from bayplan.serving.delegation import AUTHENTICATION_CONFIG, DelegationOptions, open_delegation
from tests.kit.api_server import FakeApiServer, kubeconfig, serving

AUTHORITIES = "-----BEGIN CERTIFICATE-----"


def api_with(config: dict[str, Any] | None = None) -> FakeApiServer:
    """``config``: the config map about client certificates."""
    server = FakeApiServer()
    if config is not None:
        server.objects[AUTHENTICATION_CONFIG] = config
    return server


def requests_of(server: FakeApiServer) -> list[tuple[str, str]]:
    """The credentials and the path of each request."""
    return [(each.headers["Authorization"], each.path) for each in server.received]


def published_authorities(
    folder: Path, api: FakeApiServer, *, authentication: bool, authorization: bool, **options: Any
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
    api = api_with()
    published_authorities(tmp_path, api, authentication=authentication, authorization=authorization)
    assert requests_of(api)[:2] == [
        (f"Bearer {'authentication' if authentication else 'own'}", TOKEN_REVIEWS),
        (f"Bearer {'authorization' if authorization else 'own'}", ACCESS_REVIEWS),
    ]


def test_client_certificate_authorities_come_from_the_cluster(tmp_path: Path) -> None:
    api = api_with({"data": {"client-ca-file": AUTHORITIES}})
    assert (
        published_authorities(tmp_path, api, authentication=True, authorization=False)
        == AUTHORITIES
    )
    assert requests_of(api)[-1] == ("Bearer authentication", AUTHENTICATION_CONFIG)


@pytest.mark.parametrize(
    ("authentication", "options"), [(False, {}), (True, {"skips_lookup": True})]
)
def test_without_the_flags_nothing_is_looked_up(
    tmp_path: Path, authentication: bool, options: dict[str, bool]
) -> None:
    api = api_with({"data": {"client-ca-file": AUTHORITIES}})
    result = published_authorities(
        tmp_path, api, authentication=authentication, authorization=True, **options
    )
    assert result == ""
    assert [path for _, path in requests_of(api)] == [TOKEN_REVIEWS, ACCESS_REVIEWS]


def test_a_failed_lookup_is_logged_or_ends_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a").mkdir()
    assert (
        published_authorities(tmp_path / "a", api_with(), authentication=True, authorization=False)
        == ""
    )
    assert "Client certificates are not accepted" in caplog.messages
    (tmp_path / "b").mkdir()
    strict = {"tolerates_lookup_failure": False}
    with pytest.raises(ApiError):
        published_authorities(
            tmp_path / "b", api_with(), authentication=True, authorization=False, **strict
        )


def test_a_config_map_without_authorities_means_none(tmp_path: Path) -> None:
    api = api_with(json.loads('{"data": {"requestheader-client-ca-file": "x"}}'))
    assert published_authorities(tmp_path, api, authentication=True, authorization=False) == ""
