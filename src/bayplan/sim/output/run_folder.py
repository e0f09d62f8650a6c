"""The folder of a run: its decisions, and the inputs that are needed to repeat it.

    summary.json     the object that --format json prints
    placements.csv   pod, node, bound_at, end: each pod that the run bound, and what became of it
    journal.jsonl    every decision
    inputs/          configuration, plugins and workload: enough to replay the run
    states/          the states before attempts: enough to repeat one attempt

Without summary.json the run was interrupted; the folder contains the decisions until then.

    states/000000.jsonl    a checkpoint, and the entries after it (engine/state_log.py)

A file of states ends when its entries take as many bytes as its checkpoint, and at least
`FILE_BYTES_MIN`. So all files together take at most twice the bytes of the entries, and the state
before any attempt is in one file. When the files take more than `TOTAL_BYTES_MAX`, the oldest files
are deleted.

A folder may come from somebody else. So only regular files inside it are read, and up to a size;
and the plugins of a run, which are code, are executed only if the user allows it (`RunFolder`).
"""

import csv
import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, final

import msgspec
from msgspec import Struct

from bayplan.engine.state_log import (
    AttemptStart,
    Entry,
    Head,
    PastState,
    StateLog,
    StatesError,
    decoded_head,
    encoded_entries,
    encoded_head,
    entries_in,
    state_before,
)
from bayplan.journal import AttemptRecord, FileSink, JournalError, Record, read
from bayplan.lazy_loader import built
from bayplan.problems import BadInputError
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

# ---- the states before attempts -------------------------------------------------------------


FILE_BYTES_MIN = 8 << 20
TOTAL_BYTES_MAX = 1 << 30
#: Entries that are encoded together.
_BATCH = 512


@final
class StateFiles:
    """Writes the files of one run. `put` is what a `StateLog` calls; call `close` at the end."""

    def __init__(
        self,
        folder: Path,
        *,
        file_bytes_min: int = FILE_BYTES_MIN,
        total_bytes_max: int = TOTAL_BYTES_MAX,
    ) -> None:
        """``folder``: it exists and is empty. Raises OSError."""
        self._folder = folder
        self._file_bytes_min = file_bytes_min
        self._total_bytes_max = total_bytes_max
        self._pending: list[Entry] = []
        self._state = PastState()
        self._record_count = 0
        #: Number of each file → its bytes, the oldest first.
        self._sizes: dict[int, int] = {}
        self._checkpoint_bytes = 0
        self._begin_file(0)

    def put(self, entry: Entry) -> None:
        """Write the next entry, some entries later. Raises OSError."""
        self._pending.append(entry)
        if len(self._pending) >= _BATCH:
            self._flush()

    def close(self) -> None:
        """Raises OSError."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        entries, self._pending = self._pending, []
        number = self._number
        self._write(entries)
        for entry in entries:
            self._state.add(entry)
            if isinstance(entry, AttemptStart):
                self._record_count = entry.record_count
        written = self._sizes[number] - self._checkpoint_bytes
        if written >= max(self._file_bytes_min, self._checkpoint_bytes):
            self._file.close()
            self._begin_file(number + 1)

    def _begin_file(self, number: int) -> None:
        self._number = number
        self._file = (self._folder / _file_name(number)).open("wb")
        head = encoded_head(Head(record_count=self._record_count))
        self._file.write(head)
        self._sizes[number] = len(head)
        self._write(list(self._state.entries()))
        self._checkpoint_bytes = self._sizes[number]
        while sum(self._sizes.values()) > self._total_bytes_max and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            (self._folder / _file_name(oldest)).unlink()
            del self._sizes[oldest]

    def _write(self, entries: list[Entry]) -> None:
        if entries:
            lines = encoded_entries(entries)
            self._file.write(lines)
            self._sizes[self._number] += len(lines)


def stored_state_before(
    folder: Path, uid: str, attempt: int, record_number: int
) -> tuple[PastState, AttemptStart] | None:
    """The state before an attempt; None: the files do not have the attempt.

    ``record_number``: the place of the attempt's record in the journal, from 0. Raises OSError,
    StatesError.
    """
    starts = [path for path in state_paths(folder) if _record_count(path) <= record_number]
    # The record of an attempt may be the first one after the next file began.
    for path in reversed(starts[-2:]):
        state = state_before(PastState(), entries_in(lines_of_regular_file(path)), uid, attempt)
        if state is not None:
            return state
    return None


def state_paths(folder: Path) -> list[Path]:
    """The files of states, in order."""
    return sorted(folder.glob("*.jsonl")) if folder.is_dir() else []


def _record_count(path: Path) -> int:
    try:
        return decoded_head(next(lines_of_regular_file(path), b"")).record_count
    except StatesError as problem:
        raise StatesError(f"{path}: {problem}") from None


def _file_name(number: int) -> str:
    return f"{number:06}.jsonl"


# ---- files of unknown origin ----------------------------------------------------------------


#: Of a manifest; of a summary or a workload.
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


class Manifest(Struct, frozen=True, kw_only=True):
    """How the run was started."""

    seed: int
    #: The configuration's text, None for the default one.
    config: str | None
    feature_gates: str
    #: Plugin files, by their paths inside the folder.
    plugins: tuple[str, ...] = ()
    #: Path inside the folder → SHA-256 of a file that a replay needs unchanged.
    digests: dict[str, str] = {}


class Inputs(Struct, frozen=True, kw_only=True):
    """The inputs of a run."""

    manifest: Manifest
    workload: Workload
    plugin_files: tuple[Path, ...]


@final
class RunFolder:
    """Writes or reads one run."""

    def __init__(
        self, path: Path, *, plugins: Sequence[Path] = (), allows_plugins: bool = False
    ) -> None:
        """``plugins``: files that the user named, for a repetition of the run in place of the
        copies in the folder. ``allows_plugins``: whether the copies may be executed, and the run's
        extenders be called."""
        self.path = path
        self.plugins = tuple(plugins)
        self.allows_plugins = allows_plugins

    # ---- writing --------------------------------------------------------------------------

    def start(
        self, manifest: Manifest, workload: Workload, plugin_files: Sequence[Path]
    ) -> "RunWriter":
        """The writer of a new run; it writes nothing before it is entered. Raises RunFolderError.

        ``manifest``: how to start the run; plugins and digests are filled in here.
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
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(("pod", "node", "bound_at", "end"))
                for name, pod in result.bound_pods():
                    writer.writerow((name, pod.node, pod.bound_at, pod.end))
            encoded = msgspec.json.format(msgspec.json.encode(result), indent=2)
            (self.path / SUMMARY).write_bytes(encoded + b"\n")

    def _has(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    # ---- reading --------------------------------------------------------------------------

    def journal(self) -> Iterator[Record]:
        """Every record. The last line of an interrupted run may be cut, and then it is no record.
        Raises RunFolderError."""
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
        try:
            for path in state_paths(self._inside(STATES)):
                self._inside(f"{STATES}/{path.name}")
            return stored_state_before(self.path / STATES, record.uid, record.attempt, number)
        except (OSError, StatesError) as problem:
            raise RunFolderError(f"{self.path / STATES}: {problem}") from None

    def entries(self) -> Iterator[Entry]:
        """All entries of the states, in order; each file begins with its checkpoint.

        Raises RunFolderError.
        """
        for path in state_paths(self._inside(STATES)):
            try:
                yield from entries_in(lines_of_regular_file(self._inside(f"{STATES}/{path.name}")))
            except (OSError, StatesError) as problem:
                raise RunFolderError(f"{path}: {problem}") from None

    def result(self) -> SimulationResult | None:
        """The result; None: the run was interrupted. Raises RunFolderError."""
        return self._decoded(SUMMARY, SimulationResult) if self._has(SUMMARY) else None

    def inputs(self) -> Inputs:
        """The inputs of the run. Raises RunFolderError."""
        manifest = self._decoded(MANIFEST, Manifest)
        for name in manifest.plugins:
            self._inside(name)
        for name, digest in manifest.digests.items():
            if _digest(self._read(name)) != digest:
                raise RunFolderError(f"{self.path / name}: was changed since the run")
        files = tuple(self.path / name for name in manifest.plugins)
        workload = self._decoded(_WORKLOAD, Workload)
        return Inputs(manifest=manifest, workload=workload, plugin_files=files)

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
    """A journal sink, and a log of states. Their failures name the folder.

    On entry it writes the inputs in place of an earlier run. Raises RunFolderError.
    """

    def __init__(self, folder: RunFolder, inputs: Mapping[str, bytes]) -> None:
        """``inputs``: path inside the folder → content."""
        self._folder = folder
        self._inputs = inputs
        #: For the scheduler of the run.
        self.states = StateLog(self._put)

    def __enter__(self) -> "RunWriter":
        path = self._folder.path
        with _writing(path):
            self._folder.clear()
            for name, content in self._inputs.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(content)
            self._file = (path / JOURNAL).open("wb")
            self._sink = FileSink(self._file)
            (path / STATES).mkdir()
            self._states = StateFiles(path / STATES)
        return self

    def __exit__(self, *_: object) -> None:
        with _writing(self._folder.path):
            self._file.close()
            self._states.close()

    def write(self, record: Record) -> None:
        """See `journal.Sink`."""
        with _writing(self._folder.path):
            self._sink.write(record)

    def _put(self, entry: Entry) -> None:
        try:
            self._states.put(entry)
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
    manifest: Manifest, workload: Workload, plugin_files: Sequence[Path]
) -> dict[str, bytes]:
    """The files of the inputs: path inside the folder → content."""
    # Each plugin file has a folder of its own, so that all files can keep their names.
    plugins = {f"{INPUTS}/plugin-{i}/{file.name}": file for i, file in enumerate(plugin_files)}
    contents = {name: file.read_bytes() for name, file in plugins.items()}
    contents[_WORKLOAD] = msgspec.json.encode(workload)
    digests = {name: _digest(content) for name, content in contents.items()}
    whole = msgspec.structs.replace(manifest, plugins=tuple(plugins), digests=digests)
    contents[MANIFEST] = msgspec.json.format(msgspec.json.encode(whole), indent=2)
    return contents


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
