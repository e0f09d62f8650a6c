"""Kinds that a plugin's code looks up through `handle.objects`, found in its bytecode.

A kind that a plugin looks up but does not declare is not watched, and `handle.objects` raises: at
start if `setup` makes the call, or much later at an extension point, for every pod. So calls whose
argument is a literal or a constant of the module are found before the start. Other calls raise when
they are made.
"""

import dis
import re
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from bayplan.framework.plugin import Plugin

#: "example.com/v1 Quota", "v1 Service".
_KIND = re.compile(r"(?:[a-z0-9.-]+/)?v[0-9][a-z0-9]* [A-Z]\w*")
_METHOD = "objects"
_OWN_MODULES = ("bayplan.framework.", "bayplan.plugins.")
#: Weak: a class that a function or a notebook defines can refer to a whole scheduler.
_KINDS_BY_CLASS: WeakKeyDictionary[type[Any], frozenset[str]] = WeakKeyDictionary()


def undeclared_kinds(plugin: type[Plugin]) -> list[str]:
    """Kinds that a method looks up and `kinds` does not list, sorted.

    Classes of Bayplan itself are not searched at each start: a test searches them.
    """
    owners = [owner for owner in plugin.__mro__ if not owner.__module__.startswith(_OWN_MODULES)]
    return sorted({kind for owner in owners for kind in looked_up_kinds(owner)} - {*plugin.kinds})


def looked_up_kinds(owner: type[Any]) -> frozenset[str]:
    """Kinds that the methods look up that this class itself defines."""
    kinds = _KINDS_BY_CLASS.get(owner)
    if kinds is None:
        kinds = frozenset(kind for method in _methods(owner) for kind in _looked_up(method))
        _KINDS_BY_CLASS[owner] = kinds
    return kinds


def _methods(owner: type[Any]) -> Iterator[FunctionType]:
    for member in vars(owner).values():
        function: Any = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if isinstance(function, FunctionType):
            yield function


def _looked_up(method: FunctionType) -> Iterator[str]:
    for code in _with_inner(method.__code__):
        if _METHOD not in code.co_names:
            continue
        previous: dis.Instruction | None = None
        for instruction in dis.get_instructions(code):
            if previous is not None and _loads_method(previous):
                argument = _constant(instruction, method)
                if isinstance(argument, str) and _KIND.fullmatch(argument):
                    yield argument
            previous = instruction


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """A function's code and the code of functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _loads_method(instruction: dis.Instruction) -> bool:
    return instruction.opname in ("LOAD_METHOD", "LOAD_ATTR") and instruction.argval == _METHOD


def _constant(instruction: dis.Instruction, method: FunctionType) -> object:
    """The constant that an instruction loads; None if it is unknown before the code runs."""
    if instruction.opname == "LOAD_CONST":
        return instruction.argval
    if instruction.opname == "LOAD_GLOBAL":
        return method.__globals__.get(instruction.argval)
    return None
