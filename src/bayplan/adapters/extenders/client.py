"""The extenders of a configuration, each with its way to be asked."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import final

from bayplan.adapters.extenders.sending import HttpSender, NoAnswerError, Request, Sender
from bayplan.adapters.extenders.trust import ssl_context
from bayplan.adapters.extenders.wire import (
    GoneError,
    NonsenseError,
    decoded,
    encoded,
)
from bayplan.adapters.whole_objects import WholeObjects
from bayplan.config.extenders import named_extenders, verb_paths
from bayplan.config.schema import Extender
from bayplan.durations import duration_seconds
from bayplan.ports import Ask, AskExtender, ExtenderAnswer, ExtenderVerb

_OK = 200

#: Makes what sends to an extender.
MakeSender = Callable[[], Sender]


def sender_makers(entries: Sequence[Extender]) -> dict[str, MakeSender]:
    """By name; certificates are read now. Raises ConfigError."""
    found: dict[str, MakeSender] = {}
    for index, (name, entry) in enumerate(named_extenders(entries).items()):
        server_name = entry.tls_config.server_name if entry.tls_config is not None else ""
        context = ssl_context(f"extenders[{index}]", entry)
        found[name] = partial(HttpSender, context, server_name)
    return found


@final
class HttpExtender:
    """One extender. Upstream: HTTPExtender."""

    def __init__(self, entry: Extender, objects: WholeObjects, sender: Sender) -> None:
        self._entry = entry
        self._objects = objects
        self._sender = sender
        self._paths = verb_paths(entry)
        self._timeout_seconds = duration_seconds(entry.http_timeout)

    async def ask(self, question: AskExtender) -> ExtenderAnswer:
        """Does not raise: what went wrong is an answer's error."""
        try:
            body = await self._answer_to(question)
            return decoded(question.verb, body, by_name=self._entry.node_cache_capable)
        except (GoneError, NoAnswerError) as problem:
            return ExtenderAnswer(error=str(problem))
        except NonsenseError as problem:
            path = self._paths[question.verb]
            said = f"the answer to {path} cannot be read: {problem}"
            return ExtenderAnswer(error=f'extender "{self._entry.url_prefix}": {said}')

    async def _answer_to(self, question: AskExtender) -> bytes:
        """Raises GoneError, NoAnswerError."""
        path = self._paths[question.verb]
        request = Request(
            f"{self._entry.url_prefix.rstrip('/')}/{path}",
            encoded(question, self._objects, by_name=self._entry.node_cache_capable),
            self._timeout_seconds,
            is_repeatable=question.verb is not ExtenderVerb.BIND,
        )
        status, body = await self._sender.send(request)
        if status != _OK:
            said = f"failed {path} with extender at URL {request.url}, code {status}"
            raise NoAnswerError(said)
        return body


@contextlib.asynccontextmanager
async def open_extenders(
    entries: Sequence[Extender], objects: WholeObjects, makers: Mapping[str, MakeSender]
) -> AsyncGenerator[dict[str, Ask]]:
    """How each is asked, by name, while the block lasts."""
    senders = {name: make() for name, make in makers.items()}
    try:
        yield {
            name: HttpExtender(entry, objects, senders[name]).ask
            for name, entry in named_extenders(entries).items()
        }
    finally:
        for sender in senders.values():
            await sender.close()
