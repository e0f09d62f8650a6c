"""Every kind of kubeconfig, read by kubernetes_asyncio: exec plugins, OIDC, passwords, and more.

Imported only where it is needed (docs/decisions/0006).
"""

# pyright: standard
# (kubernetes_asyncio is not annotated.)
import os
from pathlib import Path
from typing import Any, final

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_kube_config

from bayplan.adapters.live.login import Login, LoginError

#: The name under which kubernetes_asyncio keeps the whole Authorization header.
_TOKEN = "BearerToken"


@final
class LibraryKubeconfig:
    """credentials.Source. An exec plugin runs again when what it gave is about to expire."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self._configuration = Configuration()
        self._loader: Any = None

    async def load(self) -> Login:
        """Read everything. Raises LoginError, and whatever a malformed file leads to."""
        self._configuration = Configuration()
        try:
            self._loader = await load_kube_config(
                os.pathsep.join(self._paths),
                client_configuration=self._configuration,
                persist_config=False,
            )
        except ConfigException as problem:
            raise LoginError(str(problem)) from None
        return self._login()

    async def renew(self) -> Login:
        """Token files and exec tokens; an exec plugin that gives certificates says no expiry here,
        so it runs again only when the server refuses them."""
        if _TOKEN in self._configuration.api_key:
            await self._loader.load_and_set(self._configuration)
        return self._login()

    def _login(self) -> Login:
        found = self._configuration
        return Login(
            server=str(found.host).rstrip("/"),
            authorization=(found.api_key.get(_TOKEN) or "").strip(),
            ca=_content(found.ssl_ca_cert),
            certificate=_certificate(found),
            is_verified=bool(found.verify_ssl),
            server_name=found.tls_server_name,
            proxy=found.proxy,
        )


def _certificate(found: Configuration) -> tuple[bytes, bytes] | None:
    certificate = _content(found.cert_file)
    key = _content(found.key_file) or certificate
    return (certificate, key) if certificate and key else None


def _content(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None
