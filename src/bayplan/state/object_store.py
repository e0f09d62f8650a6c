"""Objects other than nodes and placed pods, by kind: what listers read."""

from collections.abc import Sequence
from typing import Any, final

from bayplan.api.objects import namespaced_name


@final
class KindStore:
    """All objects of one kind. Lists are in order of namespace and name."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Any] = {}
        self._sorted: list[Any] | None = None
        self._by_namespace: dict[str, list[Any]] | None = None

    def list(self, namespace: str | None = None) -> Sequence[Any]:
        """All objects, or those of one namespace."""
        if self._sorted is None or self._by_namespace is None:
            self._sorted = [self._objects[key] for key in sorted(self._objects)]
            self._by_namespace = {}
            for found in self._sorted:
                key = found.metadata.namespace or ""
                self._by_namespace.setdefault(key, []).append(found)
        if namespace is None:
            return self._sorted
        return self._by_namespace.get(namespace, ())

    def get(self, name: str, namespace: str | None = None) -> Any | None:
        return self._objects.get((namespace or "", name))

    def put(self, found: Any) -> Any | None:
        """Add or replace. Returns the older version."""
        key = (found.metadata.namespace or "", found.metadata.name)
        old = self._objects.get(key)
        self._objects[key] = found
        self._sorted = None
        return old

    def remove(self, found: Any) -> Any | None:
        """Returns what was there."""
        self._sorted = None
        return self._objects.pop((found.metadata.namespace or "", found.metadata.name), None)

    def __len__(self) -> int:
        return len(self._objects)


class UndeclaredKind(KeyError):
    """A plugin asked for a kind it does not declare in `kinds`."""

    def __init__(self, kind: str, plugin: str) -> None:
        super().__init__(
            f'plugin {plugin} asks for objects of "{kind}", which it does not declare: '
            f"add it to the class attribute `kinds` (in a cluster the scheduler also needs "
            f"the right to list and watch it)"
        )


@final
class ObjectStore:
    """Kind → its objects."""

    def __init__(self) -> None:
        self._kinds: dict[str, KindStore] = {}

    def of(self, kind: str) -> KindStore:
        return self._kinds.setdefault(kind, KindStore())


def key_of(found: Any) -> str:
    """namespace/name of any object."""
    return namespaced_name(found.metadata.namespace, found.metadata.name)
