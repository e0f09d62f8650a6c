"""The journal: typed records of all decisions.

A record of an attempt holds which plugins rejected how many nodes and why, the scores of the best
nodes plugin by plugin, and what broke the tie. All other details can be computed again: replay the
recorded inputs up to that attempt. Records carry virtual or monotonic time only, so the digest of a
run is a function of its inputs. Records are immutable and share what is equal; the garbage
collector does not track them, because they cannot be part of a cycle.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import BinaryIO, Final, Protocol, final

import msgspec
from msgspec import Struct

#: Prefix of the message of an attempt, or the text of a note, that a bug of Bayplan ended.
BUG_PREFIX: Final = "bug in the scheduler"
#: `NoteRecord.kind` of a bug of Bayplan.
BUG_NOTE: Final = "bug"


class RejectionCount(Struct, frozen=True, gc=False):
    """How many nodes one plugin rejected with one code for one reason."""

    plugin: str
    code: str
    reason: str
    nodes: int


class PluginScore(Struct, frozen=True, gc=False):
    plugin: str
    raw: int
    normalized: int
    weighted: int


class NodeScore(Struct, frozen=True, gc=False, omit_defaults=True):
    """One node's row of the score table."""

    node: str
    total: int
    plugins: tuple[PluginScore, ...]
    #: Scores outside the total: of sources and tie-break keys.
    read: tuple[PluginScore, ...] = ()


class TieBreakStep(Struct, frozen=True, gc=False):
    """One tie-break key that was compared: how many nodes tied before and after it."""

    key: str
    equal_count: int
    left_count: int


class AttemptRecord(Struct, frozen=True, gc=False, tag="attempt", omit_defaults=True, kw_only=True):
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
    #: The best nodes, best first; ties in tie-break order.
    scores: tuple[NodeScore, ...] = ()
    #: Remarks on the score graph, such as sources that were skipped.
    score_notes: tuple[str, ...] = ()
    #: The tie-break keys that were compared, in order.
    tie_break: tuple[TieBreakStep, ...] = ()
    #: How many nodes were equal in total and by all keys, and which of them was taken.
    tied_count: int = 0
    tied_index: int = 0
    nominated_node: str = ""
    #: The plugin that rejected the pod as a whole or failed.
    plugin: str = ""

    @property
    def is_without_node(self) -> bool:
        """Whether no node admitted the pod. A member of a group that had a node in an attempt which
        placed none is unschedulable, too."""
        return self.result == "unschedulable" and not self.feasible_count


class BindingRecord(Struct, frozen=True, gc=False, tag="binding", omit_defaults=True, kw_only=True):
    """The result of a pod's binding: bound or failed."""

    at_seconds: float
    pod: str
    uid: str
    node: str
    result: str
    message: str = ""
    #: For a failed binding: the plugin that failed and the code of its status.
    plugin: str = ""
    code: str = ""
    #: A Permit plugin rejected the node; the pod now waits for an event.
    is_rejected: bool = False


class GateRecord(Struct, frozen=True, gc=False, tag="gate", omit_defaults=True, kw_only=True):
    """A PreEnqueue plugin keeps a pod out of activeQ."""

    at_seconds: float
    pod: str
    uid: str
    plugin: str
    message: str = ""
    #: "Error" if the plugin failed; absent if the plugin rejected the pod.
    code: str = ""


class NoteRecord(Struct, frozen=True, gc=False, tag="note", omit_defaults=True, kw_only=True):
    """Other remarks: a plugin's event, a hint that raised, a bug that ended an attempt."""

    at_seconds: float
    subject: str
    text: str
    #: The plugin, if the note is about a plugin that failed.
    plugin: str = ""
    #: `BUG_NOTE` for a bug of Bayplan; "" for all other notes.
    kind: str = ""


class GroupRecord(Struct, frozen=True, gc=False, tag="group", omit_defaults=True, kw_only=True):
    """One attempt at a pod group, or another change of the whole group."""

    at_seconds: float
    group: str  # namespace/name
    api_group: str
    #: placed, unschedulable, error: the result of an attempt. short: no attempt, members are
    #: missing. given back: members had nodes and had to release them. timed out.
    result: str
    attempt: int = 0
    min_member: int = 1
    #: Members that had a node before this attempt.
    assigned: int = 0
    #: Members that got a node in this attempt.
    fitting: int = 0
    #: The topology domain that was chosen.
    domain: str = ""
    message: str = ""


Record = AttemptRecord | BindingRecord | GateRecord | GroupRecord | NoteRecord


def subject_of(record: Record) -> str:
    """The subject of a record: "namespace/name" of a pod, or the `group_subject` of a group."""
    if isinstance(record, NoteRecord):
        return record.subject
    return group_subject(record.group) if isinstance(record, GroupRecord) else record.pod


_OF_GROUPS = "podgroup "


def group_subject(group: str) -> str:
    """``group``: its namespace/name."""
    return f"{_OF_GROUPS}{group}"


def is_group(subject: str) -> bool:
    """Whether a subject names a group."""
    return subject.startswith(_OF_GROUPS)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


class Sink(Protocol):
    """Where records go."""

    def write(self, record: Record, /) -> None: ...


class JournalError(ValueError):
    """A journal that cannot be read; the message names the line."""


@final
class Journal:
    """Writes each record to every sink."""

    def __init__(self, sinks: Iterable[Sink] = ()) -> None:
        #: Only this class writes.
        self.sinks = list(sinks)
        #: Whether there is a sink. Without one, callers need not make records.
        self.is_recording = bool(self.sinks)

    def add(self, sink: Sink) -> None:
        """Hand the records from now on to a further sink."""
        self.sinks.append(sink)
        self.is_recording = True

    def write(self, record: Record) -> None:
        for sink in self.sinks:
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
        #: See `Sink.write`. Called at every attempt, so it is no function of Python.
        self.write: Callable[[Record], None] = self.records.append


@final
class DigestSink:
    """A hash over all records: equal runs have equal digests."""

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
        except (msgspec.MsgspecError, RecursionError) as problem:
            raise JournalError(f"line {number}: {problem}") from None
