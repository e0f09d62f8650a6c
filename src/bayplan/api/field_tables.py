"""The fields of the objects of Kubernetes v1.37, including fields that no type here decodes.

`field_tables.txt` has one line per type: its name and its fields, each with its type where that is
a struct ("nodeInfo:core.v1.NodeSystemInfo"), a list ("[]…") or a map ("{}…"). Lines that begin with
"=" say which type a kind is. Sources: api/openapi-spec/swagger.json of kubernetes v1.37, and
deploy/crds for the groups of pods that are not Kubernetes' own.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

from bayplan.problems import joined, suggestion

_TABLES: Final = "field_tables.txt"
_LIST, _MAP = "[]", "{}"
#: Values that have parts. A union of types would be made anew for each value.
_NESTED: Final = (dict, list)

#: Field → its type; "" where the field is a plain value.
Fields = Mapping[str, str]


def path_fault(kind: str, path: str) -> str | None:
    """The fault of a dotted path into an object of ``kind``; None: the path is valid.

    ``kind``: "v1 Node". A path ends at a plain value, a struct, a list or a map, or passes into a
    map by its key.
    """
    kinds, types = _tables()
    name, before = kinds[kind], kind.rpartition(" ")[2]
    for part in path.split("."):
        if name.startswith(_MAP):
            return None
        if name.startswith(_LIST):
            return f"{before} is a list; wanted the list itself, {before}"
        if not name:
            return f"{before} is a plain value; it has no field {part}"
        fields = types[name]
        if part not in fields:
            hint = suggestion(part, fields)
            return f'{before} has no field "{part}"' + (f"; {hint}" if hint else "")
        name, before = fields[part], f"{before}.{part}"
    return None


def unknown_fields(kind: str, content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(path, what to write in its place) of each field of an object that its kind does not have.

    A path has "[]" for any item of a list and "{}" for any key of a map, so that it names one
    mistake wherever it is made: "spec.containers[].imagePullPolice". A value of a wrong type is not
    searched: decoding refuses it. Kinds that the tables lack have no such fields.
    """
    kinds, types = _tables()
    name = kinds.get(kind)
    if name is None or not _has_unknown(name, content, types):
        return []
    return list(_unknown(name, content, types))


def _has_unknown(name: str, value: Any, types: Mapping[str, Fields]) -> bool:
    """Whether `_unknown` has a result. This check is faster, and the result is almost always
    False."""
    if not isinstance(value, dict):
        return False
    members, fields = cast(dict[Any, Any], value), types[name]
    for field, member in members.items():
        inner = fields.get(field)
        if inner is None:
            return True
        if inner and isinstance(member, _NESTED):
            parts, inner = _parts(inner, member)
            # Without `any`, which costs a call for each value.
            for part in parts if inner else ():
                if _has_unknown(inner, part, types):
                    return True
    return False


def _parts(name: str, value: Any) -> tuple[Iterable[Any], str]:
    """The values that a value of this type consists of, and their type."""
    if name.startswith(_LIST):
        items = cast(list[Any], value) if isinstance(value, list) else ()
        return items, name.removeprefix(_LIST)
    if name.startswith(_MAP):
        entries = cast(dict[Any, Any], value) if isinstance(value, dict) else {}
        return entries.values(), name.removeprefix(_MAP)
    return (value,), name


def _unknown(name: str, value: Any, types: Mapping[str, Fields]) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        return
    members, fields = cast(dict[Any, Any], value), types[name]
    for field, member in members.items():
        inner = fields.get(field)
        if inner is None:
            yield str(field), suggestion(str(field), fields)
            continue
        prefix = f"{field}{inner[:2]}" if inner[:2] in (_LIST, _MAP) else str(field)
        parts, inner = _parts(inner, member)
        for part in parts if inner else ():
            for path, hint in _unknown(inner, part, types):
                yield joined(prefix, path), hint


@cache
def _tables() -> tuple[Mapping[str, str], Mapping[str, Fields]]:
    """(kind → type, type → fields)"""
    kinds: dict[str, str] = {}
    types: dict[str, Fields] = {}
    text = (files(__package__ or "") / _TABLES).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("= "):
            kind, _, name = line.removeprefix("= ").partition(": ")
            kinds[kind] = name
        else:
            name, *fields = line.split(" ")
            types[name] = {field: kind for field, _, kind in (one.partition(":") for one in fields)}
    return kinds, types
