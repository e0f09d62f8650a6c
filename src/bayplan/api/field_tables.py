"""The fields of the objects of Kubernetes v1.37, including fields that no type here decodes.

`field_tables.txt` has one line per type: its name and its fields, each with its type where that is
no string: a struct ("nodeInfo:core.v1.NodeSystemInfo"), a list ("[]…"), a map ("{}…"), or a scalar:
"b" a boolean, "i" a whole number, "n" a number, "p" a number or a string, "q" a quantity, "*" any
value. Lines that begin with "=" say which type a kind is. Sources: api/openapi-spec/swagger.json of
kubernetes v1.37, and deploy/crds for the groups of pods that are not Kubernetes' own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, cast, final

from bayplan.api.quantity import QUANTITY, is_quantity
from bayplan.problems import Problem, joined, not_a_text, suggestion, wrong

_TABLES: Final = "field_tables.txt"
_SPEC: Final = "spec"
_LIST, _MAP, _QUANTITY, _ANY = "[]", "{}", "q", "*"
#: Values that have parts. A union of types would be made anew for each value.
_NESTED: Final = (dict, list)

#: Field → its type, as in the file.
Fields = Mapping[str, str]
#: Scalar → the types of its values, and the words for them.
_SCALARS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "": ((str,), "a string"),
    "b": ((bool,), "true or false"),
    "i": ((int,), "a whole number"),
    "n": ((int, float), "a number"),
    "p": ((int, str), "a number or a string"),
    _QUANTITY: ((int, float, str), QUANTITY),
}


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
        if name not in types:
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
            for part in parts if inner in types else ():
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
        for part in parts if inner in types else ():
            for path, hint in _unknown(inner, part, types):
                yield joined(prefix, path), hint


# ---- structs --------------------------------------------------------------------------------


class TypedStruct(NamedTuple):
    """A struct of an object: its type, its path, and its fields that have a valid value."""

    type: str
    path: str
    fields: dict[str, Any]


def typed_structs(kind: str, content: Mapping[str, Any]) -> tuple[list[TypedStruct], list[Problem]]:
    """All structs of an object, outer ones first, and the values of a wrong type, which they lack.

    A field that is null or that the kind does not have is absent, and a spec that is absent is
    empty, as they are for a server.
    """
    kinds, _ = _tables()
    reader = _StructReader()
    if kind in kinds:
        reader.value(kinds[kind], content, "")
    return reader.structs, reader.problems


_UNFIT: Final = object()


@final
class _StructReader:
    """Reads the values of an object. Each method returns a value without its wrong parts, and
    _UNFIT in place of a value of a wrong type."""

    def __init__(self) -> None:
        self.structs: list[TypedStruct] = []
        self.problems: list[Problem] = []
        _, self._types = _tables()

    def value(self, name: str, value: Any, path: str) -> Any:
        if name in self._types:
            return self._struct(name, value, path)
        if name.startswith(_LIST):
            return self._list(name[2:], value, path)
        if name.startswith(_MAP):
            return self._map(name[2:], value, path)
        return self._scalar(name, value, path)

    def _list(self, name: str, value: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            return self._unfit(path, value, "a list")
        # A struct that is null is empty.
        is_struct = name in self._types
        values = [
            self.value(name, {} if each is None else each, f"{path}[{index}]")
            for index, each in enumerate(cast(Sequence[Any], value))
            if each is not None or is_struct
        ]
        return _UNFIT if _UNFIT in values else values

    def _map(self, name: str, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            return self._unfit(path, value, "a mapping")
        values = cast(dict[Any, Any], value)
        return self._members(values, dict.fromkeys(values, name), path, {})

    def _struct(self, name: str, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            return self._unfit(path, value, "a mapping")
        fields: dict[str, Any] = {}
        self.structs.append(TypedStruct(name, path, fields))
        types, members = self._types[name], cast(Mapping[str, Any], value)
        if _SPEC in types and members.get(_SPEC) is None:
            members = {**members, _SPEC: dict[str, Any]()}
        return self._members(members, types, path, fields)

    def _members(
        self, value: Mapping[str, Any], types: Fields, path: str, members: dict[str, Any]
    ) -> Any:
        for field, member in value.items():
            name = types.get(field)
            if name == "" and type(member) is str:  # most fields
                members[field] = member
            elif name is not None and member is not None:
                valid = self.value(name, member, joined(path, str(field)))
                if valid is not _UNFIT:
                    members[field] = valid
        return members

    def _scalar(self, name: str, value: Any, path: str) -> Any:
        if name == _ANY:
            return value
        types, words = _SCALARS[name]
        is_whole = isinstance(value, float) and value.is_integer()
        is_fit = type(value) in types or (is_whole and int in types)
        if is_fit and (name != _QUANTITY or is_quantity(value)):
            return value
        return self._unfit(path, value, words)

    def _unfit(self, path: str, value: Any, words: str) -> object:
        is_text = words == _SCALARS[""][1]
        self.problems.append(not_a_text(path, value) if is_text else wrong(path, value, words))
        return _UNFIT


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
