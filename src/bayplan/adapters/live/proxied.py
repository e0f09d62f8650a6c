"""Requests through a proxy, which aiohttp knows how to ask."""

from typing import final

import aiohttp
from yarl import URL

from bayplan.adapters.live.transport import Answer, NoAnswerError, NotSentError

#: Failures before the request left us.
NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


@final
class ProxiedSession:
    """transport.Transport through a session that belongs to somebody else."""

    def __init__(
        self, session: aiohttp.ClientSession, server: str, server_name: str | None, proxy: str
    ) -> None:
        self._session = session
        self._server = server
        self._server_name = server_name
        self._proxy = proxy

    async def send(self, method: str, path: str, head: str, body: bytes | None) -> Answer:
        """Raises NotSentError, NoAnswerError."""
        headers = dict(line.split(": ", 1) for line in head.splitlines())
        try:
            async with self._session.request(
                method,
                URL(self._server + path, encoded=True),
                data=body,
                headers=headers,
                server_hostname=self._server_name,
                proxy=self._proxy,
            ) as answer:
                read = await answer.read()
                return Answer(answer.status, read, answer.headers.get("Retry-After", ""))
        except aiohttp.ClientConnectorCertificateError as problem:
            raise NotSentError(_said(problem), is_untrusted=True) from None
        except aiohttp.InvalidURL as problem:
            raise NotSentError(_said(problem), is_for_ever=True) from None
        except NOT_SENT as problem:
            raise NotSentError(_said(problem)) from None
        except (aiohttp.ClientError, OSError) as problem:
            raise NoAnswerError(_said(problem)) from None

    async def close(self) -> None:
        """The session is its owner's."""


def _said(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
