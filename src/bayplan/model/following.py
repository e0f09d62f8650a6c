"""A cluster that is followed: its kinds, its lists and watches, and its events in a model.

Reflectors list and watch every kind, as those of a scheduler do. Only get, list and watch are sent.
A kind that may not be read is left out, and the objects name it; without nodes or pods nothing is
followed. The events of the first lists are the objects of a `ClusterModel`; `apply_event` brings
the model up to date with each later one.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Final, final

from bayplan import ports
from bayplan.adapters.live.errors import AccessDeniedError
from bayplan.api.objects import ApiObject
from bayplan.model.cluster_kinds import NEEDED, ClusterKinds
from bayplan.model.cluster_model import ClusterModel, without_decision
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import key_of_metadata
from bayplan.objects.object_store import ObjectStore
from bayplan.runner import Reflector

#: Different failures that are counted one by one.
_FAILURES_MAX: Final = 50


@final
class CountedReads:
    """Lists and watches of a cluster, with counts of what fails."""

    def __init__(self, cluster: ports.ClusterReader) -> None:
        self._cluster = cluster
        #: "list v1 Node: reason" → how often.
        self.failures: Counter[str] = Counter()
        self._list_counts: Counter[str] = Counter()
        #: Kinds of which a list was read and not taken yet.
        self._fresh: set[str] = set()
        #: Kinds that may not be read, and why.
        self.denials: dict[str, str] = {}

    def take_list(self, kind: str) -> int:
        """The number of the list that was just read, from 1; 0: none was."""
        if kind not in self._fresh:
            return 0
        self._fresh.discard(kind)
        return self._list_counts[kind]

    async def sleep(self, seconds: float) -> None:
        await self._cluster.sleep(seconds)

    async def list(self, kind: str) -> ports.Listing:
        """Raises ApiError."""
        try:
            listing = await self._cluster.list(kind)
        except AccessDeniedError as problem:
            self.denials[kind] = str(problem)
            self._failed(f"list {kind}", problem)
            raise
        except (ports.ApiError, ports.OutcomeUnknownError) as problem:
            self._failed(f"list {kind}", problem)
            raise
        self._list_counts[kind] += 1
        self._fresh.add(kind)
        return listing

    def watch(self, kind: str, resource_version: str) -> AsyncIterator[ports.WatchEvent]:
        """Raises ApiError, WatchDroppedError."""
        return self._watch(kind, resource_version)

    async def _watch(self, kind: str, resource_version: str) -> AsyncIterator[ports.WatchEvent]:
        try:
            async for event in self._cluster.watch(kind, resource_version):
                yield event
        except (ports.ApiError, ports.OutcomeUnknownError, ports.WatchDroppedError) as problem:
            self._failed(f"watch {kind}", problem)
            raise

    def bug(self, kind: str, problem: Exception) -> None:
        """An exception that is not the API server's. The kind is listed again."""
        self._failed(f"read {kind}", problem)

    def _failed(self, what: str, problem: Exception) -> None:
        reason = "the version is too old" if isinstance(problem, ports.GoneError) else str(problem)
        line = f"{what}: {reason or type(problem).__name__}"
        if line not in self.failures and len(self.failures) >= _FAILURES_MAX:
            line = f"{what}: other reasons"
        self.failures[line] += 1


@final
class KindReflectors:
    """A reflector for each kind, in tasks that end with the block."""

    def __init__(
        self,
        reads: CountedReads,
        kinds: Iterable[str],
        deliver: Callable[[str, Iterable[ports.WatchEvent]], None],
    ) -> None:
        """``deliver``: called with each kind and its events, at once after they were read."""
        self._reads = reads
        self._reflectors = {
            kind: Reflector(reads, kind, partial(deliver, kind), reads.bug) for kind in kinds
        }
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> "KindReflectors":
        loop = asyncio.get_running_loop()
        self._tasks = {
            kind: loop.create_task(each.run()) for kind, each in self._reflectors.items()
        }
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def until_read(
        self,
        stop: asyncio.Event,
        wait: Callable[[], Awaitable[None]],
        left_out: Callable[[str, str], None],
    ) -> None:
        """Wait until the first list of each kind is read, or ``stop`` is set.

        ``wait``: awaited between two checks. ``left_out``: called with each kind that may not be
        read, and the reason. Raises ApiError if nodes or pods may not be read.
        """
        while not stop.is_set():
            missing = [kind for kind, each in self._reflectors.items() if not each.is_synced]
            for kind in missing:
                denial = self._reads.denials.get(kind)
                if denial is None:
                    continue
                if kind in NEEDED:
                    raise ports.ApiError(403, "Forbidden", denial)
                left_out(kind, denial)
                self._tasks[kind].cancel()
                del self._reflectors[kind]
            if not missing:
                return
            await wait()


def objects_of_events(
    followed: ClusterKinds,
    events: Iterable[ports.WatchEvent],
    denials: dict[str, str],
    epoch_seconds: float,
) -> ClusterPicture:
    """The objects that are there after these events."""
    objects = ObjectStore[ApiObject]()
    for event in events:
        key = key_of_metadata(event.kind, event.object.metadata)
        if event.type is ports.EventType.DELETED:
            objects.remove(key)
        else:
            objects.put(key, event.object)
    return ClusterPicture(
        objects,
        absent=followed.absent,
        unreadable=MappingProxyType(dict(sorted(denials.items()))),
        source=followed.name,
        epoch_seconds=epoch_seconds,
    )


def apply_event(model: ClusterModel, event: ports.WatchEvent) -> None:
    """Change a model as an event of its cluster says."""
    is_there = event.type is not ports.EventType.DELETED
    model.follow(event.kind, without_decision(event.object), is_there=is_there)
