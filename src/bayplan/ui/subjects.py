"""What the page shows: a run folder or the files of a cluster. Both load in the background.

The timeline of a run is the fold of its log, which a thread of its own makes. Until it is ready,
the page shows the progress and the totals of the run's summary. A cluster without a run is one
state, at 0 s.
"""

import os
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import Protocol, final

import msgspec
import numpy as np

from bayplan.adapters.embedded.api_features import api_features
from bayplan.answers.names import common_suffix
from bayplan.api.objects import DEFAULT_SCHEDULER
from bayplan.api.quantity import QuantityError
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.history.entries import ObjectChange
from bayplan.history.node_verdict import NodeVerdict
from bayplan.history.state_log import origin_of
from bayplan.history.timeline import Series, State, Timeline
from bayplan.history.timeline_fold import TimelineFold
from bayplan.internal_errors import internal_error, shows_tracebacks
from bayplan.journal import AttemptRecord, Record
from bayplan.model.past import AttemptRejection, Repetition, attempt_of_run, rejections_of
from bayplan.model.picture import ClusterPicture
from bayplan.model.run_moments import objects_of
from bayplan.plugins.registry import Registry
from bayplan.ports import RunAborted
from bayplan.problems import BadInputError
from bayplan.regular_files import open_regular_file
from bayplan.sim.input.sources import JOURNAL, InputSource
from bayplan.sim.output.pod_counts import gone_text
from bayplan.sim.output.run_folder import PluginsNotAllowedError, RunFolder
from bayplan.ui import pages, tables
from bayplan.ui.answers import Computation, Decision, Source, Totals
from bayplan.ui.cluster_objects import ClusterObjects, objects_of_inputs
from bayplan.ui.computations import ENGINE_LOCK, Computations
from bayplan.ui.moments import ModelCache, Moment, OpenMoment, causes_now, with_causes

LOADING, READY, FAILED = "loading", "ready", "failed"
#: The number of items of a log between two checks of whether the page was closed.
_ITEMS = 1_000
#: For a cluster without a run: the number of waiting pods that are tried once to learn why they
#: wait.
_TRIED_MAX = 1_000
#: The most different lines about failures in the terminal. There is a limit because a client may
#: ask anything.
_REPORTED_MAX = 1_000
#: The largest journal, because the places of all its lines are in memory.
_JOURNAL_BYTES_MAX = 16 << 30

#: Prints one line for the user of the command.
Remark = Callable[[str], None]


def no_remark(text: str) -> None:
    """Print nothing, for a page that no command serves."""


class NotReady(Exception):
    """There is no timeline yet, or there will never be one."""


@final
class Journal:
    """The journal of a run folder. It reads records by line, without the whole file in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        os.close(open_regular_file(path))
        length = path.stat().st_size
        if length > _JOURNAL_BYTES_MAX:
            raise BadInputError(f"{path}: larger than {_JOURNAL_BYTES_MAX >> 30} GiB")
        content = np.memmap(path, np.uint8, "r") if length else np.zeros(0, np.uint8)
        #: The end of each line.
        self._ends = np.flatnonzero(content == ord("\n"))

    def attempt(self, line: int) -> AttemptRecord:
        start = int(self._ends[line - 1]) + 1 if line else 0
        with self._path.open("rb") as file:
            file.seek(start)
            record = msgspec.json.decode(file.read(int(self._ends[line]) - start), type=Record)
        assert isinstance(record, AttemptRecord)
        return record


class Subject:
    """What the page is about."""

    kind = ""
    #: Whether `moment` has the objects, so that the engine can answer questions.
    has_model = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._phase = LOADING
        self._is_stopped = False
        self._problem = ""
        #: What the reader should know: what is missing, what was made up.
        self._notes: list[str] = []
        self._progress = (0, 0)
        self._timeline: Timeline | None = None
        #: The series of the timeline; None: nobody has asked for them yet.
        self._series: Series | None = None
        self._totals: Totals | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._long_worker: ThreadPoolExecutor | None = None
        self._remark: Remark = no_remark
        #: The lines about failures that were printed for the user of the command. Each is printed
        #: once, because a page asks again all the time.
        self._reported: set[str] = set()

    def start(self, worker: ThreadPoolExecutor) -> None:
        """Start to load, when the page is served. ``worker``: has one thread, which loads, and
        which computes the answers that take a little longer than a request."""
        self._worker = worker

    def stop(self) -> None:
        """Stop the work of the workers, so that the process can end."""
        self._is_stopped = True
        if self._long_worker is not None:
            self._long_worker.shutdown(wait=False, cancel_futures=True)

    @property
    def timeline(self) -> Timeline:
        """Raises NotReady."""
        if self._timeline is None:
            raise NotReady(self._problem or f"{self.name} is loading")
        return self._timeline

    @property
    def series(self) -> Series:
        """The series of the present timeline. Raises NotReady."""
        line = self.timeline
        if self._series is None:
            self._series = Series(line)
        return self._series

    async def prepare(self) -> None:
        """Get ready for an answer; called before each one."""

    def answered(self, question: str, answer: Callable[[], bytes]) -> bytes:
        """The answer to a question, which may be remembered."""
        return answer()

    def answer(self) -> Source:
        done_count, total_count = self._progress
        source = Source(
            name=self.name,
            kind=self.kind,
            phase=self._phase,
            problem=self._problem,
            notes=tuple(self._notes),
            done_count=done_count,
            total_count=total_count,
            totals=self._totals,
        )
        if self._timeline is None or self._phase != READY:
            return source
        line = self._timeline
        return msgspec.structs.replace(
            source,
            last_change=line.last_change,
            end_seconds=line.end_seconds,
            resources=pages.resources_of(line),
            labels=pages.label_keys(line),
            node_suffix=common_suffix(line.node_names),
            has_decisions=self.kind == "run",
            has_groups=bool(line.group_names),
            has_model=self.has_model,
        )

    # ---- questions for the engine -----------------------------------------------------------

    @cached_property
    def computations(self) -> Computations:
        """The computations that take longer than a request."""
        self._worker = self._worker or ThreadPoolExecutor(1, "runs")
        self._long_worker = ThreadPoolExecutor(1, "long answers")
        return Computations(
            self._worker, self._long_worker, lambda: self._is_stopped, self.report_failure
        )

    def report_failure(self, problem: BaseException) -> str:
        """The line about a failure, for the page and for the user of the command."""
        if isinstance(problem, BadInputError | RunAborted):
            line = str(problem)
        else:
            line = internal_error(problem)
            if shows_tracebacks():
                traceback.print_exception(problem)
        if line not in self._reported and len(self._reported) < _REPORTED_MAX:
            self._reported.add(line)
            self._remark(line)
        return line

    def moment(self, change: int, check: Callable[[], None]) -> Moment:
        """All objects at a change, for the worker's thread. ``check`` may raise.

        Raises NotReady, BadInputError.
        """
        raise NotReady(f"{self.name} has no objects that the engine could use")

    @cached_property
    def _models(self) -> ModelCache:
        return ModelCache()

    def model(self, change: int, check: Callable[[], None]) -> OpenMoment:
        """The engine with the objects at a change, for the worker's thread. See `moment`."""
        return self._models.open(change, lambda: self.moment(change, check))

    def rejections(self, node: str, check: Callable[[], None]) -> Sequence[AttemptRejection]:
        """What a node rejected, the oldest first, for the worker's thread.

        Raises NotReady, BadInputError.
        """
        raise NotReady(f"{self.name} has no decisions")

    def record(self, pod: str, attempt: int) -> tuple[int, AttemptRecord]:
        """The change of an attempt, and its record. Raises NotReady, NoSuchObject."""
        raise tables.NoSuchObject("decision about pod", pod)

    def decision(self, pod: str, attempt: int) -> Decision:
        """The decision of an attempt. Raises what `record` raises."""
        change, record = self.record(pod, attempt)
        victims = pages.victims_of(self.timeline, change, record.nominated_node)
        return Decision(record=record, change=change, victims=victims)

    def verdict(self, pod: str, attempt: int, node: str) -> Computation[NodeVerdict]:
        """Raises NotReady, NoSuchObject."""
        raise tables.NoSuchObject("decision about pod", pod)


class FileSubject(Subject, ABC):
    """A subject that is read from files, in the background."""

    def __init__(self, name: str, remark: Remark) -> None:
        """``remark``: prints a line for the user; the worker's thread calls it."""
        super().__init__(name)
        self._remark = remark

    def start(self, worker: ThreadPoolExecutor) -> None:
        super().start(worker)
        worker.submit(self.load)

    def load(self) -> None:
        """Load now. A failure becomes the page's text, and a remark."""
        try:
            with ENGINE_LOCK.short():
                self._load()
            self._phase = READY
        except RunAborted:
            self._phase = FAILED
        except BadInputError as problem:
            self._fail(str(problem))
        except MemoryError:
            self._fail("out of memory: it is too large for this machine, or for its limit")
        except Exception as problem:  # noqa: BLE001 - the page shows it
            self._fail(internal_error(problem))

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._remark(text)

    def _fail(self, problem: str) -> None:
        self._problem, self._phase = problem, FAILED
        self._remark(f"{self.name} cannot be shown: {problem}")

    @abstractmethod
    def _load(self) -> None: ...


@final
class RunSubject(FileSubject):
    """A folder that `bayplan simulate --out` wrote."""

    kind = "run"
    has_model = True

    def __init__(self, folder: RunFolder, remark: Remark = no_remark) -> None:
        super().__init__(folder.path.name or str(folder.path), remark)
        self.folder = folder

    def _load(self) -> None:
        self._totals = self._summary()
        try:
            self.folder.settings()
        except PluginsNotAllowedError as problem:
            self._note(f"{problem}; until then, what-ifs and explanations of nodes are missing")
            self.has_model = False
        self._timeline = self._folded()

    def _folded(self) -> Timeline:
        """Raises RunFolderError, ConfigError; RunAborted when the page is closed."""
        with self.folder.reading_states() as log:
            first, origin = log.first, log.origin()
        kinds = group_kinds(self.folder.configuration().spec.pod_groups.kinds)
        fold = TimelineFold(origin, kinds)
        total_count = 0 if self._totals is None else self._totals.pods
        for number, (entry_count, item) in enumerate(self.folder.past()):
            if number % _ITEMS == 0:
                self._check()
                self._progress = (fold.pod_count, total_count)
            if entry_count == first.entry_count:
                fold.begin_at(first.record_count)
            try:
                fold.add(item, entry_count)
            except QuantityError as problem:
                raise BadInputError(f"{self.folder.path}: {problem}") from None
        return fold.timeline()

    def _check(self) -> None:
        """Raises RunAborted when the page is closed."""
        if self._is_stopped:
            raise RunAborted("the page was closed")

    def moment(self, change: int, check: Callable[[], None]) -> Moment:
        """The objects after the log's entries up to a change. The last change stands for the end of
        the run."""
        line = self.timeline
        config, registry, seed = self.folder.settings()
        with self.folder.reading_states() as log:
            if change == line.last_change:
                state = log.state_at(inf)
            else:
                state = log.state_after(int(line.changes.entries[change]))
        return Moment(
            objects_of(self.folder, state, self.name, float(line.seconds[change])),
            config,
            registry,
            seed=seed,
            scheduler_name=DEFAULT_SCHEDULER if self.folder.manifest().config is None else None,
        )

    def rejections(self, node: str, check: Callable[[], None]) -> Sequence[AttemptRejection]:
        return rejections_of(self.folder, node, check)

    def _summary(self) -> Totals | None:
        result = self.folder.result()
        if result is None:
            return None
        counts = result.counts
        return Totals(
            nodes=result.nodes,
            pods=counts.pods,
            placed=counts.placed,
            scheduled=counts.scheduled,
            unschedulable=counts.unschedulable,
            running=counts.running,
            gone=gone_text(counts),
        )

    @cached_property
    def _journal(self) -> Journal:
        return Journal(self.folder.path / JOURNAL)

    def record(self, pod: str, attempt: int) -> tuple[int, AttemptRecord]:
        change, line = pages.attempt_line(self.timeline, pod, attempt)
        return change, self._journal.attempt(line)

    def verdict(self, pod: str, attempt: int, node: str) -> Computation[NodeVerdict]:
        """Repeat the attempt in the background. Ask again until the phase is another one."""
        _, record = self.record(pod, attempt)
        computed = self.computations.ask(
            ("verdict", pod, attempt, node),
            lambda _: exact_verdict(attempt_of_run(self.folder, record, node)),
        )
        return computed.answer()


def exact_verdict(repeated: Repetition) -> NodeVerdict:
    """The verdict of a repeated attempt. Raises BadInputError if the attempt did not reach the
    pod."""
    if repeated.verdict is None:
        raise BadInputError("the repeated attempt did not reach the pod")
    return repeated.verdict


@final
class ClusterSubject(FileSubject):
    """Kubernetes objects of files, or of a live cluster at one moment. Their state is that of 0 s,
    before any pod is placed."""

    kind = "cluster"
    has_model = True

    def __init__(
        self,
        name: str,
        read: Callable[[], ClusterObjects],
        config: SchedulerConfig,
        registry: Registry,
        *,
        remark: Remark = no_remark,
        notes: Sequence[str] = (),
    ) -> None:
        """``name``: the name of the cluster, or the names of its files. ``read``: reads the
        objects; raises InputError. ``notes``: further notes for the page."""
        super().__init__(name, remark)
        self._read = read
        self._notes += notes
        self._config = config
        self._registry = registry
        #: See `Timeline.created`.
        self._created: Mapping[str, str] = {}
        #: Each object as it was created, and each change of it.
        self._changes: Sequence[ObjectChange] = ()

    def _load(self) -> None:
        for note in self._objects.notes:
            self._note(note)
        model = self.model(0, lambda: None).model
        scheduler = model.scheduler
        fold = TimelineFold(origin_of(scheduler), scheduler.pod_groups.kinds)
        for change in self._changes:
            fold.add(change)
        self._changes = ()
        line = fold.timeline()
        line = with_causes(line, causes_now(model, _TRIED_MAX))
        self._timeline = replace(line, created=self._created)

    @cached_property
    def _objects(self) -> ClusterPicture:
        """Raises InputError."""
        read = self._read()
        self._changes, self._created = read.changes, read.created
        return read.picture

    def model(self, change: int, check: Callable[[], None]) -> OpenMoment:
        return super().model(0, check)

    def moment(self, change: int, check: Callable[[], None]) -> Moment:
        """The objects, which are the same at each moment, because all changes of a cluster are at 0
        s."""
        return Moment(self._objects, self._config, self._registry, scheduler_name=DEFAULT_SCHEDULER)


def subject_of_files(
    sources: Sequence[InputSource],
    config: SchedulerConfig,
    registry: Registry,
    remark: Remark = no_remark,
) -> ClusterSubject:
    """The cluster of some files, which are read in the background."""
    name = ", ".join(Path(source).name or source for source in sources if isinstance(source, str))
    read = partial(objects_of_inputs, tuple(sources), name, api_features(config.gates))
    return ClusterSubject(name, read, config, registry, remark=remark)


class Query(Protocol):
    """The parameters of one request; see `server.Question`."""

    def text(self, name: str) -> str: ...
    def number(self, name: str, default: int) -> int: ...
    @property
    def subject(self) -> Subject: ...
    @property
    def state(self) -> State: ...
