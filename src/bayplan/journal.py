"""The journal: typed records of everything decided.

The cycle's own arrays are the explanation of a decision; a record keeps what a person asks first:
who rejected how many nodes and why, the best nodes' scores plugin by plugin, what broke the tie.
Anything finer is answered by replaying the recorded inputs up to that attempt. Records carry
virtual or monotonic time only, so that the digest of a run is a function of its inputs.
"""

import hashlib
from collections import deque
from collections.abc import Iterable
from typing import BinaryIO, Final, Protocol, final

import msgspec
from msgspec import Struct

#: Begins the message of an attempt, and the text of a note, that a bug of Bayplan ended.
BUG_PREFIX: Final = "bug in the scheduler"


class RejectionCount(Struct, frozen=True):
    """How many nodes one plugin rejected with one code for one reason."""

    plugin: str
    code: str
    reason: str
    nodes: int


class PluginScore(Struct, frozen=True):
    plugin: str
    raw: int
    normalized: int
    weighted: int


class NodeScore(Struct, frozen=True, omit_defaults=True):
    """One node's line of the score table."""

    node: str
    total: int
    plugins: tuple[PluginScore, ...]
    #: Of plugins that others read, or that are tie-break keys: no part of the total.
    read: tuple[PluginScore, ...] = ()


class TieBreakStep(Struct, frozen=True):
    """A tie-break key that was compared: how many nodes were equal, and how many it left."""

    key: str
    equal_count: int
    left_count: int


class AttemptRecord(Struct, frozen=True, tag="attempt", omit_defaults=True, kw_only=True):
    """One attempt at one pod, from PreFilter to Permit."""

    at_seconds: float
    pod: str  # namespace/name
    uid: str
    profile: str
    attempt: int
    #: scheduled, waiting (at Permit), unschedulable, error
    result: str
    node: str = ""
    message: str = ""
    node_count: int = 0
    feasible_count: int = 0
    rejections: tuple[RejectionCount, ...] = ()
    #: The best nodes, best first, ties in the order of the draw.
    scores: tuple[NodeScore, ...] = ()
    #: What is worth knowing about how plugins read each other's scores.
    score_notes: tuple[str, ...] = ()
    #: The tie-break keys that were compared, in order.
    tie_break: tuple[TieBreakStep, ...] = ()
    #: Among how many nodes was drawn, and which: equal in total and by all keys.
    tied_count: int = 0
    tied_index: int = 0
    nominated_node: str = ""
    #: The plugin that rejected the pod as a whole or failed.
    plugin: str = ""


class BindingRecord(Struct, frozen=True, tag="binding", omit_defaults=True, kw_only=True):
    """How a pod's binding ended: bound or failed."""

    at_seconds: float
    pod: str
    uid: str
    node: str
    result: str
    message: str = ""
    #: Of a binding that failed: the plugin that ended it, and the code of its answer.
    plugin: str = ""
    code: str = ""
    #: A plugin at Permit rejected the node, and the pod waits for an event.
    is_rejected: bool = False


class GateRecord(Struct, frozen=True, tag="gate", omit_defaults=True, kw_only=True):
    """A PreEnqueue plugin keeps a pod out of the queue."""

    at_seconds: float
    pod: str
    uid: str
    plugin: str
    message: str = ""
    #: "Error" where the plugin failed; left out where it rejected the pod.
    code: str = ""


class NoteRecord(Struct, frozen=True, tag="note", omit_defaults=True, kw_only=True):
    """Anything else worth keeping: a plugin's event, a hint that raised, a bug that failed an
    attempt."""

    at_seconds: float
    subject: str
    text: str
    #: The plugin that failed, where the note is about that.
    plugin: str = ""


class GroupRecord(Struct, frozen=True, tag="group", omit_defaults=True, kw_only=True):
    """One attempt at a group of pods, or what else became of it as a whole."""

    at_seconds: float
    group: str  # namespace/name
    api_group: str
    #: placed, unschedulable, error: how an attempt ended; short: it is not tried, for members are
    #: missing; given back: its members had nodes, and may not keep them; timed out.
    result: str
    attempt: int = 0
    min_member: int = 1
    #: Members that held a node before.
    assigned: int = 0
    #: Members that found one in this attempt.
    fitting: int = 0
    #: Value of the topology key whose nodes were taken.
    domain: str = ""
    message: str = ""


Record = AttemptRecord | BindingRecord | GateRecord | GroupRecord | NoteRecord


def subject_of(record: Record) -> str:
    """Whom a record is about: "namespace/name" of a pod, as a rule; of a group, `group_subject`."""
    if isinstance(record, NoteRecord):
        return record.subject
    return group_subject(record.group) if isinstance(record, GroupRecord) else record.pod


_OF_GROUPS = "podgroup "


def group_subject(group: str) -> str:
    """``group``: its namespace/name."""
    return f"{_OF_GROUPS}{group}"


def is_group(subject: str) -> bool:
    """Whether it is a group's, not a pod's."""
    return subject.startswith(_OF_GROUPS)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


class Sink(Protocol):
    """Where records go."""

    def write(self, record: Record) -> None: ...


class JournalError(ValueError):
    """A journal that cannot be read; the message names the line."""


@final
class Journal:
    """Hands each record to every sink. Without sinks nothing need be recorded."""

    def __init__(self, sinks: Iterable[Sink] = ()) -> None:
        self._sinks = list(sinks)

    def add(self, sink: Sink) -> None:
        """Hand the records from now on to a further sink."""
        self._sinks.append(sink)

    @property
    def is_recording(self) -> bool:
        """Whether anybody reads: spares making records."""
        return bool(self._sinks)

    def write(self, record: Record) -> None:
        for sink in self._sinks:
            sink.write(record)


@final
class FileSink:
    """JSON lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, record: Record) -> None:
        self._file.write(_encoder.encode(record) + b"\n")


@final
class MemorySink:
    """The newest records, in memory."""

    def __init__(self, length_max: int | None = None) -> None:
        self.records: deque[Record] = deque(maxlen=length_max)

    def write(self, record: Record) -> None:
        self.records.append(record)

    def records_of(self, uid: str) -> list[Record]:
        """Everything recorded about one pod, oldest first."""
        return [r for r in self.records if getattr(r, "uid", None) == uid]


@final
class DigestSink:
    """A hash over everything decided: equal runs have equal digests."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def write(self, record: Record) -> None:
        self._hash.update(_encoder.encode(record))

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def read(lines: Iterable[bytes]) -> Iterable[Record]:
    """Records of a journal file. Raises JournalError."""
    for number, line in enumerate(lines, 1):
        try:
            yield _decoder.decode(line)
        except msgspec.MsgspecError as problem:
            raise JournalError(f"line {number}: {problem}") from None
