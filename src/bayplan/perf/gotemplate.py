"""Go templates, as far as the files of scheduler_perf use them: parsing, functions, execution.

A template is text with actions in ``{{ }}``: a value, ``if``/``else``/``end``, ``range``, and
variables. A value is a field of the dot, a variable, a literal, or a function with arguments; ``|``
passes it on as the last argument. Other parts of Go's language are refused by name, with the line.

The functions are upstream's own and those of Go that the files use. Upstream's functions compute
with floats and truncate the result, whatever the types of the arguments
(test/integration/scheduler_perf/operations.go). A function without a result raises FunctionError.

Execution is stricter than Go's: where Go prints ``<no value>``, this module raises an error that
names the parameter, for an object with such a text is never intended.
"""

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from inspect import signature
from typing import Any, final

from bayplan.problems import listed, suggestion

# ---- template syntax ------------------------------------------------------------------------


KEYWORDS = ("else", "end", "if", "range")
#: Keywords of Go that are not supported here.
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
    """A template that cannot be parsed or executed. The message is one line with the line
    number."""

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
    """A field of the dot or of a variable; without fields, the dot or the variable itself."""

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
    """A loop. ``variable``: the name of the variable for the element; "": none."""

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
    for action in _ACTION.finditer(text):
        trims_before, inside, trims_next = action.groups()
        plain = text[position : action.start()]
        plain = plain.lstrip() if trims_after else plain
        plain = plain.rstrip() if trims_before else plain
        if plain:
            yield Text(plain)
        position, trims_after = action.end(), bool(trims_next)
        if not inside.strip().startswith("/*"):
            line = text.count("\n", 0, action.start()) + 1
            yield _Action(_tokens(inside, line), line)
    remainder = text[position:].lstrip() if trims_after else text[position:]
    if "{{" in remainder:
        opened = text.count("\n", 0, text.index("{{", position)) + 1
        raise TemplateError(opened, "found {{, wanted }} after it")
    if remainder:
        yield Text(remainder)


def _tokens(inside: str, line: int) -> tuple[tuple[str, str], ...]:
    tokens: list[tuple[str, str]] = []
    position = 0
    inside = inside.rstrip()
    while position < len(inside):
        token = _TOKEN.match(inside, position)
        if token is None:
            raise TemplateError(line, f"cannot read {json.dumps(inside[position:].strip())}")
        assert token.lastgroup is not None
        tokens.append((token.lastgroup, token[token.lastgroup]))
        position = token.end()
    if not tokens:
        raise TemplateError(line, "found {{}}, wanted something in it")
    return tuple(tokens)


# ---- the parser ----------------------------------------------------------------------------


@final
class _Parser:
    def __init__(self, pieces: list[Text | _Action], last_line: int) -> None:
        self._pieces = iter(pieces)
        self._last_line = last_line

    def nodes(self, ends: tuple[str, ...]) -> tuple[tuple[Node, ...], _Action | None]:
        """The nodes before an action that ends them, and that action; ``()``: up to the end."""
        children: list[Node] = []
        for piece in self._pieces:
            if isinstance(piece, Text):
                children.append(piece)
            elif piece.keyword in ("else", "end"):
                if piece.keyword not in ends:
                    raise TemplateError(piece.line, f"found {piece.keyword}, nothing is open here")
                return tuple(children), piece
            else:
                children.append(self._node(piece))
        if ends:
            raise TemplateError(self._last_line, "found the end of the file, wanted {{end}}")
        return tuple(children), None

    def _node(self, action: _Action) -> Node:
        if action.keyword == "if":
            return self._if(action, action.tokens[1:])
        if action.keyword == "range":
            variable, remainder = _declared(action.tokens[1:])
            value = _value(remainder, action.line)
            body, last = self.nodes(("else", "end"))
            return Range(variable, value, body, self._otherwise(last), action.line)
        variable, remainder = _declared(action.tokens)
        value = _value(remainder, action.line)
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
        """``piped``: the value before the pipe; it is the last argument."""
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
            text = f"{name} was given {len(arguments)} values, which it does not take"
            raise TemplateError(self._line, text) from None
        return Call(name, arguments)

    def _function(self, name: str) -> str:
        if name in FUNCTIONS:
            return name
        if name in _UNKNOWN_KEYWORDS or name in KEYWORDS:
            keywords = listed(KEYWORDS)
            raise TemplateError(self._line, f'found "{name}", wanted a value or {keywords}')
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


# ---- template functions ---------------------------------------------------------------------


class FunctionError(Exception):
    """A function got an argument that it does not accept."""


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
    raise FunctionError(f"found {_shown(value)}, wanted a number")


def _integer(value: Any) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise FunctionError(f"found {_shown(value)}, wanted a whole number") from None
    return int(_number(value))


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, default=str)


def _sum(*numbers: Any) -> float:
    return math.fsum(map(_number, numbers))


def _product(*numbers: Any) -> float:
    return math.prod(map(_number, numbers), start=1.0)


def _difference(left: Any, right: Any) -> float:
    return _number(left) - _number(right)


def _quotient(left: Any, right: Any) -> float:
    divisor = _number(right)
    if not divisor:
        raise FunctionError("division by zero")
    return _number(left) / divisor


def _remainder(left: Any, right: Any) -> int:
    """The remainder with the sign of ``left``, as Go's %."""
    divisor = int(_number(right))
    if not divisor:
        raise FunctionError("division by zero")
    return int(math.fmod(int(_number(left)), divisor))


def _as_json(value: Any) -> str:
    """Compact JSON with sorted keys and whole numbers without a fraction, as Go's encoder writes
    it."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _equals_one(value: Any, *candidates: Any) -> bool:
    return any(value == candidate for candidate in candidates)


def _first_true(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


def _first_false(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def ordered(left: Any, right: Any) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return compare(left, right)
        return compare(_number(left), _number(right))

    return ordered


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "AddFloat": _sum,
    "AddInt": lambda *numbers: int(_sum(*numbers)),
    "DivideFloat": _quotient,
    "DivideInt": lambda left, right: int(_quotient(left, right)),
    "Int": _integer,
    "JSON": _as_json,
    "Mod": _remainder,
    "MultiplyFloat": _product,
    "MultiplyInt": lambda *numbers: int(_product(*numbers)),
    "SubtractFloat": _difference,
    "SubtractInt": lambda left, right: int(_difference(left, right)),
    "and": _first_false,
    "eq": _equals_one,
    "ge": _ordered(operator.ge),
    "gt": _ordered(operator.gt),
    "le": _ordered(operator.le),
    "lt": _ordered(operator.lt),
    "ne": lambda left, right: left != right,
    "not": lambda value: not value,
    "or": _first_true,
}


# ---- templating -----------------------------------------------------------------------------


#: From this power of ten on Go prints a float with an exponent.
_EXPONENT_FROM = 6


@final
class Template:
    """One template. Raises TemplateError when it cannot be read."""

    def __init__(self, text: str) -> None:
        self._nodes = parse(text)

    @cached_property
    def is_constant(self) -> bool:
        """Whether the text does not depend on the values."""
        return all(isinstance(node, Text) for node in self._nodes)

    def filled(self, values: Mapping[str, Any]) -> str:
        """The text. Raises TemplateError."""
        parts: list[str] = []
        _Renderer(values, parts).write(self._nodes, values)
        return "".join(parts)


@final
class _Renderer:
    def __init__(self, values: Mapping[str, Any], parts: list[str]) -> None:
        self._variables: dict[str, Any] = {"$": values}
        self._parts = parts

    def write(self, nodes: Iterable[Node], dot: Any) -> None:
        for node in nodes:
            if isinstance(node, Text):
                self._parts.append(node.text)
                continue
            try:
                self._do(node, dot)
            except FunctionError as problem:
                raise TemplateError(node.line, str(problem)) from None

    def _do(self, node: Put | Assign | If | Range, dot: Any) -> None:
        if isinstance(node, Put):
            self._parts.append(_printed(self._of(node.value, dot), node))
        elif isinstance(node, Assign):
            self._variables[node.variable] = self._of(node.value, dot)
        elif isinstance(node, If):
            self.write(node.then if self._of(node.condition, dot) else node.otherwise, dot)
        else:
            self._repeat(node, dot)

    def _repeat(self, node: Range, dot: Any) -> None:
        over = self._of(node.value, dot)
        if isinstance(over, int) and not isinstance(over, bool):
            over = range(over)
        elif not isinstance(over, list | tuple):
            raise FunctionError(f"found {json.dumps(over)}, wanted a whole number or a list")
        if not over:
            self.write(node.otherwise, dot)
        for element in over:
            if node.variable:
                self._variables[node.variable] = element
            self.write(node.body, element)

    def _of(self, value: Value, dot: Any) -> Any:
        if isinstance(value, Literal):
            return value.value
        if isinstance(value, Call):
            arguments = [self._of(argument, dot) for argument in value.arguments]
            return FUNCTIONS[value.function](*arguments)
        if value.variable and value.variable not in self._variables:
            raise FunctionError(f'no variable "{value.variable}"')
        result = self._variables[value.variable] if value.variable else dot
        for name in value.fields:
            if not isinstance(result, Mapping):
                raise FunctionError(f'no field "{name}" in {json.dumps(result)}')
            result = result.get(name)
        return result


def _printed(value: Any, node: Put) -> str:
    if value is None:
        reference = node.value
        name = ".".join(reference.fields) if isinstance(reference, Reference) else ""
        text = f'no parameter "{name}"' if name else "found no value to write"
        raise FunctionError(text)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _printed_float(value)
    if isinstance(value, str | int):
        return str(value)
    raise FunctionError(f"cannot write {json.dumps(value)}: hand it to JSON first")


def _printed_float(value: float) -> str:
    """As Go's %v: 5 is "5", 0.5 is "0.5", 1000000 is "1e+06"."""
    exact = Decimal(repr(value)).normalize()
    exponent = exact.adjusted()
    if value == 0 or -5 < exponent < _EXPONENT_FROM:
        return f"{exact:f}"
    digits, _, power = f"{exact:e}".partition("e")
    return f"{digits}e{power[0]}{int(power[1:]):02d}"
