"""Credentials for the API server, from a kubeconfig or from the pod, and their renewal.

Credentials are read again every minute in the background, and at once when the server answers 401.
As in kubectl, an exec plugin runs again when its credentials are about to expire.
"""

import asyncio
import logging
import os
import ssl
import urllib.parse
import urllib.request
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, final

import yaml

from bayplan.adapters.live.errors import LoginError
from bayplan.adapters.live.impersonation import Headers
from bayplan.adapters.live.kubeconfig import (
    Login,
    load_certificate,
    plain_login,
    ssl_context,
)
from bayplan.clock import Clock
from bayplan.lazy_loader import load

RENEWAL_SECONDS = 60.0
_SCHEMES, _PROXY = ("https", "http"), "proxy"
DEFAULT_KUBECONFIG = "~/.kube/config"
IN_CLUSTER_MARK = "KUBERNETES_SERVICE_HOST"
#: Where the ServiceAccount is mounted in a pod.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_log = logging.getLogger(__name__)


class CredentialsError(Exception):
    """There are no credentials, or they are invalid. The message names the place and the remedy."""


class CredentialSource(Protocol):
    async def load(self) -> Login:
        """Read everything. Raises any exception of the reader."""
        ...

    async def renew(self) -> Login:
        """Read again the parts that may have changed."""
        ...


@final
class _Kubeconfig:
    """One file, or several joined as in $KUBECONFIG. Plain kubeconfigs need no library."""

    def __init__(self, paths: str, context_name: str) -> None:
        self._paths = paths
        self._context_name = context_name
        self._library: CredentialSource | None = None

    def __str__(self) -> str:
        context = f", context {self._context_name}" if self._context_name else ""
        return f"kubeconfig {self._paths}{context}"

    async def load(self) -> Login:
        named = [Path(each).expanduser() for each in self._paths.split(os.pathsep)]
        paths = [path for path in named if path.is_file()]
        if not paths:
            raise FileNotFoundError("no such file")
        plain = plain_login(paths[0], self._context_name) if len(paths) == 1 else None
        if plain is not None:
            self._library = None
            return plain
        kubeconfig = load("bayplan.adapters.live.library_login:LibraryKubeconfig")
        source: CredentialSource = kubeconfig([str(path) for path in paths], self._context_name)
        self._library = source
        return await source.load()

    async def renew(self) -> Login:
        return await (self.load() if self._library is None else self._library.renew())


@final
class _Pod:
    """The ServiceAccount that is mounted into the pod."""

    def __str__(self) -> str:
        return "the pod's ServiceAccount"

    async def load(self) -> Login:
        host, port = os.environ[IN_CLUSTER_MARK], os.environ.get("KUBERNETES_SERVICE_PORT", "")
        if not port:
            raise LoginError("KUBERNETES_SERVICE_PORT is not set")
        token = (SERVICE_ACCOUNT / "token").read_text().strip()
        if not token:
            raise LoginError(f"{SERVICE_ACCOUNT / 'token'} is empty")
        return Login(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            authorization=f"Bearer {token}",
            ca=(SERVICE_ACCOUNT / "ca.crt").read_bytes(),
        )

    async def renew(self) -> Login:
        return await self.load()


@final
class _RedirectedKubeconfig:
    """A kubeconfig with another address of the API server; without a kubeconfig, that address
    alone."""

    def __init__(self, source: CredentialSource | None, server: str) -> None:
        self._source = source
        self._server = server.rstrip("/")

    def __str__(self) -> str:
        return f"{self._source or 'no kubeconfig'} at {self._server}"

    async def load(self) -> Login:
        if self._source is None:
            return Login(server=self._server)
        return replace(await self._source.load(), server=self._server)

    async def renew(self) -> Login:
        if self._source is None:
            return await self.load()
        return replace(await self._source.renew(), server=self._server)


@final
class Credentials:
    """The address, TLS context and authorization for connections to the API server. Made by
    `load_credentials`."""

    def __init__(self, source: CredentialSource, login: Login, clock: Clock) -> None:
        """Raises LoginError, ssl.SSLError."""
        login = replace(login, server=_url_of(login.server, "server", "https://10.0.0.1:6443"))
        _check_name(login.server_name or "")
        self._source = source
        self._login = login
        self._clock = clock
        self._renewed_at = clock.now()
        self._renewal: asyncio.Task[None] | None = None
        self.server = login.server
        self.server_name = login.server_name
        proxy = login.proxy or _proxy_of_environment(self.server)
        self.proxy = proxy and _url_of(proxy, _PROXY, "http://10.0.0.1:3128")
        self.ssl_context: ssl.SSLContext | None = ssl_context(login)

    @property
    def place(self) -> str:
        """Where the credentials come from."""
        return str(self._source)

    def authorization(self) -> str:
        """The Authorization header, "" without one. Old credentials are renewed in the background,
        for later requests."""
        if self._clock.now() - self._renewed_at > RENEWAL_SECONDS:
            self._begin_renewal(self._source.renew())
        return self._login.authorization

    @property
    def impersonation(self) -> Headers:
        """Headers that name the user whom requests are made for."""
        return self._login.impersonation

    async def after_refusal(self) -> None:
        """Read the credentials again, because the server answered 401. Concurrent callers share one
        reading."""
        if self._renewal is None:
            self._begin_renewal(self._source.load())
        await self.settle()

    async def settle(self) -> None:
        """Wait for a renewal that is under way."""
        if self._renewal is not None:
            await asyncio.shield(self._renewal)

    async def close(self) -> None:
        """Cancel the renewal under way."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    def _begin_renewal(self, reading: Coroutine[Any, Any, Login]) -> None:
        if self._renewal is not None:
            reading.close()
            return
        self._renewal = asyncio.get_running_loop().create_task(self._renew(reading))

    async def _renew(self, reading: Coroutine[Any, Any, Login]) -> None:
        try:
            login = await reading
            if login.certificate not in (None, self._login.certificate) and self.ssl_context:
                # New connections use it.
                load_certificate(self.ssl_context, login.certificate)
            self._login = login
        except Exception as problem:  # noqa: BLE001 - whatever a plugin, a file or a server raises
            _log.warning("credentials not renewed from %s: %s", self._source, problem)
        finally:
            self._renewed_at = self._clock.now()
            self._renewal = None


async def load_credentials(
    kubeconfig: str | None, clock: Clock, master: str = "", context_name: str = ""
) -> Credentials:
    """The credentials of this process. ``kubeconfig`` None: inside a pod its ServiceAccount, else
    $KUBECONFIG or ~/.kube/config.

    ``master``: the URL of the API server, in place of that of the kubeconfig. As upstream, with
    ``master`` and without ``kubeconfig`` no file is read, and there are no credentials.
    ``context_name``: a context of the kubeconfig; "" for its current context. Raises
    CredentialsError.
    """
    source: CredentialSource = _source(kubeconfig, context_name)
    if master:
        source = _RedirectedKubeconfig(source if kubeconfig else None, master)
    try:
        return Credentials(source, await source.load(), clock)
    except LoginError as problem:
        raise CredentialsError(f"{source}: cannot be used: {problem}") from None
    except (
        *(yaml.YAMLError, OSError, ValueError),
        *(AssertionError, AttributeError, KeyError, TypeError),  # what a malformed file leads to
    ) as problem:
        text = " ".join(str(problem).split())
        # What the system says names itself.
        kind = "" if text and isinstance(problem, OSError) else type(problem).__name__
        what = ": ".join(filter(None, (kind, text)))
        raise CredentialsError(
            f"{source}: cannot be used: {what}; wanted a file with clusters, users, contexts and "
            f"a current-context, as `kubectl config view` shows one"
            if not isinstance(source, _Pod)
            else f"{source}: cannot be used: {what}; is automountServiceAccountToken off?"
        ) from None


def _source(kubeconfig: str | None, context_name: str) -> _Kubeconfig | _Pod:
    if not kubeconfig and not context_name and os.environ.get(IN_CLUSTER_MARK):
        return _Pod()
    return _Kubeconfig(kubeconfig_paths(kubeconfig), context_name)


def kubeconfig_paths(kubeconfig: str | None) -> str:
    """The kubeconfig that is used, or several, joined as in $KUBECONFIG."""
    return kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG


def _check_name(name: str) -> None:
    """Raises LoginError for a name that no certificate has."""
    try:
        name.encode("idna")
        is_name = name.isprintable() and " " not in name
    except UnicodeError:
        is_name = False
    if not is_name:
        raise LoginError(f"tls-server-name: found {name!r}, wanted a name such as kubernetes")


def _url_of(text: str, what: str, example: str) -> str:
    """A URL of HTTP, with its scheme in lower case. Raises LoginError.

    Only a proxy may have a password in its URL; messages name the server.
    """
    try:
        parts = urllib.parse.urlsplit(text)
        (parts.hostname or "").encode("idna")  # UnicodeError is a ValueError
        is_whole = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
        is_whole = is_whole and (what == _PROXY or parts.username is None)
    except ValueError:
        is_whole = False
    # urlsplit leaves line breaks out.
    if not is_whole or not text.isprintable() or " " in text:
        found = text.rpartition("@")[2]
        raise LoginError(f"{what}: found {found!r}, wanted a URL such as {example}")
    return text[: len("https")].lower() + text[len("https") :]


def _proxy_of_environment(server: str) -> str | None:
    """The proxy from HTTPS_PROXY and NO_PROXY, as in Go's clients. Read once, not at every
    request."""
    parts = urllib.parse.urlsplit(server)
    host = parts.hostname or ""
    if urllib.request.proxy_bypass(host):
        return None
    proxy = urllib.request.getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy
