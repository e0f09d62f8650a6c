"""A defect of Bayplan as one line: what was raised, where, and which object was being worked on.

The object is found in the local variables of the functions that the exception passed through. The
innermost function that has one names it: an object of the API, its key, or its content as plain
values. So no code has to tell what it works on, and the line names the object wherever the defect
is. Expected failures have exceptions of their own and do not come here.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, cast

from msgspec import Struct

from bayplan.printable import printable

#: Any value but "" shows tracebacks.
DEBUG_VARIABLE = "BAYPLAN_DEBUG"
REPORT = (
    "this is a bug: please report it with the input, or with what `bayplan capture --redact` "
    "writes of the cluster"
)

_PACKAGE = Path(__file__).parent
_MESSAGE_LENGTH_MAX = 500
_NAME_LENGTH_MAX = 320
#: The fields of an object's key (objects/keys.py, which is a layer above).
_KEY_FIELDS = ("kind", "namespace", "name")
#: Variables that hold what a function works on are looked at first.
_FIRST_VARIABLES = ("key", "pod", "content", "node")


def shows_tracebacks() -> bool:
    return bool(os.environ.get(DEBUG_VARIABLE))


def internal_error(problem: BaseException) -> str:
    """The line about a defect."""
    hint = "" if shows_tracebacks() else f"; {DEBUG_VARIABLE}=1 shows the traceback"
    return f"internal error{_where(problem)}: {_named(problem)}; {REPORT}{hint}"


def _named(problem: BaseException) -> str:
    text = " ".join(str(problem).split())
    if len(text) > _MESSAGE_LENGTH_MAX:
        text = f"{text[:_MESSAGE_LENGTH_MAX]}…"
    name = type(problem).__name__
    return printable(f"{name}: {text}" if text else name)


def _where(problem: BaseException) -> str:
    """ " at Pod default/web (sim/loop.py, line 9, in run)": what is known of it."""
    frames = list(_frames(problem))
    named = next(filter(None, (_object_in(frame.f_locals) for frame, _ in frames)), None)
    place = next(((f, line) for f, line in frames if _is_own(f)), None)
    at = "" if named is None else f" at {printable(named[:_NAME_LENGTH_MAX])}"
    if place is None:
        return at
    frame, line = place
    file = Path(frame.f_code.co_filename).relative_to(_PACKAGE)
    return f"{at} ({file}, line {line}, in {frame.f_code.co_name})"


def _frames(problem: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames that an exception passed through, the innermost first, then those of its cause."""
    entries: list[tuple[FrameType, int]] = []
    traceback = problem.__traceback__
    while traceback is not None:
        entries.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    yield from reversed(entries)
    if problem.__cause__ is not None:
        yield from _frames(problem.__cause__)


def _is_own(frame: FrameType) -> bool:
    return Path(frame.f_code.co_filename).is_relative_to(_PACKAGE)


def _object_in(variables: Mapping[str, Any]) -> str | None:
    first = [variables[name] for name in _FIRST_VARIABLES if name in variables]
    for value in (*first, *variables.values()):
        name = _name_of(value)
        if name is not None:
            return name
    return None


def _name_of(value: Any) -> str | None:
    """ "Pod default/web"; None: the value is no object."""
    if isinstance(value, tuple) and getattr(value, "_fields", ()) == _KEY_FIELDS:
        return str(cast("tuple[str, ...]", value))
    if isinstance(value, dict):
        content = cast("dict[str, Any]", value)
        return _joined(content.get("kind"), content.get("metadata"))
    if isinstance(value, Struct) and "metadata" in value.__struct_fields__:
        return _joined(type(value).__name__, getattr(value, "metadata", None))
    return None


def _joined(kind: Any, metadata: Any) -> str | None:
    is_content = isinstance(metadata, dict)
    meta: dict[str, Any] = cast("dict[str, Any]", metadata) if is_content else {}
    name = meta.get("name") if is_content else getattr(metadata, "name", None)
    namespace = meta.get("namespace") if is_content else getattr(metadata, "namespace", None)
    if not isinstance(kind, str) or not isinstance(name, str) or not name:
        return None
    return f"{kind} {namespace}/{name}" if isinstance(namespace, str) else f"{kind} {name}"
