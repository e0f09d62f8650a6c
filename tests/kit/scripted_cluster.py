"""A cluster in memory whose lists and watches follow a script, for reflectors and followers."""

import asyncio
from collections.abc import AsyncIterator, Mapping, MutableSequence, Sequence
from typing import Any

from bayplan.ports import Listing, WatchEvent

#: A watch ends as it does when the server closes it.
END: None = None
#: A list of objects has this version.
VERSION = "10"

Answer = Listing | Sequence[Any] | Exception
Step = WatchEvent | Exception | None


class ScriptedCluster:
    """The part of ports.Cluster that reads; an exception in the script is raised.

    The last list of a kind is repeated. Watches of a kind take its events in turn; after the last
    event a watch stays open, and `tell` continues it. ``hurries``: no sleep takes long.
    """

    def __init__(
        self,
        lists: Mapping[str, Sequence[Answer]],
        events: Mapping[str, Sequence[Step]] | None = None,
        *,
        hurries: bool = False,
    ) -> None:
        self.lists = {kind: list(answers) for kind, answers in lists.items()}
        self.events: dict[str, list[Step]] = {k: list(v) for k, v in (events or {}).items()}
        #: (time in seconds, request)
        self.requests: list[tuple[float, str]] = []
        #: No list is answered while this is cleared.
        self.answers = asyncio.Event()
        self.answers.set()
        self._news = asyncio.Event()
        self._hurries = hurries

    @property
    def is_at_its_end(self) -> bool:
        """Whether the last lists and events are read."""
        return not any(self.events.values()) and all(len(each) == 1 for each in self.lists.values())

    def tell(self, kind: str, step: Step) -> None:
        self.events.setdefault(kind, []).append(step)
        self._news.set()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0 if self._hurries else seconds)

    async def list(self, kind: str) -> Listing:
        self._note("list")
        await self.answers.wait()
        outcomes = self.lists[kind]
        outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, Listing) else Listing(outcome, VERSION)

    def watch(self, kind: str, resource_version: str) -> AsyncIterator[WatchEvent]:
        self._note(f"watch {resource_version}")
        return self._watch(self.events.setdefault(kind, []))

    async def _watch(self, steps: MutableSequence[Step]) -> AsyncIterator[WatchEvent]:
        if self._hurries:
            await asyncio.sleep(0.01)
        while True:
            while steps:
                step = steps.pop(0)
                if step is None:
                    return
                if isinstance(step, Exception):
                    raise step
                yield step
            self._news.clear()
            await self._news.wait()

    def _note(self, request: str) -> None:
        self.requests.append((round(asyncio.get_running_loop().time(), 6), request))
