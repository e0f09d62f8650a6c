"""ObjectStore: the objects of a cluster by kind, key, uid and owner, with an undo.

The store holds one value for each key: a decoded object, plain values, or whatever a picture of a
cluster needs; a function gives the metadata of a value. A value never changes: a change puts
another one under the same key.

What costs something exists from its first use on. The indexes by uid and by owner are made by the
first look-up, sorted lists by the first list, arrivals by the first mark, and the log of changes
lasts from the first open mark to the last rollback. A store that nobody asks for these is a
dictionary for each kind, and `put` and `remove` are one call.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Generic, NamedTuple, TypeVar, final

from bayplan.api.object_meta import ObjectMeta
from bayplan.api.objects import ApiObject
from bayplan.objects.keys import ObjectKey, key_of_metadata

V = TypeVar("V")

#: Called with the value before and after a change; None: there is none.
Observer = Callable[[V | None, V | None], None]

_metadata: Callable[[object], ObjectMeta] = attrgetter("metadata")


def _same(value: V) -> V:
    return value


class Reversal(NamedTuple, Generic[V]):
    """One change that a rollback has undone."""

    key: ObjectKey
    #: The value that the change had made; None: it had removed the object.
    undone: V | None
    #: The value that is there again; None: the change had added the object.
    restored: V | None


class _Step(NamedTuple, Generic[V]):
    """What was there before a change."""

    key: ObjectKey
    before: V | None
    arrival: int | None


@final
class ObjectStore(Generic[V]):
    """Objects by key. Objects of one kind are in the order in which they were added."""

    def __init__(self, metadata_of: Callable[[V], ObjectMeta] = _metadata) -> None:
        self._metadata_of = metadata_of
        #: Read it only: the objects of each kind that has, or had, objects.
        self.by_kind: dict[str, dict[ObjectKey, V]] = {}
        self._kinds: dict[str, KindObjects[V]] = {}
        self._observers: dict[str, list[Observer[V]]] = {}
        #: Uid → key, and owner's uid → keys; None: nobody has looked one up.
        self._by_uid: dict[str, ObjectKey] | None = None
        self._by_owner: dict[str, dict[ObjectKey, None]] | None = None
        #: The how-manieth addition an object is; None: there was no mark.
        self._arrivals: dict[ObjectKey, int] | None = None
        self._arrival_count = 0
        #: Steps since the oldest open mark.
        self._log: list[_Step[V]] = []
        self._mark_count = 0
        #: Whether a change concerns more than the dictionaries.
        self._is_followed = False
        #: How many objects were added, replaced or removed.
        self.change_count = 0

    # ---- changes ----------------------------------------------------------------------------

    def put(self, key: ObjectKey, value: V) -> V | None:
        """Add or replace an object. Returns the value before."""
        objects = self.by_kind.get(key.kind)
        if objects is None:
            objects = self.by_kind[key.kind] = {}
        before = objects.get(key)
        objects[key] = value
        self.change_count += 1
        if self._is_followed:
            self._follow(key, before, value)
        return before

    def remove(self, key: ObjectKey) -> V | None:
        """Remove an object. Returns its value; None: it was not there."""
        objects = self.by_kind.get(key.kind)
        before = None if objects is None else objects.pop(key, None)
        if before is not None:
            self.change_count += 1
            if self._is_followed:
                self._follow(key, before, None)
        return before

    def _follow(self, key: ObjectKey, before: V | None, after: V | None) -> None:
        """Write a change into the log and the indexes, and call the observers."""
        lister = self._kinds.get(key.kind)
        if lister is not None:
            lister.lists.clear()
        if self._mark_count:
            arrival = None if self._arrivals is None else self._arrivals.get(key)
            self._log.append(_Step(key, before, arrival))
        if self._arrivals is not None:
            if before is None:
                self._arrivals[key] = self._arrival_count
                self._arrival_count += 1
            elif after is None:
                del self._arrivals[key]
        if self._by_uid is not None:
            self._index_uid(self._by_uid, key, before, after)
        if self._by_owner is not None:
            self._index_owners(self._by_owner, key, before, after)
        for observer in self._observers.get(key.kind, ()):
            observer(before, after)

    def _index_uid(
        self, by_uid: dict[str, ObjectKey], key: ObjectKey, before: V | None, after: V | None
    ) -> None:
        uid = None if before is None else self._metadata_of(before).uid
        if uid and by_uid.get(uid) == key:
            del by_uid[uid]
        uid = None if after is None else self._metadata_of(after).uid
        if uid:
            by_uid[uid] = key

    def _index_owners(
        self,
        by_owner: dict[str, dict[ObjectKey, None]],
        key: ObjectKey,
        before: V | None,
        after: V | None,
    ) -> None:
        for uid in () if before is None else self._owner_uids(before):
            by_owner.get(uid, {}).pop(key, None)
        for uid in () if after is None else self._owner_uids(after):
            by_owner.setdefault(uid, {})[key] = None

    def _owner_uids(self, value: V) -> list[str]:
        return [owner.uid for owner in self._metadata_of(value).owner_references or ()]

    def observe(self, kind: str, observer: Observer[V]) -> None:
        """Call ``observer(before, after)`` right after each change of a kind from now on."""
        self._observers.setdefault(kind, []).append(observer)
        self._is_followed = True

    # ---- look-ups ---------------------------------------------------------------------------

    def get(self, key: ObjectKey) -> V | None:
        objects = self.by_kind.get(key.kind)
        return None if objects is None else objects.get(key)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self.by_kind.get(key.kind, ())

    def __len__(self) -> int:
        return sum(map(len, self.by_kind.values()))

    def __iter__(self) -> Iterator[tuple[ObjectKey, V]]:
        """All objects, kind by kind."""
        return chain.from_iterable(objects.items() for objects in self.by_kind.values())

    def kinds(self) -> list[str]:
        """The kinds that have, or had, objects."""
        return list(self.by_kind)

    def each(self, kind: str) -> Iterator[V]:
        """The objects of a kind, in the order in which they were added, until the next change."""
        return iter(self.by_kind.get(kind, {}).values())

    def all(self, kind: str) -> list[V]:
        """The objects of a kind as they are now, in the order in which they were added."""
        return list(self.by_kind.get(kind, {}).values())

    def items(self, kind: str) -> list[tuple[ObjectKey, V]]:
        """The objects of a kind with their keys, in the order in which they were added."""
        return list(self.by_kind.get(kind, {}).items())

    def count(self, kind: str) -> int:
        return len(self.by_kind.get(kind, ()))

    def of(self, kind: str) -> "KindObjects[V]":
        """The objects of one kind, now and later."""
        objects = self._kinds.get(kind)
        if objects is None:
            objects = self._kinds[kind] = KindObjects(self, kind, self._metadata_of)
            self._is_followed = True
        return objects

    def key_of_uid(self, uid: str) -> ObjectKey | None:
        """The key of the object with a uid. Uids are unique, as API servers make them."""
        if self._by_uid is None:
            self._by_uid, self._is_followed = {}, True
            for key, value in self:
                self._index_uid(self._by_uid, key, None, value)
        return self._by_uid.get(uid)

    def owned_by(self, uid: str) -> list[ObjectKey]:
        """The keys of the objects that name an owner with this uid."""
        if self._by_owner is None:
            self._by_owner, self._is_followed = {}, True
            for key, value in self:
                self._index_owners(self._by_owner, key, None, value)
        return list(self._by_owner.get(uid, ()))

    def arrival(self, key: ObjectKey) -> int:
        """The position of an object, which must exist, in the order of all additions.

        A replacement does not change it, and a rollback restores it.
        """
        return self._numbered()[key]

    def _numbered(self) -> dict[ObjectKey, int]:
        if self._arrivals is None:
            self._arrivals = {key: number for number, (key, _) in enumerate(self)}
            self._arrival_count, self._is_followed = len(self._arrivals), True
        return self._arrivals

    # ---- undo -------------------------------------------------------------------------------

    def mark(self) -> int:
        """Log changes from now on, until `rollback` gets the mark. Marks may be nested."""
        self._numbered()
        self._mark_count += 1
        return len(self._log)

    def rollback(self, mark: int, renewed: Callable[[V], V] = _same) -> list[Reversal[V]]:
        """Undo all changes since the newest open mark, the newest change first.

        ``renewed``: what is stored in place of a value that comes back, for a store whose versions
        never go back. An object that was removed comes last in its kind. Observers see each step.
        """
        reversals: list[Reversal[V]] = []
        self._mark_count -= 1
        while len(self._log) > mark:
            step = self._log.pop()
            reversals.append(self._reverse(step, renewed))
        return reversals

    def _reverse(self, step: _Step[V], renewed: Callable[[V], V]) -> Reversal[V]:
        open_mark_count, self._mark_count = self._mark_count, 0
        restored = None if step.before is None else renewed(step.before)
        if restored is None:
            undone = self.remove(step.key)
        else:
            undone = self.put(step.key, restored)
            if step.arrival is not None:
                self._numbered()[step.key] = step.arrival
        self._mark_count = open_mark_count
        return Reversal(step.key, undone, restored)

    def copy(self) -> "ObjectStore[V]":
        """A store of its own with the same values, without observers and marks."""
        copied = ObjectStore(self._metadata_of)
        copied.by_kind = {kind: objects.copy() for kind, objects in self.by_kind.items()}
        return copied

    def validate(self) -> None:
        """Check the indexes against the objects. Raises AssertionError."""
        for key, value in self:
            uid = self._metadata_of(value).uid
            assert not uid or self.key_of_uid(uid) == key, f"{key} is not found by its uid {uid}"
            for owner in self._owner_uids(value):
                assert key in self.owned_by(owner), f"{key} is not found by its owner {owner}"
        for key in (self._by_uid or {}).values():
            assert key in self, f"{key} is gone, but not its uid"
        for key in chain.from_iterable((self._by_owner or {}).values()):
            assert key in self, f"{key} is gone, but not for its owner"
        if self._arrivals is not None:
            assert self._arrivals.keys() == {key for key, _ in self}
        assert self._mark_count or not self._log, "changes are logged without a mark"


@final
class KindObjects(Generic[V]):
    """The objects of one kind in a store, for listers. Lists are in order of namespace and name."""

    def __init__(
        self, store: ObjectStore[V], kind: str, metadata_of: Callable[[V], ObjectMeta]
    ) -> None:
        self._store = store
        self._kind = kind
        self._metadata_of = metadata_of
        #: Namespace → objects, None → all objects. Made on demand; the store clears it.
        self.lists: dict[str | None, tuple[V, ...]] = {}

    def observe(self, observer: Observer[V]) -> None:
        """See `ObjectStore.observe`."""
        self._store.observe(self._kind, observer)

    def list(self, namespace: str | None = None) -> Sequence[V]:
        """All objects, or those of one namespace."""
        if not self.lists:
            self.lists |= self._sorted()
        return self.lists.get(namespace, ())

    def _sorted(self) -> dict[str | None, tuple[V, ...]]:
        lists: dict[str | None, list[V]] = {None: []}
        for key, value in sorted(self._store.items(self._kind), key=itemgetter(0)):
            for namespace in (None, key.namespace):
                lists.setdefault(namespace, []).append(value)
        return {namespace: tuple(values) for namespace, values in lists.items()}

    def get(self, name: str, namespace: str | None = None) -> V | None:
        return self._store.get(ObjectKey(self._kind, namespace or "", name))

    def put(self, added: V) -> V | None:
        """Add or replace an object. Returns the version before."""
        return self._store.put(key_of_metadata(self._kind, self._metadata_of(added)), added)

    def remove(self, removed: V) -> V | None:
        """Remove the object of this name, of any version. Returns the removed object or None."""
        return self._store.remove(key_of_metadata(self._kind, self._metadata_of(removed)))

    def __len__(self) -> int:
        return self._store.count(self._kind)


def store_of(by_kind: Mapping[str, Iterable[ApiObject]]) -> ObjectStore[ApiObject]:
    """A store of decoded objects. Of several with one key, the last one is stored."""
    store = ObjectStore[ApiObject]()
    for kind, objects in by_kind.items():
        for each in objects:
            store.put(key_of_metadata(kind, each.metadata), each)
    return store
