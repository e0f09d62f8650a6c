"""The content of an object as text, to detect changes."""

from collections.abc import Iterable, Iterator, Mapping, Set
from enum import Enum
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from bayplan.state.columns import Column

_PLAIN: tuple[type, ...] = (str, bytes, int, float, complex, bool, type(None), Enum, range, slice)
#: Nothing that Reserve changes is nested deeper.
_DEPTH_MAX = 40


def fingerprint(value: Any, leave_out: Iterable[str] = ()) -> str:
    """Equal at two moments if nothing reachable from ``value`` differs.

    ``leave_out``: attributes of ``value`` itself that are not part of its state.
    """
    names, parts = set(leave_out), dict(_attributes(value))
    shared_parts = tuple(
        id(part) for name, part in parts.items() if name in names and part is not None
    )
    canonical_parts = (
        (name, _canonical(part, shared_parts)) for name, part in parts.items() if name not in names
    )
    return repr(sorted(canonical_parts))


def _canonical(value: Any, above: tuple[int, ...]) -> Any:
    """Nested tuples of plain values, equal for equal content."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if id(value) in above or len(above) > _DEPTH_MAX:
        return f"<{value.__class__.__name__} above>"
    inside = (*above, id(value))
    if isinstance(value, np.ndarray):
        array = cast(npt.NDArray[Any], value)
        return str(array.dtype), array.shape, array.tobytes()
    if isinstance(value, Mapping):
        pairs = cast(Mapping[Any, Any], value).items()
        return "map", sorted((repr(_canonical(k, inside)), _canonical(v, inside)) for k, v in pairs)
    if isinstance(value, Set):
        return "set", sorted(repr(_canonical(each, inside)) for each in cast(Set[Any], value))
    if isinstance(value, Iterable) and not isinstance(value, Iterator):
        members = cast(Iterable[Any], value)
        return type(members).__name__, [_canonical(each, inside) for each in members]
    if isinstance(value, Iterator) or callable(cast(object, value)):
        return "<code>"
    parts = sorted((name, _canonical(part, inside)) for name, part in _attributes(value))
    return type(value).__name__, parts


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Instance attributes, from its dictionary and from slots."""
    yield from getattr(value, "__dict__", {}).items()
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            attribute = getattr(value, name, _ABSENT)
            if attribute is not _ABSENT and not name.startswith("__"):
                yield name, attribute


_ABSENT = object()


def columns_of(value: Any) -> dict[str, Column]:
    """Every column of a table, by its path."""
    return dict(_columns(value, "", ()))


def _columns(value: Any, path: str, above: tuple[int, ...]) -> Iterator[tuple[str, Column]]:
    if isinstance(value, Column):
        yield path, value
    elif isinstance(value, dict):
        for key, part in cast(dict[Any, Any], value).items():
            yield from _columns(part, f"{path}[{key!r}]", above)
    elif isinstance(value, list):
        for index, part in enumerate(cast(list[Any], value)):
            yield from _columns(part, f"{path}[{index}]", above)
    elif type(value).__module__.startswith("bayplan.state.") and id(value) not in above:
        for name, part in _attributes(value):
            yield from _columns(part, f"{path}.{name}", (*above, id(value)))
