"""Makes the entries of the log of one scheduler: of a live one, and of one in a simulation.

A live scheduler logs each change when it learns of it. A simulation logs each change when its API
server makes it, of all kinds and with the whole content, because questions about a moment also
need what no plugin reads: controllers, quotas, the templates of pods. The scheduler learns of most
changes at once. If it has not learned of some when an attempt begins, the attempt's entry has the
last version that it has learned of, for each kind that lags behind (`AttemptStart`).
"""

import re
from collections.abc import Callable, Mapping
from typing import final

from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import NODE, POD
from bayplan.clock import Clock
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.events import UPDATE, ActionType, ClusterEvent
from bayplan.framework.plugin import EnqueueExtensions
from bayplan.framework.types import QueuedPodInfo
from bayplan.history.entries import (
    AttemptStart,
    Decision,
    Entry,
    ObjectChange,
    Origin,
    QueueLengths,
)
from bayplan.journal import AttemptRecord, BindingRecord, Record
from bayplan.ports import EventType, WatchEvent
from bayplan.queue.entry import QueuedPodGroupInfo

Put = Callable[[Entry], None]


@final
class LiveStateLog:
    """The log of a live scheduler, and a sink of its journal; see `engine.telemetry.StateLog`."""

    def __init__(self, put: Put, now: Callable[[], float]) -> None:
        """``put`` stores an entry: `StateRing.put`, for example. ``now``: the time of a change."""
        self._put = put
        self._now = now
        self._followers: list[Callable[[ObjectChange], None]] = []

    def follow(self, put: Callable[[ObjectChange], None]) -> None:
        """Call ``put``, too, with each change of an object."""
        self._followers.append(put)

    def handled(self, event: WatchEvent) -> None:
        """See `engine.telemetry.StateLog`."""
        change = ObjectChange(
            at_seconds=self._now(), type=event.type, kind=event.kind, object=event.object
        )
        self._put(change)
        for follower in self._followers:
            follower(change)

    def begins(
        self, queued: QueuedPodInfo, now_seconds: float, sampling_starts: Mapping[str, int]
    ) -> None:
        """See `engine.telemetry.StateLog`."""
        self._put(_start(queued, now_seconds, sampling_starts, {}))

    def write(self, record: Record) -> None:
        """See `journal.Sink`."""
        self._put(_decision(record))


@final
class SimulatedStateLog:
    """The log of a scheduler in a simulation; see the module. It is also a sink of the journal."""

    def __init__(self, put: Put, clock: Clock) -> None:
        """``put`` stores an entry: `StateFiles.put`, for example."""
        self._put = put
        self._now = clock.now
        #: The kinds that the scheduler follows.
        self._followed = frozenset[str]()
        #: Kind → the version of the last change that the scheduler will get, and of the last change
        #: that it has got.
        self._made_versions: dict[str, int] = {}
        self._learned_versions: dict[str, int] = {}
        #: Kinds of which the scheduler has not learned all changes.
        self._behind: set[str] = set()
        #: Whether an attempt was made. Until then the scheduler lists the objects.
        self._has_begun = False
        self._lengths: tuple[int, ...] = ()

    def begin(self, scheduler: Scheduler, cluster: EmbeddedCluster) -> None:
        """Begin to log, when the scheduler and the API server begin to work. Their further changes
        are logged."""
        self._followed = frozenset((NODE, POD, *scheduler.kinds, *scheduler.group_kinds))
        self._queue = scheduler.queue
        self._cluster = cluster
        self._put(origin_of(scheduler))
        cluster.observe(self._observe, ignored_kinds=(EVENT,))
        scheduler.executor.observe(self._look)

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        version = self._cluster.version if after is None else after.version
        change = change_of(before, after, self._now(), version)
        self._put(change)
        kind = change.kind
        is_reported = (before is not None and before.is_visible) or (
            after is not None and after.is_visible
        )
        if is_reported and kind in self._followed:
            self._made_versions[kind] = change.version
            if self._has_begun or kind in self._learned_versions:
                self._behind.add(kind)

    def handled(self, event: WatchEvent) -> None:
        """See `engine.telemetry.StateLog`."""
        kind, version = event.kind, int(event.resource_version or 0)
        self._learned_versions[kind] = version
        if version >= self._made_versions.get(kind, 0):
            self._behind.discard(kind)

    def begins(
        self, queued: QueuedPodInfo, now_seconds: float, sampling_starts: Mapping[str, int]
    ) -> None:
        """See `engine.telemetry.StateLog`."""
        self._has_begun = True
        learned = {kind: self._learned_versions.get(kind, 0) for kind in sorted(self._behind)}
        self._put(_start(queued, now_seconds, sampling_starts, learned))

    def write(self, record: Record) -> None:
        """See `journal.Sink`."""
        self._put(_decision(record))

    def _look(self) -> None:
        """Note the lengths of the queues, if they changed."""
        lengths = tuple(self._queue.counts().values())
        if lengths != self._lengths:
            self._lengths = lengths
            self._put(QueueLengths(self._now(), lengths))


def _start(
    queued: QueuedPodInfo,
    now_seconds: float,
    sampling_starts: Mapping[str, int],
    learned_versions: Mapping[str, int],
) -> AttemptStart:
    if isinstance(queued, QueuedPodGroupInfo):
        attempts = {uid: member.attempts for uid, member in queued.members.items()}
    else:
        attempts = {queued.pod.uid: queued.attempts}
    return AttemptStart(
        at_seconds=now_seconds,
        attempts=attempts,
        sampling_starts=dict(sampling_starts),
        learned_versions=learned_versions,
    )


def _decision(record: Record) -> Decision:
    """What a record decides about a pod."""
    if isinstance(record, AttemptRecord):
        if record.result in ("scheduled", "waiting"):
            return Decision(record.uid, record.node)
        if record.nominated_node:
            return Decision(record.uid, nominated_node=record.nominated_node)
    elif isinstance(record, BindingRecord) and record.result != "bound":
        return Decision(record.uid)
    return _NOTHING


_NOTHING = Decision()


def change_of(
    before: StoredObject | None, after: StoredObject | None, at_seconds: float, version: int = 0
) -> ObjectChange:
    """A change in an embedded API server. ``version``: that of the change."""
    stored = after or before
    assert stored is not None
    if after is None:
        event = EventType.DELETED
    else:
        event = EventType.ADDED if before is None else EventType.MODIFIED
    return ObjectChange(
        at_seconds=at_seconds,
        type=event,
        kind=stored.key.kind,
        object=stored.object,
        version=version,
        content=stored.content,
    )


# ---- the scheduler of a log -----------------------------------------------------------------


def origin_of(scheduler: Scheduler) -> Origin:
    """What a reader of the log must know of its scheduler."""
    return Origin(
        profiles=tuple(scheduler.profile_names),
        queue_names=tuple(scheduler.queue.counts()),
        wake_events=_wake_events(scheduler),
        declared_fields=scheduler.declared_fields,
    )


def _wake_events(scheduler: Scheduler) -> Mapping[str, tuple[str, ...]]:
    """Plugin instance → the events after which its rejected pods are tried again, in words."""
    events: dict[str, tuple[str, ...]] = {}
    for profile in scheduler.profile_names:
        for plugin in scheduler.framework(profile).plugins.instances():
            name = plugin.instance_name
            if isinstance(plugin, EnqueueExtensions):
                named = [_event_name(one.event) for one in plugin.events_to_register()]
                events[name] = tuple(dict.fromkeys(named))
    return events


def _event_name(event: ClusterEvent) -> str:
    """Such as "Node: added, label changed"."""
    words: list[str] = []
    if event.action & ActionType.ADD:
        words.append("added")
    if event.action & ActionType.DELETE:
        words.append("deleted")
    updates = event.action & UPDATE
    if updates == UPDATE:
        words.append("changed")
    elif updates:
        bits = (str(bit).removeprefix("UpdateNode") for bit in ActionType if bit in updates)
        parts = [_words(bit.removeprefix("UpdatePod")) for bit in bits]
        words.append(f"{', '.join(parts)} changed")
    return f"{event.resource.rpartition('/')[2]}: {', '.join(words)}"


def _words(text: str) -> str:
    """The words of a name in camel case: "GatesEliminated" → "gates eliminated"."""
    return re.sub("(?<!^)(?=[A-Z])", " ", text).lower()
