"""What happens to a running scheduler, until somebody looks at its page.

A fold of an item into the timeline takes longer than an attempt should wait. So the log and the
journal of the scheduler put their items into a backlog, which costs one append each, and the fold
gets them when somebody looks at the page: all of them while no pod is ready for an attempt, and few
at a time while pods are. A scheduler with thousands of pods to place does not wait for its page,
and the page shows them a little later.

The items are those of the fold, in the order in which they happened, and each of them has its time:
a change of an object, a record of the journal, or the lengths of the queues. So the timeline does
not depend on when the fold gets an item. The lengths of the queues are no event of the scheduler.
They are read when somebody looks, and then only the last lengths between two other items count,
because the earlier ones belong to the same change.

The backlog is bounded: beyond `LENGTH_MAX` items, each change of an object brings the oldest items
to the fold. The fold is bounded, too: it remembers the last `changes_max` changes, and a quarter
more. Objects and records in the backlog are those that `serving.past_attempts` remembers.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, final

from bayplan.clock import Clock
from bayplan.engine.scheduler import Scheduler
from bayplan.history.entries import ObjectChange, QueueLengths
from bayplan.history.state_log import origin_of
from bayplan.history.timeline_fold import TimelineFold
from bayplan.journal import Record

LENGTH_MAX: Final = 15_000
#: The number of items that the fold gets between two looks at the clock, and with each change
#: beyond the bound.
_PART, _FEW = 100, 4


@final
class Backlog:
    """The fold of a running scheduler's log, and the items that it has not got yet."""

    def __init__(self, scheduler: Scheduler, clock: Clock, changes_max: int) -> None:
        self._scheduler = scheduler
        self._now = clock.now
        self._items: deque[ObjectChange | Record | QueueLengths] = deque()
        self.fold = TimelineFold(origin_of(scheduler), scheduler.pod_groups.kinds)
        #: The number of changes since the start that are forgotten.
        self.forgotten_count = 0
        self._changes_max = changes_max
        #: The change after which the oldest changes are forgotten.
        self._forget_at = changes_max + changes_max // 4
        #: See `journal.Sink.write`. Called at every attempt, so it is no function of Python.
        self.write: Callable[[Record], None] = self._items.append

    def __len__(self) -> int:
        return len(self._items)

    @property
    def change_count(self) -> int:
        """The number of changes since the start, without those that wait for the fold."""
        return self.forgotten_count + self.fold.change

    def seconds_until(self, now_seconds: float) -> float:
        """The time up to which the fold has everything. ``now_seconds``: the present time."""
        return self.fold.seconds if self._items else now_seconds

    def close(self) -> None:
        """Drop all items from now on."""
        self._items = deque(maxlen=0)
        self.write = self._items.append

    def put(self, change: ObjectChange) -> None:
        """Take a change of an object. Raises what the fold raises."""
        if change.kind in self.fold.kinds:
            self._items.append(change)
            if len(self._items) > LENGTH_MAX:
                self._apply(_FEW)

    def look(self) -> None:
        """Note the lengths of the queues. Between two other items, only the last lengths count."""
        if self._items and isinstance(self._items[-1], QueueLengths):
            self._items.pop()
        lengths = tuple(self._scheduler.queue.counts().values())
        self._items.append(QueueLengths(self._now(), lengths))

    def catch_up(self, seconds: float) -> None:
        """Bring items to the fold for some time. Raises what the fold raises."""
        end = self._now() + seconds
        while self._items:
            self._apply(_PART)
            if self._now() >= end:
                return

    def _apply(self, count: int) -> None:
        for _ in range(min(count, len(self._items))):
            self.fold.add(self._items.popleft())
        if self.fold.change > self._forget_at:
            self._forget()

    def _forget(self) -> None:
        before = self.fold.change
        self.fold.forget_before(before - self._changes_max)
        self.forgotten_count += before - self.fold.change
        self._forget_at = self.fold.change + self._changes_max // 4
