"""Pages of a long document: each is JSON, and no entry of a list is divided.

Each page has the fields of the document; its lists, and its long objects, have a part of their
entries. What is not in a page is in the next one, so that nothing is left out: the lists
of all pages, one after the other, are those of the document. (`Answer.page` is for a table that a
person turns over: it bounds further lists.)
"""

from typing import Any, cast

import msgspec

from bayplan.answers.formats import written_document

#: An object that is longer than this part of a page is divided.
_SHARE = 10
#: Characters around a list that is not empty, and around an entry, at most.
_LENGTH_OF_LIST, _LENGTH_OF_ENTRY = 8, 8
#: (field, name of an entry in an object or None, entry)
_Entry = tuple[str, str | None, Any]


def pages_of(text: str, length_max: int) -> list[str]:
    """The document on pages of at most ``length_max`` characters. An entry that is longer has a
    page of its own. A text that is no object stays on one page."""
    if len(text) <= length_max:
        return [text]
    try:
        document: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return [text]
    if not isinstance(document, dict):
        return [text]
    fields = cast("dict[str, Any]", document)
    divided = [name for name, value in fields.items() if _is_divided(value, length_max)]
    head = {name: _emptied(value) if name in divided else value for name, value in fields.items()}
    room = length_max - len(_text(head)) - _LENGTH_OF_LIST * len(divided)
    pages: list[dict[str, Any]] = []
    length = 0
    for name, key, value in _entries(fields, divided):
        # The entry on lines of its own, with the indentation of its depth.
        lines = _text(value).splitlines()
        size = sum(len(line) + 5 for line in lines) + len(key or "") + _LENGTH_OF_ENTRY
        if not pages or length + size > room:
            pages.append(
                {field: type(each)() if field in divided else each for field, each in head.items()}
            )
            length = 0
        length += size
        if key is None:
            pages[-1][name].append(value)
        else:
            pages[-1][name][key] = value
    return [_text(page) for page in pages] or [text]


def _is_divided(value: Any, length_max: int) -> bool:
    """Lists are, and long objects; a short object is on each page."""
    is_long = isinstance(value, dict) and len(_text(value)) * _SHARE > length_max
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


def _text(value: Any) -> str:
    return written_document(value, "json").decode()
