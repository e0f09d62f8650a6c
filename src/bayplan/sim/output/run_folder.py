"""The folder of a run: its decisions and its past, and the inputs that are needed to repeat it.

    run.json         configuration, seed and plugins of the run
    summary.json     the object that -o json prints
    placements.csv   pod, node, bound_at, end: each pod that the run bound, and what became of it
    journal.jsonl    every decision
    states/          what the scheduler learned and decided (history/state_files.py): the timeline,
                     the objects at any moment, and enough to repeat one attempt
    inputs/          the workload and copies of the plugins: only a repetition of the run reads the
                     workload

Without summary.json the run was interrupted; the folder contains the decisions until then.

A folder may come from somebody else. So only regular files inside it are read, and up to a size;
and the plugins of a run, which are code, are executed only if the user allows it (`RunFolder`).
"""

import errno
import hashlib
import os
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar, final

import msgspec
from msgspec import Struct

from bayplan.adapters.embedded.admission.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.answers.csv_text import csv_text
from bayplan.config import SchedulerConfig, config_from, load_config
from bayplan.config.kubernetes_versions import requested_version
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.history.entries import AttemptStart, Decision, Entry, StatesError, time_of
from bayplan.history.past_state import PastState
from bayplan.history.state_files import StateFiles, StoredLog
from bayplan.journal import AttemptRecord, FileSink, JournalError, Record, read
from bayplan.lazy_loader import built
from bayplan.plugins.registry import Registry, default_registry
from bayplan.problems import BadInputError, shown
from bayplan.regular_files import lines_of_regular_file, read_regular_file
from bayplan.sim.input.sources import (
    INPUTS,
    JOURNAL,
    MANIFEST,
    PLACEMENTS,
    RUN_FILES,
    STATES,
    SUMMARY,
)
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.result import SimulationResult

# ---- files of unknown origin ----------------------------------------------------------------


#: The bounds in bytes: of a manifest, and of a summary or a workload.
_MANIFEST_BYTES_MAX = 64 << 20
_DOCUMENT_BYTES_MAX = 2 << 30


# ---- the folder -----------------------------------------------------------------------------


T = TypeVar("T")

_WORKLOAD = f"{INPUTS}/workload.json"


class RunFolderError(BadInputError):
    """A folder cannot be written, or contains no run; the message names the folder and the
    reason."""


class PluginsNotAllowedError(RunFolderError):
    """The run needs code, or a program, of its own, and the user has not allowed it."""


class RunManifest(Struct, frozen=True, kw_only=True):
    """How the run was started."""

    seed: int
    #: The configuration's text, None for the default one.
    config: str | None
    feature_gates: str
    #: The version of kube-scheduler that the run answers as.
    kubernetes: str = ""
    #: Plugin files, by their paths inside the folder.
    plugins: tuple[str, ...] = ()
    #: Path inside the folder → SHA-256 of a file that a repetition needs unchanged.
    digests: dict[str, str] = {}
    #: The admission plugins that the API server of the run has.
    admission: PluginSet = DEFAULT_PLUGINS


class RunSettings(NamedTuple):
    """With what the scheduler of a run decides."""

    config: SchedulerConfig
    registry: Registry
    seed: int


@final
class RunFolder:
    """Writes or reads one run."""

    def __init__(
        self, path: Path, *, plugins: Sequence[Path] = (), allows_plugins: bool = False
    ) -> None:
        """``plugins``: files that the user named, to be executed in place of the copies in the
        folder. ``allows_plugins``: whether the copies may be executed, and the run's extenders be
        called."""
        self.path = path
        self.plugins = tuple(plugins)
        self.allows_plugins = allows_plugins

    # ---- writing --------------------------------------------------------------------------

    def start(
        self, manifest: RunManifest, workload: Workload, plugin_files: Sequence[Path]
    ) -> "RunWriter":
        """The writer of a new run; it writes nothing before it is entered. Raises RunFolderError.

        ``manifest``: how to start the run; what follows from the others is filled in here.
        """
        with _writing(self.path):
            return RunWriter(self, _contents(manifest, workload, plugin_files))

    def clear(self) -> None:
        """Remove the files of an earlier run. Raises RunFolderError."""
        there = [name for name in RUN_FILES if self._has(name)]
        if there and not self._has(MANIFEST):
            raise RunFolderError(
                f"{self.path}: holds {', '.join(there)}, and is no run; "
                "wanted a folder that is new, empty, or of an earlier run"
            )
        for name in there:
            if name in (INPUTS, STATES):
                shutil.rmtree(self.path / name)
            else:
                (self.path / name).unlink()

    def finish(self, result: SimulationResult) -> None:
        """Raises RunFolderError."""
        with _writing(self.path):
            with (self.path / PLACEMENTS).open("w", encoding="utf-8", newline="") as file:
                rows = ((n, p.node, p.bound_at, p.end) for n, p in result.bound_pods())
                file.write(csv_text(("pod", "node", "bound_at", "end"), rows))
            encoded = msgspec.json.format(msgspec.json.encode(result), indent=2)
            (self.path / SUMMARY).write_bytes(encoded + b"\n")

    def _has(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    # ---- reading --------------------------------------------------------------------------

    def journal(self) -> Iterator[Record]:
        """Every record of the run. The last line of an interrupted run may be cut; then it is no
        record. Raises RunFolderError."""
        count = 0
        try:
            lines = lines_of_regular_file(self._inside(JOURNAL))
            for record in read(lines if self._has(SUMMARY) else _whole(lines)):
                yield record
                count += 1
        except OSError as problem:
            raise self._not_a_run(problem) from None
        except UnicodeDecodeError:
            raise RunFolderError(f"{self.path / JOURNAL}: line {count + 1}: not UTF-8") from None
        except JournalError as problem:
            raise RunFolderError(f"{self.path / JOURNAL}: {problem}") from None

    def state_before(self, record: AttemptRecord) -> tuple[PastState, AttemptStart] | None:
        """The state before an attempt; None: the folder does not have it. Raises RunFolderError."""
        numbered = enumerate(self.journal())
        number = next((i for i, each in numbered if each == record), None)
        if number is None:
            return None
        with self.reading_states() as log:
            return log.before(record.uid, record.attempt, number)

    @contextmanager
    def reading_states(self) -> "Iterator[StoredLog]":
        """The log of states. Failures to read it raise RunFolderError."""
        folder = self._inside(STATES)
        try:
            log = StoredLog(folder)
            for path in log.paths:
                self._inside(f"{STATES}/{path.name}")
            yield log
        except (OSError, StatesError) as problem:
            raise RunFolderError(f"{folder}: {problem}") from None

    def past(self) -> Iterator[tuple[int, Entry | Record]]:
        """All that happened, in order: the entries of the log, and the journal's records in place
        of the decisions. Each with the number of entries up to it (`StoredLog.state_after`).

        Raises RunFolderError.
        """
        end_seconds = self.end_seconds()
        with self.reading_states() as log:
            head = log.first
            records, count = islice(self.journal(), head.record_count, None), head.entry_count
            for count, entry in log.numbered_entries():
                if (time_of(entry) or 0.0) > end_seconds:
                    break
                # The decisions of a checkpoint are those of records that are left out.
                if not isinstance(entry, Decision):
                    yield count, entry
                elif count > head.entry_count and (record := next(records, None)) is not None:
                    yield count, record
            for record in records:
                yield count, record

    def end_seconds(self) -> float:
        """The end of the run; of an interrupted one, its last decision. Raises RunFolderError."""
        result = self.result()
        if result is not None:
            return result.simulated_seconds
        last = deque(self.journal(), maxlen=1)
        return last[0].at_seconds if last else 0.0

    def result(self) -> SimulationResult | None:
        """The result; None: the run was interrupted. Raises RunFolderError."""
        if self._has(SUMMARY):
            return self._decoded(SUMMARY, SimulationResult)
        self._read(MANIFEST)  # a folder without one is no run that was interrupted
        return None

    def manifest(self) -> RunManifest:
        """How the run was started. Raises RunFolderError."""
        manifest = self._decoded(MANIFEST, RunManifest)
        for name in manifest.plugins:
            self._inside(name)
        return manifest

    def workload(self) -> Workload:
        """The workload, to repeat the run. Raises RunFolderError."""
        self._check(_WORKLOAD, self.manifest())
        return self._decoded(_WORKLOAD, Workload)

    def configuration(self) -> SchedulerConfig:
        """The configuration of the run. Raises RunFolderError, ConfigError."""
        manifest, source = self.manifest(), str(self.path / MANIFEST)
        version, gates = requested_version(manifest.kubernetes, source), manifest.feature_gates
        if manifest.config is None:
            return config_from(DEFAULT_CONFIG, source, gates, kubernetes=version)
        return load_config(manifest.config, source, gates, kubernetes=version)

    def settings(self) -> RunSettings:
        """With what the scheduler of the run decides. Loads its plugins, if the user allows it.

        Raises RunFolderError (PluginsNotAllowedError), ConfigError.
        """
        manifest, config = self.manifest(), self.configuration()
        extenders = [shown(each.url_prefix) for each in config.spec.extenders]
        if extenders and not self.allows_plugins:
            raise PluginsNotAllowedError(
                f"{self.path}: the run calls the extenders {', '.join(extenders)}; --allow-plugins "
                f"calls them again"
            )
        if not manifest.plugins or self.plugins:
            return RunSettings(config, default_registry(self.plugins), manifest.seed)
        if not self.allows_plugins:
            names = ", ".join(shown(Path(name).name) for name in manifest.plugins)
            raise PluginsNotAllowedError(
                f"{self.path}: the run has the plugins {names}, which are code; --allow-plugins "
                f"executes the copies in the folder, --plugin FILE.py a file of yours"
            )
        for name in manifest.plugins:
            self._check(name, manifest)
        files = tuple(self.path / name for name in manifest.plugins)
        return RunSettings(config, default_registry(files), manifest.seed)

    def _check(self, name: str, manifest: RunManifest) -> None:
        """Raises RunFolderError for a file that was changed."""
        if _digest(self._read(name)) != manifest.digests.get(name):
            raise RunFolderError(f"{self.path / name}: was changed since the run")

    def _decoded(self, name: str, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self._read(name), type=built(kind))
        except RecursionError:
            raise RunFolderError(f"{self.path / name}: nested too deep") from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise RunFolderError(f"{self.path / name}: {problem}") from None

    def _read(self, name: str) -> bytes:
        bytes_max = _MANIFEST_BYTES_MAX if name == MANIFEST else _DOCUMENT_BYTES_MAX
        try:
            return read_regular_file(self._inside(name), bytes_max)
        except OSError as problem:
            raise self._not_a_run(problem) from None

    def _inside(self, name: str) -> Path:
        """The path of a file of the run. Raises RunFolderError for one that leads elsewhere."""
        path = self.path / name
        try:
            is_inside = path.resolve().is_relative_to(self.path.resolve())
        except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL in the name
            is_inside = False
        if not is_inside:
            raise RunFolderError(f"{self.path}: {name} leads out of the folder of the run")
        return path

    def _not_a_run(self, problem: OSError) -> RunFolderError:
        if problem.errno in (errno.EINVAL, errno.EISDIR, errno.EFBIG):
            return RunFolderError(f"{problem.filename}: cannot be read: {problem.strerror}")
        return RunFolderError(
            f"{self.path}: this folder contains no run ({problem.strerror}: {problem.filename}); "
            f"wanted a folder that `bayplan simulate --out` wrote"
        )


def _whole(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines that were written to their end."""
    return (line for line in lines if line.endswith(b"\n"))


def is_run(path: Path) -> bool:
    """Whether a folder holds a run, also one that cannot be read."""
    return os.path.lexists(path / MANIFEST)


@final
class RunWriter:
    """A journal sink, and where the entries of the log of states go. Failures name the folder.

    On entry it writes the inputs in place of an earlier run. Raises RunFolderError.
    """

    def __init__(self, folder: RunFolder, inputs: Mapping[str, bytes]) -> None:
        """``inputs``: path inside the folder → content."""
        self._folder = folder
        self._inputs = inputs
        self._writing = partial(_writing, folder.path)
        self._states = StateFiles(folder.path / STATES, writing=self._writing)
        #: Takes the next entry of the log of states, for a `Simulation`. Raises RunFolderError.
        self.put = self._states.put

    def __enter__(self) -> "RunWriter":
        path = self._folder.path
        with self._writing():
            self._folder.clear()
            for name, content in self._inputs.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(content)
            self._file = (path / JOURNAL).open("wb")
            self._sink = FileSink(self._file)
            (path / STATES).mkdir()
            self._states.begin()
        return self

    def __exit__(self, *_: object) -> None:
        with self._writing():
            self._file.close()
            self._states.close()

    def write(self, record: Record) -> None:
        """See `journal.Sink`."""
        try:
            self._sink.write(record)
        except OSError as problem:
            raise _unwritable(self._folder.path, problem) from None


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise _unwritable(folder, problem) from None


def _unwritable(folder: Path, problem: OSError) -> RunFolderError:
    return RunFolderError(f"{folder}: cannot be written: {problem.strerror}")


def _contents(
    manifest: RunManifest, workload: Workload, plugin_files: Sequence[Path]
) -> dict[str, bytes]:
    """The files of the inputs: path inside the folder → content."""
    # Each plugin file has a folder of its own, so that all files can keep their names.
    plugins = {f"{INPUTS}/plugin-{i}/{file.name}": file for i, file in enumerate(plugin_files)}
    contents = {name: file.read_bytes() for name, file in plugins.items()}
    contents[_WORKLOAD] = msgspec.json.encode(workload)
    digests = {name: _digest(content) for name, content in contents.items()}
    whole = msgspec.structs.replace(
        manifest, plugins=tuple(plugins), digests=digests, admission=workload.admission
    )
    contents[MANIFEST] = msgspec.json.format(msgspec.json.encode(whole), indent=2)
    return contents


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
