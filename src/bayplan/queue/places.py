"""Where entries are: activeQ, the two backoffQs, the parked ones, and every move between them.

A move looks up the table of transitions, asks PreEnqueue on the way to activeQ, takes the entry out
of one place and puts it into the next. Nothing else puts an entry anywhere.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, final

from bayplan.framework.events import POP_FROM_BACKOFF_Q
from bayplan.queue.admission import Admission
from bayplan.queue.backoff import Backoff, looked_at_seconds
from bayplan.queue.entry import Entry
from bayplan.queue.ordered import OrderedEntries
from bayplan.queue.parked import Parked
from bayplan.queue.settings import QueueRecorder, QueueSettings
from bayplan.queue.sizes import Sizes, entity_of
from bayplan.queue.transitions import (
    Cause,
    State,
    entered_as,
    is_waiting,
    next_state,
)


class _Place(Protocol):
    def enter(self, entry: Entry) -> None: ...
    def leave(self, entry: Entry) -> None: ...
    def __iter__(self) -> Iterator[Entry]: ...


@final
class Places:
    """Every waiting entry is in the one place of its state."""

    def __init__(
        self,
        settings: QueueSettings,
        clock: Callable[[], float],
        recorder: QueueRecorder,
        admission: Admission,
        parked: Parked,
    ) -> None:
        self._sort_key = settings.sort_key
        self._clock = clock
        self._recorder = recorder
        self._admission = admission
        self.backoff = Backoff(settings, clock)
        self.parked = parked
        self._active = OrderedEntries(self._by_priority)
        windows = settings.pop_from_backoff_q
        self._backing_off = OrderedEntries(self._by_window if windows else self._by_expiry)
        self._erred = OrderedEntries(self._by_expiry)
        #: Where an entry to be tried is looked for, in this order.
        self._ready = (self._active, self._backing_off) if windows else (self._active,)
        self._of_state: Mapping[State, _Place] = {
            State.ACTIVE: self._active,
            State.BACKOFF: self._backing_off,
            State.ERROR_BACKOFF: self._erred,
            State.UNSCHEDULABLE: parked,
            State.GATED: parked,
        }
        self.sizes = Sizes()

    # ---- moves ----------------------------------------------------------------------------

    def move(self, entry: Entry, cause: Cause, event: str, *, anew: bool = False) -> None:
        """Take the entry where ``cause`` leads, or to the gated ones if PreEnqueue says no.

        ``event``: what the move is counted under. ``anew``: counted also if it stays parked.
        """
        source = entry.state
        target = next_state(source, cause)
        if not self._admission.lets_pass(entry, target):
            target = next_state(source, Cause.REFUSED)
        self._take_out(entry)
        entry.state = target
        place = self._of_state.get(target)
        if place is None:
            return
        if target is State.ACTIVE and entry.queued.initial_attempt_seconds is None:
            entry.queued.initial_attempt_seconds = self._clock()
        elif target is State.GATED:
            entry.queued.was_flushed = False
        place.enter(entry)
        self.sizes.came(entry)
        if anew or entered_as(target) != entered_as(source):
            self._count_incoming(entry, entered_as(target), event)

    def resize(self, entry: Entry, delta: int) -> None:
        """So many members of a waiting group's came (its last), or went."""
        if is_waiting(entry.state):
            self.sizes.grew(entry.state, delta)
            if delta <= 0:
                self.refresh(entry)

    def refresh(self, entry: Entry) -> None:
        """A pod of a waiting entry changed: put the entry where it now belongs in its place."""
        self._of_state[entry.state].enter(entry)

    def pop(self) -> Entry | None:
        """The entry to be tried next, taken out."""
        for place in self._ready:
            entry = place.pop()
            if entry is not None:
                if place is self._backing_off:
                    self._count_incoming(entry, entered_as(State.ACTIVE), POP_FROM_BACKOFF_Q)
                self.sizes.went(entry)
                entry.state = next_state(entry.state, Cause.POPPED)
                if entry.group is not None:
                    entry.popped_count = len(entry.pods)
                return entry
        return None

    def _take_out(self, entry: Entry) -> None:
        place = self._of_state.get(entry.state)
        if place is not None:
            place.leave(entry)
            self.sizes.went(entry)

    def _count_incoming(self, entry: Entry, queue: str, event: str) -> None:
        self._recorder.incoming(queue, event, len(entry.pods), entity_of(entry))

    # ---- time -----------------------------------------------------------------------------

    def first_backoff_over(self, now_seconds: float) -> Entry | None:
        """An entry whose delay has ended, plain rejections first. It stays."""
        for place in (self._backing_off, self._erred):
            first = place.first()
            if first is not None and _due(first[0]) <= now_seconds:
                return first[1]
        return None

    def next_deadline_seconds(self) -> float | None:
        """When a delay or a stay among the parked ends next; None: nobody waits."""
        heads = (self._backing_off.first(), self._erred.first())
        deadlines = [_due(head[0]) for head in heads if head is not None]
        flush = self.parked.next_flush_seconds()
        if flush is not None:
            deadlines.append(flush)
        return min(deadlines, default=None)

    # ---- looking in -----------------------------------------------------------------------

    @property
    def has_ready(self) -> bool:
        return any(map(len, self._ready))

    @property
    def has_rejected_backing_off(self) -> bool:
        return len(self._backing_off) > 0

    def __iter__(self) -> Iterator[Entry]:
        for place in dict.fromkeys(self._of_state.values()):
            yield from place

    # ---- orders ---------------------------------------------------------------------------

    def _by_priority(self, entry: Entry) -> Any:
        return self._sort_key(entry.queued), entry.name, entry.sequence

    def _by_expiry(self, entry: Entry) -> Any:
        return self.backoff.expires_at_seconds(entry), entry.sequence

    def _by_window(self, entry: Entry) -> Any:
        """Within a window in the order of activeQ."""
        expiry = self.backoff.expires_at_seconds(entry)
        return expiry, self._sort_key(entry.queued), entry.name, entry.sequence


def _due(key: Any) -> float:
    return looked_at_seconds(key[0])
