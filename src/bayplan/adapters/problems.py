"""What is wrong with an input, in the words every refusal uses: where, found, wanted, nearest."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from bayplan.api.objects import DecodeError

#: How much of a value a message shows.
_SHOWN_LENGTH = 60

_MSGSPEC_PLACE = re.compile(r"(?P<said>.*?)(?: - at `(?P<path>[^`]*)`)?")
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<found>[^`]*)`")
_TYPE_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a mapping",
    "str": "a string",
}
_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    dict: "object",
    float: "float",
    int: "int",
    list: "array",
    str: "str",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; ``path`` as in `spec.containers[0].ports[1].hostPort`."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text

    def under(self, prefix: str) -> "Problem":
        """The same, seen from further outside."""
        return Problem(join(prefix, self.path), self.text)


def wrong(path: str, value: Any, wanted: str, known: Collection[str] = ()) -> Problem:
    """A value that is not what is wanted there; ``known``: names it may be a misspelling of."""
    return Problem(path, f"found {shown(value)}, wanted {wanted}{_hint(value, known)}")


def unknown_name(path: str, name: str, wanted: str, known: Collection[str]) -> Problem:
    """A member that does not exist there."""
    return Problem(path, f'found "{name}", wanted {wanted}{_hint(name, known)}')


def _hint(value: Any, known: Collection[str]) -> str:
    close = nearest(value, known) if isinstance(value, str) else None
    return f'; did you mean "{close}"?' if close is not None else ""


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that looks most like ``name``, if one does."""
    folded = {one.casefold(): one for one in known}
    close = get_close_matches(name.casefold(), folded, n=1)
    return folded[close[0]] if close else None


def shown(value: Any) -> str:
    """A value as a message shows it: short, on one line."""
    if value is None or value == "":
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + "..."


def join(prefix: str, path: str) -> str:
    """One path inside another: `spec` and `nodeName`, `items[0]` and `spec`, `spec` and `[1]`."""
    if not prefix or not path or path.startswith("["):
        return prefix + path
    return f"{prefix}.{path}"


def of_decoding(failure: DecodeError, content: Any) -> Problem:
    """A field that is of another type than the API's, from the decoder's words."""
    message = str(failure).partition(": ")[2]
    parts = _MSGSPEC_PLACE.fullmatch(message.replace("\n", " "))
    assert parts is not None
    path = (parts["path"] or "").rpartition("$")[2].removeprefix(".")
    expected = _EXPECTED.search(parts["said"])
    if expected is None:
        return Problem(path, parts["said"])
    types = [word for word in expected["wanted"].split(" | ") if word != "null"]
    path, value = _culprit(content, path, types)
    found = shown(value) if value is not None else _TYPE_WORDS.get(expected["found"], "nothing")
    wanted = " or ".join(_TYPE_WORDS.get(word, word) for word in types)
    return Problem(path, f"found {found}, wanted {wanted}")


def _culprit(content: Any, path: str, types: list[str]) -> tuple[str, Any]:
    """(path, value) of what is wrong: of a mapping's members the decoder does not name the one."""
    if not path.endswith("[...]"):
        return path, _value_at(content, path)
    path = path.removesuffix("[...]")
    members = _value_at(content, path)
    if isinstance(members, dict):
        for name, value in members.items():
            if _TYPE_NAMES.get(type(value)) not in types:
                return join(path, str(name)), value
    return path, members


def _value_at(content: Any, path: str) -> Any:
    """What is at a decoder's path; None where it cannot be followed."""
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if isinstance(content, dict) and name in content:
            content = content[name]
        elif isinstance(content, list) and index and int(index) < len(content):
            content = content[int(index)]
        else:
            return None
    return content
