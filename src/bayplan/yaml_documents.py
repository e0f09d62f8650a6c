"""YAML and JSON as Kubernetes reads them, into plain values.

Kubernetes turns YAML 1.1 into JSON and reads that: ``yes`` and ``on`` are booleans, ``0777`` is
octal, ``1e3`` is 1000, a date or ``12:30:45`` is a string, and every key is a string. A null is an
absent field. A duplicate key is an error, because one of its values would be lost silently.
Sources: go.yaml.in/yaml/v2 resolve.go, sigs.k8s.io/yaml.

There is one difference: a bare ``y`` or ``n`` is a string here, as in most readers of YAML, and a
boolean in Kubernetes. A pod may be called y; a field that needs a boolean refuses the string.

A line that begins with ``---`` separates documents of YAML, wherever it stands. It divides a text
into *sections*. A section in JSON may have several documents back to back, as kubectl reads them.
Other sections are YAML; those that follow one another are read in one go.
"""

import base64
import codecs
import contextlib
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import msgspec
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
    documents: list[Document] = []
    count, line, counted_to = 0, 1, 0
    try:
        for run in _runs(decoded, keeps_nulls):
            if run.values is None:
                line += decoded.count("\n", counted_to, run.start)
                counted_to = run.start
                part = decoded[run.start : run.end]
                values, run_count = _read_yaml(part, _Place(source, count, line), keeps_nulls)
                documents += values
                count += run_count
                continue
            for value, start in run.values:
                count += 1
                line += decoded.count("\n", counted_to, start)
                counted_to = start
                documents.append(Document(value, source, count, line))
    except _WrongJson as problem:
        line = None if problem.start is None else decoded.count("\n", 0, problem.start) + 1
        raise DocumentError(str(problem), source, count + problem.index, line) from None
    return documents


# ---- encodings -----------------------------------------------------------------------------


#: kubectl reads UTF-16 with a byte order mark, which PowerShell writes (its FileVisitor).
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_NO_MARK = "UTF-16 or UTF-32 without a byte order mark, or no text; wanted UTF-8"
_COMPRESSED = (
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


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
    for mark, name in _COMPRESSED:
        if encoded.startswith(mark):
            raise DocumentError(f"compressed with {name}; unpack it first", source, 1, None)
    encoding, name = "utf-8", "UTF-8"
    for mark, *named in _BYTE_ORDER_MARKS:
        if encoded.startswith(mark):
            encoding, name = named
    try:
        decoded = encoded.decode(encoding)
    except UnicodeDecodeError as problem:
        if name == "UTF-8" and b"\0" in encoded[:4]:
            raise DocumentError(_NO_MARK, source, 1, None) from None
        line = encoded.count(b"\n", 0, problem.start) + 1
        raise DocumentError(f"not {name}", source, 1, line) from None
    if "\0" in decoded[:4]:
        raise DocumentError(_NO_MARK, source, 1, None)
    # Files with a mark each, put together.
    return decoded.replace("\n\ufeff", "\n") if "\ufeff" in decoded else decoded


# ---- sections ------------------------------------------------------------------------------


class _Run(NamedTuple):
    """A part of a text: one section in JSON, or sections in YAML that follow one another."""

    start: int
    end: int
    #: The documents of JSON, each with its place in the text; None: the part is YAML.
    values: list[tuple[Any, int]] | None


_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_JSON_START = re.compile(r"(?:---)?\s*(?=[{\[])")
_SPACE = re.compile(r"\s*")


def _runs(text: str, keeps_nulls: bool) -> Iterator[_Run]:
    """The parts of a text, in order. A section includes the separator before it.

    Raises _WrongJson, after the parts before the error.
    """
    starts = [match.start() for match in _SEPARATOR.finditer(text)] if "---" in text else []
    if not starts or text[: starts[0]].strip():
        starts.insert(0, 0)
    has_directives = text.startswith("%")
    yaml_start: int | None = None
    for start, end in zip(starts, (*starts[1:], len(text)), strict=True):
        match = None if has_directives else _JSON_START.match(text, start, end)
        values = None
        if match is not None:
            try:
                values = _read_json(text[match.end() : end], match.end(), keeps_nulls)
            except _WrongJson:
                if yaml_start is not None:
                    yield _Run(yaml_start, start, None)
                raise
        if values is None:
            yaml_start = start if yaml_start is None else yaml_start
            continue
        if yaml_start is not None:
            yield _Run(yaml_start, start, None)
            yaml_start = None
        yield _Run(start, end, values)
    if yaml_start is not None:
        yield _Run(yaml_start, len(text), None)


class _Place(NamedTuple):
    """Where a part of a source begins."""

    source: str
    #: The documents before it.
    documents_before: int
    #: The number of its first line.
    first_line: int


#: Follows a message about a text that ends inside a document.
_CUT_OFF = "the text ends inside the document: is it complete?"


# ---- JSON ----------------------------------------------------------------------------------


class _DuplicateKey(Exception):
    """Not a ValueError: the text must not be read again as YAML."""


class _WrongJson(Exception):
    """An error after the first document of a section: the section is no YAML either."""

    def __init__(self, message: str, index: int, start: int | None) -> None:
        """``index``: of the document, from 1; ``start``: the place of the error."""
        super().__init__(message)
        self.index = index
        self.start = start


def _read_json(section: str, offset: int, keeps_nulls: bool) -> list[tuple[Any, int]] | None:
    """The documents of a section that begins with a bracket, each with its place in the text.

    ``offset``: the place of the section. None: the section is not JSON, but may be YAML in flow
    style. Raises _WrongJson.
    """
    if "\\u" not in section and (keeps_nulls or "null" not in section):
        # Without a call per object.
        with contextlib.suppress(_WrongJson):
            values = _json_values(section, offset, None)
            if values is not None and _has_each_key_once(section, values):
                return values
    return _json_values(
        section, offset, _json_object if keeps_nulls else _json_object_without_nulls
    )


#: The end of a key, or of a string in which a quotation mark and a colon follow one another.
_KEY_END = re.compile(r'"\s*:')


def _has_each_key_once(section: str, values: list[tuple[Any, int]]) -> bool:
    """Whether the objects of a text without ``\\u`` have as many members as the text. False: the
    text has a key twice, or a string that may look like one."""
    try:
        encoded = msgspec.json.encode(values)
    except (ValueError, OverflowError, RecursionError):
        return False
    # Without a match for each key, unless a colon stands apart from its key.
    has_spaces = any(f"{space}:" in section for space in " \t\n\r")
    count = len(_KEY_END.findall(section)) if has_spaces else section.count('":')
    return encoded.count(b'":') == count


def _json_values(
    section: str,
    offset: int,
    members: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None,
) -> list[tuple[Any, int]] | None:
    """See `_read_json`. ``members``: makes an object of its members; None: a dictionary."""
    decoder = json.JSONDecoder(object_pairs_hook=members, parse_constant=_no_number)
    values: list[tuple[Any, int]] = []
    start = 0
    while start < len(section):
        if section[start] not in "{[":
            return None
        try:
            value, end = decoder.raw_decode(section, start)
        except _DuplicateKey as problem:
            raise _WrongJson(str(problem), len(values) + 1, None) from None
        except (ValueError, RecursionError) as problem:
            if not values:
                return None  # the YAML reader names the line of an error
            place = getattr(problem, "pos", start)
            message = _json_message(problem, section)
            raise _WrongJson(message, len(values) + 1, offset + place) from None
        values.append((value, offset + start))
        blank = _SPACE.match(section, end)
        assert blank is not None
        start = blank.end()
    return values


def _json_message(problem: ValueError | RecursionError, text: str) -> str:
    if not isinstance(problem, json.JSONDecodeError):
        return "nested too deeply" if isinstance(problem, RecursionError) else str(problem)
    message = f"not JSON: {problem.msg[0].lower()}{problem.msg[1:]}"
    is_cut_off = problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated")
    return f"{message}; {_CUT_OFF}" if is_cut_off else message


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
        #: Counts from 0.
        self.line: int = event.start_mark.line


def _read_yaml(text: str, place: _Place, keeps_nulls: bool) -> tuple[list[Document], int]:
    """The documents that are not empty, and the number of all."""
    documents: list[Document] = []
    index = 0

    def error(message: str, line: int | None) -> DocumentError:
        number = place.documents_before + max(index, 1)
        line = None if line is None else place.first_line + line
        return DocumentError(message, place.source, number, line)

    try:
        events = cast("Iterator[Event]", yaml.parse(text, Loader=yaml.CSafeLoader))
        for event in events:
            if not isinstance(event, DocumentStartEvent):
                continue
            index += 1
            first = next(events)
            value = _Values(events, keeps_nulls).of(first)
            if value is not None:
                number, line = place.documents_before + index, first.start_mark.line
                documents.append(Document(value, place.source, number, place.first_line + line))
    except _Wrong as problem:
        raise error(str(problem), problem.line) from None
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise error(_yaml_message(problem, text), None if mark is None else mark.line) from None
    except yaml.reader.ReaderError as problem:
        raise error(problem.reason, text.count("\n", 0, problem.position)) from None
    return documents, index


def _yaml_message(problem: yaml.MarkedYAMLError, text: str) -> str:
    message = ", ".join(part for part in (problem.context, problem.problem) if part)
    mark = problem.problem_mark
    if mark is None:
        return message
    if text[mark.index : mark.index + 1] == "\t":
        return f"{message}; YAML is indented with spaces, not with tabs"
    return f"{message}; {_CUT_OFF}" if mark.index >= len(text.rstrip()) else message


class _AnchoredValue(Struct, frozen=True):
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
        self._anchored: dict[str, _AnchoredValue] = {}
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
        self._anchored[event.anchor] = _AnchoredValue(
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
