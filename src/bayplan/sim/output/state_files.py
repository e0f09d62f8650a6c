"""The states of a run in files, so that one attempt can be repeated without the run before it.

    states/000000.jsonl    a checkpoint, and the entries after it (engine/state_log.py)

A file ends when its entries take as many bytes as its checkpoint, and at least `FILE_BYTES_MIN`. So
all files together take at most twice the bytes of the entries, and the state before any attempt is
in one file. When the files take more than `TOTAL_BYTES_MAX`, the oldest files are deleted.
"""

from pathlib import Path
from typing import final

from bayplan.engine.state_lines import (
    Head,
    StatesError,
    decoded_head,
    encoded_entries,
    encoded_head,
    entries_in,
)
from bayplan.engine.state_log import Begun, Entry, PastState, state_before

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
            if isinstance(entry, Begun):
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
) -> tuple[PastState, Begun] | None:
    """The state before an attempt; None: the files do not have the attempt.

    ``record_number``: the place of the attempt's record in the journal, from 0. Raises OSError,
    StatesError.
    """
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    starts = [path for path in files if _record_count(path) <= record_number]
    # The record of an attempt may be the first one after the next file began.
    for path in reversed(starts[-2:]):
        with path.open("rb") as file:
            state = state_before(PastState(), entries_in(file), uid, attempt)
        if state is not None:
            return state
    return None


def _record_count(path: Path) -> int:
    with path.open("rb") as file:
        try:
            return decoded_head(file.readline()).record_count
        except StatesError as problem:
            raise StatesError(f"{path}: {problem}") from None


def _file_name(number: int) -> str:
    return f"{number:06}.jsonl"
