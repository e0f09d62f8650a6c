"""Decodes plain values into structs, strictly, and reports all errors.

msgspec stops at the first error and does not suggest names. So the decoder first compares a value
with msgspec's description of the type. Each difference is a problem, and the decoder leaves out the
part with the problem. The rest always converts and can be checked further.
"""

import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct, inspect, structs

from bayplan.lazy_loader import built
from bayplan.problems import Problem, joined, listed, nearest, shown, suggestion

S = TypeVar("S", bound=Struct)

INT32_MAX = 2**31 - 1
#: Marks a value that is refused and left out.
_REFUSED: Any = object()


def decode(value: Any, kind: type[S], path: str) -> tuple[S | None, list[Problem]]:
    """A struct of ``kind``, and the problems of ``value``.

    Wrong fields have their defaults. The struct is None if a wrong field has no default.
    """
    if value == {}:
        # The usual args of a plugin. msgspec's description of a type takes longer than the start of
        # a plugin.
        with suppress(msgspec.ValidationError):
            return msgspec.convert({}, built(kind)), []
    problems: list[Problem] = []
    accepted = _Check(problems).of(value, type_info(kind), path)
    try:
        return msgspec.convert({} if accepted is _REFUSED else accepted, built(kind)), problems
    except msgspec.ValidationError as error:
        if not problems:
            problems.append(_as_problem(error, path))
        return None, problems


@lru_cache(maxsize=256)
def type_info(kind: type[Any]) -> inspect.Type:
    """msgspec's description of a type, which takes longer than a check by it."""
    return inspect.type_info(built(kind))


def _as_problem(error: msgspec.ValidationError, path: str) -> Problem:
    """A problem that only msgspec found. Its message ends with the place, as in `$.a.b`."""
    text, _, place = str(error).partition(" - at `$")
    return Problem(joined(path, place.rstrip("`").lstrip(".")), text)


class _Check:
    """Compares values with types, collects problems, and returns the valid parts."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems

    def of(self, value: Any, kind: inspect.Type, path: str, expected: str = "") -> Any:
        """``value`` without its wrong parts. ``expected``: the description of the type."""
        if isinstance(kind, inspect.Metadata):
            return self.of(value, kind.type, path, _description(kind) or expected)
        if isinstance(kind, inspect.UnionType):
            return self._union(value, kind, path, expected)
        if isinstance(kind, inspect.StructType):
            return self._struct(value, kind, path, expected or "a mapping")
        if isinstance(kind, inspect.DictType):
            return self._dict(value, kind, path, expected or "a mapping")
        if isinstance(kind, inspect.ListType | inspect.VarTupleType):
            return self._list(value, kind, path, expected or "a list")
        fault = _fault(value, kind)
        if fault is None:
            return value
        return self._refuse(path, shown(value), f"wanted {expected}" if expected else fault)

    def _refuse(self, path: str, actual: str, expected: str) -> Any:
        self._problems.append(Problem(path, actual, expected))
        return _REFUSED

    def _struct(self, value: Any, kind: inspect.StructType, path: str, expected: str) -> Any:
        if not isinstance(value, Mapping):
            return self._refuse(path, shown(value), f"wanted {expected}")
        mapping = cast("Mapping[str, Any]", value)
        fields = {field.encode_name: field for field in kind.fields}
        accepted: dict[str, Any] = {}
        for name, part in mapping.items():
            at = joined(path, name)
            if name not in fields:
                self._refuse(at, "unknown field", suggestion(name, fields))
                continue
            good = self.of(part, fields[name].type, at)
            if good is not _REFUSED:
                accepted[name] = good
        for name, field in fields.items():
            if field.required and name not in mapping:
                self._refuse(joined(path, name), "missing", _expectation(field.type))
        return accepted

    def _dict(self, value: Any, kind: inspect.DictType, path: str, expected: str) -> Any:
        if not isinstance(value, Mapping):
            return self._refuse(path, shown(value), f"wanted {expected}")
        mapping = cast("Mapping[str, Any]", value)
        accepted: dict[str, Any] = {}
        for name, part in mapping.items():
            good = self.of(part, kind.value_type, joined(path, name))
            if good is not _REFUSED:
                accepted[name] = good
        return accepted

    def _list(
        self, value: Any, kind: inspect.ListType | inspect.VarTupleType, path: str, expected: str
    ) -> Any:
        if not isinstance(value, list | tuple):
            return self._refuse(path, shown(value), f"wanted {expected}")
        accepted: list[Any] = []
        for index, part in enumerate(cast("Sequence[Any]", value)):
            good = self.of(part, kind.item_type, f"{path}[{index}]")
            if good is not _REFUSED:
                accepted.append(good)
            elif isinstance(kind.item_type, inspect.StructType):
                accepted.append({})  # so that later items keep their index
        return accepted

    def _union(self, value: Any, kind: inspect.UnionType, path: str, expected: str) -> Any:
        if value is None and kind.includes_none:
            return None
        # Report the problems of the member with the fewest problems.
        complaints: list[list[Problem]] = []
        for member in kind.types:
            if isinstance(member, inspect.NoneType):
                continue
            problems: list[Problem] = []
            accepted = _Check(problems).of(value, member, path, expected)
            if not problems:
                return accepted
            complaints.append(problems)
        self._problems += min(complaints, key=len)
        return _REFUSED


def _expectation(kind: inspect.Type) -> str:
    """The description of the type, from the problem of a wrong value."""
    problems: list[Problem] = []
    _Check(problems).of(None, kind, "")
    return problems[0].expected if problems else ""


def _description(kind: inspect.Metadata) -> str:
    schema = cast("Any", kind).extra_json_schema
    return schema.get("description", "") if schema else ""


def _fault(value: Any, kind: inspect.Type) -> str | None:
    """The expected value in place of a wrong scalar; None: the value is right, or msgspec checks
    it."""
    if isinstance(kind, inspect.BoolType):
        return None if isinstance(value, bool) else "wanted true or false"
    if isinstance(kind, inspect.IntType):
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return _range_fault(value, kind, "an integer") if is_integer else "wanted an integer"
    if isinstance(kind, inspect.FloatType):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return _range_fault(value, kind, "a number") if is_number else "wanted a number"
    if isinstance(kind, inspect.StrType):
        return _string_fault(value, kind)
    if isinstance(kind, inspect.BytesType):
        return None if _is_base64(value) else "wanted a base64 string"
    if isinstance(kind, inspect.LiteralType):
        return _choice_fault(value, [str(choice) for choice in kind.values])
    if isinstance(kind, inspect.EnumType):
        return _choice_fault(value, [str(member.value) for member in kind.cls])
    return None


def _range_fault(value: float, kind: inspect.IntType | inspect.FloatType, what: str) -> str | None:
    low, high = kind.ge, kind.le
    if (low is None or value >= low) and (high is None or value <= high):
        return None
    # Messages do not mention the limits of an integer type.
    if low is not None and high is not None and high < INT32_MAX:
        return f"wanted {what} from {low} to {high}"
    is_low = low is not None and value < low
    return f"wanted {what} of {low} or more" if is_low else f"wanted {what} of {high} or less"


def _string_fault(value: Any, kind: inspect.StrType) -> str | None:
    if not isinstance(value, str):
        return "wanted a string"
    if kind.min_length is not None and len(value) < kind.min_length:
        return "wanted a string that is not empty"
    if kind.pattern is not None and re.search(kind.pattern, value) is None:
        return f"wanted a string that matches {kind.pattern}"
    return None


def _choice_fault(value: Any, choices: list[str]) -> str | None:
    if value in choices:
        return None
    expected = f"wanted {listed(choices)}"
    match = nearest(value, choices) if isinstance(value, str) else None
    return expected if match is None else f'{expected}; did you mean "{match}"?'


def _is_base64(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        return False
    return True


# ---- paths ---------------------------------------------------------------------------------


def path_within(whole: Any, part: Any) -> str | None:
    """The path of the object ``part`` in ``whole``; None: ``whole`` does not contain it."""
    if whole is part:
        return ""
    for step, child in _children(whole):
        inner = path_within(child, part)
        if inner is not None:
            return joined(step, inner)
    return None


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Struct):
        for field in structs.fields(value):
            yield field.encode_name, getattr(value, field.name)
    elif isinstance(value, Mapping):
        yield from cast("Mapping[str, Any]", value).items()
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("Sequence[Any]", value)):
            yield f"[{index}]", item
