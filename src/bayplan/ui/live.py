"""A running scheduler on the page: `bayplan run --ui`.

A recorder writes down the changes that the watches and the journal bring. It remembers the last
`CHANGES_MAX` changes, so its memory is bounded by them and by the size of the cluster. The page is
followed by ticks (Server-Sent Events): a tick says that something changed, and a browser then asks
for what it shows. Between two ticks all answers are about one timeline, so equal questions of many
browsers are answered once.

Everything runs on the scheduler's event loop. Ticks come at most once a second, and so rarely that
the answers between them take at most one thirtieth of the time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import final

from bayplan.api.objects import Node, Pod, is_terminal
from bayplan.clock import rfc3339_micro
from bayplan.journal import AttemptRecord, Record
from bayplan.ports import EventType, WatchEvent
from bayplan.serving.page import PageSources
from bayplan.ui import pages
from bayplan.ui.answers import Decision, Source, Tick
from bayplan.ui.recording import Recorder
from bayplan.ui.shown import FAILED, READY, NotReady, Shown
from bayplan.ui.timeline import Timeline

#: The page goes back over at least so many changes, and a quarter more.
CHANGES_MAX = 40_000
#: Open streams of ticks. A browser has one for each tab.
STREAMS_MAX = 32
#: A stream ends before the server's limit for an answer, and the browser opens the next one.
STREAM_SECONDS_MAX = 45.0
TICK_SECONDS, TICK_SECONDS_MAX = 1.0, 10.0
#: Without changes, a tick after this time says that the scheduler still answers.
QUIET_SECONDS = 10.0
#: The part of the time that answers may take.
_WORK_SHARE = 1 / 30
_ANSWERS_MAX = 128


@final
class ShownScheduler(Shown):
    """A running scheduler."""

    kind = "live"

    def __init__(self, sources: PageSources, changes_max: int = CHANGES_MAX) -> None:
        super().__init__(sources.name)
        self.sources = sources
        self._changes_max = changes_max
        #: The change after which the oldest ones are forgotten.
        self._forget_at = changes_max + changes_max // 4
        self._recorder = Recorder(sources.scheduler)
        self._started = sources.clock.epoch_seconds() - sources.clock.now()
        self._phase = READY
        #: Changes since the start, also those that are forgotten.
        self._forgotten_count = 0
        self._is_outdated = True
        #: Question → answer, about the present timeline.
        self._answers: dict[str, bytes] = {}
        #: Seconds of work for answers since the last tick.
        self._work_seconds = 0.0
        self._streams_count = 0
        self._ticked = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._end_reason = ""
        sources.scheduler.journal.add(self)

    # ---- what happens -----------------------------------------------------------------------

    def observe(self, event: WatchEvent) -> None:
        """A watch event, before the scheduler handles it."""
        if self._phase == READY:
            try:
                self._record(event)
            except Exception as problem:  # noqa: BLE001 - the scheduler goes on without the page
                self._fail(problem)

    def write(self, record: Record) -> None:
        """A record of the journal: see `bayplan.journal.Sink`."""
        if self._phase == READY:
            try:
                self._recorder.write(record)
            except Exception as problem:  # noqa: BLE001 - the scheduler goes on without the page
                self._fail(problem)

    def _fail(self, problem: Exception) -> None:
        self._problem = f"The page has a bug and records nothing more: {problem!r}"
        self._phase = FAILED

    def _record(self, event: WatchEvent) -> None:
        is_there = event.type is not EventType.DELETED
        if isinstance(event.object, Pod):
            pod = event.object
            is_visible = is_there and not is_terminal(pod)
            placed = pod if is_visible and pod.spec.node_name else None
            self._recorder.pod(pod, placed, is_there=is_there, is_visible=is_visible)
        elif isinstance(event.object, Node):
            self._recorder.node(event.object, is_there=is_there)
        if self._recorder.change > self._forget_at:
            self._forget()

    def _forget(self) -> None:
        before = self._recorder.change
        self._recorder.forget_before(before - self._changes_max)
        self._forgotten_count += before - self._recorder.change
        self._forget_at = self._recorder.change + self._changes_max // 4

    # ---- the timeline -----------------------------------------------------------------------

    @property
    def timeline(self) -> Timeline:
        """Of the last tick; while nobody follows, at most a second old. Raises NotReady."""
        if self._phase != READY:
            raise NotReady(self._problem)
        now = self.sources.clock.now()
        line = self._timeline
        is_followed = self._streams_count > 0 and not self._is_outdated
        if line is None or (not is_followed and now - line.end_seconds >= TICK_SECONDS):
            line = self._renewed()
        return line

    def _renewed(self) -> Timeline:
        self._recorder.look()
        self._timeline = self._recorder.timeline(self.sources.clock.now())
        self._is_outdated = False
        self._answers.clear()
        vars(self).pop("series", None)
        return self._timeline

    def answered(self, question: str, answer: Callable[[], bytes]) -> bytes:
        """The answer about the present timeline."""
        if self._phase == READY:
            self.timeline  # noqa: B018 - a new one drops the old answers
        body = self._answers.get(question)
        if body is None:
            start = self.sources.clock.now()
            body = answer()
            self._work_seconds += self.sources.clock.now() - start
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            self._answers[question] = body
        return body

    def answer(self) -> Source:
        line = self.timeline if self._phase == READY else None
        tick = self.tick()
        return Source(
            name=self.name,
            kind=self.kind,
            phase=self._phase,
            problem=self._problem,
            last_change=tick.change,
            start_seconds=tick.start_seconds,
            end_seconds=tick.seconds,
            resources=() if line is None else pages.resources_of(line),
            labels=() if line is None else pages.label_keys(line),
            has_decisions=True,
            has_groups=line is not None and bool(line.group_names),
            started=tick.started,
            replica=tick.replica,
            leader=tick.leader,
        )

    def decision(self, pod: str, attempt: int) -> Decision:
        line = self.timeline
        change, _ = pages.attempt_line(line, pod, attempt)
        uid = line.pods[line.rows_by_name[pod]].uid
        for record in reversed(self.sources.memory.records):
            if not isinstance(record, AttemptRecord) or record.uid != uid:
                continue
            if record.attempt == attempt:
                victims = pages.victims_of(line, change, record.nominated_node)
                return Decision(record=record, change=change, victims=victims)
        raise pages.NotRemembered(f"attempt {attempt} at {pod} is no longer remembered")

    # ---- following --------------------------------------------------------------------------

    def tick(self) -> Tick:
        replica = self.sources.phase()
        line = self._timeline
        return Tick(
            started=rfc3339_micro(self._started),
            change=self._forgotten_count + self._recorder.change,
            seconds=self.sources.clock.now() if line is None else line.end_seconds,
            start_seconds=0.0 if line is None else line.start_seconds,
            replica=replica.phase,
            leader=replica.leader,
            reason=self._end_reason,
        )

    def begin(self) -> None:
        self._following = asyncio.get_running_loop().create_task(self._follow(), name="page")

    async def end(self, reason: str) -> None:
        """Tell those who follow why the scheduler ends."""
        self._end_reason = reason
        self._announce()
        if self._following is not None:
            self._following.cancel()
        await asyncio.sleep(0)

    async def _follow(self) -> None:
        last: tuple[object, ...] = ()
        last_seconds = 0.0
        while True:
            pause = self._work_seconds / _WORK_SHARE
            self._work_seconds = 0.0
            await asyncio.sleep(min(max(TICK_SECONDS, pause), TICK_SECONDS_MAX))
            self._recorder.look()
            if not self._streams_count or self._phase != READY:
                continue
            now, replica = self.sources.clock.now(), self.sources.phase()
            state = (self._recorder.change, self._forgotten_count, replica)
            if state != last or now - last_seconds >= QUIET_SECONDS:
                last, last_seconds = state, now
                start = self.sources.clock.now()
                self._renewed()
                self._work_seconds += self.sources.clock.now() - start
                self._announce()

    def _announce(self) -> None:
        ticked, self._ticked = self._ticked, asyncio.Event()
        ticked.set()

    @property
    def is_full(self) -> bool:
        """Whether no further browser may follow."""
        return self._streams_count >= STREAMS_MAX

    async def ticks(self) -> AsyncIterator[Tick]:
        """The present state, and each change of it. Ends by itself."""
        self._is_outdated = self._is_outdated or not self._streams_count
        self._streams_count += 1
        loop = asyncio.get_running_loop()
        end = loop.time() + STREAM_SECONDS_MAX
        try:
            while not self._end_reason:
                ticked = self._ticked
                yield self.tick()
                await asyncio.wait_for(ticked.wait(), end - loop.time())
            yield self.tick()
        except TimeoutError:
            return
        finally:
            self._streams_count -= 1
