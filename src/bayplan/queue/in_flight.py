"""What happens while pods are being tried: kept, and looked at when they come back rejected.

Changes stand in one list in the order they came; a pod in flight remembers how long the list was
when it was popped, so what came later concerns it. Changes before the earliest such mark concern
nobody and are dropped. Upstream: inFlightPods and inFlightEvents of active_queue.go.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, final

from bayplan.queue.hints import Change

#: Upstream: metrics.PodPoppedInFlightEvent, the mark that a pod leaves in the list.
POD_POPPED: Final = "PodPopped"

#: So many changes nobody needs are kept before the list is cut.
_DROPPABLE_ALLOWED = 64


@final
class InFlight:
    """Pods between pop and done, and the changes since."""

    def __init__(self) -> None:
        #: uid → number of changes, counted from the beginning, when it was popped. Pods are in the
        #: order they were popped, so the first mark is the lowest.
        self._marks: dict[str, int] = {}
        #: (uid of the only pod concerned, "" for all; change)
        self._changes: list[tuple[str, Change]] = []
        self._dropped_count = 0

    def __len__(self) -> int:
        return len(self._marks)

    def __contains__(self, uid: str) -> bool:
        return uid in self._marks

    @property
    def kept_count(self) -> int:
        """Changes that are kept; bounded by what came since the longest attempt began."""
        return len(self._changes)

    def counts(self) -> dict[str, int]:
        """How many pods are in flight, and how many changes of which event are kept."""
        found = Counter(change.event.label for _, change in self._changes)
        found[POD_POPPED] = len(self._marks)
        return dict(found)

    def start(self, uid: str) -> None:
        assert uid not in self._marks, f"the pod with uid {uid} is being tried twice at once"
        self._marks[uid] = self._dropped_count + len(self._changes)

    def finish(self, uid: str) -> None:
        """The attempt is over; a pod that is not in flight is ignored."""
        if self._marks.pop(uid, None) is not None:
            self._drop()

    def finish_all(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.finish(uid)

    def record(self, change: Change) -> None:
        """Something happened that may concern whoever is in flight."""
        if self._marks:
            self._changes.append(("", change))

    def record_for(self, uid: str, change: Change) -> None:
        """Something happened to, or for, one pod in flight."""
        assert uid in self._marks, f"no pod with uid {uid} is being tried"
        self._changes.append((uid, change))

    def changes_since(self, uid: str) -> Iterable[Change]:
        """What came since the pod was popped, in order."""
        start = self._marks[uid] - self._dropped_count
        return [change for only, change in self._changes[start:] if only in ("", uid)]

    def _drop(self) -> None:
        if not self._marks:
            self._changes.clear()
            return
        if len(self._changes) <= _DROPPABLE_ALLOWED:
            return
        droppable = next(iter(self._marks.values())) - self._dropped_count
        if droppable > _DROPPABLE_ALLOWED and 2 * droppable > len(self._changes):
            del self._changes[:droppable]
            self._dropped_count += droppable
