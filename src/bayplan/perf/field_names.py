"""Field names as Go reads them: whatever their case.

encoding/json takes ``NodeTaintsPolicy`` for ``nodeTaintsPolicy``, and upstream's files rely on it.
Here names are exact; so before a value is decoded its members get the names that its type knows.
A name that is written exactly wins; what no field is called keeps its name.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import inspect


def with_field_names(value: Any, kind: Any) -> Any:
    """``value`` with its members named as the fields of ``kind``, a struct or a type of structs."""
    return _renamed(value, inspect.type_info(kind))


def _renamed(value: Any, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _renamed(value, kind.type)
    if isinstance(kind, inspect.UnionType):
        for member in kind.types:
            value = _renamed(value, member)
        return value
    if isinstance(kind, inspect.StructType) and isinstance(value, Mapping):
        return _members(value, kind)
    if isinstance(kind, inspect.DictType) and isinstance(value, Mapping):
        return {name: _renamed(part, kind.value_type) for name, part in value.items()}
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(value, list):
        return [_renamed(part, kind.item_type) for part in value]
    return value


def _members(value: Mapping[str, Any], kind: inspect.StructType) -> dict[str, Any]:
    fields = {field.encode_name: field for field in kind.fields}
    folded = {name.casefold(): name for name in fields}
    found: dict[str, Any] = {}
    for written, part in value.items():
        name = written if written in fields else folded.get(written.casefold(), written)
        if name != written and name in value:
            name = written
        field = fields.get(name)
        found[name] = part if field is None else _renamed(part, field.type)
    return found
