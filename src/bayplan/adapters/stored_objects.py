"""The objects of a cluster in memory, to be sent on to somebody else."""

from collections.abc import Callable
from typing import final

from bayplan.adapters.object_names import ObjectKey, object_key
from bayplan.adapters.object_store import Stored
from bayplan.adapters.whole_objects import trimmed


@final
class StoredObjects:
    """adapters.whole_objects.WholeObjects of an embedded cluster."""

    def __init__(self, get: Callable[[ObjectKey], Stored | None]) -> None:
        self._get = get

    def whole(self, kind: str, namespace: str, name: str) -> bytes | None:
        found = self._get(object_key(kind, namespace, name))
        return None if found is None else trimmed(found.content)
