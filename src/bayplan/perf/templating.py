"""Filling a template: the tree of `template_syntax` with values.

Strict where Go is not: what would be printed as ``<no value>`` is an error that names the
parameter, since an object with such a text in it is never meant.
"""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any, final

from bayplan.perf.template_functions import FUNCTIONS, FunctionError
from bayplan.perf.template_syntax import (
    Assign,
    Call,
    If,
    Literal,
    Node,
    Put,
    Range,
    Reference,
    TemplateError,
    Text,
    Value,
    parse,
)

#: From this power of ten on Go prints a float with an exponent.
_EXPONENT_FROM = 6


@final
class Template:
    """One template. Raises TemplateError when it cannot be read."""

    def __init__(self, text: str) -> None:
        self._nodes = parse(text)

    @cached_property
    def is_constant(self) -> bool:
        """Whether it says the same whatever it is filled with."""
        return all(isinstance(node, Text) for node in self._nodes)

    def filled(self, values: Mapping[str, Any]) -> str:
        """The text. Raises TemplateError."""
        parts: list[str] = []
        _Filling(values, parts).write(self._nodes, values)
        return "".join(parts)


@final
class _Filling:
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
        found = self._variables[value.variable] if value.variable else dot
        for name in value.fields:
            if not isinstance(found, Mapping):
                raise FunctionError(f'no field "{name}" in {json.dumps(found)}')
            found = found.get(name)
        return found


def _printed(value: Any, node: Put) -> str:
    if value is None:
        reference = node.value
        name = ".".join(reference.fields) if isinstance(reference, Reference) else ""
        wanted = f'no parameter "{name}"' if name else "found no value to write"
        raise FunctionError(wanted)
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
