"""The state at one moment as the sum of entries, and the newest entries in memory.

`PastState` adds entries up: the state before an attempt is a checkpoint plus the entries since.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import final

import msgspec

from bayplan.api.objects import POD, ApiObject, Pod, is_terminal
from bayplan.history.entries import (
    AttemptStart,
    Decision,
    Entry,
    ObjectChange,
    Origin,
)
from bayplan.objects.keys import Content, ObjectKey, key_of_metadata
from bayplan.objects.object_store import ObjectStore
from bayplan.ports import EventType


@final
class PastState:
    """The state of a scheduler and its API server at one moment: the sum of the entries so far."""

    def __init__(self) -> None:
        #: None: unknown.
        self.origin: Origin | None = None
        #: The objects of each kind, in the order of their first entries.
        self.objects = ObjectStore[ApiObject]()
        #: The contents of objects whose content is in the log.
        self.contents: dict[ObjectKey, Content] = {}
        #: Uid → node, of pods whose bindings the API server has not reported.
        self.assumed: dict[str, str] = {}
        #: Uid → node, of nominations that the API server has not reported, the oldest first.
        self.nominated: dict[str, str] = {}

    def copy(self) -> "PastState":
        """A separate state, which shares the objects."""
        copied = PastState()
        copied.origin = self.origin
        copied.objects, copied.contents = self.objects.copy(), dict(self.contents)
        copied.assumed, copied.nominated = dict(self.assumed), dict(self.nominated)
        return copied

    def add(self, *entries: Entry) -> None:
        """Add the next entries."""
        for entry in entries:
            if isinstance(entry, ObjectChange):
                self._add_change(entry)
            elif isinstance(entry, Decision):
                if entry.uid:
                    self._add_decision(entry)
            elif isinstance(entry, Origin):
                self.origin = entry

    def entries(self, at_seconds: float = 0.0) -> Iterator[Entry]:
        """Entries that lead from nothing to this state. ``at_seconds``: their time."""
        if self.origin is not None:
            yield self.origin
        for key, each in self.objects:
            yield ObjectChange(
                at_seconds=at_seconds,
                type=EventType.ADDED,
                kind=key.kind,
                object=each,
                content=self.contents.get(key),
            )
        yield from (Decision(uid, node) for uid, node in self.assumed.items())
        yield from (Decision(uid, nominated_node=node) for uid, node in self.nominated.items())

    # ---- looking in -------------------------------------------------------------------------

    def visible_objects(self) -> ObjectStore[ApiObject]:
        """The objects without pods that have ended, as an informer sees them."""
        visible = self.objects.copy()
        for key, each in self.objects.items(POD):
            if isinstance(each, Pod) and is_terminal(each):
                visible.remove(key)
        return visible

    def objects_as_decided(self) -> ObjectStore[ApiObject]:
        """`visible_objects` as they are when the API server has reported all decisions."""
        objects = self.visible_objects()
        for uid in dict.fromkeys((*self.assumed, *self.nominated)):
            key = objects.key_of_uid(uid)
            pod = None if key is None else objects.get(key)
            if key is not None and pod is not None:
                objects.put(key, self.as_decided(pod))
        return objects

    def as_decided(self, content: ApiObject) -> ApiObject:
        """A pod as it is when the API server has reported all decisions."""
        uid = content.metadata.uid or ""
        node, nominated_node = self.assumed.get(uid), self.nominated.get(uid)
        if not isinstance(content, Pod) or (node is None and nominated_node is None):
            return content
        if node is not None:
            spec = msgspec.structs.replace(content.spec, node_name=node)
            return msgspec.structs.replace(content, spec=spec)
        status = msgspec.structs.replace(content.status, nominated_node_name=nominated_node)
        return msgspec.structs.replace(content, status=status)

    # ---- adding -----------------------------------------------------------------------------

    def _add_decision(self, entry: Decision) -> None:
        if entry.nominated_node:
            self.nominated[entry.uid] = entry.nominated_node
        elif entry.node:
            self.assumed[entry.uid] = entry.node
            self.nominated.pop(entry.uid, None)
        else:
            self.assumed.pop(entry.uid, None)

    def _add_change(self, entry: ObjectChange) -> None:
        content = entry.object
        key = key_of_metadata(entry.kind, content.metadata)
        is_deleted = entry.type is EventType.DELETED
        if is_deleted:
            self.objects.remove(key)
            self.contents.pop(key, None)
        else:
            self.objects.put(key, content)
            if entry.content is not None:
                self.contents[key] = entry.content
        if not isinstance(content, Pod):
            return
        uid = content.metadata.uid or ""
        if is_deleted or content.spec.node_name:
            self.assumed.pop(uid, None)
            self.nominated.pop(uid, None)
        elif content.status.nominated_node_name:
            self.nominated.pop(uid, None)


def as_learned(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries in the order in which the scheduler learned of them.

    A change that the scheduler had not learned of when an attempt began comes after that attempt.
    """
    pending: list[Entry] = []
    for entry in entries:
        if not isinstance(entry, AttemptStart):
            pending.append(entry)
            continue
        learned_versions, later = entry.learned_versions, list[Entry]()
        for each in pending:
            if (
                learned_versions
                and isinstance(each, ObjectChange)
                and each.version > learned_versions.get(each.kind, each.version)
            ):
                later.append(each)
            else:
                yield each
        pending = later
        yield entry
    yield from pending


def state_before(
    state: PastState, entries: Iterable[Entry], uid: str, attempt: int
) -> tuple[PastState, AttemptStart] | None:
    """Add entries to a state up to the beginning of an attempt; None: the attempt is not there."""
    for entry in as_learned(entries):
        if isinstance(entry, AttemptStart) and entry.attempts.get(uid) == attempt:
            return state, entry
        state.add(entry)
    return None


@final
class StateRing:
    """The newest entries in memory, and the state before the oldest of them.

    Memory: the entries, with the versions of objects that they name, and one reference to each
    object of the cluster, which the scheduler holds anyway. Time: constant for each entry.
    """

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._entries: deque[Entry] = deque()
        #: The state before the oldest entry.
        self._checkpoint = PastState()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Entry) -> None:
        """Store the next entry. The oldest one becomes a part of the checkpoint."""
        self._entries.append(entry)
        if len(self._entries) > self._length_max:
            self._checkpoint.add(self._entries.popleft())

    def present(self) -> PastState:
        """The state after the newest entry."""
        state = self._checkpoint.copy()
        state.add(*self._entries)
        return state

    def before(self, uid: str, attempt: int) -> tuple[PastState, AttemptStart] | None:
        """The state before an attempt; None: the attempt is too old, or unknown."""
        return state_before(self._checkpoint.copy(), self._entries, uid, attempt)
