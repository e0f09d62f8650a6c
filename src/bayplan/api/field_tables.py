"""Which fields the objects of Kubernetes v1.37 have, those included that no type here decodes.

`field_tables.txt` has one line per type: its name and its fields, each with its type where that is
a struct ("nodeInfo:core.v1.NodeSystemInfo"), a list ("[]…") or a map ("{}…"). Lines that begin with
"=" say which type a kind is. Source: api/openapi-spec/swagger.json of kubernetes v1.37.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from bayplan.problems import suggestion

_TABLES: Final = "field_tables.txt"
_LIST, _MAP = "[]", "{}"

#: Field → its type; "" where the field is a plain value.
Fields = Mapping[str, str]


def path_fault(kind: str, path: str) -> str | None:
    """What is wrong with a dotted path into an object of ``kind``; None: nothing.

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
