"""PreEnqueue, activeQ, the two backoffQs and the unschedulable pods, and every move between them.

A move looks up the table of transitions, runs PreEnqueue on the way to activeQ, removes the entry
from one sub-queue and adds it to the next. Nothing else moves an entry. `Sizes` counts entries,
pods and groups as they move. A pod that a PreEnqueue plugin rejects is gated.

`OrderedEntries`: pods mostly become ready in the order in which they are tried. So entries that
come in order are in a row, and the others are in a heap. An entry that leaves stays as a dead item
until it comes to the front, or until most items are dead. Each operation takes O(log n) amortised
time.

`Backoff`: the delay doubles with every failure in a row, up to a maximum that grows with the square
root of the entry's size. The ends of delays are processed at whole seconds. With
SchedulerPopFromBackoffQ the entries of one second form a window, in which activeQ's order holds; an
entry of the present window still waits (KEP-5142). Upstream: backend/queue/backoff_queue.go.

`UnschedulablePods`: to compare an event with every pod would take too long. So pods are indexed by
the plugin that rejected them and by the part of the pod that the plugin signs. A hint runs once per
part. A pod without a signature is a part of its own, and so is the pod that the event is about.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final, Protocol, final

from bayplan.framework.calls import concerned
from bayplan.framework.events import EVENT_FORCE_ACTIVATE, POP_FROM_BACKOFF_Q
from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.framework.status import Code, Status, is_success, shared_names
from bayplan.framework.types import QueuedPodInfo
from bayplan.framework.validation import REJECTION_CODES, as_error, checked, failure_of
from bayplan.metrics import Buckets
from bayplan.queue.entry import (
    ENTERED_QUEUES,
    NEXT_STATES,
    PENDING_QUEUES,
    POPPED,
    QUEUES,
    Entry,
    State,
    Trigger,
    counted_as,
    is_possible,
    is_waiting,
    next_state,
)
from bayplan.queue.hints import Change, Hints, Strategy
from bayplan.queue.rejection_index import Members, RejectionIndex
from bayplan.queue.settings import QueueProfile, QueueRecorder, QueueSettings
from bayplan.state.pods import PodInfo, PodShape, ShapeMemo

# ---- pre enqueue ----------------------------------------------------------------------------


#: The durations of single plugins are observed for one pod in this number. Upstream observes 10 %
#: of the pods.
_SAMPLE_PERIOD = 10

_BACKING_OFF = (State.BACKOFF, State.ERROR_BACKOFF)


@final
class PreEnqueueCheck:
    """Evaluates the PreEnqueue plugins of a pod's profile."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        recorder: QueueRecorder,
        *,
        pop_from_backoff_q: bool,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``clock``: seconds, for durations."""
        #: By profile, the plugins of each shape, and the function that selects them.
        self._plugins_of = {
            name: (ShapeMemo[list[PreEnqueuePlugin]](), partial(concerned, profile.pre_enqueue))
            for name, profile in profiles.items()
        }
        #: The shape and the plugins of the pod that was checked last. The next pod is mostly of the
        #: same template.
        self._last: tuple[PodShape | None, Sequence[PreEnqueuePlugin]] = None, ()
        #: By profile, the observer of the duration.
        self._observers: dict[str, Buckets] = {}
        self._recorder = recorder
        self._clock = clock
        self._evaluated_count = 0
        # A pod that can be popped from backoffQ is checked once, on its way into backoffQ.
        self._is_checked = _WITH_BACKOFF if pop_from_backoff_q else _BEFORE_ACTIVE

    def renew_concerns(self) -> None:
        """Forget which shapes concern which plugins, so that the plugins are asked again."""
        self._last = None, ()
        for memo, _ in self._plugins_of.values():
            memo.forget()

    def admits(self, entry: Entry, target: State) -> bool:
        """Whether the entry may move to ``target``. If not, the entry names the gating plugin."""
        if entry.group is not None and target in _TO_BE_TRIED and entry.is_short:
            # A group that lacks members does not enter backoffQ either. Its last member wakes it.
            return False
        if not self._is_checked[entry.state][target]:
            return True
        # Each pod has its own gate and its own count, so all pods are checked. It is one function,
        # because each call in it is a call per pod.
        admits = True
        for queued in entry.pods:
            start, pod, clock = self._clock(), queued.pod, self._clock
            self._evaluated_count += 1
            is_sampled = self._evaluated_count % _SAMPLE_PERIOD == 0
            shape, plugins = self._last
            if shape is not pod.shape:
                plugins = self._plugins_for(pod.shape)
            for plugin in _in_order(queued, plugins) if queued.gating_plugin else plugins:
                plugin_start = clock() if is_sampled else start
                try:
                    status = plugin.pre_enqueue(pod)
                    rejection = None if status is None else _rejection_in(plugin, status)
                except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's
                    rejection = failure_of(plugin, "PreEnqueue", problem, plugin.pre_enqueue)
                if is_sampled:
                    code = Code.SUCCESS if rejection is None else rejection.code
                    seconds = clock() - plugin_start
                    self._recorder.pre_enqueue_plugin_took(plugin.instance_name, code, seconds)
                if rejection is not None:
                    self._hold_back(queued, plugin.instance_name, rejection)
                    admits = False
                    break
            else:
                queued.gating_plugin = queued.gating_message = ""
            observe, seconds = self._observers.get(pod.shape.scheduler_name), clock() - start
            if observe is None:
                observe = self._observer(pod.shape.scheduler_name)
            if seconds:
                observe(seconds)
            else:
                # Under virtual time, without a call for each pod.
                observe.counts[0] += 1
        return admits

    def _plugins_for(self, shape: PodShape) -> Sequence[PreEnqueuePlugin]:
        memo, select = self._plugins_of[shape.scheduler_name]
        plugins = memo.once(shape, select)
        self._last = shape, plugins
        return plugins

    def _observer(self, profile: str) -> Buckets:
        observe = self._observers[profile] = self._recorder.pre_enqueue_observer(profile)
        return observe

    def _hold_back(self, queued: QueuedPodInfo, plugin: str, status: Status) -> None:
        pod = queued.pod
        if plugin not in queued.unschedulable_plugins and plugin not in queued.pending_plugins:
            self._recorder.unschedulable_delta(plugin, pod.scheduler_name, 1)
        queued.unschedulable_plugins = shared_names((*queued.unschedulable_plugins, plugin))
        if (queued.gating_plugin, queued.gating_message) != (plugin, status.message):
            self._recorder.gated(pod, plugin, status)
        queued.gating_plugin = plugin
        queued.gating_message = status.message


def _in_order(
    queued: QueuedPodInfo, plugins: Sequence[PreEnqueuePlugin]
) -> Sequence[PreEnqueuePlugin]:
    """The plugins in the configured order, but with the gating plugin first, because it probably
    rejects the pod again."""
    gate = queued.gating_plugin
    return sorted(plugins, key=lambda plugin: plugin.instance_name != gate)


def _rejection_in(plugin: PreEnqueuePlugin, status: Status) -> Status | None:
    """The rejection, or the failure, that a plugin returned. None: the plugin admits the pod."""
    if is_success(checked(status)):
        return None
    if status.code in REJECTION_CODES or status.code is Code.ERROR:
        return status
    name = plugin.instance_name
    return as_error(status, "PreEnqueue", name, plugin.pre_enqueue, allowed=REJECTION_CODES)


_TO_BE_TRIED = (State.ACTIVE, *_BACKING_OFF)
#: Whether PreEnqueue is checked on a move, by the numbers of the states before and after it.
_BEFORE_ACTIVE = [[target is State.ACTIVE for target in State] for _ in State]
_WITH_BACKOFF = [
    [target in _TO_BE_TRIED and source not in _BACKING_OFF for target in State] for source in State
]


# ---- ordered entries ------------------------------------------------------------------------


#: (key, number of the push, entry). Because of the number, entries are never compared.
_Item = tuple[Any, int, Entry]
_DEAD_ALLOWED = 16


@final
class OrderedEntries:
    """A queue in ascending order of ``by(entry)``, which is computed when the entry enters. A pod
    that is alone in the queue gets its key when another entry comes.

    Each key is unique: it ends with the entry's sequence.
    """

    def __init__(self, by: Callable[[Entry], Any]) -> None:
        self._by = by
        #: The row of items, ascending.
        self._row: deque[_Item] = deque()
        self._heap: list[_Item] = []
        #: The item of each entry by the entry's key, in the order of entering.
        self.items: dict[str, _Item] = {}
        self._pushes = count()
        #: The pod that is alone in the queue and has no key yet. It is in the row.
        self._alone: Entry | None = None

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Entry]:
        """In the order of entering."""
        return (item[2] for item in self.items.values())

    def enter(self, entry: Entry) -> None:
        """Add the entry. An entry that is already here moves to the place of its new key."""
        if self._alone is not None:
            if entry is self._alone:
                return
            self._give_key()
        elif not self.items and entry.group is None:
            if self._row:
                self._row.clear()
            if self._heap:
                self._heap.clear()
            self.items[entry.key] = item = (None, 0, entry)
            self._row.append(item)
            self._alone = entry
            return
        item = (self._by(entry), next(self._pushes), entry)
        is_here = entry.key in self.items
        self.items[entry.key] = item
        if not self._row or self._row[-1] < item:
            self._row.append(item)
        else:
            heappush(self._heap, item)
        if is_here:
            self._bury()

    def _give_key(self) -> None:
        """Give a key to the pod that was alone in the queue."""
        entry = self._alone
        assert entry is not None, "each entry has a key"
        self._alone = None
        self._row[0] = self.items[entry.key] = (self._by(entry), next(self._pushes), entry)

    def leave(self, entry: Entry) -> None:
        del self.items[entry.key]
        if self._alone is not None:
            self._alone = None
            self._row.clear()
        self._bury()

    def first(self) -> tuple[Any, Entry] | None:
        """Key and entry of the first item, without removing it."""
        if not self.items:
            return None
        if self._alone is not None:
            self._give_key()
        item = self._first()
        return item[0], item[2]

    def pop(self) -> Entry | None:
        """Remove and return the first entry."""
        row, items = self._row, self.items
        if not items:
            return None
        self._alone = None
        # In the usual case nothing came out of order, and no further call is needed.
        item = row[0] if row and not self._heap else None
        if item is None or items.get(item[2].key) is not item:
            item = self._first()
        if row and item is row[0]:
            row.popleft()
        else:
            heappop(self._heap)
        del items[item[2].key]
        return item[2]

    def pop_equal(self, shape: PodShape, count_max: int) -> list[_Item]:
        """Remove and return the first entries that are pods of this shape, at most ``count_max``.
        There are fewer if entries have left or came out of order."""
        if self._alone is not None:
            self._give_key()
        row, heap, items = self._row, self._heap, self.items
        equal: list[_Item] = []
        while len(equal) < count_max and row and not (heap and heap[0] < row[0]):
            item = row[0]
            entry = item[2]
            if entry.group is not None or entry.queued.pod.shape is not shape:
                break
            if items.get(entry.key) is not item:
                break
            del items[entry.key]
            equal.append(row.popleft())
        return equal

    def put_back(self, equal: Sequence[_Item]) -> None:
        """Undo `pop_equal` for the last items of its result."""
        if self._alone is not None:
            self._give_key()
        row = self._row
        if row and row[0] < equal[-1]:
            # Another item has entered since, and comes before these items.
            for item in equal:
                heappush(self._heap, item)
        else:
            row.extendleft(reversed(equal))
        for item in reversed(equal):
            self.items[item[2].key] = item

    def _first(self) -> _Item:
        """The first item of a queue that is not empty."""
        row, heap, items = self._row, self._heap, self.items
        while row and items.get(row[0][2].key) is not row[0]:
            row.popleft()
        while heap and items.get(heap[0][2].key) is not heap[0]:
            heappop(heap)
        return row[0] if row and not (heap and heap[0] < row[0]) else heap[0]

    def _is_alive(self, item: _Item) -> bool:
        return self.items.get(item[2].key) is item

    def _bury(self) -> None:
        if len(self._row) + len(self._heap) > 2 * len(self.items) + _DEAD_ALLOWED:
            self._row = deque(filter(self._is_alive, self._row))
            self._heap = list(filter(self._is_alive, self._heap))
            heapify(self._heap)


# ---- backoff --------------------------------------------------------------------------------


#: The end of the delay of an entry that never failed.
NEVER: Final = -math.inf
#: The number of doublings after which each delay is at its maximum. About 1,000 doublings would
#: overflow a float.
_DOUBLINGS_MAX: Final = 60


@final
class Backoff:
    """Computes the delays of entries."""

    def __init__(self, settings: QueueSettings, clock: Callable[[], float]) -> None:
        self._initial_seconds = settings.initial_backoff_seconds
        self._max_seconds = settings.max_backoff_seconds
        self._clock = clock
        self._align: Callable[[float], float] = (
            math.floor if settings.pop_from_backoff_q else _as_it_is
        )

    def expires_at_seconds(self, entry: Entry) -> float:
        """The end of the entry's delay, in seconds of the clock."""
        queued = entry.queued
        # After an error, the errors in a row count. Otherwise all rejections count.
        failures = queued.consecutive_errors_count or queued.unschedulable_count
        if not failures or not self._max_seconds:
            return NEVER
        delay = self.delay_seconds(failures, len(entry.pods))
        return self._align(entry.since_seconds + delay)

    def delay_seconds(self, failures: int, size: int = 1) -> float:
        """The delay in seconds. ``failures``: at least 1. ``size``: the entry's number of pods."""
        longest = self._max_seconds * math.sqrt(size)
        return min(math.ldexp(self._initial_seconds, min(failures - 1, _DOUBLINGS_MAX)), longest)

    def is_running(self, entry: Entry) -> bool:
        """Whether the entry's delay has not ended."""
        return self.expires_at_seconds(entry) >= self._align(self._clock())


def looked_at_seconds(expires_at_seconds: float) -> float:
    """The time at which the end of a delay is processed: the next whole second."""
    return math.floor(expires_at_seconds) + 1.0


def _as_it_is(seconds: float) -> float:
    return seconds


# ---- sizes ----------------------------------------------------------------------------------


#: Kinds of entries, as upstream's metrics call them.
POD_ENTITY: Final = "pod"
GROUP_ENTITY: Final = "podgroup"


@final
class Sizes:
    """Counts by the values of the label ``queue`` of scheduler_pending_pods."""

    def __init__(self) -> None:
        #: The number of pods. An entry of one pod may be counted here, too, without a call of
        #: `change`.
        self.pod_counts: Counter[str] = Counter(dict.fromkeys(PENDING_QUEUES, 0))
        self._groups: Counter[str] = Counter()
        #: The number of pods that are members of these groups.
        self._members: Counter[str] = Counter()
        #: How many pods have entered a queue, by queue and event; and how many entries (groups, and
        #: pods without a group), by queue, event and kind. The sub-queues count here.
        self.pods_entered: Counter[tuple[str, str]] = Counter()
        self.entities_entered: Counter[tuple[str, str, str]] = Counter()

    def change(self, entry: Entry, sign: int) -> None:
        """Count an entry that enters the queue of its state (1), or leaves it (-1)."""
        queue, count = QUEUES[entry.state], sign * len(entry.pods)
        self.pod_counts[queue] += count
        if entry.group is not None:
            self._groups[queue] += sign
            self._members[queue] += count

    def grew(self, state: State, count: int) -> None:
        """Count ``count`` more members of a group in this state."""
        queue = counted_as(state)
        self.pod_counts[queue] += count
        self._members[queue] += count

    def entities(self) -> dict[tuple[str, str], int]:
        """(queue, kind of entry) → number of entries."""
        counts: dict[tuple[str, str], int] = {}
        for queue, pod_count in self.pod_counts.items():
            counts[queue, POD_ENTITY] = pod_count - self._members[queue]
            counts[queue, GROUP_ENTITY] = self._groups[queue]
        return counts


# ---- unschedulable pods ---------------------------------------------------------------------


#: Whether an event may concern a pod. It is evaluated before the hints.
PreCheck = Callable[[PodInfo], bool]
#: The entries that a change wakes, with the strategy of each, in the order of their sequence.
Woken = list[tuple[Entry, Strategy]]


@final
class UnschedulablePods:
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
        self._index = RejectionIndex(self._part)
        self.by_flush = OrderedEntries(self._flush_order)

    def __iter__(self) -> Iterator[Entry]:
        """In the order of entering."""
        return iter(self.by_flush)

    # ---- in and out -----------------------------------------------------------------------

    def enter(self, entry: Entry) -> None:
        """Add the entry. An entry that is already here moves to its new places."""
        self._index.enter(entry)
        self.by_flush.enter(entry)

    def enter_equal(self, entries: Sequence[Entry]) -> None:
        """Add equal pods that the same plugins rejected and that are not here."""
        self._index.enter_equal(entries)
        for entry in entries:
            self.by_flush.enter(entry)

    def leave(self, entry: Entry) -> None:
        self._index.leave(entry)
        self.by_flush.leave(entry)

    def _part(self, plugin: str, pod: PodInfo) -> Hashable | None:
        try:
            part = self._sign[pod.shape.scheduler_name](plugin, pod)
            hash(part)
        except BaseException as problem:  # noqa: BLE001 - such a pod is one that is not signed
            self._recorder.hint_failed(plugin, "SignPod", problem)
            return None
        return part

    # ---- events ---------------------------------------------------------------------------

    def woken_by(self, change: Change, pre_check: PreCheck | None = None) -> Woken:
        """The entries that a change may help. The change must not be a wildcard."""
        best: dict[str, tuple[Entry, Strategy]] = {}
        for entry, queued, plugin in self._helped(change):
            if pre_check is not None and not any(pre_check(q.pod) for q in entry.pods):
                continue
            pends = plugin in queued.pending_plugins
            strategy = Strategy.IMMEDIATELY if pends else Strategy.AFTER_BACKOFF
            previous = best.get(entry.key)
            if previous is None or previous[1] < strategy:
                best[entry.key] = (entry, strategy)
        return sorted(best.values(), key=_by_sequence)

    def woken_by_wildcard(self, change: Change, pre_check: PreCheck | None = None) -> Woken:
        """The entries that a wildcard may help. No hint is evaluated, and gated entries count,
        too."""
        woken: Woken = []
        for entry in self.by_flush:
            if pre_check is not None and not any(pre_check(q.pod) for q in entry.pods):
                continue
            hints = self._hints[entry.queued.pod.scheduler_name]
            strategy = max(hints.strategy(queued, change) for queued in entry.pods)
            if strategy is not Strategy.SKIP:
                woken.append((entry, strategy))
        return sorted(woken, key=_by_sequence)

    def _helped(self, change: Change) -> Iterator[tuple[Entry, QueuedPodInfo, str]]:
        """Yields (entry, pod, the plugin that rejected the pod and whose hint agrees)."""
        subject = change.subject_uid
        for profile, hints in self._hints.items():
            interested = hints.interested(change.event)
            for plugin in interested:
                parts = self._index.parts((profile, plugin))
                for (gate, _, _), members in parts.items():
                    # Only events of its gating plugin wake a gated pod.
                    if gate and gate not in interested:
                        continue
                    for entry, queued in _content(hints, plugin, members, change, subject=subject):
                        yield entry, queued, plugin

    # ---- the flush ------------------------------------------------------------------------

    def next_flush_seconds(self) -> float | None:
        """The time of the next flush of an entry, in seconds of the clock. None: no entry waits."""
        first = self.by_flush.first()
        return None if first is None else first[0][0]

    def first_overdue(self, now_seconds: float) -> Entry | None:
        """The entry with the earliest flush, if it is due. The entry is not removed."""
        first = self.by_flush.first()
        return first[1] if first is not None and first[0][0] <= now_seconds else None

    def _flush_order(self, entry: Entry) -> tuple[float, int]:
        """The first multiple of the period at which the entry has waited longer than allowed."""
        longest = entry.waiting_since_seconds + self._longest_seconds
        looks = math.floor(longest / self._period_seconds) + 1
        return looks * self._period_seconds, entry.sequence


def _content(
    hints: Hints, plugin: str, members: Members, change: Change, *, subject: str
) -> Iterator[tuple[Entry, QueuedPodInfo]]:
    """The members of one part for which a hint of the plugin agrees with the change."""
    about_itself = members.get(subject)
    if about_itself is not None and hints.helps(plugin, change, about_itself[1].pod):
        yield about_itself
    remaining = (member for uid, member in members.items() if uid != subject)
    first = next(remaining, None)
    if first is not None and hints.helps(plugin, change, first[1].pod):
        yield first
        yield from remaining


def _by_sequence(woken: tuple[Entry, Strategy]) -> int:
    return woken[0].sequence


# ---- the sub-queues -------------------------------------------------------------------------


class _SubQueue(Protocol):
    def enter(self, entry: Entry) -> None: ...
    def leave(self, entry: Entry) -> None: ...
    def __iter__(self) -> Iterator[Entry]: ...


@final
class SubQueues:
    """The waiting entries, by their states."""

    def __init__(
        self,
        settings: QueueSettings,
        clock: Callable[[], float],
        admission: PreEnqueueCheck,
        *,
        unschedulable: UnschedulablePods,
    ) -> None:
        self._sort_key = settings.sort_key
        self._clock = clock
        self._admission = admission
        self.backoff = Backoff(settings, clock)
        self.unschedulable = unschedulable
        self._active = OrderedEntries(self._by_priority)
        #: The items of the last `pop_equal`.
        self._run: list[_Item] = []
        windows = settings.pop_from_backoff_q
        self._backing_off = OrderedEntries(self._by_window if windows else self._by_expiry)
        self._erred = OrderedEntries(self._by_expiry)
        #: The sub-queues from which entries are popped, in this order.
        self._ready = (self._active, self._backing_off) if windows else (self._active,)
        #: The sub-queues by the number of the state; None: an entry in this state is in no
        #: sub-queue.
        self._of_state: list[_SubQueue | None] = [None] * len(State)
        self._of_state[State.ACTIVE] = self._active
        self._of_state[State.BACKOFF] = self._backing_off
        self._of_state[State.ERROR_BACKOFF] = self._erred
        self._of_state[State.UNSCHEDULABLE] = self._of_state[State.GATED] = unschedulable
        #: What `pop` reads. While all of it is empty, `pop` returns nothing.
        self.ready = tuple(sub_queue.items for sub_queue in self._ready)
        #: What `next_deadline_seconds` reads. While all of it is empty, nothing will be due.
        self.timed = (self._backing_off.items, self._erred.items, unschedulable.by_flush.items)
        self.sizes = Sizes()

    # ---- moves ----------------------------------------------------------------------------

    def move(self, entry: Entry, trigger: Trigger, event: str, *, anew: bool = False) -> None:
        """Move the entry to the state that follows ``trigger``. Gate it if PreEnqueue rejects it.

        ``event``: the label of the move in metrics. ``anew``: whether the move counts even if the
        entry stays unschedulable.
        """
        source = entry.state
        target = NEXT_STATES[source][trigger]
        assert target is not None, f"nothing in state {source.name} can be {trigger.name}"
        if not self._admission.admits(entry, target):
            target = next_state(source, Trigger.REFUSED)
        old_queue = self._of_state[source]
        sub_queue = self._of_state[target]
        if old_queue is not None:
            if old_queue is not sub_queue:
                old_queue.leave(entry)
            self.sizes.change(entry, -1)
        entry.state = target
        if sub_queue is None:
            return
        if target is State.ACTIVE and entry.queued.initial_attempt_seconds is None:
            entry.queued.initial_attempt_seconds = self._clock()
        elif target is State.GATED:
            entry.queued.was_flushed = False
        sub_queue.enter(entry)
        if entry.group is None:
            self.sizes.pod_counts[QUEUES[target]] += 1
        else:
            self.sizes.change(entry, 1)
        if anew or ENTERED_QUEUES[target] != ENTERED_QUEUES[source]:
            queue, sizes = ENTERED_QUEUES[target], self.sizes
            sizes.pods_entered[queue, event] += len(entry.pods)
            kind = POD_ENTITY if entry.group is None else GROUP_ENTITY
            sizes.entities_entered[queue, event, kind] += 1

    def reject_equal(self, entries: Sequence[Entry], event: str) -> None:
        """As `move` with `Trigger.REJECTED` for equal pods that were popped, which the same plugins
        rejected."""
        target, count, sizes = next_state(POPPED, Trigger.REJECTED), len(entries), self.sizes
        for entry in entries:
            entry.state = target
        self.unschedulable.enter_equal(entries)
        queue = ENTERED_QUEUES[target]
        sizes.pod_counts[QUEUES[target]] += count
        sizes.pods_entered[queue, event] += count
        sizes.entities_entered[queue, event, POD_ENTITY] += count

    def resize(self, entry: Entry, delta: int) -> None:
        """Follow ``delta`` members that came to a waiting group, or left it (negative)."""
        if is_waiting(entry.state):
            self.sizes.grew(entry.state, delta)
            if delta <= 0:
                self.refresh(entry)

    def refresh(self, entry: Entry) -> None:
        """Follow a change of a pod of a waiting entry: update the order of the entry in its
        sub-queue."""
        sub_queue = self._of_state[entry.state]
        assert sub_queue is not None, f"{entry!r} waits nowhere"
        sub_queue.enter(entry)

    def pop(self) -> Entry | None:
        """Remove and return the next entry to try."""
        for sub_queue in self._ready:
            entry = sub_queue.pop() if sub_queue.items else None
            if entry is not None:
                if sub_queue is self._backing_off:
                    queue, event = ENTERED_QUEUES[State.ACTIVE], POP_FROM_BACKOFF_Q
                    sizes = self.sizes
                    sizes.pods_entered[queue, event] += len(entry.pods)
                    kind = POD_ENTITY if entry.group is None else GROUP_ENTITY
                    sizes.entities_entered[queue, event, kind] += 1
                if entry.group is None:
                    self.sizes.pod_counts[QUEUES[entry.state]] -= 1
                else:
                    self.sizes.change(entry, -1)
                entry.state = POPPED
                return entry
        return None

    def pop_equal(self, shape: PodShape, count_max: int) -> list[Entry]:
        """Remove and return the next entries of activeQ that are pods of this shape."""
        self._run = self._active.pop_equal(shape, count_max)
        entries = [item[2] for item in self._run]
        self.sizes.pod_counts[QUEUES[State.ACTIVE]] -= len(entries)
        for entry in entries:
            entry.state = POPPED
        return entries

    def put_back(self, count: int) -> list[Entry]:
        """Undo the last `pop_equal` for its last entries. Returns them."""
        items, self._run = self._run[-count:], self._run[:-count]
        self._active.put_back(items)
        entries = [item[2] for item in items]
        self.sizes.pod_counts[QUEUES[State.ACTIVE]] += count
        for entry in entries:
            entry.state = State.ACTIVE
        return entries

    @property
    def active_count(self) -> int:
        """The number of entries in activeQ."""
        return len(self._active.items)

    def first_active(self) -> QueuedPodInfo | None:
        """The first pod, or group, of activeQ."""
        first = self._active.first()
        return None if first is None else first[1].queued

    def take_out(self, entry: Entry) -> bool:
        """Remove one entry out of order. False: PreEnqueue rejects it."""
        if is_possible(entry.state, Trigger.ACTIVATED):
            self.move(entry, Trigger.ACTIVATED, EVENT_FORCE_ACTIVATE.label)
        if entry.state is not State.ACTIVE:
            return False
        self._active.leave(entry)
        self.sizes.change(entry, -1)
        entry.state = POPPED
        return True

    # ---- time -----------------------------------------------------------------------------

    def first_backoff_over(self, now_seconds: float) -> Entry | None:
        """An entry whose delay has ended, rejections before errors. The entry is not removed."""
        for sub_queue in (self._backing_off, self._erred):
            first = sub_queue.first()
            if first is not None and _due(first[0]) <= now_seconds:
                return first[1]
        return None

    def next_deadline_seconds(self) -> float | None:
        """The next end of a delay or of an unschedulable stay. None: no entry waits."""
        if not any(self.timed):
            return None
        heads = (self._backing_off.first(), self._erred.first())
        deadlines = [_due(head[0]) for head in heads if head is not None]
        flush = self.unschedulable.next_flush_seconds()
        if flush is not None:
            deadlines.append(flush)
        return min(deadlines, default=None)

    # ---- queries --------------------------------------------------------------------------

    @property
    def has_ready(self) -> bool:
        return any(map(len, self._ready))

    @property
    def has_rejected_backing_off(self) -> bool:
        return len(self._backing_off) > 0

    def __iter__(self) -> Iterator[Entry]:
        for sub_queue in (self._active, self._backing_off, self._erred, self.unschedulable):
            yield from sub_queue

    # ---- orders ---------------------------------------------------------------------------

    def _by_priority(self, entry: Entry) -> Any:
        name = "" if entry.group is None else entry.name
        return self._sort_key(entry.queued), name, entry.sequence

    def _by_expiry(self, entry: Entry) -> Any:
        return self.backoff.expires_at_seconds(entry), entry.sequence

    def _by_window(self, entry: Entry) -> Any:
        """The sort key: the end of the delay, which is a whole second; then the order of
        activeQ."""
        expiry = self.backoff.expires_at_seconds(entry)
        return expiry, self._sort_key(entry.queued), entry.name, entry.sequence


def _due(key: Any) -> float:
    return looked_at_seconds(key[0])
