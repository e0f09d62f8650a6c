"""The entries of a state log as lines of JSON, for files and for other processes."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from bayplan.api.objects import DecodeError, restored
from bayplan.engine.state_log import Begun, Decided, Entry
from bayplan.ports import EventType, WatchEvent


class Head(Struct, frozen=True, kw_only=True, tag="head", tag_field="line"):
    """The first line of a file of states."""

    #: How many records the journal had when the last attempt before this file began.
    record_count: int


class _ObjectLine(Struct, frozen=True, kw_only=True, tag="object", tag_field="line"):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: str
    object: Any


class _BegunLine(Begun, frozen=True, kw_only=True, tag="begun", tag_field="line"):
    """`Begun` in a file."""


class _DecidedLine(Decided, frozen=True, tag="decided", tag_field="line"):
    """`Decided` in a file."""


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
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
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
    except (msgspec.MsgspecError, DecodeError, UnicodeDecodeError) as problem:
        raise StatesError(str(problem)) from None


def _line(entry: Entry) -> Struct:
    if isinstance(entry, WatchEvent):
        return _ObjectLine(type=_TYPES[entry.type], kind=entry.kind, object=entry.object)
    if isinstance(entry, Begun):
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
