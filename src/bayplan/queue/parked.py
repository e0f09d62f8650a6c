"""Parked entries: the unschedulable and the gated, found by what may help them.

Walking all of them for every event is what makes a large queue slow. Here they are indexed by
plugin that rejected them and by the part of the pod which that plugin signs: pods of one part get
one answer of its hints, so a hint is asked once per part. A pod that is not signed is a part of its
own, and so is the pod that an event is about. The outcome is that of asking each pod by itself.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Final, final

from bayplan.framework.interface import QueuedPodInfo
from bayplan.queue.entry import Entry, rejectors
from bayplan.queue.hints import Change, Hints, Strategy
from bayplan.queue.ordered import OrderedEntries
from bayplan.queue.settings import QueueProfile, QueueRecorder, QueueSettings
from bayplan.state.pods import PodInfo

#: Whether an event may concern a pod at all, before any plugin is asked.
PreCheck = Callable[[PodInfo], bool]
#: Entries woken by a change, in the order of their sequence, and how.
Woken = list[tuple[Entry, Strategy]]

#: (profile, plugin instance)
_Rejector = tuple[str, str]
#: (plugin that gates, "" for none; signed part; uid of a pod that is not signed, else "")
_Part = tuple[str, Hashable, str]
#: uid → the pod and its entry, in the order they were parked
_Members = dict[str, tuple[Entry, QueuedPodInfo]]

_NOBODY: Final[Mapping[_Part, _Members]] = {}


@final
class Parked:
    """Entries that wait for an event, or for the flush."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        hints: Mapping[str, Hints],
        settings: QueueSettings,
        recorder: QueueRecorder,
    ) -> None:
        self._sign = {name: profile.sign for name, profile in profiles.items()}
        self._hints = hints
        self._recorder = recorder
        self._longest_seconds = settings.unschedulable_max_seconds
        self._period_seconds = settings.flush_period_seconds
        self._index: dict[_Rejector, dict[_Part, _Members]] = {}
        #: entry → where its pods stand in the index
        self._places: dict[str, list[tuple[_Rejector, _Part, str]]] = {}
        self._by_flush = OrderedEntries(self._flush_order)

    def __iter__(self) -> Iterator[Entry]:
        """In the order they were parked."""
        return iter(self._by_flush)

    # ---- in and out -----------------------------------------------------------------------

    def enter(self, entry: Entry) -> None:
        """Add the entry, or put one that is here where it now belongs."""
        self._remove_from_index(entry)
        places = self._places[entry.key] = list(self._places_of(entry))
        pods = {queued.pod.uid: queued for queued in entry.pods}
        for rejector, part, uid in places:
            members = self._index.setdefault(rejector, {}).setdefault(part, {})
            members[uid] = (entry, pods[uid])
        self._by_flush.enter(entry)

    def leave(self, entry: Entry) -> None:
        self._remove_from_index(entry)
        self._by_flush.leave(entry)

    def _remove_from_index(self, entry: Entry) -> None:
        for rejector, part, uid in self._places.pop(entry.key, ()):
            members = self._index[rejector][part]
            del members[uid]
            if not members:
                del self._index[rejector][part]

    def _places_of(self, entry: Entry) -> Iterator[tuple[_Rejector, _Part, str]]:
        gate = entry.gating_plugin
        for queued in entry.pods:
            pod = queued.pod
            for plugin in rejectors(queued):
                part = self._part(plugin, pod)
                own_uid = pod.uid if part is None else ""
                yield (pod.scheduler_name, plugin), (gate, part, own_uid), pod.uid

    def _part(self, plugin: str, pod: PodInfo) -> Hashable | None:
        try:
            part = self._sign[pod.scheduler_name](plugin, pod)
            hash(part)
        except BaseException as problem:  # noqa: BLE001 - such a pod is one that is not signed
            self._recorder.hint_failed(plugin, "SignPod", problem)
            return None
        return part

    # ---- events ---------------------------------------------------------------------------

    def woken_by(self, change: Change, pre_check: PreCheck | None = None) -> Woken:
        """Which entries are worth another attempt after a change that is no wildcard."""
        best: dict[str, tuple[Entry, Strategy]] = {}
        for entry, queued, plugin in self._helped(change):
            if pre_check is not None and not any(pre_check(q.pod) for q in entry.pods):
                continue
            pends = plugin in queued.pending_plugins
            strategy = Strategy.IMMEDIATELY if pends else Strategy.AFTER_BACKOFF
            known = best.get(entry.key)
            if known is None or known[1] < strategy:
                best[entry.key] = (entry, strategy)
        return sorted(best.values(), key=_by_sequence)

    def woken_by_wildcard(self, change: Change, pre_check: PreCheck | None = None) -> Woken:
        """The same for a wildcard, which asks no plugin and opens every gate."""
        woken: Woken = []
        for entry in self._by_flush:
            if pre_check is not None and not any(pre_check(q.pod) for q in entry.pods):
                continue
            hints = self._hints[entry.queued.pod.scheduler_name]
            strategy = max(hints.strategy(queued, change) for queued in entry.pods)
            if strategy is not Strategy.SKIP:
                woken.append((entry, strategy))
        return sorted(woken, key=_by_sequence)

    def _helped(self, change: Change) -> Iterator[tuple[Entry, QueuedPodInfo, str]]:
        """(entry, pod, plugin that rejected it and is content with the change)"""
        subject = change.subject_uid
        for profile, hints in self._hints.items():
            interested = hints.interested(change.event)
            for plugin in interested:
                parts = self._index.get((profile, plugin), _NOBODY)
                for (gate, _, _), members in parts.items():
                    # A gate opens by events of the plugin that holds it, by no other's.
                    if gate and gate not in interested:
                        continue
                    for entry, queued in _content(hints, plugin, members, change, subject):
                        yield entry, queued, plugin

    # ---- the flush ------------------------------------------------------------------------

    def next_flush_seconds(self) -> float | None:
        """When an entry will have waited too long; None: nobody waits."""
        first = self._by_flush.first()
        return None if first is None else first[0][0]

    def first_overdue(self, now_seconds: float) -> Entry | None:
        """The entry that has waited too long for the longest. It stays."""
        first = self._by_flush.first()
        return first[1] if first is not None and first[0][0] <= now_seconds else None

    def _flush_order(self, entry: Entry) -> tuple[float, int]:
        """The first look, every period, at which it will have waited longer than allowed."""
        longest = entry.waiting_since_seconds + self._longest_seconds
        looks = math.floor(longest / self._period_seconds) + 1
        return looks * self._period_seconds, entry.sequence


def _content(
    hints: Hints, plugin: str, members: _Members, change: Change, subject: str
) -> Iterator[tuple[Entry, QueuedPodInfo]]:
    """Members of one part whom the change helps, as the plugin sees it."""
    about_itself = members.get(subject)
    if about_itself is not None and hints.helps(plugin, change, about_itself[1].pod):
        yield about_itself
    others = (member for uid, member in members.items() if uid != subject)
    first = next(others, None)
    if first is not None and hints.helps(plugin, change, first[1].pod):
        yield first
        yield from others


def _by_sequence(woken: tuple[Entry, Strategy]) -> int:
    return woken[0].sequence
