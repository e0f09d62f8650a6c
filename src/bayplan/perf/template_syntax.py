"""Go templates, as much of them as scheduler_perf's files use: from text to a tree.

Text with actions in ``{{ }}``: a value, ``if``/``else``/``end``, ``range``, and variables. A value
is a field of the dot, a variable, a literal or a function with arguments; ``|`` hands it on as the
last argument. Everything else of Go's language is refused by its name, with the line.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any, final

from bayplan.perf.template_functions import FUNCTIONS
from bayplan.problems import listed, suggestion

KEYWORDS = ("else", "end", "if", "range")
#: Go's, and not here.
_UNKNOWN_KEYWORDS = frozenset(("block", "break", "continue", "define", "template", "with"))

_ACTION = re.compile(r"\{\{(-\s)?(.*?)(\s-)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<raw>`[^`]*`)
      | (?P<number>[-+]?\d+(?:\.\d+)?)
      | (?P<variable>\$\w*(?:\.\w+)*)
      | (?P<field>(?:\.\w+)+|\.)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign>:=|=|\||\(|\)|,)
    )""",
    re.VERBOSE,
)
_CONSTANTS = {"true": True, "false": False, "nil": None}


class TemplateError(Exception):
    """A template that cannot be read, or cannot be filled. One line, with the line it is about."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")


# ---- the tree ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Reference:
    """A field of the dot or of a variable; without fields the thing itself."""

    variable: str  # "" for the dot
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: "tuple[Value, ...]"


Value = Literal | Reference | Call


@dataclass(frozen=True, slots=True)
class Put:
    """Write a value."""

    value: Value
    line: int


@dataclass(frozen=True, slots=True)
class Assign:
    variable: str
    value: Value
    line: int


@dataclass(frozen=True, slots=True)
class If:
    condition: Value
    then: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]"
    line: int


@dataclass(frozen=True, slots=True)
class Range:
    """``variable``: holds the element, too; "" where it is not named."""

    variable: str
    value: Value
    body: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]"
    line: int


Node = Text | Put | Assign | If | Range


# ---- text and actions ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Action:
    tokens: tuple[tuple[str, str], ...]
    line: int

    @property
    def keyword(self) -> str:
        kind, text = self.tokens[0]
        return text if kind == "word" and text in KEYWORDS else ""


def parse(text: str) -> tuple[Node, ...]:
    """Raises TemplateError."""
    parser = _Parser(list(_pieces(text)), text.count("\n") + 1)
    nodes, last = parser.nodes(())
    assert last is None
    return nodes


def _pieces(text: str) -> Iterator[Text | _Action]:
    position, trims_after = 0, False
    for found in _ACTION.finditer(text):
        trims_before, inside, trims_next = found.groups()
        plain = text[position : found.start()]
        plain = plain.lstrip() if trims_after else plain
        plain = plain.rstrip() if trims_before else plain
        if plain:
            yield Text(plain)
        position, trims_after = found.end(), bool(trims_next)
        if not inside.strip().startswith("/*"):
            line = text.count("\n", 0, found.start()) + 1
            yield _Action(_tokens(inside, line), line)
    rest = text[position:].lstrip() if trims_after else text[position:]
    if "{{" in rest:
        opened = text.count("\n", 0, text.index("{{", position)) + 1
        raise TemplateError(opened, "found {{, wanted }} after it")
    if rest:
        yield Text(rest)


def _tokens(inside: str, line: int) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    position = 0
    inside = inside.rstrip()
    while position < len(inside):
        token = _TOKEN.match(inside, position)
        if token is None:
            raise TemplateError(line, f"cannot read {json.dumps(inside[position:].strip())}")
        assert token.lastgroup is not None
        found.append((token.lastgroup, token[token.lastgroup]))
        position = token.end()
    if not found:
        raise TemplateError(line, "found {{}}, wanted something in it")
    return tuple(found)


# ---- the parser ----------------------------------------------------------------------------


@final
class _Parser:
    def __init__(self, pieces: list[Text | _Action], last_line: int) -> None:
        self._pieces = iter(pieces)
        self._last_line = last_line

    def nodes(self, ends: tuple[str, ...]) -> tuple[tuple[Node, ...], _Action | None]:
        """What stands before an action that ends it, and that action; ``()``: up to the end."""
        found: list[Node] = []
        for piece in self._pieces:
            if isinstance(piece, Text):
                found.append(piece)
            elif piece.keyword in ("else", "end"):
                if piece.keyword not in ends:
                    raise TemplateError(piece.line, f"found {piece.keyword}, nothing is open here")
                return tuple(found), piece
            else:
                found.append(self._node(piece))
        if ends:
            raise TemplateError(self._last_line, "found the end of the file, wanted {{end}}")
        return tuple(found), None

    def _node(self, action: _Action) -> Node:
        if action.keyword == "if":
            return self._if(action, action.tokens[1:])
        if action.keyword == "range":
            variable, rest = _declared(action.tokens[1:])
            value = _value(rest, action.line)
            body, last = self.nodes(("else", "end"))
            return Range(variable, value, body, self._otherwise(last), action.line)
        variable, rest = _declared(action.tokens)
        value = _value(rest, action.line)
        return Assign(variable, value, action.line) if variable else Put(value, action.line)

    def _if(self, action: _Action, tokens: tuple[tuple[str, str], ...]) -> If:
        condition = _value(tokens, action.line)
        then, last = self.nodes(("else", "end"))
        return If(condition, then, self._otherwise(last), action.line)

    def _otherwise(self, last: _Action | None) -> tuple[Node, ...]:
        assert last is not None
        if last.keyword == "end":
            return ()
        if len(last.tokens) > 1 and last.tokens[1] == ("word", "if"):
            return (self._if(last, last.tokens[2:]),)
        return self.nodes(("end",))[0]


def _declared(
    tokens: tuple[tuple[str, str], ...],
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """("$x", the rest) of ``$x := …``; ("", all of it) of anything else."""
    if len(tokens) > 2 and tokens[0][0] == "variable" and tokens[1] in _ASSIGNMENTS:
        return tokens[0][1], tokens[2:]
    return "", tokens


_ASSIGNMENTS = (("sign", ":="), ("sign", "="))


def _value(tokens: tuple[tuple[str, str], ...], line: int) -> Value:
    reader = _Expression(tokens, line)
    value = reader.pipeline()
    reader.expect_end()
    return value


@final
class _Expression:
    """Reads one value from an action's tokens."""

    def __init__(self, tokens: tuple[tuple[str, str], ...], line: int) -> None:
        self._tokens = tokens
        self._line = line
        self._at = 0

    def _next(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def expect_end(self) -> None:
        kind, text = self._next()
        if kind != "end":
            raise TemplateError(self._line, f'found "{text}", wanted }}}}')

    def pipeline(self) -> Value:
        value = self._command(())
        while self._next() == ("sign", "|"):
            self._at += 1
            value = self._command((value,))
        return value

    def _command(self, piped: tuple[Value, ...]) -> Value:
        """``piped``: what a pipe hands on; it is the last argument."""
        kind, text = self._next()
        if kind == "word" and text not in _CONSTANTS:
            self._at += 1
            return self._call(text, (*self._operands(), *piped))
        if piped:
            raise TemplateError(self._line, 'what follows "|" has to be a function')
        return self._operand()

    def _call(self, name: str, arguments: tuple[Value, ...]) -> Call:
        function = FUNCTIONS[self._function(name)]
        try:
            signature(function).bind(*arguments)
        except TypeError:
            found = f"{name} was given {len(arguments)} values, which it does not take"
            raise TemplateError(self._line, found) from None
        return Call(name, arguments)

    def _function(self, name: str) -> str:
        if name in FUNCTIONS:
            return name
        if name in _UNKNOWN_KEYWORDS or name in KEYWORDS:
            known = listed(KEYWORDS)
            raise TemplateError(self._line, f'found "{name}", wanted a value or {known}')
        hint = suggestion(name, FUNCTIONS) or f"known are {', '.join(sorted(FUNCTIONS))}"
        raise TemplateError(self._line, f'no function "{name}"; {hint}')

    def _operands(self) -> Iterator[Value]:
        while self._next()[0] != "end" and self._next() not in (("sign", "|"), ("sign", ")")):
            yield self._operand()

    def _operand(self) -> Value:
        kind, text = self._next()
        self._at += 1
        if kind == "string":
            return Literal(json.loads(text))
        if kind == "raw":
            return Literal(text[1:-1])
        if kind == "number":
            return Literal(float(text) if "." in text else int(text))
        if kind == "variable":
            name, *fields = text.split(".")
            return Reference(name, tuple(fields))
        if kind == "field":
            return Reference("", tuple(filter(None, text.split("."))))
        if kind == "word" and text in _CONSTANTS:
            return Literal(_CONSTANTS[text])
        if (kind, text) == ("sign", "("):
            value = self.pipeline()
            if self._next() != ("sign", ")"):
                raise TemplateError(self._line, 'found no ")" for a "("')
            self._at += 1
            return value
        if kind == "word":
            return self._call(text, ())
        raise TemplateError(self._line, f'found "{text}", wanted a value')
