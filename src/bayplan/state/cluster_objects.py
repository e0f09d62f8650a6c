"""Objects of the cluster by kind, for listers: all kinds except nodes and placed pods."""

from collections.abc import Callable, Sequence
from typing import Any, final

from bayplan.api.object_meta import resource_of

#: Called with (old object, new object) right after a change; None for no object.
Subscriber = Callable[[Any, Any], None]


@final
class KindObjects:
    """All objects of one kind. Lists are in order of namespace and name."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Any] = {}
        #: Made on demand: namespace → objects, None → all objects.
        self._lists: dict[str | None, tuple[Any, ...]] = {}
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` at every change from now on."""
        self._subscribers.append(subscriber)

    def list(self, namespace: str | None = None) -> Sequence[Any]:
        """All objects, or those of one namespace."""
        if not self._lists:
            self._lists = self._sorted()
        return self._lists.get(namespace, ())

    def _sorted(self) -> dict[str | None, tuple[Any, ...]]:
        lists: dict[str | None, list[Any]] = {None: []}
        for key in sorted(self._objects):
            for name in (None, key[0]):
                lists.setdefault(name, []).append(self._objects[key])
        return {name: tuple(objects) for name, objects in lists.items()}

    def get(self, name: str, namespace: str | None = None) -> Any | None:
        return self._objects.get((namespace or "", name))

    def put(self, added: Any) -> Any | None:
        """Add or replace. Returns the older version."""
        key = _key(added)
        old = self._objects.get(key)
        self._objects[key] = added
        self._lists.clear()
        for tell in self._subscribers:
            tell(old, added)
        return old

    def remove(self, removed: Any) -> Any | None:
        """Remove the object of this name, of any version. Returns the removed object or None."""
        self._lists.clear()
        old = self._objects.pop(_key(removed), None)
        for tell in self._subscribers if old is not None else ():
            tell(old, None)
        return old

    def __len__(self) -> int:
        return len(self._objects)


def _key(content: Any) -> tuple[str, str]:
    return (content.metadata.namespace or "", content.metadata.name)


class UndeclaredKind(KeyError):
    """A plugin looks up a kind that it does not declare in `kinds`."""

    def __init__(self, kind: str, plugin: str) -> None:
        super().__init__(undeclared(kind, plugin))


def undeclared(kind: str, plugin: str) -> str:
    """The message: what the plugin must declare, and which RBAC rule the cluster needs."""
    group = kind.partition(" ")[0].rpartition("/")[0]
    return (
        f'plugin {plugin} asks for objects of "{kind}", which it does not declare: '
        f"add it to the class attribute `kinds`; in a cluster the scheduler also needs the rule "
        f'apiGroups ["{group}"], resources ["{resource_of(kind)}"], verbs ["list", "watch"], '
        f"which `bayplan config rbac` then prints"
    )


@final
class ClusterObjects:
    """The objects of all kinds. `of` makes the entry of a kind on first use."""

    def __init__(self) -> None:
        self._kinds: dict[str, KindObjects] = {}
        #: How many times an object was added, changed or removed.
        self.change_count = 0

    def of(self, kind: str) -> KindObjects:
        store = self._kinds.get(kind)
        if store is None:
            store = self._kinds[kind] = KindObjects()
            store.subscribe(self._changed)
        return store

    def _changed(self, old: Any, new: Any) -> None:
        self.change_count += 1
