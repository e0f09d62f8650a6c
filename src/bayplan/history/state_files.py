"""The files of a log of states: how a run writes them, and how a reader finds a moment in them.

    states/000000.jsonl    a head, a checkpoint, and the entries after it

A file ends when its entries take as many bytes as its checkpoint, and at least `FILE_BYTES_MIN`. So
all files together take at most twice the bytes of the entries, and any state is in one file. When
the files take more than `TOTAL_BYTES_MAX`, the oldest files are deleted.

A file begins with an attempt for which the scheduler has learned of all changes: then the state
before any later attempt of the file is the checkpoint and entries of this file. Where there are no
such attempts, a file ends when it is twice as long.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import final

from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import POD
from bayplan.history.entries import (
    AttemptStart,
    Decision,
    Entry,
    Head,
    LineWriter,
    ObjectChange,
    Origin,
    StatesError,
    decoded_head,
    encoded_head,
    entries_in,
    time_of,
)
from bayplan.history.past_state import PastState, state_before
from bayplan.ports import EventType
from bayplan.regular_files import lines_of_regular_file

FILE_BYTES_MIN = 8 << 20
TOTAL_BYTES_MAX = 1 << 30
#: The number of lines that are written together.
_BATCH = 512


# ---- writing --------------------------------------------------------------------------------


@final
class StateFiles:
    """Writes the files of one run, a block of entries at a time. Call `begin` first, and `close` at
    the end."""

    def __init__(
        self,
        folder: Path,
        *,
        writing: Callable[[], AbstractContextManager[object]] = nullcontext,
        file_bytes_min: int = FILE_BYTES_MIN,
        total_bytes_max: int = TOTAL_BYTES_MAX,
    ) -> None:
        """``folder``: it exists and is empty when `begin` is called. ``writing``: surrounds each
        write, and may turn an OSError into another exception."""
        self._folder = folder
        self._writing = writing
        self._file_bytes_min = file_bytes_min
        self._total_bytes_max = total_bytes_max
        #: Entries that are not in the file yet.
        self._pending: list[Entry] = []
        self._lines = LineWriter()
        self._state = PastState()
        self._seconds, self._entry_count, self._record_count = 0.0, 0, 0
        #: Number of each file → its bytes, the oldest first.
        self._sizes: dict[int, int] = {}
        self._is_full = False

    def begin(self) -> None:
        """Begin the first file. Raises OSError."""
        self._begin_file(0)

    def put(self, entry: Entry) -> None:
        """Write the next entry. It reaches the file together with later ones. Raises OSError."""
        if self._is_full and isinstance(entry, AttemptStart) and not entry.learned_versions:
            with self._writing():
                self._end_file()
        self._pending.append(entry)
        if len(self._pending) >= _BATCH:
            with self._writing():
                self._flush()
                if self._bytes >= 2 * self._bytes_max:
                    self._end_file()

    def close(self) -> None:
        """Raises OSError."""
        self._flush()
        self._file.close()

    @property
    def _bytes(self) -> int:
        """The bytes of the entries of this file, without those that are not written yet."""
        return self._sizes[self._number] - self._checkpoint_bytes

    @property
    def _bytes_max(self) -> int:
        return max(self._file_bytes_min, self._checkpoint_bytes)

    def _flush(self) -> None:
        """Write the pending entries as one block."""
        entries, self._pending = self._pending, []
        self._state.add(*entries)
        self._entry_count += len(entries)
        for entry in entries:
            if isinstance(entry, Decision):
                self._record_count += 1
            elif not isinstance(entry, Origin):
                self._seconds = entry.at_seconds or self._seconds
        self._write(self._lines.lines(entries))
        self._is_full = self._bytes >= self._bytes_max

    def _write(self, lines: bytes) -> None:
        self._file.write(lines)
        self._sizes[self._number] += len(lines)

    def _end_file(self) -> None:
        self.close()
        self._begin_file(self._number + 1)

    def _begin_file(self, number: int) -> None:
        self._number = number
        # The file gets its name last, so that a reader does not take a part of a checkpoint for the
        # whole.
        unfinished = self._folder / f"{number:06}.new"
        self._file = unfinished.open("wb")
        checkpoint = list(self._state.entries(self._seconds))
        head = encoded_head(
            Head(
                at_seconds=self._seconds,
                entry_count=self._entry_count,
                record_count=self._record_count,
                checkpoint_count=len(checkpoint),
            )
        )
        self._sizes[number] = 0
        self._checkpoint_bytes = 0
        self._lines.forget()
        self._write(head + self._lines.lines(checkpoint))
        self._file.flush()
        unfinished.rename(self._folder / f"{number:06}.jsonl")
        self._checkpoint_bytes = self._sizes[number]
        self._is_full = False
        while sum(self._sizes.values()) > self._total_bytes_max and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            (self._folder / f"{oldest:06}.jsonl").unlink()
            del self._sizes[oldest]


# ---- reading --------------------------------------------------------------------------------


@final
class StoredLog:
    """The files of one run, for a reader. Methods raise OSError and StatesError."""

    def __init__(self, folder: Path) -> None:
        self._paths = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []

    @property
    def paths(self) -> Sequence[Path]:
        """The files, in order."""
        return self._paths

    @cached_property
    def heads(self) -> Sequence[Head]:
        """The heads of the files, in order."""
        return [_head(path) for path in self._paths]

    @property
    def first(self) -> Head:
        """The head of the oldest file."""
        if not self.heads:
            raise StatesError("there is no file of states")
        return self.heads[0]

    def origin(self) -> Origin:
        """The scheduler of the log."""
        entry = next(self._entries(0), None) if self._paths else None
        if not isinstance(entry, Origin):
            raise StatesError("wanted a log that begins with its scheduler")
        return entry

    def numbered_entries(self) -> Iterator[tuple[int, Entry]]:
        """All entries in order, each with the number of entries up to it; see `state_after`.

        The checkpoint of the oldest file comes first, with the number of the entries before it.
        """
        for index, head in enumerate(self.heads):
            entries = self._entries(index)
            for entry in islice(entries, head.checkpoint_count):
                if index == 0:
                    yield head.entry_count, entry
            yield from enumerate(entries, head.entry_count + 1)

    def before(
        self, uid: str, attempt: int, record_number: int
    ) -> tuple[PastState, AttemptStart] | None:
        """The state before an attempt; None: the files do not have the attempt.

        ``record_number``: the place of the attempt's record in the journal, from 0.
        """
        starts = [i for i, head in enumerate(self.heads) if head.record_count <= record_number]
        # The record of an attempt may be the first one after the next file began.
        for index in reversed(starts[-2:]):
            state = state_before(PastState(), self._entries(index), uid, attempt)
            if state is not None:
                return state
        return None

    def state_after(self, entry_count: int) -> PastState:
        """The state after the first entries of the log."""
        index = self._last(lambda head: head.entry_count <= entry_count)
        head = self.heads[index]
        count = head.checkpoint_count + entry_count - head.entry_count
        return _sum(islice(self._entries(index), count))

    def state_at(self, seconds: float) -> PastState:
        """The state after all changes of a time."""
        index = self._last(lambda head: head.at_seconds <= seconds)
        return _sum(_until(self._entries(index), seconds))

    def state_at_start(self) -> PastState:
        """The objects of 0 s as if no attempt had been made: the first attempts are made while
        further objects are created."""
        if self.first.entry_count:
            raise StatesError("the beginning of the run is no longer in the log, which is too long")
        state, has_begun = PastState(), False
        for _, entry in self.numbered_entries():
            if (time_of(entry) or 0.0) > 0.0:
                break
            has_begun = has_begun or isinstance(entry, AttemptStart)
            if not (has_begun and _follows_from_attempt(entry)):
                state.add(entry)
        return state

    def _last(self, begins_before: Callable[[Head], bool]) -> int:
        """The last file that begins before a moment."""
        if not begins_before(self.first):
            raise StatesError(
                f"this moment is no longer in the log, which begins at {self.first.at_seconds:g} s"
            )
        return sum(map(begins_before, self.heads)) - 1

    def _entries(self, index: int) -> Iterator[Entry]:
        path = self._paths[index]
        # The last line of a process that was killed may be cut.
        lines = (line for line in lines_of_regular_file(path) if line.endswith(b"\n"))
        try:
            yield from entries_in(lines)
        except StatesError as problem:
            raise StatesError(f"{path}: {problem}") from None


def _follows_from_attempt(entry: Entry) -> bool:
    """Whether an entry after an attempt is a decision, or changes what attempts change."""
    if isinstance(entry, ObjectChange):
        return entry.type is not EventType.ADDED and entry.kind in (POD, RESOURCE_CLAIM)
    return isinstance(entry, Decision)


def _head(path: Path) -> Head:
    try:
        return decoded_head(next(lines_of_regular_file(path), b""))
    except StatesError as problem:
        raise StatesError(f"{path}: {problem}") from None


def _sum(entries: Iterator[Entry]) -> PastState:
    state = PastState()
    for entry in entries:
        state.add(entry)
    return state


def _until(entries: Iterator[Entry], seconds: float) -> Iterator[Entry]:
    """The entries up to a time."""
    return takewhile(lambda entry: (time_of(entry) or 0.0) <= seconds, entries)
