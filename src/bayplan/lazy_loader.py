"""What is made at its first use: the one lazy loader of code, and the types that msgspec decodes.

A table names the place of each value as "module:attribute", as entry points of packages do. The
tables are the public names of `bayplan`, the commands, the plugins in the tree, and what a command
needs for one of its options. All other imports stand at the head of a module; see
docs/decisions/0016.
"""

import importlib
import threading
from typing import Any, TypeVar

T = TypeVar("T")

_building = threading.Lock()
_built: set[Any] = set()


def load(place: str) -> Any:
    """The value at "module:attribute", or the module at "module". Imports the module at the first
    call. Raises ImportError for a library that is not installed."""
    module_name, _, attribute = place.partition(":")
    module = importlib.import_module(module_name)
    return getattr(module, attribute) if attribute else module


def built(kind: type[T]) -> type[T]:
    """``kind``, a type that any thread may now decode.

    msgspec collects what it needs of a type of structs when it first decodes the type. If a second
    thread decodes the type, or a type that contains it, in that moment, msgspec 0.22 reads a
    half-built description and the process crashes. So one thread at a time builds types.
    """
    if kind not in _built:
        with _building:
            load("msgspec.json:Decoder")(kind)
            _built.add(kind)
    return kind
