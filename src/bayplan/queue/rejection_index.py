"""Waiting pods by what rejected them: plugin, gate and signed part.

A hint is evaluated once for all pods of a part. A group enters at each event about one of its
members. So a pod that is already in the index and did not change costs one comparison.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, NamedTuple, final

from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import Entry, rejectors
from bayplan.state.pods import PodInfo

#: (profile, plugin instance)
Rejector = tuple[str, str]
#: (the gating plugin, "" for none; the signed part; the uid of a pod that is not signed, otherwise
#: "")
Part = tuple[str, Hashable, str]
#: uid → the pod and its entry, in the order of entering
Members = dict[str, tuple[Entry, QueuedPodInfo]]

NOBODY: Final[Mapping[Part, Members]] = {}


class _PodPlaces(NamedTuple):
    """The places of a pod in the index, and the values that determine them."""

    queued: QueuedPodInfo
    pod: PodInfo
    rejectors: tuple[str, ...]
    gate: str
    places: Sequence[tuple[Rejector, Part]]


@final
class RejectionIndex:
    """The pods of waiting entries by the plugins that rejected them."""

    def __init__(self, sign: Callable[[str, PodInfo], Hashable | None]) -> None:
        """``sign``: the signed part of a pod for a plugin; None: the pod is not signed."""
        self._sign = sign
        self._members: dict[Rejector, dict[Part, Members]] = {}
        #: Key of the entry → uid → the places of the pod.
        self._entries: dict[str, dict[str, _PodPlaces]] = {}

    def parts(self, rejector: Rejector) -> Mapping[Part, Members]:
        return self._members.get(rejector, NOBODY)

    def enter(self, entry: Entry) -> None:
        """Add the pods of the entry. An entry that is already here moves to its new places."""
        before = self._entries.get(entry.key, {})
        after = self._entries[entry.key] = {}
        for queued in entry.pods:
            uid = queued.pod.uid
            after[uid] = self._put(entry, queued, before.pop(uid, None))
        self._remove(before)

    def enter_equal(self, entries: Sequence[Entry]) -> None:
        """Add equal pods that are not here, and that the same plugins rejected: they are in the
        same parts, if these are signed."""
        self.enter(entries[0])
        (first,) = self._entries[entries[0].key].values()
        if any(uid for _, (_, _, uid) in first.places):
            for entry in entries[1:]:
                self.enter(entry)
            return
        places = [self._members[rejector][part] for rejector, part in first.places]
        for entry in entries[1:]:
            queued, key = entry.queued, entry.key
            for members in places:
                members[key] = entry, queued
            pod, rejectors, gate = queued.pod, first.rejectors, first.gate
            self._entries[key] = {key: _PodPlaces(queued, pod, rejectors, gate, first.places)}

    def leave(self, entry: Entry) -> None:
        self._remove(self._entries.pop(entry.key, {}))

    def _put(self, entry: Entry, queued: QueuedPodInfo, old: _PodPlaces | None) -> _PodPlaces:
        """Put a pod into the index, unless it is there as ``old``."""
        pod, gate, plugins = queued.pod, entry.gating_plugin, rejectors(queued)
        if old is not None:
            is_same = old.queued is queued and old.pod is pod
            if is_same and old.rejectors == plugins and old.gate == gate:
                return old
            self._remove({pod.uid: old})
        places = list[tuple[Rejector, Part]]()
        for plugin in plugins:
            part = self._sign(plugin, pod)
            rejector = pod.shape.scheduler_name, plugin
            place = gate, part, pod.uid if part is None else ""
            self._members.setdefault(rejector, {}).setdefault(place, {})[pod.uid] = (entry, queued)
            places.append((rejector, place))
        return _PodPlaces(queued, pod, plugins, gate, places)

    def _remove(self, pods: Mapping[str, _PodPlaces]) -> None:
        for uid, one in pods.items():
            for rejector, part in one.places:
                members = self._members[rejector][part]
                del members[uid]
                if not members:
                    del self._members[rejector][part]
