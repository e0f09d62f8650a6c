"""Pages of a long document: each is JSON, and none is longer than the bound.

Each page has the fields of the document; its lists, and its long objects, have a part of their
entries. What is not in a page is in the next one, so that nothing is left out: the lists
of all pages, one after the other, are those of the document. An entry that alone is too long for a
page, such as the explanation of a fix with a hundred new nodes, is divided in the same way: it is
on several pages, each with the short fields of the entry. A text is never divided.
(`Answer.page` is for a table that a person turns over: it bounds further lists.)
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from bayplan.answers.formats import written_document

#: An object that is longer than this part of a page is divided.
_SHARE = 10
#: Characters around a list that is not empty, and around an entry, at most.
_LENGTH_OF_LIST, _LENGTH_OF_ENTRY = 8, 8
#: By how much an entry of a list is indented more than the object with the list.
_INDENTATION = 4
#: (field, name of an entry in an object or None, entry)
_Entry = tuple[str, str | None, Any]


def pages_of(text: str, length_max: int) -> list[str]:
    """The document on pages of at most ``length_max`` characters. A text that is no object stays on
    one page."""
    if len(text) <= length_max:
        return [text]
    try:
        document: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return [text]
    if not isinstance(document, dict):
        return [text]
    parts = _parts_of_object(cast("dict[str, Any]", document), length_max, 0)
    return [_text(part) for part in parts] or [text]


def _parts_of_object(
    fields: dict[str, Any], length_max: int, indentation: int
) -> list[dict[str, Any]]:
    """Objects with all fields, of which lists and long objects have a part of their entries."""
    divided = [name for name, value in fields.items() if _is_divided(value, length_max)]
    head = {name: _emptied(value) if name in divided else value for name, value in fields.items()}
    around = (_LENGTH_OF_LIST + indentation) * len(divided)
    # A long text is on each page: then a page is longer, but entries are not torn to shreds.
    room = max(length_max - _size(head, indentation) - around, length_max // 4)
    pages: list[dict[str, Any]] = []
    length = 0
    for name, key, value in _entries(fields, divided):
        further = len(key or "") + _LENGTH_OF_ENTRY
        for part in _parts(value, room - further, indentation + _INDENTATION):
            size = _size(part, indentation + _INDENTATION) + further
            if not pages or length + size > room:
                pages.append({field: head[field] for field in fields})
                pages[-1].update({field: _emptied(head[field]) for field in divided})
                length = 0
            length += size
            if key is None:
                pages[-1][name].append(part)
            else:
                pages[-1][name][key] = part
    return pages


def _parts(value: Any, length_max: int, indentation: int) -> Iterator[Any]:
    """The value, or its parts, of at most this length."""
    if not isinstance(value, dict | list) or _size(value, indentation) <= length_max:
        yield value
        return
    whole: dict[str, Any] = {"": value} if isinstance(value, list) else value
    if not any(_is_divided(each, length_max) for each in whole.values()):
        # Many short fields are the entries of one object.
        whole = {"": value}
    for part in _parts_of_object(whole, length_max, indentation):
        yield part[""] if "" in part and len(part) == 1 else part


def _is_divided(value: Any, length_max: int) -> bool:
    """Lists are, and long objects; a short object is on each page."""
    is_long = isinstance(value, dict) and _size(value, 0) * _SHARE > length_max
    return isinstance(value, list) or is_long


def _entries(fields: dict[str, Any], divided: list[str]) -> list[_Entry]:
    entries: list[_Entry] = []
    for name in divided:
        value = fields[name]
        if isinstance(value, list):
            entries += [(name, None, each) for each in cast("list[Any]", value)]
        else:
            entries += [(name, key, each) for key, each in cast("dict[str, Any]", value).items()]
    return entries


def _emptied(value: Any) -> Any:
    return type(value)()


def _size(value: Any, indentation: int) -> int:
    """The characters of the value on lines of its own."""
    return sum(len(line) + indentation + 1 for line in _text(value).splitlines())


def _text(value: Any) -> str:
    return written_document(value, "json").decode()
