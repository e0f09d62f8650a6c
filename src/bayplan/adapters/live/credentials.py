"""Who we are to the API server: read from a kubeconfig or from the pod, and renewed.

kubernetes_asyncio reads them: tokens and token files, client certificates, exec plugins, OIDC, the
pod's ServiceAccount. They are read again every minute behind the requests (an exec plugin runs
again when what it gave is about to expire, as kubectl does), and at once when the server says 401.
"""

# pyright: standard
# (kubernetes_asyncio is not annotated.)
import asyncio
import logging
import os
import ssl
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Protocol, final

import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)

from bayplan.clock import Clock

RENEWAL_SECONDS = 60.0
DEFAULT_KUBECONFIG = "~/.kube/config"
IN_CLUSTER_MARK = "KUBERNETES_SERVICE_HOST"

_log = logging.getLogger(__name__)

#: The name under which kubernetes_asyncio keeps the whole Authorization header.
_TOKEN = "BearerToken"


class CredentialsError(Exception):
    """There are none, or they make no sense; the message says where and what to do."""


class _Source(Protocol):
    async def load(self) -> Configuration:
        """Read everything. Raises whatever it meets."""
        ...

    async def renew(self, configuration: Configuration) -> Configuration:
        """Read again what may have changed."""
        ...


@final
class _Kubeconfig:
    """One file, or several joined as in $KUBECONFIG."""

    def __init__(self, paths: str) -> None:
        self._paths = paths
        self._loader: Any = None

    def __str__(self) -> str:
        return f"kubeconfig {self._paths}"

    async def load(self) -> Configuration:
        found = [one for one in self._paths.split(os.pathsep) if Path(one).expanduser().is_file()]
        if not found:
            raise FileNotFoundError("no such file")
        configuration = Configuration()
        self._loader = await load_kube_config(
            os.pathsep.join(found), client_configuration=configuration, persist_config=False
        )
        return configuration

    async def renew(self, configuration: Configuration) -> Configuration:
        # Token files and exec tokens; an exec plugin that gives certificates says no expiry here,
        # so it runs again only when the server refuses them.
        if _TOKEN in configuration.api_key:
            await self._loader.load_and_set(configuration)
        return configuration


@final
class _Pod:
    """The ServiceAccount that is mounted into every pod."""

    def __str__(self) -> str:
        return "the pod's ServiceAccount"

    async def load(self) -> Configuration:
        configuration = Configuration()
        load_incluster_config(client_configuration=configuration, try_refresh_token=False)
        return configuration

    async def renew(self, configuration: Configuration) -> Configuration:
        return await self.load()


@final
class Credentials:
    """What a connection to the API server needs. Made by `load_credentials`."""

    def __init__(self, source: _Source, configuration: Configuration, clock: Clock) -> None:
        self._source = source
        self._configuration = configuration
        self._clock = clock
        self._renewed_at = clock.now()
        self._renewal: asyncio.Task[None] | None = None
        self._certificate: tuple[bytes, bytes] | None = None
        self.server: str = str(configuration.host).rstrip("/")
        self.server_name: str | None = configuration.tls_server_name
        self.proxy: str | None = configuration.proxy or _proxy_of_environment(self.server)
        self.ssl_context = self._new_ssl_context()

    def authorization(self) -> str | None:
        """The Authorization header. What is old is renewed meanwhile, for later requests."""
        if self._clock.now() - self._renewed_at > RENEWAL_SECONDS:
            self._begin_renewal(self._source.renew(self._configuration))
        header: str | None = self._configuration.api_key.get(_TOKEN)
        return header.strip() if header else None

    async def after_refusal(self) -> None:
        """The server knew us not: read everything anew. One reading serves all who wait."""
        if self._renewal is None:
            self._begin_renewal(self._source.load())
        await self.settle()

    async def settle(self) -> None:
        """Wait for a renewal that is under way."""
        if self._renewal is not None:
            await asyncio.shield(self._renewal)

    async def close(self) -> None:
        """Let no renewal outlive the client."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    def _begin_renewal(self, reading: Any) -> None:
        if self._renewal is not None:
            reading.close()
            return
        self._renewal = asyncio.get_running_loop().create_task(self._renew(reading))

    async def _renew(self, reading: Any) -> None:
        try:
            self._configuration = await reading
            self._load_certificate(self.ssl_context)
        except Exception as problem:  # noqa: BLE001 - whatever a plugin, a file or a server raises
            _log.warning("credentials not renewed from %s: %s", self._source, problem)
        finally:
            self._renewed_at = self._clock.now()
            self._renewal = None

    # ---- TLS --------------------------------------------------------------------------------

    def _new_ssl_context(self) -> ssl.SSLContext | None:
        if not self.server.startswith("https"):
            return None
        context = ssl.create_default_context(cafile=self._configuration.ssl_ca_cert)
        # Clusters' own certificates lack extensions that Python 3.13 asks for and Go does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self._configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._load_certificate(context)
        return context

    def _load_certificate(self, context: ssl.SSLContext | None) -> None:
        """New connections use the client certificate that is there now."""
        cert, key = self._configuration.cert_file, self._configuration.key_file
        if context is None or not cert:
            return
        content = (Path(cert).read_bytes(), Path(key or cert).read_bytes())
        if content != self._certificate:
            context.load_cert_chain(cert, key)
            self._certificate = content


async def load_credentials(kubeconfig: str | None, clock: Clock) -> Credentials:
    """``kubeconfig`` None: the pod's, where we are in one, else $KUBECONFIG or ~/.kube/config.

    Raises CredentialsError.
    """
    source = _source(kubeconfig)
    try:
        return Credentials(source, await source.load(), clock)
    except (
        *(ConfigException, yaml.YAMLError, OSError, ValueError),
        *(AssertionError, AttributeError, KeyError, TypeError),  # what a malformed file leads to
    ) as problem:
        what = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
        raise CredentialsError(
            f"{source}: cannot be used: {what}; wanted a file with clusters, users, contexts and "
            f"a current-context, as `kubectl config view` shows one"
            if isinstance(source, _Kubeconfig)
            else f"{source}: cannot be used: {what}; is automountServiceAccountToken off?"
        ) from None


def _source(kubeconfig: str | None) -> _Kubeconfig | _Pod:
    if kubeconfig:
        return _Kubeconfig(kubeconfig)
    if os.environ.get(IN_CLUSTER_MARK):
        return _Pod()
    return _Kubeconfig(os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG)


def _proxy_of_environment(server: str) -> str | None:
    """As Go's clients: HTTPS_PROXY and NO_PROXY. Asked once, not at every request."""
    parts = urllib.parse.urlsplit(server)
    host = parts.hostname or ""
    if urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)
