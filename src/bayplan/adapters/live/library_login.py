"""Kubeconfigs of every kind, read by kubernetes_asyncio: exec plugins, OIDC, passwords and others.

This module is imported only if `kubeconfig` cannot read the file (docs/decisions/0006).
"""

# pyright: standard
# (kubernetes_asyncio is not annotated.)
import logging
import os
from pathlib import Path
from typing import Any, final

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from bayplan.adapters.live.kubeconfig import Login, LoginError

_log = logging.getLogger(__name__)

#: The name under which kubernetes_asyncio stores the whole Authorization header.
_TOKEN = "BearerToken"


@final
class LibraryKubeconfig:
    """Implements credentials.Source. An exec plugin runs again when its credentials are about to
    expire."""

    def __init__(self, paths: list[str], context_name: str = "") -> None:
        """``context_name``: "" for the current context."""
        self._paths = paths
        self._context_name = context_name or None
        self._configuration = Configuration()
        self._loader: Any = None

    async def load(self) -> Login:
        """Read everything. Raises LoginError, and the exceptions of the library for a malformed
        file."""
        self._configuration = Configuration()
        try:
            merged = KubeConfigMerger(os.pathsep.join(self._paths))
            self._loader = KubeConfigLoader(
                config_dict=merged.config,
                active_context=self._context_name,
                config_base_path=None,
            )
            command = self._exec_command()
            if command:
                _log.info(
                    "runs the exec plugin of kubeconfig %s: %s", ", ".join(self._paths), command
                )
            await self._loader.load_and_set(self._configuration)
        except ConfigException as problem:
            raise LoginError(str(problem)) from None
        return self._login()

    async def renew(self) -> Login:
        """Renew token files and exec tokens. The library has no expiry of an exec plugin's
        certificates, so this plugin runs again only when the server refuses the certificates."""
        if _TOKEN in self._configuration.api_key:
            before = self._loader.token
            await self._loader.load_and_set(self._configuration)
            if self._loader.token != before and self._exec_command():
                _log.info("has run the exec plugin again: %s", self._exec_command())
        return self._login()

    def _exec_command(self) -> str:
        """The command of the exec plugin; "" without one. Its arguments are left out, because they
        may contain secrets."""
        user = self._loader._user
        return str(user["exec"]["command"]) if user and "exec" in user else ""

    def _login(self) -> Login:
        configuration = self._configuration
        return Login(
            server=str(configuration.host).rstrip("/"),
            authorization=(configuration.api_key.get(_TOKEN) or "").strip(),
            ca=_content(configuration.ssl_ca_cert),
            certificate=_certificate(configuration),
            is_verified=bool(configuration.verify_ssl),
            server_name=configuration.tls_server_name,
            proxy=configuration.proxy,
        )


def _certificate(configuration: Configuration) -> tuple[bytes, bytes] | None:
    certificate = _content(configuration.cert_file)
    key = _content(configuration.key_file) or certificate
    return (certificate, key) if certificate and key else None


def _content(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None
