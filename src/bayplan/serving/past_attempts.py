"""The state before an attempt of a running scheduler, for a process that repeats the attempt.

The newest entries of the state log stay in memory, at most `ENTRIES_MAX`, with the versions of
objects that they name; besides, the log has one reference to each object of the cluster. An answer
is written in parts, so that a large one does not hold up the scheduler.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, final

import msgspec
from msgspec import Struct

from bayplan.history.entries import (
    AttemptStart,
    Entry,
    LineWriter,
    StatesError,
    entries_in,
)
from bayplan.history.past_state import PastState, StateRing
from bayplan.journal import AttemptRecord, MemorySink

#: The path of the endpoint.
PATH = "/debug/attempt"
#: An attempt has two entries, and each change of an object has one.
ENTRIES_MAX = 20_000
#: Entries that are encoded at once, which takes some milliseconds.
_PART = 1000


class AttemptHead(Struct, frozen=True, kw_only=True):
    """The first line of an answer; the entries before the attempt follow, and its beginning."""

    record: AttemptRecord
    #: The effective configuration.
    config: Mapping[str, Any]
    seed: int
    #: Kinds that the API server does not have.
    absent: tuple[str, ...] = ()


@final
class PastAttempts:
    """The attempts of one scheduler that can be repeated."""

    def __init__(
        self,
        ring: StateRing,
        memory: MemorySink,
        *,
        config: Mapping[str, Any],
        seed: int,
        absent: Iterable[str],
    ) -> None:
        """``config``: the effective configuration. ``absent``: kinds that the API server does not
        have."""
        self._ring = ring
        self._memory = memory
        self._config = config
        self._seed = seed
        self._absent = tuple(absent)

    def parts(self, pod: str, attempt: int | None) -> Iterator[bytes] | None:
        """The parts of the answer about an attempt, the last one if ``attempt`` is None.

        None: the scheduler does not remember the attempt. ``pod``: "namespace/name".
        """
        record = self._record(pod, attempt)
        past = None if record is None else self._ring.before(record.uid, record.attempt)
        if record is None or past is None:
            return None
        head = AttemptHead(record=record, config=self._config, seed=self._seed, absent=self._absent)
        return _parts(head, *past)

    def _record(self, pod: str, attempt: int | None) -> AttemptRecord | None:
        for record in reversed(self._memory.records):
            if not isinstance(record, AttemptRecord) or record.pod != pod:
                continue
            if attempt in (None, record.attempt):
                return record
        return None


def _parts(head: AttemptHead, state: PastState, start: AttemptStart) -> Iterator[bytes]:
    yield msgspec.json.encode(head) + b"\n"
    entries, lines = state.entries(), LineWriter()
    while part := list(islice(entries, _PART)):
        yield lines.lines(part)
    yield lines.lines([start])


def read_parts(body: bytes) -> tuple[AttemptHead, PastState, AttemptStart]:
    """Decode the parts of `PastAttempts.parts`. Raises StatesError."""
    first, _, rest = body.partition(b"\n")
    try:
        head = msgspec.json.decode(first, type=AttemptHead)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise StatesError(str(problem)) from None
    state, last = PastState(), None
    for entry in entries_in(rest.splitlines()):
        state.add(entry)
        last = entry
    return head, state, _beginning(last)


def _beginning(last: Entry | None) -> AttemptStart:
    if not isinstance(last, AttemptStart):
        raise StatesError("the answer has no end")
    return last
