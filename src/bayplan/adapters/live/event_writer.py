"""Events about pods: written in the background, never blocking the scheduler.

`EventWriter.put` returns at once. A few workers write the events at the rate of their own lane.
When too many events wait, new ones are dropped and counted. Repetitions within minutes form one
series of one event: the first repetition is written, then the count when the series ends or after
half an hour. A series is about one version of an object, so a pod whose condition changes begins a
new series with the new note. Upstream: client-go/tools/events, event_broadcaster.go.
"""

import asyncio
import logging
import socket
from dataclasses import dataclass
from typing import Any, final

from bayplan.adapters.live.client import STRATEGIC_MERGE_PATCH, ApiClient
from bayplan.adapters.live.rate_limit import Lane
from bayplan.adapters.live.work_queue_metrics import WorkQueueMetrics
from bayplan.clock import Clock, rfc3339_micro
from bayplan.ports import (
    ApiError,
    EmitEvent,
    NotFoundError,
    ObjectReference,
    OutcomeUnknownError,
)

#: Maximum number of events that wait to be written.
WAITING_MAX = 10_000
#: Maximum number of series; a new series replaces the oldest.
REMEMBERED_MAX = 4096
WORKERS = 4
#: Upstream's finishTime and refreshTime.
SERIES_ENDS_SECONDS = 360.0
SERIES_REFRESH_SECONDS = 1800.0
TEND_SECONDS = 60.0
_NAME_LENGTH_MAX = 253

_log = logging.getLogger(__name__)

#: The key of a series: all fields but the note, as upstream's eventKey.
_Key = tuple[ObjectReference, str, str, str, str, ObjectReference | None]


@dataclass(slots=True)
class _Series:
    """One event and its repetitions."""

    event: EmitEvent
    name: str
    first_seconds: float
    last_seconds: float
    count: int = 1
    #: The last written count, and the time of the write.
    written_count: int = 0
    written_seconds: float = 0.0
    #: When the series was last put into the queue.
    queued_seconds: float = 0.0


@final
class EventWriter:
    """Takes events without waiting and writes them in the background, between start and stop."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._host = socket.gethostname()
        self._series_by_key: dict[_Key, _Series] = {}
        self._waiting: asyncio.Queue[_Series] = asyncio.Queue(WAITING_MAX)
        #: Durations of waiting and writing.
        self.metrics = WorkQueueMetrics("events", clock.now, self._waiting.qsize)
        self._tasks: list[asyncio.Task[None]] = []
        self._number = 0
        #: Events that were not written: too many waited, or the server refused them.
        self.dropped_count = 0

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._write_all()) for _ in range(WORKERS)]
        self._tasks.append(loop.create_task(self._tend_all()))

    async def stop(self) -> None:
        """Stop without writing the events that wait."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def flush(self, seconds_max: float | None = None) -> None:
        """Wait until all events are written or dropped.

        After ``seconds_max`` the events that wait are dropped; None: no limit.
        """
        try:
            async with asyncio.timeout(seconds_max):
                await self._waiting.join()
        except TimeoutError:
            dropped = self._waiting.qsize()
            for _ in range(dropped):
                self._waiting.get_nowait()
                self._waiting.task_done()
            self.dropped_count += dropped
            _log.warning("%d events dropped: not written within %g s", dropped, seconds_max)

    def put(self, event: EmitEvent) -> None:
        """Queue an event, or count it in its series."""
        now = self._clock.epoch_seconds()
        key = (
            event.regarding,
            event.type,
            event.reason,
            event.action,
            event.reporter,
            event.related,
        )
        series = self._series_by_key.get(key)
        if series is None:
            self._remember(key, _Series(event, self._named(event, now), now, now))
            return
        series.count += 1
        series.last_seconds = now
        if series.count == 2:
            self._enqueue(series)

    def _remember(self, key: _Key, series: _Series) -> None:
        self._enqueue(series)
        if len(self._series_by_key) >= REMEMBERED_MAX:
            self._forget(next(iter(self._series_by_key)))
        self._series_by_key[key] = series

    def _forget(self, key: _Key) -> None:
        """End a series and write its final count."""
        series = self._series_by_key.pop(key)
        if series.count > max(series.written_count, 1):
            self._enqueue(series)

    def _enqueue(self, series: _Series) -> None:
        try:
            self._waiting.put_nowait(series)
            series.queued_seconds = self.metrics.added()
        except asyncio.QueueFull:
            self.dropped_count += 1

    def _named(self, event: EmitEvent, now: float) -> str:
        """Upstream's name, with a number that distinguishes events of one moment."""
        self._number += 1
        ending = f".{int(now * 1e6):x}{self._number % 0x1000:03x}"
        return event.regarding.name[: _NAME_LENGTH_MAX - len(ending)] + ending

    # ---- series -----------------------------------------------------------------------------

    async def _tend_all(self) -> None:
        while True:
            await asyncio.sleep(TEND_SECONDS)
            self.tend()

    def tend(self) -> None:
        """End series without recent repetitions; write the count of long series again."""
        now = self._clock.epoch_seconds()
        for key, series in list(self._series_by_key.items()):
            if now - series.last_seconds > SERIES_ENDS_SECONDS:
                self._forget(key)
            elif series.count > series.written_count and (
                now - series.written_seconds > SERIES_REFRESH_SECONDS
            ):
                self._enqueue(series)

    # ---- writing ----------------------------------------------------------------------------

    async def _write_all(self) -> None:
        while True:
            series = await self._waiting.get()
            try:
                with self.metrics.working(series.queued_seconds):
                    await self._write(series)
            except (ApiError, OutcomeUnknownError) as problem:
                self.dropped_count += 1
                _log.debug("event %s not written: %s", series.name, problem)
            finally:
                self._waiting.task_done()

    async def _write(self, series: _Series) -> None:
        was_written = series.written_count > 0
        series.written_count, series.written_seconds = series.count, self._clock.epoch_seconds()
        if was_written:
            try:
                await self._patch(series)
            except NotFoundError:  # the API deletes events after an hour
                await self._create(series)
        else:
            await self._create(series)

    async def _patch(self, series: _Series) -> None:
        await self._client.request(
            "PATCH",
            f"{_path(series.event)}/{series.name}",
            {"series": _series(series)},
            lane=Lane.EVENTS,
            media_type=STRATEGIC_MERGE_PATCH,
        )

    async def _create(self, series: _Series) -> None:
        content = event_object(series.event, series.name, series.first_seconds, self._host)
        if series.count > 1:
            content["series"] = _series(series)
        try:
            await self._client.request("POST", _path(series.event), content, lane=Lane.EVENTS)
        except ApiError as problem:
            # An earlier attempt of this request has reached the server.
            if problem.reason != "AlreadyExists":
                raise


def event_object(event: EmitEvent, name: str, seconds: float, host: str) -> dict[str, Any]:
    """The object of events.k8s.io/v1. ``seconds``: the time of the event since 1970."""
    content: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": event.regarding.namespace},
        "eventTime": rfc3339_micro(seconds),
        "type": event.type,
        "reason": event.reason,
        "action": event.action,
        "note": event.note,
        "reportingController": event.reporter,
        "reportingInstance": f"{event.reporter}-{host}"[:128],
        "regarding": event.regarding.content(),
    }
    if event.related is not None:
        content["related"] = event.related.content()
    return content


def _series(series: _Series) -> dict[str, Any]:
    return {"count": series.count, "lastObservedTime": rfc3339_micro(series.last_seconds)}


def _path(event: EmitEvent) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{event.regarding.namespace}/events"
