"""Objects as the API server has them, to be sent on to somebody else."""

from collections.abc import Mapping
from typing import Any, Protocol, cast

import msgspec

#: What kube-scheduler's own copies of objects lack, too: their type, and who wrote which field.
_TYPE = frozenset(("kind", "apiVersion"))
_FIELDS_OWNERS = "managedFields"


class WholeObjects(Protocol):
    """Where they are found."""

    def whole(self, kind: str, namespace: str, name: str) -> bytes | None:
        """JSON as `trimmed` leaves it; None: there is no such object."""
        ...


def trimmed(content: Mapping[str, Any]) -> bytes:
    """JSON without what nobody but the API server needs."""
    parts = {name: value for name, value in content.items() if name not in _TYPE}
    meta = parts.get("metadata")
    if isinstance(meta, dict) and _FIELDS_OWNERS in meta:
        members = cast("dict[str, Any]", meta)
        parts["metadata"] = {n: value for n, value in members.items() if n != _FIELDS_OWNERS}
    return msgspec.json.encode(parts)
