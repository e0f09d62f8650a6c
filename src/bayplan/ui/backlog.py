"""What happens to a running scheduler, as references in a list, until somebody looks.

A watch event or a record of the journal costs the scheduler one append. The recorder gets them when
somebody looks at the page: all of them while no pod is ready for an attempt, and few at a time
while pods are. So a scheduler with thousands of pods to place does not wait for its page, and the
page shows them a little later.

The list is bounded: beyond `LENGTH_MAX` items, each event brings the oldest ones to the recorder.
The objects and records in the list are those that `serving.past_attempts` remembers, too.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, final

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_SLICE
from bayplan.api.objects import NODE, POD
from bayplan.clock import Clock
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import Record
from bayplan.ports import WatchEvent
from bayplan.ui.recording import Recorder

#: Items that wait for the recorder; an event is two of them.
LENGTH_MAX: Final = 30_000
_KINDS: Final = frozenset((NODE, POD, DEVICE_CLASS, RESOURCE_SLICE))
#: Items that the recorder gets between two looks at the clock, and with an event beyond the bound.
_PART, _FEW = 100, 4

#: The time of the event that follows, an event, a record, or the lengths of the queues.
_Item = float | WatchEvent | Record | tuple[int, ...]


@final
class Backlog:
    """The recorder of a running scheduler, and the items that it has not got yet.

    The recorder remembers the last `changes_max` changes, and a quarter more.
    """

    def __init__(self, scheduler: Scheduler, clock: Clock, changes_max: int) -> None:
        self._scheduler = scheduler
        self._now = clock.now
        self._items: deque[_Item] = deque()
        #: The time of the last item that the recorder got.
        self.seconds = 0.0
        self.recorder = Recorder(scheduler, lambda: self.seconds)
        #: Changes since the start that are forgotten.
        self.forgotten_count = 0
        self._changes_max = changes_max
        #: The change after which the oldest ones are forgotten.
        self._forget_at = changes_max + changes_max // 4
        #: See `journal.Sink.write`. Called at every attempt, so it is no function of Python.
        self.write: Callable[[Record], None] = self._items.append

    def __len__(self) -> int:
        return len(self._items)

    @property
    def change_count(self) -> int:
        """Changes since the start, without those that wait for the recorder."""
        return self.forgotten_count + self.recorder.change

    def seconds_until(self, now_seconds: float) -> float:
        """Until when the recorder has everything. ``now_seconds``: the present time."""
        return self.seconds if self._items else now_seconds

    def close(self) -> None:
        """Drop all items from now on."""
        self._items = deque(maxlen=0)
        self.write = self._items.append

    def observe(self, event: WatchEvent) -> None:
        """A watch event. Raises what the recorder raises."""
        if event.kind in _KINDS:
            self._items += (self._now(), event)
            if len(self._items) > LENGTH_MAX:
                self._apply(_FEW)

    def look(self) -> None:
        """Note the lengths of the queues: the last ones between two other items count."""
        if self._items and isinstance(self._items[-1], tuple):
            self._items.pop()
        self._items.append(tuple(self._scheduler.queue.counts().values()))

    def catch_up(self, seconds: float) -> None:
        """Bring items to the recorder for some time. Raises what the recorder raises."""
        end = self._now() + seconds
        while self._items:
            self._apply(_PART)
            if self._now() >= end:
                return

    def _apply(self, count: int) -> None:
        recorder, items = self.recorder, self._items
        for _ in range(min(count, len(items))):
            item = items.popleft()
            if isinstance(item, float | int):
                self.seconds = item
            elif isinstance(item, WatchEvent):
                recorder.observe_event(item)
            elif isinstance(item, tuple):
                recorder.note_queues(item)
            else:
                self.seconds = max(self.seconds, item.at_seconds)
                recorder.write(item)
        if recorder.change > self._forget_at:
            self._forget()

    def _forget(self) -> None:
        before = self.recorder.change
        self.recorder.forget_before(before - self._changes_max)
        self.forgotten_count += before - self.recorder.change
        self._forget_at = self.recorder.change + self._changes_max // 4
