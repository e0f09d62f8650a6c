"""Where a path of a document stands in its text: line and column.

A path is as problems have it: `profiles[0].plugins.score.enabled[2].name`. A key may contain dots.
Of a path that the text does not have, the place is that of its nearest part, as of the mapping
that lacks a field.
"""

import re
from typing import Any, NamedTuple, cast

import yaml

_INDEX = re.compile(r"\[(\d+)\]")
_END_OF_KEY = (".", "[")


class Place(NamedTuple):
    """Both count from 1."""

    line: int
    column: int


def place_in(text: str, path: str) -> Place | None:
    """The place of ``path`` in one document of YAML or JSON; None: the text is not readable, or
    has nothing on the path."""
    try:
        # JSON may be indented with tabs, which are as wide as a space here.
        node: Any = yaml.compose(text.replace("\t", " "), Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None
    mark: Any = None
    while node is not None and path:
        if isinstance(node, yaml.MappingNode):
            mark, node, path = _member(node, path) or (mark, None, "")
        elif isinstance(node, yaml.SequenceNode):
            mark, node, path = _item(node, path) or (mark, None, "")
        else:
            break
    return None if mark is None else Place(mark.line + 1, mark.column + 1)


def _member(node: yaml.MappingNode, path: str) -> tuple[Any, Any, str] | None:
    """(mark of the key, value, the path below it)"""
    for key, value in cast("list[tuple[Any, Any]]", node.value):
        name = str(key.value)
        below = path.removeprefix(name)
        if path.startswith(name) and (not below or below.startswith(_END_OF_KEY)):
            return key.start_mark, value, below.removeprefix(".")
    return None


def _item(node: yaml.SequenceNode, path: str) -> tuple[Any, Any, str] | None:
    match = _INDEX.match(path)
    items = cast("list[Any]", node.value)
    if match is None or int(match[1]) >= len(items):
        return None
    item = items[int(match[1])]
    return item.start_mark, item, path[match.end() :].removeprefix(".")
