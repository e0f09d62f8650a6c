"""How much waits in which queue, counted as entries move: pods, groups, pods without one."""

from collections import Counter
from typing import Final, final

from bayplan.queue.entry import Entry
from bayplan.queue.transitions import PENDING_QUEUES, State, counted_as

#: Kinds of entries, as upstream's metrics call them.
POD_ENTITY: Final = "pod"
GROUP_ENTITY: Final = "podgroup"


def entity_of(entry: Entry) -> str:
    return POD_ENTITY if entry.group is None else GROUP_ENTITY


@final
class Sizes:
    """By the values of the label ``queue`` of scheduler_pending_pods."""

    def __init__(self) -> None:
        self._pods: Counter[str] = Counter(dict.fromkeys(PENDING_QUEUES, 0))
        self._groups: Counter[str] = Counter()
        #: Pods that are members of those.
        self._members: Counter[str] = Counter()

    def came(self, entry: Entry) -> None:
        """It is where its state says now."""
        self._change(entry, 1)

    def went(self, entry: Entry) -> None:
        """It is no longer where its state still says."""
        self._change(entry, -1)

    def _change(self, entry: Entry, sign: int) -> None:
        queue, count = counted_as(entry.state), sign * len(entry.pods)
        self._pods[queue] += count
        if entry.group is not None:
            self._groups[queue] += sign
            self._members[queue] += count

    def grew(self, state: State, count: int) -> None:
        """A group in this state got so many members more."""
        queue = counted_as(state)
        self._pods[queue] += count
        self._members[queue] += count

    def pods(self) -> dict[str, int]:
        return dict(self._pods)

    def entities(self) -> dict[tuple[str, str], int]:
        """(queue, kind of entry) → how many."""
        found: dict[tuple[str, str], int] = {}
        for queue, pod_count in self._pods.items():
            found[queue, POD_ENTITY] = pod_count - self._members[queue]
            found[queue, GROUP_ENTITY] = self._groups[queue]
        return found
