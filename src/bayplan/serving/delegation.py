"""The clients and credentials that check callers of the endpoints.

kube-scheduler takes one kubeconfig for TokenReviews and one for SubjectAccessReviews, and looks up
in the cluster which client certificates are accepted. Without these flags the scheduler's own
client is used. Upstream: apiserver's DelegatingAuthenticationOptions,
DelegatingAuthorizationOptions.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, final

import msgspec

from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from bayplan.adapters.live.rate_limit import Lane
from bayplan.ports import ApiError
from bayplan.serving.access import REVIEW_SECONDS_MAX, TOKEN_REVIEWS, AccessPolicy
from bayplan.serving.log_lines import Log

#: The ConfigMap in which an API server publishes its authorities of client certificates.
AUTHENTICATION_CONFIG = (
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
)
_CLIENT_CA = "client-ca-file"

_log = Log("server")


@dataclass(frozen=True, kw_only=True)
class DelegationOptions:
    """Flags of kube-scheduler's sections "Authentication" and "Authorization"."""

    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    skips_lookup: bool = False
    tolerates_lookup_failure: bool = True
    policy: AccessPolicy = field(default_factory=AccessPolicy)

    @property
    def is_enabled(self) -> bool:
        return bool(self.authentication_kubeconfig or self.authorization_kubeconfig)


@final
class Delegation:
    """Reviews callers at the API server. Made by `open_delegation`."""

    def __init__(
        self, options: DelegationOptions, authentication: ApiClient, authorization: ApiClient
    ) -> None:
        self._options = options
        self._authentication = authentication
        self._authorization = authorization

    async def review(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        """Send a review to the API server, as `access.Review` says. Raises ApiError,
        OutcomeUnknownError."""
        client = self._authentication if path == TOKEN_REVIEWS else self._authorization
        body = await client.request(
            "POST", path, review, lane=Lane.REVIEWS, timeout_seconds=REVIEW_SECONDS_MAX
        )
        return msgspec.json.decode(body)

    async def client_authorities(self) -> str:
        """The authorities whose client certificates the cluster accepts, as PEM; "": there are
        none, or they are not looked up. Raises ApiError if a failure is not tolerated."""
        options = self._options
        if not options.authentication_kubeconfig or options.skips_lookup:
            return ""
        try:
            config_map = await self._authentication.get(
                AUTHENTICATION_CONFIG, timeout_seconds=REVIEW_SECONDS_MAX
            )
        except ApiError as problem:
            if not options.tolerates_lookup_failure:
                raise
            _log.warning("Client certificates are not accepted", err=str(problem))
            return ""
        data: dict[str, Any] = config_map.get("data") or {}
        return str(data.get(_CLIENT_CA) or "")


@asynccontextmanager
async def open_delegation(
    options: DelegationOptions, client: ApiClient, kubeconfig: str | None, rates: ClientOptions
) -> AsyncGenerator[Delegation]:
    """``client``: the scheduler's own client, opened with ``kubeconfig``. It is used if the options
    name no other file. Raises CredentialsError."""
    async with AsyncExitStack() as stack:
        clients = {kubeconfig or "": client, "": client}
        paths = (options.authentication_kubeconfig, options.authorization_kubeconfig)
        for path in paths:
            if path not in clients:
                clients[path] = await stack.enter_async_context(open_client(path, rates))
        authentication, authorization = (clients[path] for path in paths)
        yield Delegation(options, authentication, authorization)
