"""YAML and JSON as Kubernetes reads them, into plain values.

Kubernetes turns YAML 1.1 into JSON and reads that: ``yes`` and ``on`` are booleans, ``0777`` is
octal, ``1e3`` is 1000, a date or ``12:30:45`` is a string, and every key is a string. A null is an
absent field. A duplicate key is an error, because one of its values would be lost silently.
Sources: go.yaml.in/yaml/v2 resolve.go, sigs.k8s.io/yaml.

There is one difference: a bare ``y`` or ``n`` is a string here, as in most readers of YAML, and a
boolean in Kubernetes. A pod may be called y; a field that needs a boolean refuses the string.
"""

import base64
import json
import math
import re
from collections.abc import Iterator
from typing import Any, cast

import yaml
from msgspec import Struct
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)


class DocumentError(Exception):
    """Text that is not valid YAML or JSON, or has a duplicate key. The message is one line and
    names the place."""

    def __init__(self, message: str, source: str, document: int, line: int | None) -> None:
        place = f"document {document}" + (f", line {line}" if line is not None else "")
        super().__init__(f"{source}: {place}: {message}")
        self.message = message
        self.source = source
        #: Both count from 1.
        self.document = document
        self.line = line


class Document(Struct, frozen=True):
    """One document of a stream: mappings, lists, strings, numbers and booleans."""

    value: Any
    source: str
    #: The number of the document in its source and the number of its first line; both from 1.
    index: int
    line: int


def load_documents(text: str | bytes, source: str, *, keeps_nulls: bool = False) -> list[Document]:
    """The documents of ``text`` that are not empty, in order. Raises DocumentError.

    ``keeps_nulls``: a null member becomes None instead of being dropped. In a merge patch a null
    removes a field.
    """
    decoded = _decoded(text, source)
    # JSON is YAML, too, but the JSON reader takes a tenth of the time.
    if decoded.lstrip()[:1] in ("{", "["):
        try:
            return [Document(_read_json(decoded, keeps_nulls), source, 1, 1)]
        except _DuplicateKey as problem:
            raise DocumentError(str(problem), source, 1, None) from None
        except (ValueError, RecursionError):
            pass  # YAML in flow style, or an error; the YAML reader names its line
    return list(_read_yaml(decoded, source, keeps_nulls))


def is_nested_too_deep(text: bytes) -> bool:
    """Whether a loader of PyYAML, which recurses, would fail at the text or end the process.

    Raises yaml.YAMLError.
    """
    depth = 0
    for event in cast("Iterator[Event]", yaml.parse(text, Loader=yaml.CSafeLoader)):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEPTH_MAX:
            return True
    return False


def _decoded(text: str | bytes, source: str) -> str:
    encoded = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    try:
        return encoded.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = encoded.count(b"\n", 0, problem.start) + 1
        raise DocumentError("not UTF-8", source, 1, line) from None


# ---- JSON ----------------------------------------------------------------------------------


class _DuplicateKey(Exception):
    """Not a ValueError: the text must not be read again as YAML."""


def _read_json(text: str, keeps_nulls: bool) -> Any:
    members = _json_object if keeps_nulls else _json_object_without_nulls
    return json.loads(text, object_pairs_hook=members, parse_constant=_no_number)


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _DuplicateKey(f'key "{twice}" is given twice')
    return members


def _json_object_without_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        _json_object(pairs)  # raises
    if None in members.values():
        return {key: value for key, value in members.items() if value is not None}
    return members


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


# ---- YAML ----------------------------------------------------------------------------------


class _Wrong(Exception):
    """Valid YAML that Kubernetes cannot read."""

    def __init__(self, message: str, event: Event) -> None:
        super().__init__(message)
        self.line: int = event.start_mark.line + 1


def _read_yaml(text: str, source: str, keeps_nulls: bool) -> Iterator[Document]:
    index = 0
    try:
        events = cast("Iterator[Event]", yaml.parse(text, Loader=yaml.CSafeLoader))
        for event in events:
            if not isinstance(event, DocumentStartEvent):
                continue
            index += 1
            first = next(events)
            value = _Values(events, keeps_nulls).of(first)
            if value is not None:
                yield Document(value, source, index, first.start_mark.line + 1)
    except _Wrong as problem:
        raise DocumentError(str(problem), source, max(index, 1), problem.line) from None
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        message = ", ".join(part for part in (problem.context, problem.problem) if part)
        line = mark.line + 1 if mark is not None else None
        raise DocumentError(message, source, max(index, 1), line) from None
    except yaml.reader.ReaderError as problem:
        line = text.count("\n", 0, problem.position) + 1
        raise DocumentError(problem.reason, source, max(index, 1), line) from None


class _Anchored(Struct, frozen=True):
    """The value of an anchor, which aliases may repeat."""

    value: Any
    #: How many values it consists of, itself included; an alias counts each time.
    value_count: int
    #: How deep its collections are nested, itself included.
    level_count: int


class _Values:
    """Reads one document's values from the parser's events.

    An alias shares the value of its anchor, so a short text can describe a huge value that later
    code walks in full. `_alias` limits the share of values that come from aliases, as
    go.yaml.in/yaml/v2 (decode.go) does.
    """

    def __init__(self, events: Iterator[Event], keeps_nulls: bool) -> None:
        self._events = events
        self._keeps_nulls = keeps_nulls
        self._anchored: dict[str, _Anchored] = {}
        self._depth = 0
        #: The deepest level since the innermost anchored value began.
        self._depth_max = 0
        #: The document itself counts as one.
        self._value_count = 1
        self._aliased_count = 0

    def of(self, event: Event) -> Any:
        """The value that begins with ``event``."""
        self._value_count += 1
        if isinstance(event, AliasEvent):
            return self._alias(event)
        assert isinstance(event, ScalarEvent | CollectionStartEvent)
        if event.anchor is None:
            return self._value(event)
        count, depth_max = self._value_count - 1, self._depth_max
        self._depth_max = self._depth
        value = self._value(event)
        self._anchored[event.anchor] = _Anchored(
            value, self._value_count - count, self._depth_max - self._depth
        )
        self._depth_max = max(self._depth_max, depth_max)
        return value

    def _value(self, event: ScalarEvent | CollectionStartEvent) -> Any:
        return _scalar(event) if isinstance(event, ScalarEvent) else self._collection(event)

    def _alias(self, event: AliasEvent) -> Any:
        """The value of the anchor. An alias inside its own anchor is an error."""
        anchored = self._anchored.get(event.anchor)
        if anchored is None:
            raise _Wrong(f"nothing before this is called &{event.anchor}", event)
        self._deepen(self._depth + anchored.level_count, event)
        self._value_count += anchored.value_count
        self._aliased_count += anchored.value_count
        if (
            self._aliased_count > _ALIASED_FREE
            and self._value_count > _VALUES_FREE
            and self._aliased_count > self._value_count * _aliased_share_max(self._value_count)
        ):
            raise _Wrong("the document contains excessive aliasing", event)
        return anchored.value

    def _deepen(self, depth: int, event: Event) -> None:
        if depth > DEPTH_MAX:
            raise _Wrong(f"nested more than {DEPTH_MAX} deep", event)
        self._depth_max = max(self._depth_max, depth)

    def _collection(self, event: CollectionStartEvent) -> Any:
        self._depth += 1
        self._deepen(self._depth, event)
        tag = event.tag
        if isinstance(event, MappingStartEvent):
            kind, value = "map", self._mapping()
        else:
            kind, value = "seq", self._list()
        if tag not in (None, "!", _TAG + kind):
            raise _Wrong(f"the tag {tag} is not known", event)
        self._depth -= 1
        return value

    def _list(self) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            items.append(self.of(event))
        return items

    def _mapping(self) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            if isinstance(event, ScalarEvent) and event.value == "<<" and event.implicit[0]:
                merged |= self._merged(event)
                continue
            key = _as_key(self.of(event), event)
            if key in own:
                raise _Wrong(f'key "{key}" is given twice', event)
            own[key] = self.of(next(self._events))
        # A null removes a merged key and is then dropped itself.
        members = merged | own
        if self._keeps_nulls:
            return members
        return {key: value for key, value in members.items() if value is not None}

    def _merged(self, event: Event) -> dict[str, Any]:
        """The members that ``<<`` adds. If several mappings have a key, the first wins."""
        value: Any = self.of(next(self._events))
        parts: list[Any] = value if isinstance(value, list) else [value]
        members: dict[str, Any] = {}
        for part in reversed(parts):
            if not isinstance(part, dict):
                raise _Wrong("<< takes a mapping or a list of mappings", event)
            members |= part
        return members


def _as_key(value: Any, event: Event) -> str:
    """A key as a JSON string: ``on`` is "true", 80 is "80"."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    raise _Wrong("a key has to be a string", event)


def _scalar(event: ScalarEvent) -> Any:
    text, tag = event.value, event.tag
    try:
        if tag is None:
            return _plain(text) if event.implicit[0] else text
        if tag in ("!", _TAG + "str"):
            return text
        if tag == _TAG + "binary":
            return base64.b64decode(text, validate=True).decode()
        value = _plain(text)
    except ValueError:
        raise _Wrong(f"cannot read {json.dumps(text[:40])}", event) from None
    if tag not in _TAGGED:
        raise _Wrong(f"the tag {tag} is not known", event)
    if type(value) not in _TAGGED[tag]:
        raise _Wrong(f"{json.dumps(text[:40])} is not of the type {tag}", event)
    return value


def _plain(text: str) -> Any:
    """The value of an unquoted scalar. Raises ValueError for too many digits."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBERS_BEGIN_WITH:
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text.replace("_", "").lower())
    if _FLOAT.fullmatch(text):
        value = float(text.replace("_", ""))
        # Go writes a float without a fraction to JSON as an integer.
        return int(value) if abs(value) < _WHOLE_BELOW and value.is_integer() else value
    return text


def _integer(digits: str) -> int:
    bare = digits.lstrip("+-")
    # A leading 0 means octal; Python writes octal as 0o.
    is_octal = len(bare) > 1 and bare.isdigit() and bare[0] == "0"
    return int(digits, 8 if is_octal else 0)


#: More than any Kubernetes object needs; deeper text is an attack or an accident.
DEPTH_MAX = 200

#: go.yaml.in/yaml/v2, decode.go: up to these numbers of aliased values and of all values, the share
#: of aliased values is not limited. Between the two sizes below, the limit falls from 99 % to 10 %.
_ALIASED_FREE = 100
_VALUES_FREE = 1000
_SHARE_FALLS_FROM = 400_000
_SHARE_FALLS_TO = 4_000_000


def _aliased_share_max(value_count: int) -> float:
    """The largest share of aliased values in a document of ``value_count`` values."""
    span = _SHARE_FALLS_TO - _SHARE_FALLS_FROM
    beyond = min(max(value_count - _SHARE_FALLS_FROM, 0), span)
    return 0.99 - 0.89 * beyond / span


#: From this number on Go writes an exponent.
_WHOLE_BELOW = 1e21

_TAG = "tag:yaml.org,2002:"
_TAGGED: dict[str, tuple[type, ...]] = {
    _TAG + "null": (type(None),),
    _TAG + "bool": (bool,),
    _TAG + "int": (int,),
    _TAG + "float": (float, int),
}


def _cases(*words: str) -> Iterator[str]:
    """Each word as yes, Yes and YES; yEs is a string."""
    for word in words:
        yield from (word, word.capitalize(), word.upper())


_INFINITE = (".inf", ".Inf", ".INF")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(_cases("yes", "true", "on"), True),
    **dict.fromkeys(_cases("no", "false", "off"), False),
    **dict.fromkeys(("", "~", *_cases("null")), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in _INFINITE},
}
_NUMBERS_BEGIN_WITH = frozenset("-+.0123456789")
# "017" is octal, but "08" is a decimal float.
_INTEGER = re.compile(
    r"[-+]?(0|0[bB][01_]*[01]|0[oO]?[0-7_]*[0-7]|0[xX][0-9a-fA-F_]*[0-9a-fA-F]|[1-9][0-9_]*)"
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
