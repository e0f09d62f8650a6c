"""The objects that exist while an input is read: by key, by kind without group, by owner.

The input is played through once before the simulation. So a patch of an object that is never
created, or a second pod of one name, is reported with file and line, and the run does not fail
midway.
"""

from collections import defaultdict
from typing import final

from bayplan.adapters.embedded.object_names import ObjectKey, is_namespaced, key_of
from bayplan.sim.input.workload import Content

#: (namespace, kind without its group, name)
_Bare = tuple[str, str, str]


@final
class ObjectIndex:
    """Existing objects, in the order of their creation."""

    def __init__(self) -> None:
        self._objects: dict[ObjectKey, Content] = {}
        self._by_bare_kind: dict[_Bare, dict[ObjectKey, None]] = defaultdict(dict)
        self._by_owner: dict[_Bare, dict[ObjectKey, None]] = defaultdict(dict)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._objects

    def put(self, key: ObjectKey, content: Content) -> None:
        """Add an object, or replace the object of this key."""
        self.remove(key)
        self._objects[key] = content
        self._by_bare_kind[_bare(key)][key] = None
        for owner in _owners(key, content):
            self._by_owner[owner][key] = None

    def remove(self, key: ObjectKey) -> None:
        content = self._objects.pop(key, None)
        if content is None:
            return
        del self._by_bare_kind[_bare(key)][key]
        for owner in _owners(key, content):
            del self._by_owner[owner][key]

    def __getitem__(self, key: ObjectKey) -> Content:
        return self._objects[key]

    def of_kind(self, kind: str) -> list[Content]:
        return [content for key, content in self._objects.items() if key.kind == kind]

    def namespaces(self) -> set[str]:
        """The namespaces of the objects."""
        return {key.namespace for key in self._objects if key.namespace}

    def named(self, bare_kind: str, namespace: str, name: str) -> list[ObjectKey]:
        """Objects of a kind without group; several if groups share the name of the kind."""
        place = namespace if is_namespaced(bare_kind) else ""
        return list(self._by_bare_kind.get((place, bare_kind, name), ()))

    def was_named(self, bare_kind: str, namespace: str, name: str) -> bool:
        """Whether an object of a kind has, or once had, this name."""
        place = namespace if is_namespaced(bare_kind) else ""
        return (place, bare_kind, name) in self._by_bare_kind

    def names(self, bare_kind: str, namespace: str) -> list[str]:
        """The names of the objects of a kind."""
        place = namespace if is_namespaced(bare_kind) else ""
        return [
            name
            for (there, kind, name), keys in self._by_bare_kind.items()
            if there == place and kind == bare_kind and keys
        ]

    def owner_names(self, bare_kind: str, namespace: str) -> list[str]:
        """The names of owners of a kind, whether they exist or not."""
        return [
            name
            for (there, kind, name), owned in self._by_owner.items()
            if there == namespace and kind == bare_kind and owned
        ]

    def owned_by(self, owner: Content) -> list[Content]:
        """The objects that name ``owner`` as an owner; the uids must match if both sides have
        one."""
        key = key_of(owner)
        uid = owner["metadata"].get("uid")
        objects = [self._objects[one] for one in self._by_owner.get(_bare(key), ())]
        return [content for content in objects if _names(content, key, uid)]


def _bare(key: ObjectKey) -> _Bare:
    return key.namespace, key.kind.rpartition(" ")[2], key.name


def _owners(key: ObjectKey, content: Content) -> list[_Bare]:
    references = content["metadata"].get("ownerReferences") or ()
    return [(key.namespace, one.get("kind", ""), one.get("name", "")) for one in references]


def _names(content: Content, owner: ObjectKey, uid: str | None) -> bool:
    for one in content["metadata"].get("ownerReferences") or ():
        if (one.get("kind"), one.get("name")) == (owner.kind.rpartition(" ")[2], owner.name):
            return not uid or not one.get("uid") or one["uid"] == uid
    return False
