"""The entries of a log of states, and their lines of JSON.

An attempt is a function of the objects that the scheduler has read, of its own decisions that the
API server has not reported back (assumed pods, nominations), of the number of the attempt and of
where a search of a sample starts. The log has an entry for each of these, in order. State that a
plugin holds in memory is not in the log.

A line is an array whose first element names the entry. The line of an object has the content that
the API server has, as a difference: a JSON merge patch. A changed object is compared with its last
content: the version, the node and one condition of a pod in place of the whole pod. A new object is
compared with the newest object of its kind: pods of one template differ in little but their names.
So whoever writes or reads lines remembers the last content of each object.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, final

import msgspec
from msgspec import Meta, Raw, Struct

from bayplan.adapters.embedded.json_merge import difference, merge_patch
from bayplan.api.objects import ApiObject, DecodeError, Unstructured, decode, restored
from bayplan.objects.keys import Content
from bayplan.ports import EventType


class Origin(Struct, frozen=True, kw_only=True, tag="origin", tag_field="line", array_like=True):
    """The first entry of a log, which describes its scheduler."""

    #: The names of the profiles.
    profiles: tuple[str, ...]
    #: The queues whose lengths the log has.
    queue_names: tuple[str, ...]
    #: Plugin instance → the events after which its rejected pods are tried again, in words.
    wake_events: Mapping[str, tuple[str, ...]] = {}
    #: Kind → further field paths that decoded objects have.
    declared_fields: Mapping[str, tuple[str, ...]] = {}


class ObjectChange(Struct, frozen=True, kw_only=True, gc=False):
    """An object was created, changed or deleted."""

    at_seconds: float
    type: EventType
    kind: str
    #: The newest state of the object, also for a deletion.
    object: ApiObject
    #: The version of the change.
    version: int = 0
    #: The content as the API server has it; None: the log of a live cluster has only decoded
    #: objects.
    content: Content | None = None

    @property
    def identity(self) -> str:
        """The uid of the object; without one, its namespace and name."""
        return identity_of(self.object)


class AttemptStart(
    Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    tag="attempt",
    tag_field="line",
    array_like=True,
):
    """An attempt begins: at a pod, or at the members of a group."""

    at_seconds: float
    #: Uid → number of the attempt.
    attempts: Mapping[str, int]
    #: Profile → where the search of a sample starts (percentageOfNodesToScore).
    sampling_starts: Mapping[str, int] = {}
    #: Kind → the last version that the scheduler has learned of, for kinds with later changes.
    learned_versions: Mapping[str, int] = {}


class Decision(Struct, frozen=True, gc=False, tag="decision", tag_field="line", array_like=True):
    """The journal has one more record. The entry has what the scheduler knows of a pod before the
    API server reports it. Without a uid, the record decides nothing about a pod."""

    uid: str = ""
    #: The node on which the pod is assumed; "": it is on none.
    node: str = ""
    nominated_node: str = ""


class QueueLengths(Struct, frozen=True, gc=False, tag="queues", tag_field="line", array_like=True):
    """The lengths of the queues changed."""

    at_seconds: float
    #: In the order of `Origin.queue_names`.
    lengths: tuple[int, ...]


#: One entry of a log.
Entry = Origin | ObjectChange | AttemptStart | Decision | QueueLengths


def time_of(entry: Entry) -> float | None:
    """The time of an entry in seconds; None: it has the time of the entry before."""
    if isinstance(entry, ObjectChange | AttemptStart | QueueLengths):
        return entry.at_seconds
    return None


def identity_of(content: ApiObject) -> str:
    """The uid of an object; without one, its namespace and name."""
    meta = content.metadata
    return meta.uid or f"{meta.namespace}/{meta.name}"


# ---- lines ----------------------------------------------------------------------------------


_Count = Annotated[int, Meta(ge=0)]


class Head(Struct, frozen=True, kw_only=True, tag="head", tag_field="line", array_like=True):
    """The first line of a file. It says what the log had before, and how many entries sum that
    up."""

    #: The time of the last entry before this file.
    at_seconds: float = 0.0
    entry_count: _Count = 0
    record_count: _Count = 0
    #: The number of entries that lead from nothing to the state at the beginning of this file.
    #: These entries follow the head.
    checkpoint_count: _Count = 0


class _ObjectLine(Struct, frozen=True, tag="object", tag_field="line", array_like=True):
    at_seconds: float
    type: EventType
    kind: str
    #: "" of a new object.
    identity: str
    version: int
    #: See the module; None of a deleted object.
    patch: Content | None


class _DecodedLine(Struct, frozen=True, tag="decoded", tag_field="line", array_like=True):
    """A decoded object, of which no content is remembered."""

    at_seconds: float
    type: EventType
    kind: str
    version: int
    object: Any


class _RawDecodedLine(Struct, frozen=True, tag="decoded", tag_field="line", array_like=True):
    at_seconds: float
    type: EventType
    kind: str
    version: int
    object: Raw


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(
    Head | Origin | _ObjectLine | _RawDecodedLine | AttemptStart | Decision | QueueLengths
)


class StatesError(ValueError):
    """Lines of states cannot be read."""


@final
class LineWriter:
    """Encodes the entries of one log, in order."""

    def __init__(self) -> None:
        #: Kind → identity → the last content of the object.
        self._contents: dict[str, dict[str, Content]] = {}
        #: Kind → the content of the newest object.
        self._newest: dict[str, Content] = {}

    def lines(self, entries: Iterable[Entry]) -> bytes:
        """A line for each entry, with its end."""
        return _encoder.encode_lines(
            [
                self._object_line(entry) if isinstance(entry, ObjectChange) else entry
                for entry in entries
            ]
        )

    def forget(self) -> None:
        """Begin a file, which is read without the lines before it."""
        self._contents.clear()
        self._newest.clear()

    def _object_line(self, entry: ObjectChange) -> Struct:
        content, kind, seconds = entry.content, entry.kind, entry.at_seconds
        if content is None:
            return _DecodedLine(seconds, entry.type, kind, entry.version, entry.object)
        identity = entry.object.metadata.uid or entry.identity
        contents = self._contents.setdefault(kind, {})
        if entry.type is EventType.DELETED:
            del contents[identity]
            return _ObjectLine(seconds, entry.type, kind, identity, entry.version, None)
        before = contents.get(identity)
        contents[identity] = content
        if before is not None:
            patch = difference(before, content)
            return _ObjectLine(seconds, _MODIFIED, kind, identity, entry.version, patch)
        patch = difference(self._newest.get(kind, {}), content)
        self._newest[kind] = content
        return _ObjectLine(seconds, _ADDED, kind, "", entry.version, patch)


_ADDED, _MODIFIED = EventType.ADDED, EventType.MODIFIED


def encoded_head(head: Head) -> bytes:
    """A line with its end."""
    return _encoder.encode(head) + b"\n"


def decoded_head(line: bytes) -> Head:
    """Raises StatesError."""
    head = _decoded(line)
    if not isinstance(head, Head):
        raise StatesError("wanted the first line of a file of states")
    return head


def entries_in(lines: Iterable[bytes]) -> Iterator[Entry]:
    """The entries of the lines of one file, without its head. Raises StatesError."""
    reader = _LineReader()
    for line in lines:
        parsed = _decoded(line)
        if isinstance(parsed, Head):
            continue
        try:
            yield reader.entry(parsed)
        except (DecodeError, RecursionError) as problem:
            raise StatesError(str(problem)) from None
        except LookupError:
            raise StatesError("a line needs another one that is not before it") from None


def _decoded(line: bytes) -> Any:
    """Raises StatesError."""
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise StatesError(str(problem)) from None


@final
class _LineReader:
    """Decodes the lines of one file, in order."""

    def __init__(self) -> None:
        #: The last change of each object, by kind and identity.
        self._changes: dict[tuple[str, str], ObjectChange] = {}
        #: Kind → the creation of the newest object.
        self._newest: dict[str, ObjectChange] = {}
        self._origin = Origin(profiles=(), queue_names=())

    def entry(self, line: Struct) -> Entry:
        """Raises DecodeError; LookupError if a line before is missing."""
        if isinstance(line, _ObjectLine):
            if line.type is EventType.DELETED:
                return self._deletion(line)
            return self._change(line)
        if isinstance(line, _RawDecodedLine):
            return ObjectChange(
                at_seconds=line.at_seconds,
                type=line.type,
                kind=line.kind,
                object=restored(line.kind, bytes(line.object)),
                version=line.version,
            )
        assert isinstance(line, Origin | AttemptStart | Decision | QueueLengths)
        if isinstance(line, Origin):
            self._origin = line
        elif isinstance(line, QueueLengths) and (
            len(line.lengths) != len(self._origin.queue_names)
        ):
            raise LookupError("the names of the queues")
        return line

    def _deletion(self, line: _ObjectLine) -> ObjectChange:
        last = self._changes.pop((line.kind, line.identity))
        return ObjectChange(
            at_seconds=line.at_seconds,
            type=line.type,
            kind=line.kind,
            object=last.object,
            version=line.version,
            content=last.content,
        )

    def _change(self, line: _ObjectLine) -> ObjectChange:
        kind, patch = line.kind, line.patch or {}
        is_new = line.type is _ADDED
        base = self._newest.get(kind) if is_new else self._changes[kind, line.identity]
        content: Content = merge_patch({} if base is None else base.content, patch)
        change = ObjectChange(
            at_seconds=line.at_seconds,
            type=line.type,
            kind=kind,
            object=self._decoded(kind, base, patch, content),
            version=line.version,
            content=content,
        )
        if is_new:
            self._newest[kind] = change
        self._changes[kind, change.identity] = change
        return change

    def _decoded(
        self, kind: str, base: ObjectChange | None, patch: Content, content: Content
    ) -> ApiObject:
        """The object of a content. Pods of one template share everything but their metadata."""
        declared = self._origin.declared_fields.get(kind, ())
        if (
            base is None
            or declared
            or patch.keys() != {"metadata"}
            or isinstance(base.object, Unstructured)
        ):
            return decode(kind, content, declared)
        of_metadata = decode(kind, {"metadata": content["metadata"]})
        return msgspec.structs.replace(base.object, metadata=of_metadata.metadata)
