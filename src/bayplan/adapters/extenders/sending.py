"""One HTTP request to an extender: sent once, answered in time or not at all.

What went wrong is said as Go's HTTP client says it, as far as both know the failure: these
sentences stand in pods' conditions, where operators look for what they have seen before.
"""

import errno
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, final

import aiohttp
from yarl import URL

_HEADERS = {"Content-Type": "application/json", "User-Agent": "bayplan"}
#: As Go's client: so many connections are kept for the next questions.
_CONNECTIONS_MAX = 100
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))

_ERRNO_TEXTS = {
    errno.ECONNREFUSED: "connect: connection refused",
    errno.EHOSTUNREACH: "connect: no route to host",
    errno.ENETUNREACH: "connect: network is unreachable",
    errno.ETIMEDOUT: "connect: connection timed out",
}
#: What OpenSSL says of a certificate that no known authority has signed.
_UNKNOWN_AUTHORITY = frozenset((18, 19, 20, 21))


class NoAnswerError(Exception):
    """No answer came; the message is a whole sentence that names the URL."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to send where."""

    url: str
    body: bytes
    timeout_seconds: float
    #: It may be sent once more where a kept connection turned out to be closed.
    is_repeatable: bool = True


class Sender(Protocol):
    """Sends to one extender."""

    async def send(self, request: Request) -> tuple[int, bytes]:
        """(HTTP status, body). Raises NoAnswerError."""
        ...

    async def close(self) -> None: ...


@final
class HttpSender:
    """Over aiohttp. Made inside the event loop that it is used in."""

    def __init__(self, context: ssl.SSLContext, server_name: str = "") -> None:
        """``server_name``: whom the certificate must name, where that is not the URL's host."""
        self._server_name = server_name or None
        connector = aiohttp.TCPConnector(limit=_CONNECTIONS_MAX, ssl=context)
        self._session = aiohttp.ClientSession(connector=connector, headers=_HEADERS)

    async def send(self, request: Request) -> tuple[int, bytes]:
        try:
            return await self._sent(request)
        except aiohttp.ServerDisconnectedError:
            if not request.is_repeatable:
                raise NoAnswerError(_told(request.url, "EOF")) from None
        try:
            return await self._sent(request)
        except aiohttp.ServerDisconnectedError:
            raise NoAnswerError(_told(request.url, "EOF")) from None

    async def _sent(self, request: Request) -> tuple[int, bytes]:
        """Raises NoAnswerError, ServerDisconnectedError."""
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
            said = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise NoAnswerError(_told(request.url, said)) from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise NoAnswerError(_told(request.url, _reason(problem))) from None

    async def close(self) -> None:
        await self._session.close()


def _told(url: str, reason: str) -> str:
    return f'Post "{url}": {reason}'


def _reason(problem: Exception) -> str:
    if isinstance(problem, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {problem.host}: no such host"
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {_distrust(problem.certificate_error)}"
    if isinstance(problem, aiohttp.ClientConnectorError):
        said = _ERRNO_TEXTS.get(problem.os_error.errno or 0)
        if said:
            return f"dial tcp {problem.host}:{problem.port}: {said}"
    if isinstance(problem, ConnectionResetError):
        return "read: connection reset by peer"
    return str(problem) or type(problem).__name__


def _distrust(problem: Exception) -> str:
    if getattr(problem, "verify_code", 0) in _UNKNOWN_AUTHORITY:
        return "x509: certificate signed by unknown authority"
    return str(getattr(problem, "verify_message", "") or problem)


def _proxy(url: str) -> str | None:
    """As Go's clients: the environment's, but never for this machine."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    proxies: Mapping[str, str] = urllib.request.getproxies()
    if not proxies or host in _LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    return proxies.get(parts.scheme)
