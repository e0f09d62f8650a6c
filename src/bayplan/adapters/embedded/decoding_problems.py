"""Problems for the errors of the decoder, in the words of all other problems."""

import re
from typing import Any

from bayplan.api.objects import DecodeError
from bayplan.problems import Problem, joined, shown

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


def of_decoding(failure: DecodeError, content: Any) -> Problem:
    """A problem for a field of the wrong type, from the message of the decoder."""
    message = str(failure).partition(": ")[2]
    parts = _MSGSPEC_PLACE.fullmatch(message.replace("\n", " "))
    assert parts is not None
    path = (parts["path"] or "").rpartition("$")[2].removeprefix(".")
    expected = _EXPECTED.search(parts["said"])
    if expected is None:
        return Problem(path, parts["said"])
    types = [word for word in expected["wanted"].split(" | ") if word != "null"]
    path, value = _culprit(content, path, types)
    text = shown(value) if value is not None else _TYPE_WORDS.get(expected["found"], "nothing")
    expected_types = " or ".join(_TYPE_WORDS.get(word, word) for word in types)
    return Problem(path, f"found {text}, wanted {expected_types}")


def _culprit(content: Any, path: str, types: list[str]) -> tuple[str, Any]:
    """(path, value) of the wrong field. For members of a mapping, the decoder does not name the
    key."""
    if not path.endswith("[...]"):
        return path, _value_at(content, path)
    path = path.removesuffix("[...]")
    members = _value_at(content, path)
    if isinstance(members, dict):
        for name, value in members.items():
            if _TYPE_NAMES.get(type(value)) not in types:
                return joined(path, str(name)), value
    return path, members


def _value_at(content: Any, path: str) -> Any:
    """The value at a decoder's path; None if the path cannot be followed."""
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if isinstance(content, dict) and name in content:
            content = content[name]
        elif isinstance(content, list) and index and int(index) < len(content):
            content = content[int(index)]
        else:
            return None
    return content
