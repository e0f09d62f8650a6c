"""StateLog: what a scheduler learned and decided, in order, so that one attempt can be repeated.

An attempt is a function of the objects that the scheduler has read, of its own decisions that the
API server has not reported back (assumed pods, nominations), of the number of the attempt and of
where a search of a sample starts. The log has an entry for each of these, and `PastState` adds
entries up: the state before an attempt is a checkpoint plus the entries since. State that a plugin
holds in memory is not in the log, so a reader compares the repeated attempt with its record.

For files and for other processes the entries are lines of JSON.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, final

import msgspec
from msgspec import Raw, Struct

from bayplan.api.objects import POD, ApiObject, DecodeError, Pod, restored
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord, BindingRecord, Record
from bayplan.ports import EventType, WatchEvent
from bayplan.queue.entry import QueuedPodGroupInfo


class AttemptStart(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """An attempt begins: at a pod, or at the members of a group."""

    at_seconds: float
    #: Uid → number of the attempt.
    attempts: Mapping[str, int]
    #: Profile → where the search of a sample starts (percentageOfNodesToScore).
    sampling_starts: Mapping[str, int] = {}
    #: How many records the journal had.
    record_count: int = 0


class Decision(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the scheduler knows of a pod before the API server reports it."""

    uid: str
    #: The node on which the pod is assumed; "": on none.
    node: str = ""
    nominated_node: str = ""


#: One entry of a log.
Entry = WatchEvent | Decision | AttemptStart


@final
class StateLog:
    """Makes the entries of one scheduler. It is also a sink of the scheduler's journal."""

    def __init__(self, put: Callable[[Entry], None]) -> None:
        """``put`` stores an entry: `StateRing.put`, for example."""
        self._put = put
        self._record_count = 0
        #: A watch event was applied. A function of its own would cost a call for each event.
        self.handled: Callable[[WatchEvent], None] = put

    def begins(
        self, queued: QueuedPodInfo, now_seconds: float, sampling_starts: Mapping[str, int]
    ) -> None:
        """An attempt at a pod, or at a group, begins."""
        if isinstance(queued, QueuedPodGroupInfo):
            attempts = {uid: member.attempts for uid, member in queued.members.items()}
        else:
            attempts = {queued.pod.uid: queued.attempts}
        begun = AttemptStart(
            at_seconds=now_seconds,
            attempts=attempts,
            sampling_starts=dict(sampling_starts),
            record_count=self._record_count,
        )
        self._put(begun)

    def write(self, record: Record) -> None:
        """See `journal.Sink`."""
        self._record_count += 1
        if isinstance(record, AttemptRecord):
            if record.result in ("scheduled", "waiting"):
                self._put(Decision(record.uid, record.node))
            elif record.nominated_node:
                self._put(Decision(record.uid, nominated_node=record.nominated_node))
        elif isinstance(record, BindingRecord) and record.result != "bound":
            self._put(Decision(record.uid))


@final
class PastState:
    """The state of a scheduler at one moment: the sum of the entries until then."""

    def __init__(self) -> None:
        #: Kind → uid (without one: namespace/name) → object, in the order of the first events.
        self.objects: dict[str, dict[str, ApiObject]] = {}
        #: Uid → node, of pods whose bindings the API server has not reported.
        self.assumed: dict[str, str] = {}
        #: Uid → node, of nominations that the API server has not reported, the oldest first.
        self.nominated: dict[str, str] = {}

    def copy(self) -> "PastState":
        """A state of its own; objects are shared."""
        copied = PastState()
        copied.objects = {kind: dict(objects) for kind, objects in self.objects.items()}
        copied.assumed, copied.nominated = dict(self.assumed), dict(self.nominated)
        return copied

    def add(self, entry: Entry) -> None:
        """Add the next entry."""
        if isinstance(entry, WatchEvent):
            self._add_event(entry)
        elif isinstance(entry, Decision):
            if entry.nominated_node:
                self.nominated[entry.uid] = entry.nominated_node
            elif entry.node:
                self.assumed[entry.uid] = entry.node
                self.nominated.pop(entry.uid, None)
            else:
                self.assumed.pop(entry.uid, None)

    def entries(self) -> Iterator[Entry]:
        """Entries that lead from nothing to this state."""
        for kind, objects in self.objects.items():
            for each in objects.values():
                yield WatchEvent(EventType.ADDED, kind, each)
        yield from (Decision(uid, node) for uid, node in self.assumed.items())
        yield from (Decision(uid, nominated_node=node) for uid, node in self.nominated.items())

    def objects_as_decided(self) -> dict[str, list[ApiObject]]:
        """The objects by kind, as they are when the API server has reported all decisions."""
        by_kind = {kind: list(objects.values()) for kind, objects in self.objects.items()}
        if self.assumed or self.nominated:
            by_kind[POD] = [self._as_decided(each) for each in by_kind.get(POD, ())]
        return by_kind

    def _as_decided(self, content: ApiObject) -> ApiObject:
        assert isinstance(content, Pod)
        uid = content.metadata.uid or ""
        node, nominated_node = self.assumed.get(uid), self.nominated.get(uid)
        if node is not None:
            spec = msgspec.structs.replace(content.spec, node_name=node)
            return msgspec.structs.replace(content, spec=spec)
        if nominated_node is not None:
            status = msgspec.structs.replace(content.status, nominated_node_name=nominated_node)
            return msgspec.structs.replace(content, status=status)
        return content

    def _add_event(self, event: WatchEvent) -> None:
        content: Any = event.object
        uid: str = content.metadata.uid or f"{content.metadata.namespace}/{content.metadata.name}"
        if event.type is EventType.DELETED:
            self.objects.get(event.kind, {}).pop(uid, None)
        else:
            self.objects.setdefault(event.kind, {})[uid] = content
        if event.kind != POD:
            return
        if event.type is EventType.DELETED or content.spec.node_name:
            self.assumed.pop(uid, None)
            self.nominated.pop(uid, None)
        elif content.status.nominated_node_name:
            self.nominated.pop(uid, None)


@final
class StateRing:
    """The newest entries in memory, and the state before the oldest of them.

    Memory: the entries, with the versions of objects that they name, and one reference to each
    object of the cluster, which the scheduler holds anyway. Time: constant for each entry.
    """

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._entries: deque[Entry] = deque()
        #: The state before the oldest entry.
        self._checkpoint = PastState()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Entry) -> None:
        """Store the next entry. The oldest one becomes a part of the checkpoint."""
        self._entries.append(entry)
        if len(self._entries) > self._length_max:
            self._checkpoint.add(self._entries.popleft())

    def present(self) -> PastState:
        """The state after the newest entry."""
        state = self._checkpoint.copy()
        for entry in self._entries:
            state.add(entry)
        return state

    def before(self, uid: str, attempt: int) -> tuple[PastState, AttemptStart] | None:
        """The state before an attempt; None: the attempt is too old, or unknown."""
        return state_before(self._checkpoint.copy(), self._entries, uid, attempt)


def state_before(
    state: PastState, entries: Iterable[Entry], uid: str, attempt: int
) -> tuple[PastState, AttemptStart] | None:
    """Add entries to a state up to the beginning of an attempt; None: the attempt is not there."""
    for entry in entries:
        if isinstance(entry, AttemptStart) and entry.attempts.get(uid) == attempt:
            return state, entry
        state.add(entry)
    return None


# ---- entries as lines of JSON ---------------------------------------------------------------


class Head(Struct, frozen=True, kw_only=True, tag="head", tag_field="line"):
    """The first line of a file of states."""

    #: How many records the journal had when the last attempt before this file began.
    record_count: int


class _ObjectLine(Struct, frozen=True, kw_only=True, tag="object", tag_field="line"):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: str
    object: Any


class _BegunLine(AttemptStart, frozen=True, kw_only=True, tag="begun", tag_field="line"):
    """`AttemptStart` in a file."""


class _DecidedLine(Decision, frozen=True, tag="decided", tag_field="line"):
    """`Decision` in a file."""


class _RawObjectLine(Struct, frozen=True, kw_only=True, tag="object", tag_field="line"):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: str
    object: Raw


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Head | _RawObjectLine | _BegunLine | _DecidedLine)


class StatesError(ValueError):
    """Lines of states cannot be read."""


def encoded_entries(entries: Iterable[Entry]) -> bytes:
    """Lines, each with its end."""
    return _encoder.encode_lines(list(map(_line, entries)))


def encoded_head(head: Head) -> bytes:
    """A line with its end."""
    return _encoder.encode(head) + b"\n"


def decoded_head(line: bytes) -> Head:
    """Raises StatesError."""
    try:
        head = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise StatesError(str(problem)) from None
    if not isinstance(head, Head):
        raise StatesError("wanted the first line of a file of states")
    return head


def entries_in(lines: Iterable[bytes]) -> Iterator[Entry]:
    """The entries of lines. Raises StatesError."""
    try:
        for line in lines:
            parsed = _decoder.decode(line)
            if isinstance(parsed, _RawObjectLine):
                content = restored(parsed.kind, bytes(parsed.object))
                yield WatchEvent(EventType(parsed.type), parsed.kind, content)
            elif not isinstance(parsed, Head):
                yield parsed
    except (msgspec.MsgspecError, DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise StatesError(str(problem)) from None


def _line(entry: Entry) -> Struct:
    if isinstance(entry, WatchEvent):
        return _ObjectLine(type=_TYPES[entry.type], kind=entry.kind, object=entry.object)
    if isinstance(entry, AttemptStart):
        return _BegunLine(
            at_seconds=entry.at_seconds,
            attempts=entry.attempts,
            sampling_starts=entry.sampling_starts,
            record_count=entry.record_count,
        )
    return _DecidedLine(entry.uid, entry.node, entry.nominated_node)


_TYPES: dict[EventType, Literal["ADDED", "MODIFIED", "DELETED"]] = {
    EventType.ADDED: "ADDED",
    EventType.MODIFIED: "MODIFIED",
    EventType.DELETED: "DELETED",
}
