"""HTTP extenders: TLS, requests with a time-out, and one `HttpExtender` per configured extender.

The TLS options are upstream's tlsConfig. A given CA is the only trusted one. Without a CA, every
certificate is accepted if enableHTTPS or insecure is set; otherwise the system's CAs are trusted.
Upstream: makeTransport in extender.go, and client-go's TLSConfigFor.

Errors are worded as by Go's HTTP client, because they appear in pods' conditions, where operators
search for messages of kube-scheduler.
"""

import contextlib
import errno
import ssl
import tempfile
import urllib.parse
import urllib.request
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, final

import aiohttp
from yarl import URL

from bayplan.adapters.embedded.versioned_store import WholeObjects
from bayplan.adapters.extenders.wire import NonsenseError, PodGoneError, decoded, encoded
from bayplan.config.schema import Extender, ExtenderTLSConfig, named_extenders, verb_paths
from bayplan.durations import duration_seconds
from bayplan.ports import Ask, AskExtender, ExtenderAnswer, ExtenderVerb
from bayplan.problems import ConfigError, Problem

# ---- trust ----------------------------------------------------------------------------------


def ssl_context(path: str, entry: Extender) -> ssl.SSLContext:
    """``path``: where the entry stands in the configuration. Raises ConfigError."""
    config = entry.tls_config or ExtenderTLSConfig()
    has_ca = bool(config.ca_file or config.ca_data)
    if config.insecure and has_ca:
        expected = "wanted one of them: what is not checked needs no CA"
        raise ConfigError([Problem(f"{path}.tlsConfig", "found insecure and a CA", expected)])
    try:
        context = _trusting(config) if has_ca else ssl.create_default_context()
        # Clusters' own certificates lack extensions that Python 3.13 asks for and Go does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if config.insecure or (entry.enable_https and not has_ca):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _show_certificate(context, config)
    except (OSError, ssl.SSLError, ValueError) as problem:
        named = [f for f in (config.ca_file, config.cert_file, config.key_file) if f]
        reason = getattr(problem, "strerror", None) or str(problem)
        actual = f"{', '.join(named)}: {reason}" if named else reason
        raise ConfigError([Problem(f"{path}.tlsConfig", actual)]) from None
    return context


def _trusting(config: ExtenderTLSConfig) -> ssl.SSLContext:
    """Trust a CA; its data has precedence over its file."""
    data = config.ca_data.decode("ascii") if config.ca_data else None
    file = None if data else config.ca_file
    return ssl.create_default_context(cafile=file, cadata=data)


def _show_certificate(context: ssl.SSLContext, config: ExtenderTLSConfig) -> None:
    has_certificate = config.cert_data or config.cert_file
    has_key = config.key_data or config.key_file
    if not has_certificate and not has_key:
        return
    if not (has_certificate and has_key):
        raise ValueError("found a client certificate without its key, or a key alone; wanted both")
    # OpenSSL reads certificates from files only.
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
        context.load_cert_chain(
            _as_file(config.cert_data, config.cert_file, Path(folder, "cert.pem")),
            _as_file(config.key_data, config.key_file, Path(folder, "key.pem")),
        )


def _as_file(data: bytes, file: str, place: Path) -> str:
    if not data:
        return file
    place.touch(mode=0o600)
    place.write_bytes(data)
    return str(place)


# ---- sending --------------------------------------------------------------------------------


_HEADERS = {"Content-Type": "application/json", "User-Agent": "bayplan"}
#: As Go's client: the maximum number of idle connections.
_CONNECTIONS_MAX = 100
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))

_ERRNO_TEXTS = {
    errno.ECONNREFUSED: "connect: connection refused",
    errno.EHOSTUNREACH: "connect: no route to host",
    errno.ENETUNREACH: "connect: network is unreachable",
    errno.ETIMEDOUT: "connect: connection timed out",
}
#: OpenSSL's codes for a certificate of an unknown authority.
_UNKNOWN_AUTHORITY = frozenset((18, 19, 20, 21))


class ExtenderUnreachable(Exception):
    """No answer came. The message is a sentence that names the URL."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to an extender."""

    url: str
    body: bytes
    timeout_seconds: float
    #: Whether to send it again if a reused connection turns out to be closed.
    is_repeatable: bool = True


class Sender(Protocol):
    """Sends requests to one extender."""

    async def send(self, request: Request) -> tuple[int, bytes]:
        """(HTTP status, body). Raises ExtenderUnreachable."""
        ...

    async def close(self) -> None: ...


@final
class HttpSender:
    """A Sender over aiohttp. Create it in the event loop that uses it."""

    def __init__(self, context: ssl.SSLContext, server_name: str = "") -> None:
        """``server_name``: the name in the server's certificate, if not the URL's host."""
        self._server_name = server_name or None
        connector = aiohttp.TCPConnector(limit=_CONNECTIONS_MAX, ssl=context)
        self._session = aiohttp.ClientSession(connector=connector, headers=_HEADERS)

    async def send(self, request: Request) -> tuple[int, bytes]:
        try:
            return await self._sent(request)
        except aiohttp.ServerDisconnectedError:
            if not request.is_repeatable:
                raise ExtenderUnreachable(_post_error(request.url, "EOF")) from None
        try:
            return await self._sent(request)
        except aiohttp.ServerDisconnectedError:
            raise ExtenderUnreachable(_post_error(request.url, "EOF")) from None

    async def _sent(self, request: Request) -> tuple[int, bytes]:
        """Raises ExtenderUnreachable, ServerDisconnectedError."""
        try:
            async with self._session.post(
                URL(request.url, encoded=True),
                data=request.body,
                timeout=aiohttp.ClientTimeout(total=request.timeout_seconds),
                proxy=_proxy(request.url),
                server_hostname=self._server_name,
            ) as answer:
                return answer.status, await answer.read()
        except aiohttp.ServerDisconnectedError:
            raise
        except TimeoutError:
            reason = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise ExtenderUnreachable(_post_error(request.url, reason)) from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise ExtenderUnreachable(_post_error(request.url, _reason(problem))) from None

    async def close(self) -> None:
        await self._session.close()


def _post_error(url: str, reason: str) -> str:
    return f'Post "{url}": {reason}'


def _reason(problem: Exception) -> str:
    if isinstance(problem, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {problem.host}: no such host"
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {_distrust(problem.certificate_error)}"
    if isinstance(problem, aiohttp.ClientConnectorError):
        text = _ERRNO_TEXTS.get(problem.os_error.errno or 0)
        if text:
            return f"dial tcp {problem.host}:{problem.port}: {text}"
    if isinstance(problem, ConnectionResetError):
        return "read: connection reset by peer"
    return str(problem) or type(problem).__name__


def _distrust(problem: Exception) -> str:
    if getattr(problem, "verify_code", 0) in _UNKNOWN_AUTHORITY:
        return "x509: certificate signed by unknown authority"
    return str(getattr(problem, "verify_message", "") or problem)


def _proxy(url: str) -> str | None:
    """The proxy of the environment, as in Go; None for the loopback."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    proxies: Mapping[str, str] = urllib.request.getproxies()
    if not proxies or host in _LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    return proxies.get(parts.scheme)


# ---- client ---------------------------------------------------------------------------------


_OK = 200

#: Creates the Sender of an extender.
MakeSender = Callable[[], Sender]


def sender_makers(entries: Sequence[Extender]) -> dict[str, MakeSender]:
    """Extender name → how to create its Sender. Reads certificates now. Raises ConfigError."""
    makers: dict[str, MakeSender] = {}
    for index, (name, entry) in enumerate(named_extenders(entries).items()):
        server_name = entry.tls_config.server_name if entry.tls_config is not None else ""
        context = ssl_context(f"extenders[{index}]", entry)
        makers[name] = partial(HttpSender, context, server_name)
    return makers


@final
class HttpExtender:
    """An extender that is called over HTTP. Upstream: HTTPExtender."""

    def __init__(self, entry: Extender, objects: WholeObjects, sender: Sender) -> None:
        self._entry = entry
        self._objects = objects
        self._sender = sender
        self._paths = verb_paths(entry)
        self._timeout_seconds = duration_seconds(entry.http_timeout)

    async def ask(self, question: AskExtender) -> ExtenderAnswer:
        """Call the extender. Does not raise: a failure is the answer's ``error``."""
        try:
            body = await self._answer_to(question)
            return decoded(question.verb, body, by_name=self._entry.node_cache_capable)
        except (PodGoneError, ExtenderUnreachable) as problem:
            return ExtenderAnswer(error=str(problem))
        except NonsenseError as problem:
            path = self._paths[question.verb]
            text = f"the answer to {path} cannot be read: {problem}"
            return ExtenderAnswer(error=f'extender "{self._entry.url_prefix}": {text}')

    async def _answer_to(self, question: AskExtender) -> bytes:
        """Raises PodGoneError, ExtenderUnreachable."""
        path = self._paths[question.verb]
        request = Request(
            f"{self._entry.url_prefix.rstrip('/')}/{path}",
            encoded(question, self._objects, by_name=self._entry.node_cache_capable),
            self._timeout_seconds,
            is_repeatable=question.verb is not ExtenderVerb.BIND,
        )
        status, body = await self._sender.send(request)
        if status != _OK:
            text = f"failed {path} with extender at URL {request.url}, code {status}"
            raise ExtenderUnreachable(text)
        return body


@contextlib.asynccontextmanager
async def open_extenders(
    entries: Sequence[Extender], objects: WholeObjects, makers: Mapping[str, MakeSender]
) -> AsyncGenerator[dict[str, Ask]]:
    """Extender name → its call, valid until the block ends."""
    senders = {name: make() for name, make in makers.items()}
    try:
        yield {
            name: HttpExtender(entry, objects, senders[name]).ask
            for name, entry in named_extenders(entries).items()
        }
    finally:
        for sender in senders.values():
            await sender.close()
