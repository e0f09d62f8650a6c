"""Kubeconfigs of every kind, read by kubernetes_asyncio: OIDC, passwords, several files and others.

Exec plugins run in `exec_plugin`, and `impersonation` reads whom the requests are made for.

This module is imported only if `kubeconfig` cannot read the file (docs/decisions/0006).
"""

# pyright: standard
# (kubernetes_asyncio is not annotated.)
import logging
import os
from pathlib import Path
from typing import Any, final

import msgspec
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from bayplan.adapters.live.errors import LoginError
from bayplan.adapters.live.exec_plugin import ExecPlugin, ExecStatus, credential_of
from bayplan.adapters.live.impersonation import Headers, impersonation_headers
from bayplan.adapters.live.kubeconfig import Login, read_kubeconfig
from bayplan.clock import RealClock

_log = logging.getLogger(__name__)

#: The name under which kubernetes_asyncio stores the whole Authorization header.
_TOKEN = "BearerToken"
#: An exec plugin runs again when its token is about to expire.
_EXPIRY_MARGIN_SECONDS = 300.0


@final
class _Loader(KubeConfigLoader):
    """The library's loader with an own runner of exec plugins."""

    status: ExecStatus | None = None

    async def load_from_exec_plugin(self) -> bool:
        """Raises LoginError."""
        if self.status is not None and not _expires(self.status):
            return True
        user: Any = self._user
        try:
            plugin = msgspec.convert(user.value["exec"], ExecPlugin)
        except msgspec.ValidationError as problem:
            raise LoginError(f"exec: {problem}") from None
        # The node knows the file that it comes from.
        self.status = await credential_of(plugin, Path(user.path).absolute().parent)
        if self.status.token:
            self.token = f"Bearer {self.status.token}"
        return True


def _expires(status: ExecStatus) -> bool:
    expiry = status.expiration_timestamp
    now = RealClock().epoch_seconds()
    return expiry is not None and expiry.timestamp() - _EXPIRY_MARGIN_SECONDS <= now


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
        """Read everything. Raises LoginError, OSError, and the exceptions of the library for a
        malformed file."""
        self._configuration = Configuration()
        try:
            for path in self._paths:
                read_kubeconfig(Path(path))
            merged = KubeConfigMerger(os.pathsep.join(self._paths))
            self._loader = _Loader(
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
            impersonation=self._impersonation(),
            ca=_content(configuration.ssl_ca_cert),
            certificate=self._certificate(),
            is_verified=bool(configuration.verify_ssl),
            server_name=configuration.tls_server_name,
            proxy=configuration.proxy,
        )

    def _impersonation(self) -> Headers:
        """Raises LoginError."""
        user = self._loader._user
        try:
            return () if user is None else impersonation_headers(user.value)
        except msgspec.ValidationError as problem:
            raise LoginError(f"user: {problem}") from None

    def _certificate(self) -> tuple[bytes, bytes] | None:
        status: ExecStatus | None = self._loader.status
        if status is not None and status.client_key_data:
            return status.client_certificate_data.encode(), status.client_key_data.encode()
        configuration = self._configuration
        certificate = _content(configuration.cert_file)
        key = _content(configuration.key_file) or certificate
        return (certificate, key) if certificate and key else None


def _content(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None
