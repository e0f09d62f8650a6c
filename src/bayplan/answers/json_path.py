"""JSONPath templates as `kubectl -o jsonpath` has them.

Texts and expressions in braces alternate: ``{.kind}``, ``{range .pods[*]}{.pod}{"\\n"}{end}``. An
expression is a path: fields (``.pods``, ``['pods']``), indexes and slices (``[0]``, ``[-1]``,
``[0:2]``), all entries (``[*]``, ``.*``), filters (``[?(@.node=="n1")]``), any depth (``..node``).
A template without braces is one expression. Results of one expression are separated by a blank;
objects and lists are written as JSON. A field that an object does not have gives nothing, as with
kubectl; a field that no answer of this kind has is an error, which names the fields that exist.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, final

from bayplan.problems import BadInputError, suggestion

#: From the values so far, and the names of all fields that an answer of this kind may have.
Step = Callable[[list[Any], Collection[str]], list[Any]]

_OPTION = "-o jsonpath"
_RANGE = "range "
_EXAMPLE = '{.kind} or {range .pods[*]}{.pod}{"\\n"}{end}'
_NAME = re.compile(r"\.?([A-Za-z_$][\w$-]*)")
_ANY_DEPTH = re.compile(r"\.\.([A-Za-z_$][\w$-]*)")
_ALL = re.compile(r"\[\*\]|\.\*")
_INDEX = re.compile(r"\[(-?\d*)(?:(:)(-?\d*)(?::(-?\d*))?)?\]")
_QUOTED = re.compile(r"""\[(['"])(.*?)\1\]""")
_FILTER = re.compile(
    r"""\[\?\(\s*@(?P<path>[^=!<>]*?)\s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>.+?))?\s*\)\]"""
)
_TOKEN = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}""")
_FIELDS_MAX = 20


class _Piece(NamedTuple):
    """A part of a template: text, or what is between braces."""

    text: str
    is_expression: bool

    @property
    def word(self) -> str:
        """The expression; "": it is a text."""
        return self.text.strip() if self.is_expression else ""


class _Place(NamedTuple):
    """Where paths begin: at the document behind $, otherwise at an entry of a range."""

    root: Any
    here: Any
    #: The names of all fields that the document may have.
    fields: Collection[str]


@final
class JsonPath:
    """A template that was read."""

    def __init__(self, template: str) -> None:
        """Raises BadInputError."""
        self._pieces = list(_pieces(template.strip()))
        self._ends = _ends(self._pieces)
        #: Expression → its steps.
        self._steps = {path: list(_steps(path)) for path in filter(None, map(_path, self._pieces))}

    def text(self, document: Any, fields: Collection[str] = ()) -> str:
        """The template filled in from a document of plain values. ``fields``: the names of all
        fields that such a document may have. Raises BadInputError."""
        return self._filled(range(len(self._pieces)), _Place(document, document, fields))

    def _filled(self, positions: range, place: "_Place") -> str:
        """The text of the pieces at ``positions``."""
        parts: list[str] = []
        position = positions.start
        while position < positions.stop:
            piece = self._pieces[position]
            word, path = piece.word, _path(piece)
            if not piece.is_expression:
                parts.append(piece.text)
            elif not path:
                parts.append(_unquoted(word))
            else:
                values = [place.root if path.startswith("$") else place.here]
                for step in self._steps[path]:
                    values = step(values, place.fields)
                if position in self._ends:
                    last = self._ends[position]
                    body = range(position + 1, last)
                    parts += [self._filled(body, place._replace(here=value)) for value in values]
                    position = last
                else:
                    parts.append(" ".join(map(_shown, values)))
            position += 1
        return "".join(parts)


# ---- templates ------------------------------------------------------------------------------


def _wrong(problem: str) -> BadInputError:
    return BadInputError(f"{_OPTION}: {problem}; an example: {_EXAMPLE}")


def _pieces(template: str) -> Iterator[_Piece]:
    """Raises BadInputError."""
    if not template:
        raise _wrong("found no template")
    if "{" not in template and "}" not in template:
        yield _Piece(template, is_expression=True)
        return
    end = 0
    for match in _TOKEN.finditer(template):
        yield from _text(template[end : match.start()])
        yield _Piece(match[1], is_expression=True)
        end = match.end()
    yield from _text(template[end:])


def _text(text: str) -> Iterator[_Piece]:
    if "{" in text or "}" in text:
        raise _wrong(f"found a brace without its partner in {text[:60]!r}")
    if text:
        yield _Piece(text, is_expression=False)


def _path(piece: _Piece) -> str:
    """The path of an expression; "": it has none."""
    word = piece.word
    if word == "end" or word[:1] in ('"', "'"):
        return ""
    return word.removeprefix(_RANGE).strip() if word.startswith(_RANGE) else word


def _ends(pieces: Sequence[_Piece]) -> dict[int, int]:
    """Where the {end} of each {range …} is. Raises BadInputError."""
    ends: dict[int, int] = {}
    begun: list[int] = []
    for index, piece in enumerate(pieces):
        if piece.word.startswith(_RANGE):
            begun.append(index)
        elif piece.word == "end":
            if not begun:
                raise _wrong("found {end} without {range …}")
            ends[begun.pop()] = index
    if begun:
        raise _wrong("found {range …} without {end}")
    return ends


def _unquoted(word: str) -> str:
    """Raises BadInputError."""
    text = word if word[0] == '"' else '"' + word[1:-1].replace('"', '\\"') + '"'
    try:
        value = json.loads(text)
    except ValueError:
        raise _wrong(f"{word[:60]} is no text between quotes") from None
    return str(value)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- paths ----------------------------------------------------------------------------------


def _steps(path: str) -> Iterator[Step]:
    """Raises BadInputError."""
    remaining = path.strip().removeprefix("$").removeprefix("@")
    while remaining:
        if (match := _FILTER.match(remaining)) is not None:
            yield _filter(match)
        elif (match := _QUOTED.match(remaining)) is not None:
            yield _field(match[2])
        elif (match := _ALL.match(remaining)) is not None:
            yield _all
        elif (match := _INDEX.match(remaining)) is not None and match[0] != "[]":
            yield _index(match)
        elif (match := _ANY_DEPTH.match(remaining)) is not None:
            yield _any_depth(match[1])
        elif (match := _NAME.match(remaining)) is not None:
            yield _field(match[1])
        elif remaining == ".":
            return
        else:
            raise _wrong(f"found {remaining[:60]!r}, wanted a field such as .kind")
        remaining = remaining[match.end() :]


def _field(name: str) -> Step:
    def step(values: list[Any], fields: Collection[str]) -> list[Any]:
        having = [each[name] for each in values if isinstance(each, dict) and name in each]
        if not having and values and name not in fields:
            raise _without_field(name, values)
        return having

    return step


def _without_field(name: str, values: Iterable[Any]) -> BadInputError:
    fields = sorted({key for each in values if isinstance(each, dict) for key in each})
    if not fields:
        return BadInputError(f"{_OPTION}: there is no field {name}: the value is no object")
    hint = suggestion(name, fields)
    listed = ", ".join(fields[:_FIELDS_MAX]) + ", …" * (len(fields) > _FIELDS_MAX)
    text = f"{_OPTION}: there is no field {name}; the fields are {listed}"
    return BadInputError(f"{text}; {hint}" if hint and len(fields) > _FIELDS_MAX else text)


def _all(values: list[Any], _fields: Collection[str] = ()) -> list[Any]:
    entries: list[Any] = []
    for each in values:
        if isinstance(each, dict):
            entries.extend(each.values())
        elif isinstance(each, list):
            entries.extend(each)
    return entries


def _index(match: re.Match[str]) -> Step:
    start, colon, stop, stride = match.groups()
    if not colon:
        chosen = slice(int(start), int(start) + 1 or None)
    else:
        chosen = slice(*(int(part) if part else None for part in (start, stop, stride)))
    if chosen.step == 0:
        raise _wrong("found a slice with the step 0")

    def step(values: list[Any], _fields: Collection[str]) -> list[Any]:
        lists = [each for each in values if isinstance(each, list)]
        if values and not lists:
            raise BadInputError(f"{_OPTION}: {match[0]}: the value is no list")
        return [entry for each in lists for entry in each[chosen]]

    return step


def _any_depth(name: str) -> Step:
    def below(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            if name in value:
                yield value[name]
            for each in value.values():
                yield from below(each)
        elif isinstance(value, list):
            for each in value:
                yield from below(each)

    return lambda values, _fields: [result for each in values for result in below(each)]


_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def _filter(match: re.Match[str]) -> Step:
    """Raises BadInputError."""
    path, sign = list(_steps(match["path"])), match["sign"]
    value = None if sign is None else _literal(match["value"])

    def is_chosen(entry: Any, fields: Collection[str]) -> bool:
        values = [entry]
        for step in path:
            values = step(values, fields)
        if sign is None:
            return bool(values)
        try:
            return any(_SIGNS[sign](each, value) for each in values)
        except TypeError:
            return False

    return lambda values, fields: [each for each in _all(values) if is_chosen(each, fields)]


def _literal(text: str) -> Any:
    """A number, true, false, null or a text between quotes. Raises BadInputError."""
    if text[:1] in ('"', "'"):
        return _unquoted(text)
    try:
        return json.loads(text)
    except ValueError:
        raise _wrong(f"found {text[:60]!r}, wanted a number or a text between quotes") from None
