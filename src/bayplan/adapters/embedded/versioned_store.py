"""Versioned objects and the watches that follow them: upstream's etcd and watch cache.

`VersionedStore` adds three things to a store of objects: versions, watches and the observers that a
simulation has.

One counter numbers all changes of all kinds. Each kind keeps its newest changes in a log of bounded
length. A watch is a position in that log and waits at its end. A watch from a version that is no
longer in the log gets `GoneError`, and its reader lists again.

Objects never change: a change puts another content under the same key. The content is decoded once
and shared by all watches. Lists and watches contain what the informer of a scheduler sees: only
pods that have not ended. So a pod that ends is a deletion for them.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from enum import StrEnum, auto
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, cast, final

import msgspec

from bayplan.api.objects import POD, TERMINAL_PHASES, ApiObject, Pod, decode
from bayplan.objects.keys import Content, ObjectKey, object_key
from bayplan.objects.object_store import ObjectStore
from bayplan.ports import EventType, GoneError, Listing, PushingWatch, WatchEvent

# ---- object store ---------------------------------------------------------------------------


#: Changes a kind's log keeps at least; it is cut when it is twice as long.
HISTORY_LENGTH = 10_000


class StoredObject(msgspec.Struct, frozen=True):
    """One version of one object: its plain content, and the decoded object."""

    key: ObjectKey
    content: Content
    object: ApiObject
    version: int
    #: Whether a scheduler's informer sees the object: it does not see pods that have ended.
    is_visible: bool
    #: The object, if it is a pod that is on a node and has not ended.
    placed_pod: Pod | None


#: Makes an object when its kind is first read.
MakeObject = Callable[[], tuple[ObjectKey, Content]]
#: Called with the object before and after a change; None: the object does not exist.
Observer = Callable[[StoredObject | None, StoredObject | None], None]


class PodChange(StrEnum):  # the hash of another Enum is a call of Python
    """The two changes that nearly every pod goes through. An observer may ignore them.

    Changes of pods with resource claims, or of pods that are being deleted, are others.
    """

    #: A new pod without a node and without volumes. It has not ended.
    ARRIVES = auto()
    #: A pod without a node, which has not ended, gets its node.
    IS_BOUND = auto()


@final
class PodSteps:
    """When the last one of the changes of `PodChange` was, for readers that follow no changes."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        #: The version after the change; 0: there was none.
        self.version = 0


class _Observation(NamedTuple):
    observer: Observer
    #: The kinds that the observer follows; empty: all.
    kinds: frozenset[str]
    #: Kinds that the observer does not follow.
    ignored_kinds: frozenset[str]
    #: Changes of pods that the observer does not follow.
    ignored_changes: frozenset[PodChange]
    #: Whether the observer is called at all.
    is_active: Callable[[], bool]

    def covers(self, change: str | PodChange) -> bool:
        if isinstance(change, PodChange):
            return change not in self.ignored_changes and self.covers(POD)
        is_followed = change not in self.ignored_kinds and (not self.kinds or change in self.kinds)
        return is_followed and self.is_active()


@final
class _ObserversByKind(dict[str | PodChange, list[Observer]]):
    """The active observers of each kind, and of the changes of pods that an observer may ignore.

    After `clear` they are selected again.
    """

    def __init__(self, observations: Sequence[_Observation]) -> None:
        super().__init__()
        self._observations = observations

    def __missing__(self, change: str | PodChange) -> list[Observer]:
        observers = [one.observer for one in self._observations if one.covers(change)]
        self[change] = observers
        return observers


@final
class VersionedStore:
    """All objects by key. The store knows no rules except those of versions."""

    def __init__(
        self,
        declared: Mapping[str, tuple[str, ...]] | None = None,
        history_length: int = HISTORY_LENGTH,
    ) -> None:
        """``declared``: further field paths per kind that decoded objects keep."""
        self._declared = declared or {}
        self._history_length = history_length
        self._objects = ObjectStore[StoredObject](attrgetter("object.metadata"))
        self._logs: dict[str, _Log] = {}
        self._observations: list[_Observation] = []
        self._observers = _ObserversByKind(self._observations)
        #: Kind → objects that no reader has read, each with its version and a function to make it.
        self._unread: dict[str, deque[tuple[int, MakeObject]]] = {}
        self.version = 0
        self.steps = PodSteps()

    def get(self, key: ObjectKey) -> StoredObject | None:
        if key.kind in self._unread:
            self._make_unread(key.kind)
        # Not `ObjectStore.get`: this is called several times per pod.
        objects = self._objects.by_kind.get(key.kind)
        return None if objects is None else objects.get(key)

    def all(self, kind: str) -> list[StoredObject]:
        """All objects of a kind, in the order of creation."""
        if kind in self._unread:
            self._make_unread(kind)
        return self._objects.all(kind)

    def owned_by(self, uid: str) -> list[ObjectKey]:
        """The objects that name an owner of this uid."""
        return self._objects.owned_by(uid)

    def kinds(self) -> list[str]:
        """The kinds that have, or had, objects."""
        return list(dict.fromkeys((*self._objects.kinds(), *self._unread)))

    def count(self, kind: str) -> int:
        return self._objects.count(kind) + len(self._unread.get(kind, ()))

    def oldest(self, kind: str) -> StoredObject:
        """The oldest object of a kind; there must be one."""
        if not self._objects.count(kind):
            self._make_unread(kind)
        return next(self._objects.each(kind))

    @property
    def next_version(self) -> str:
        """The resourceVersion of the next change."""
        return str(self.version + 1)

    def put(self, key: ObjectKey, content: Content) -> StoredObject:
        """Create or replace an object. Raises DecodeError; then nothing has changed."""
        return self.put_versioned(key, _versioned(content, self.version + 1))

    def put_versioned(
        self, key: ObjectKey, content: Content, decoded: ApiObject | None = None
    ) -> StoredObject:
        """`put` of a content that has the version `next_version`.

        ``decoded``: what the content is when decoded without further field paths.
        """
        kind, version = key.kind, self.version + 1
        if kind in self._unread:
            self._make_unread(kind)
        if decoded is None or kind in self._declared:
            decoded = self.decoded(key, content)
        is_visible, placed = True, None
        if isinstance(decoded, Pod):
            is_visible = decoded.status.phase not in TERMINAL_PHASES
            placed = decoded if is_visible and decoded.spec.node_name else None
        new = StoredObject(key, content, decoded, version, is_visible, placed)
        self.version = version
        self._notify(key, self._objects.put(key, new), new, decoded)
        return new

    # ---- unread objects ---------------------------------------------------------------------

    def put_unread(self, kind: str, make: "MakeObject") -> bool:
        """Create an object that is made when its kind is first read.

        False: the kind has an observer or a watch, so the caller must create the object with `put`.
        """
        if kind in self._logs or self._observers[kind]:
            return False
        self.version += 1
        unread = self._unread.get(kind)
        if unread is None:
            unread = self._unread[kind] = deque()
        unread.append((self.version, make))
        return True

    def remove_oldest_unread(self, kind: str) -> bool:
        """Remove the oldest object of a kind, if it is unread. Returns whether it was removed."""
        if self._objects.count(kind) or not self._unread.get(kind):
            return False
        self._unread[kind].popleft()
        self.version += 1
        return True

    def _make_unread(self, kind: str) -> None:
        for version, make in self._unread.pop(kind, ()):
            key, content = make()
            content = _versioned(content, version)
            decoded = self.decoded(key, content)
            assert not isinstance(decoded, Pod)
            self._objects.put(key, StoredObject(key, content, decoded, version, True, None))

    def remove(self, key: ObjectKey) -> None:
        """Remove an object, which must exist. Watches get its last content and the new version."""
        if key.kind in self._unread:
            self._make_unread(key.kind)
        old = self._objects.remove(key)
        assert old is not None, f"there is no {key}"
        self.version += 1
        self._notify(key, old, None, self._with_present_version(old))

    def _with_present_version(self, old: StoredObject) -> ApiObject:
        """The decoded object of a content with the present version."""
        if isinstance(old.object, Pod) and old.key.kind not in self._declared:
            version = str(self.version)
            meta = msgspec.structs.replace(old.object.metadata, resource_version=version)
            return msgspec.structs.replace(old.object, metadata=meta)
        return self.decoded(old.key, _versioned(old.content, self.version))

    def decoded(self, key: ObjectKey, content: Content) -> ApiObject:
        """The object of a content, with the further field paths. Raises DecodeError."""
        return decode(key.kind, content, self._declared.get(key.kind, ()))

    def observe(
        self,
        observer: Observer,
        kinds: Iterable[str] = (),
        *,
        ignored_kinds: Iterable[str] = (),
        ignored_changes: Iterable[PodChange] = (),
        is_active: Callable[[], bool] = lambda: True,
    ) -> None:
        """Call ``observer(before, after)`` during each change; the observer must not write.

        ``kinds``: the kinds to observe; none: all kinds but ``ignored_kinds``. Observers are called
        in the order in which they were added. ``ignored_changes``: changes of pods that mean
        nothing to the observer. ``is_active``: whether the observer is called now; whoever changes
        the answer calls `renew_observers`.
        """
        self._observations.append(
            _Observation(
                observer,
                frozenset(kinds),
                frozenset(ignored_kinds),
                frozenset(ignored_changes),
                is_active,
            )
        )
        self.renew_observers()

    def renew_observers(self) -> None:
        """Call `is_active` of the observers again."""
        self._observers.clear()

    # ---- lists and watches ------------------------------------------------------------------

    def list(self, kind: str) -> Listing:
        """The objects that an informer of this kind sees now, in the order of creation."""
        objects = [one.object for one in self.all(kind) if one.is_visible]
        return Listing(objects, str(self.version))

    def watch(self, kind: str, resource_version: str) -> "Watch":
        """Changes after a version; GoneError comes from the first step of the watch."""
        if kind in self._unread:
            self._make_unread(kind)
        return Watch(self._log(kind), _number(resource_version))

    def forget_history(self) -> None:
        """Watches that resume from before this moment get GoneError."""
        for log in self._logs.values():
            log.forget(self.version)

    def _log(self, kind: str) -> "_Log":
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = _Log(self._history_length)
        return log

    def _notify(
        self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None, last: ApiObject
    ) -> None:
        """Call the observers, and write the change into the log as an informer sees it."""
        kind = key.kind
        was_seen = old is not None and old.is_visible
        is_seen = new is not None and new.is_visible
        if was_seen or is_seen:
            appears = _MODIFIED if was_seen else _ADDED
            version = last.metadata.resource_version or ""
            event = WatchEvent(appears if is_seen else _DELETED, kind, last, version)
            log = self._logs.get(kind) or self._log(kind)
            log.append(self.version, event)
        change: str | PodChange = kind
        if (
            isinstance(last, Pod)
            and is_seen
            and last.metadata.deletion_timestamp is None
            and not last.spec.resource_claims
        ):
            assert new is not None
            if new.placed_pod is None:
                if old is None and not last.spec.volumes:
                    change, self.steps.version = _ARRIVES, self.version
            elif was_seen and old is not None and old.placed_pod is None:
                change, self.steps.version = _IS_BOUND, self.version
        for observer in self._observers[change]:
            observer(old, new)


#: A function that an event loop calls soon, and its context.
_SoonCalled = tuple[asyncio.AbstractEventLoop, Callable[[], None], Context]


@final
class _Log:
    """The newest changes of one kind. Positions count from the first change of the kind."""

    def __init__(self, length: int) -> None:
        self._length = length
        #: Read it only.
        self.events: list[WatchEvent] = []
        #: The version of each event.
        self._versions: list[int] = []
        self.dropped_count = 0
        #: Changes up to this version are no longer here.
        self._dropped_version = 0
        self._waiters: list[asyncio.Future[None]] = []
        #: Called, each once, soon after the next change, by these event loops.
        self.callbacks: list[_SoonCalled] = []

    def append(self, version: int, event: WatchEvent) -> None:
        self.events.append(event)
        self._versions.append(version)
        if len(self.events) > 2 * self._length:
            self._drop(len(self.events) - self._length)
        if self.callbacks:
            callbacks, self.callbacks = self.callbacks, []
            for loop, callback, context in callbacks:
                loop.call_soon(callback, context=context)
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def forget(self, version: int) -> None:
        self._drop(len(self.events))
        self._dropped_version = version

    def _drop(self, count: int) -> None:
        if count:
            self._dropped_version = self._versions[count - 1]
            self.dropped_count += count
            del self.events[:count], self._versions[:count]

    def position_after(self, version: int) -> int:
        """Where a watch from ``version`` begins. Raises GoneError."""
        if version < self._dropped_version:
            raise GoneError(f"too old resource version: {version} ({self._dropped_version})")
        return self.dropped_count + bisect_right(self._versions, version)

    def changes_from(self, position: int, limit: int | None = None) -> list[WatchEvent]:
        """The changes from a position on; at most ``limit`` of them. Raises GoneError."""
        start = position - self.dropped_count
        if start < 0:
            raise GoneError(f"too old resource version: fell behind {self._dropped_version}")
        return self.events[start : None if limit is None else start + limit]

    async def grown(self) -> None:
        """Wait for the next change."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter


@final
class Watch(AsyncIterator[WatchEvent], PushingWatch):
    """The changes of one kind, one after the other, without an end. Raises GoneError."""

    def __init__(self, log: _Log, version: int) -> None:
        self._log = log
        self._version = version
        self._position: int | None = None
        #: What the log calls soon after the next change; None: the watch does not push.
        self._callback: _SoonCalled | None = None

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> WatchEvent:
        while True:
            event = self.take()
            if event is not None:
                return event
            await self._log.grown()

    async def push(self, deliver: Callable[[Sequence[WatchEvent]], None]) -> None:
        """See ports.PushingWatch. The changes of one round of the event loop come together."""
        log, loop = self._log, asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def hand_over() -> None:
            if ended.done():
                return
            try:
                if self._position is None:
                    self._position = log.position_after(self._version)
                start = self._position - log.dropped_count
                # Not `changes_from`: this is called twice per pod.
                new = log.events[start:] if start >= 0 else log.changes_from(self._position)
                if new:
                    self._position += len(new)
                    deliver(new)
            except Exception as problem:  # noqa: BLE001 - it ends the watch
                ended.set_exception(problem)
            else:
                log.callbacks.append(callback)

        callback = self._callback = (loop, hand_over, copy_context())
        hand_over()
        await ended

    def hold(self) -> bool:
        """See ports.PushingWatch."""
        if self._callback is None or self._callback not in self._log.callbacks:
            return False
        self._log.callbacks.remove(self._callback)
        return True

    def pull(self) -> WatchEvent | None:
        """See ports.PushingWatch."""
        log, position = self._log, self._position
        assert position is not None, "the watch is held"
        start = position - log.dropped_count
        if start >= len(log.events):
            return None
        self._position = position + 1
        return log.events[start]

    def release(self) -> Callable[[], None] | None:
        """See ports.PushingWatch."""
        assert self._callback is not None and self._position is not None, "the watch is held"
        if self._position < self._log.dropped_count + len(self._log.events):
            return self._callback[1]
        self._log.callbacks.append(self._callback)
        return None

    def take(self) -> WatchEvent | None:
        """The next change, if there is one. Raises GoneError."""
        if self._position is None:
            self._position = self._log.position_after(self._version)
        for event in self._log.changes_from(self._position, limit=1):
            self._position += 1
            return event
        return None


#: Access to a member of an enumeration costs more than a name of the module.
_ADDED, _MODIFIED, _DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
_ARRIVES, _IS_BOUND = PodChange.ARRIVES, PodChange.IS_BOUND


def _number(resource_version: str) -> int:
    """A version as a number; 0, which is older than all versions, if the text is no number."""
    return int(resource_version) if resource_version.isdecimal() else 0


def _versioned(content: Content, version: int) -> Content:
    return {**content, "metadata": {**content["metadata"], "resourceVersion": str(version)}}


# ---- stored objects -------------------------------------------------------------------------


@final
class StoredObjects:
    """The WholeObjects of an embedded cluster."""

    def __init__(self, get: Callable[[ObjectKey], StoredObject | None]) -> None:
        self._get = get

    def whole(self, kind: str, namespace: str, name: str) -> bytes | None:
        stored = self._get(object_key(kind, namespace, name))
        return None if stored is None else trimmed(stored.content)


# ---- whole objects --------------------------------------------------------------------------


#: Fields that kube-scheduler's own copies of objects lack, too.
_TYPE = frozenset(("kind", "apiVersion"))
MANAGED_FIELDS = "managedFields"


class WholeObjects(Protocol):
    """A source of whole objects, for requests to other programs."""

    def whole(self, kind: str, namespace: str, name: str) -> bytes | None:
        """JSON as `trimmed` leaves it; None: there is no such object."""
        ...


def trimmed(content: Mapping[str, Any]) -> bytes:
    """The object as JSON, without the fields that only the API server needs."""
    parts = {name: value for name, value in content.items() if name not in _TYPE}
    meta = parts.get("metadata")
    if isinstance(meta, dict) and MANAGED_FIELDS in meta:
        members = cast("dict[str, Any]", meta)
        parts["metadata"] = {n: value for n, value in members.items() if n != MANAGED_FIELDS}
    return msgspec.json.encode(parts)
