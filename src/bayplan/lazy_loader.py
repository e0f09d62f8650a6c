"""The one lazy loader: code that is imported at its first use.

A table names the place of each value as "module:attribute", as entry points of packages do. The
tables are the public names of `bayplan`, the commands, the plugins in the tree, and what a command
needs for one of its options. All other imports stand at the head of a module; see
docs/decisions/0016.
"""

import importlib
from typing import Any


def load(place: str) -> Any:
    """The value at "module:attribute". Imports the module at the first call."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
