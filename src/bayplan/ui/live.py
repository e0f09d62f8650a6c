"""A running scheduler on the page: `bayplan run --ui`.

The entries of the scheduler's log and journal wait in a backlog until somebody looks at the page.
Then they are folded into the timeline. The timeline has the last `CHANGES_MAX` changes, so its
memory is bounded by them and by the size of the cluster. Browsers follow the page by ticks
(Server-Sent Events). A tick says that something changed, and a browser then asks for what it shows.
Between two ticks all answers are about one timeline, so equal questions of many browsers are
answered once.

Everything runs on the scheduler's event loop. Ticks come at most once a second, and less often if
the answers between them would take more than one sixtieth of the time. While many pods are being
placed, a tick waits some seconds, because the browsers would ask while the scheduler sends its
bindings.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from functools import cached_property, partial
from math import inf
from typing import final

from bayplan.answers.names import common_suffix
from bayplan.clock import cpu_seconds, rfc3339_micro
from bayplan.history.backlog import Backlog
from bayplan.history.entries import ObjectChange
from bayplan.history.node_verdict import NodeVerdict
from bayplan.history.timeline import Timeline
from bayplan.internal_errors import internal_error
from bayplan.journal import AttemptRecord
from bayplan.model.past import repeat
from bayplan.model.picture import ClusterPicture
from bayplan.problems import BadInputError
from bayplan.serving.log_lines import Log
from bayplan.serving.page import PageSources
from bayplan.ui import pages
from bayplan.ui.answers import Computation, Source, Tick
from bayplan.ui.computations import Computations, Deadline
from bayplan.ui.copies import IS_AVAILABLE, Copies, is_orphan
from bayplan.ui.moments import Moment
from bayplan.ui.subjects import FAILED, READY, NotReady, Subject, exact_verdict

#: The number of changes that the page goes back over at least; at most it is a quarter more.
CHANGES_MAX = 40_000
#: The most open streams of ticks. A browser has one for each tab.
STREAMS_MAX = 32
#: The time after which a stream ends. It is below the server's limit for an answer, and the browser
#: opens the next stream.
STREAM_SECONDS_MAX = 45.0
TICK_SECONDS, TICK_SECONDS_MAX = 1.0, 10.0
#: The longest time that a tick waits for the end of a burst of pods.
CALM_SECONDS_MAX = 5.0
_LOOK_SECONDS = 0.1
#: The number of bindings under way above which they are a burst. A single binding may take minutes,
#: until its volume exists.
_BINDINGS_FEW = 16
#: Without changes, a tick after this time says that the scheduler still answers.
QUIET_SECONDS = 10.0
#: The share of the time that answers may take, and the share that recording may take while pods are
#: ready for an attempt.
_WORK_SHARE = 1 / 60
#: The longest time that recording takes in one piece. An attempt may have to wait that long.
_SLICE_SECONDS = 0.01
_ANSWERS_MAX = 128


_log = Log("page")


def _log_problem(text: str) -> None:
    """Write a problem that a browser shows into the log, too."""
    _log.warning("A question of the page has no answer", err=text)


@final
class SchedulerSubject(Subject):
    """A running scheduler."""

    kind = "live"

    def __init__(self, sources: PageSources, changes_max: int = CHANGES_MAX) -> None:
        super().__init__(sources.name)
        self.sources = sources
        self.has_model = IS_AVAILABLE and sources.model is not None
        self._backlog = Backlog(sources.scheduler, sources.clock, changes_max)
        self._started = sources.clock.epoch_seconds() - sources.clock.now()
        self._phase = READY
        self._is_outdated = True
        #: The answers about the present timeline, by question.
        self._answers: dict[str, bytes] = {}
        #: Processor seconds of work for answers since the last tick.
        self._work_seconds = 0.0
        #: When the timeline was made, and when the fold last got an entry.
        self._made_seconds = self._caught_up_seconds = sources.clock.now()
        self._streams_count = 0
        self._ticked = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._end_reason = ""
        self._copies, self._long_copies = Copies(), Copies()
        self._remark = _log_problem
        sources.scheduler.journal.add(self._backlog)
        sources.log.follow(self._observe)

    # ---- what happens -----------------------------------------------------------------------

    def _observe(self, change: ObjectChange) -> None:
        """Take a change of an object, before the scheduler handles it."""
        try:
            self._backlog.put(change)
        except Exception as problem:  # noqa: BLE001 - the scheduler goes on without the page
            self._fail(problem)

    @property
    def _is_busy(self) -> bool:
        """Whether pods are ready for an attempt, or many bindings are under way."""
        scheduler = self.sources.scheduler
        if scheduler.queue.counts()["active"] > 0:
            return True
        in_flight = len(scheduler.queue.in_flight)
        return in_flight > _BINDINGS_FEW and (
            in_flight - len(scheduler.waiting_pods()) > _BINDINGS_FEW
        )

    def _catch_up(self) -> None:
        """Record what happened. While the scheduler is busy, record only what the time allows."""
        start, now = cpu_seconds(), self.sources.clock.now()
        allowed = (now - self._caught_up_seconds) * _WORK_SHARE if self._is_busy else inf
        try:
            self._backlog.catch_up(min(allowed, _SLICE_SECONDS))
        except Exception as problem:  # noqa: BLE001 - the scheduler goes on without the page
            self._fail(problem)
        self._caught_up_seconds = self.sources.clock.now()
        self._work_seconds += cpu_seconds() - start

    async def prepare(self) -> None:
        """See `Subject.prepare`."""
        if not self._is_current:
            await self._catch_up_in_slices()

    async def _catch_up_in_slices(self) -> None:
        """Record all that happened, while the scheduler is not busy."""
        while self._backlog and self._phase == READY and not self._is_busy:
            self._catch_up()
            await asyncio.sleep(0)

    def _fail(self, problem: Exception) -> None:
        """End the page. Later events and records are dropped."""
        self._problem = f"The page records nothing more: {internal_error(problem)}"
        self._phase = FAILED
        self._backlog.close()
        _log.error("The page ends, the scheduler goes on", err=self._problem)

    # ---- the timeline -----------------------------------------------------------------------

    @property
    def timeline(self) -> Timeline:
        """The timeline of the last tick. While nobody follows the page, it is at most a second old.
        Raises NotReady."""
        self._refresh()
        if self._timeline is None or self._phase != READY:
            raise NotReady(self._problem)
        return self._timeline

    def _refresh(self) -> None:
        """Make the timeline again, unless it is current. The old answers are dropped, and a failure
        sets the phase."""
        if self._phase == READY and not self._is_current:
            self._renew()

    @property
    def _is_current(self) -> bool:
        """Whether the timeline is up to date."""
        if self._timeline is None:
            return False
        is_followed = self._streams_count > 0 and not self._is_outdated
        return is_followed or self.sources.clock.now() - self._made_seconds < TICK_SECONDS

    def _renew(self) -> None:
        self._backlog.look()
        self._catch_up()
        if self._phase != READY:
            return
        start = cpu_seconds()
        now = self.sources.clock.now()
        self._timeline = self._backlog.fold.timeline(self._backlog.seconds_until(now))
        self._made_seconds = now
        self._work_seconds += cpu_seconds() - start
        self._is_outdated = False
        self._answers.clear()
        self._series = None

    def answered(self, question: str, answer: Callable[[], bytes]) -> bytes:
        """The answer about the present timeline."""
        self._refresh()
        body = self._answers.get(question)
        if body is None:
            start = cpu_seconds()
            body = answer()
            self._work_seconds += cpu_seconds() - start
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            self._answers[question] = body
        return body

    def answer(self) -> Source:
        self._refresh()
        line = self._timeline if self._phase == READY else None
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
            node_suffix="" if line is None else common_suffix(line.node_names),
            has_decisions=True,
            has_groups=line is not None and bool(line.group_names),
            has_model=self.has_model,
            started=tick.started,
            replica=tick.replica,
            leader=tick.leader,
        )

    def record(self, pod: str, attempt: int) -> tuple[int, AttemptRecord]:
        """See `Subject.record`. Raises NotRemembered, too."""
        line = self.timeline
        change, _ = pages.attempt_line(line, pod, attempt)
        uid = line.pods[line.rows_by_name[pod]].uid
        for record in reversed(self.sources.memory.records):
            if not isinstance(record, AttemptRecord) or record.uid != uid:
                continue
            if record.attempt == attempt:
                return change, record
        raise pages.NotRemembered(f"attempt {attempt} at {pod} is no longer remembered")

    # ---- questions for the engine -----------------------------------------------------------

    @cached_property
    def computations(self) -> Computations:
        """The computations. They run in copies of this process, so that the scheduler does not wait
        for them."""
        is_stopped = partial(is_orphan, os.getpid())
        return Computations(self._copies, self._long_copies, is_stopped, self.report_failure)

    def moment(self, change: int, check: Callable[[], None]) -> Moment:
        """The present moment. Call it in a copy of the process, where nothing changes."""
        model = self.sources.model
        if model is None:
            return super().moment(change, check)
        source = ClusterPicture(
            model.states.present().objects_as_decided(),
            absent=model.absent_kinds,
            source=self.name,
            epoch_seconds=self.sources.clock.epoch_seconds(),
        )
        return Moment(source, model.config, model.registry, seed=model.seed)

    def verdict(self, pod: str, attempt: int, node: str) -> Computation[NodeVerdict]:
        """Repeats the attempt in a copy of this process, from the state before it."""
        model = self.sources.model
        _, record = self.record(pod, attempt)
        if model is None or not self.has_model:
            return super().verdict(pod, attempt, node)

        def compute(deadline: Deadline) -> NodeVerdict:
            past = model.states.before(record.uid, record.attempt)
            if past is None:
                raise BadInputError("the scheduler no longer remembers the state before it")
            repeated = repeat(
                *past,
                record,
                node,
                config=model.config,
                registry=model.registry,
                seed=model.seed,
                absent=model.absent_kinds,
            )
            return exact_verdict(repeated)

        computed = self.computations.ask(("verdict", record.uid, attempt, node), compute)
        return computed.answer()

    # ---- following --------------------------------------------------------------------------

    def tick(self) -> Tick:
        replica = self.sources.phase()
        line = self._timeline
        return Tick(
            started=rfc3339_micro(self._started),
            change=self._backlog.change_count,
            seconds=self.sources.clock.now() if line is None else line.end_seconds,
            start_seconds=0.0 if line is None else line.start_seconds,
            replica=replica.phase,
            leader=replica.leader,
            reason=self._end_reason,
        )

    def begin(self) -> None:
        self._following = asyncio.get_running_loop().create_task(self._follow(), name="page")

    async def end(self, reason: str) -> None:
        """Tell the browsers that follow why the scheduler ends."""
        self._end_reason = reason
        self._announce()
        if self._following is not None:
            self._following.cancel()
        self._copies.shutdown()
        self._long_copies.shutdown()
        await asyncio.sleep(0)

    async def _follow(self) -> None:
        last: tuple[object, ...] = ()
        last_seconds = 0.0
        while True:
            pause = self._work_seconds / _WORK_SHARE
            self._work_seconds = 0.0
            await asyncio.sleep(min(max(TICK_SECONDS, pause), TICK_SECONDS_MAX))
            await self._until_calm()
            if not self._streams_count or self._phase != READY:
                self._backlog.look()
                continue
            await self._catch_up_in_slices()
            now, replica = self.sources.clock.now(), self.sources.phase()
            state = (self._backlog.change_count, replica)
            if self._backlog or state != last or now - last_seconds >= QUIET_SECONDS:
                last, last_seconds = state, now
                self._renew()
                self._announce()

    async def _until_calm(self) -> None:
        """Wait for the end of a burst of pods, but not for long."""
        loop = asyncio.get_running_loop()
        end = loop.time() + CALM_SECONDS_MAX
        while self._streams_count and self._is_busy and loop.time() < end:
            await asyncio.sleep(_LOOK_SECONDS)

    def _announce(self) -> None:
        ticked, self._ticked = self._ticked, asyncio.Event()
        ticked.set()

    @property
    def is_full(self) -> bool:
        """Whether no further browser may follow."""
        return self._streams_count >= STREAMS_MAX

    async def ticks(self) -> AsyncIterator[Tick]:
        """The present state, and then each change of it. The stream ends by itself."""
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
