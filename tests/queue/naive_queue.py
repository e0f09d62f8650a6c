"""The scheduling queue in its plainest form: lists and loops.

It follows upstream's rules (backend/queue, v1.37): every pod is evaluated by itself, time advances
second by second, and the order is a sort. It is the specification; `test_model` compares the real
queue with it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bayplan.framework.events import ClusterEvent
from bayplan.state.pods import PodInfo

#: (plugin, waiting pod, event, old, new) → whether the plugin's hint is Queue
IsHelpful = Callable[[str, PodInfo, ClusterEvent, Any, Any], bool]
#: (plugin, event) → whether the plugin registered for the event
Registered = Callable[[str, ClusterEvent], bool]
#: (pod, the plugin that gates it so far) → the plugin that refuses it now; "" for none
Refuses = Callable[[PodInfo, str], str]
PreCheck = Callable[[PodInfo], bool]

SKIP, LATER, NOW = range(3)
NOT_READY = ("UNSCHEDULABLE", "GATED")
BACKING_OFF = ("BACKOFF", "ERROR_BACKOFF")


@dataclass
class NaivePod:
    pod: PodInfo
    since: float
    number: int
    state: str = "ABSENT"
    rejected_by: set[str] = field(default_factory=set[str])
    pending: set[str] = field(default_factory=set[str])
    gated_by: str = ""
    rejections: int = 0
    errors: int = 0
    attempts: int = 0
    flushed_at: float = -math.inf
    #: The events since it was popped: (event, old, new).
    seen: list[tuple[ClusterEvent, Any, Any]] | None = None

    @property
    def order(self) -> Any:
        return -self.pod.priority, self.since, self.number


@dataclass
class NaiveQueue:
    windows: bool
    is_helpful: IsHelpful
    registered: Registered
    refuses: Refuses
    #: Plugins that register for something, in some profile.
    plugins: Iterable[str]
    now: float = 0.0
    pods: dict[str, NaivePod] = field(default_factory=dict[str, NaivePod])
    #: uid → pods between pop and done
    flying: dict[str, NaivePod] = field(default_factory=dict[str, NaivePod])
    numbers: int = 0

    # ---- delays ---------------------------------------------------------------------------

    def aligned(self, seconds: float) -> float:
        return math.floor(seconds) if self.windows else seconds

    def expires_at(self, one: NaivePod) -> float:
        failures = one.errors if one.errors else one.rejections
        if not failures:
            return -math.inf
        return self.aligned(one.since + min(2.0 ** (failures - 1), 10.0))

    def is_backing_off(self, one: NaivePod) -> bool:
        return not self.expires_at(one) < self.aligned(self.now)

    # ---- moves ----------------------------------------------------------------------------

    def is_gated(self, one: NaivePod) -> bool:
        plugin = self.refuses(one.pod, one.gated_by)
        one.gated_by = plugin
        if plugin:
            one.rejected_by.add(plugin)
            one.state = "GATED"
        return bool(plugin)

    def to_active(self, one: NaivePod) -> None:
        was_checked = self.windows and one.state in BACKING_OFF
        if was_checked or not self.is_gated(one):
            one.state = "ACTIVE"

    def to_backoff(self, one: NaivePod) -> None:
        if self.windows and self.is_gated(one):
            return
        one.state = "BACKOFF" if one.rejected_by or one.pending else "ERROR_BACKOFF"

    def to_error_backoff(self, one: NaivePod) -> None:
        if not self.windows or not self.is_gated(one):
            one.state = "ERROR_BACKOFF"

    def requeue(self, one: NaivePod, strategy: int) -> None:
        if strategy == SKIP:
            one.state = "UNSCHEDULABLE"
        elif strategy == LATER and self.is_backing_off(one):
            self.to_backoff(one)
        else:
            self.to_active(one)

    def worth(self, one: NaivePod, event: ClusterEvent, old: Any, new: Any) -> int:
        if not one.rejected_by and not one.pending:
            return LATER
        if event.is_wildcard:
            is_about_another_pod = new is not None and new.uid != one.pod.uid
            return SKIP if is_about_another_pod else LATER
        best = SKIP
        for plugin in one.rejected_by | one.pending:
            if self.registered(plugin, event) and self.is_helpful(plugin, one.pod, event, old, new):
                best = max(best, NOW if plugin in one.pending else LATER)
        return best

    # ---- the methods of the real queue ---------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        one = self.pods[pod.uid] = NaivePod(pod, self.now, self.next_number())
        self.to_active(one)

    def next_number(self) -> int:
        self.numbers += 1
        return self.numbers

    def update(self, old: PodInfo, new: PodInfo, events: list[ClusterEvent]) -> None:
        if new.uid in self.flying:
            seen = self.flying[new.uid].seen
            assert seen is not None
            seen += [(event, old, new) for event in events]
            return
        one = self.pods.get(new.uid)
        if one is None:
            self.add(new)
            return
        one.pod = new
        for event in events:
            if one.state in NOT_READY:
                strategy = self.worth(one, event, old, new)
                if strategy != SKIP:
                    self.requeue(one, strategy)

    def delete(self, pod: PodInfo) -> None:
        self.pods.pop(pod.uid, None)

    def pop(self) -> NaivePod | None:
        ready = [one for one in self.pods.values() if one.state == "ACTIVE"]
        if ready:
            one = min(ready, key=lambda each: each.order)
        else:
            waiting = [one for one in self.pods.values() if one.state == "BACKOFF"]
            if not (waiting and self.windows):
                return None
            one = min(waiting, key=lambda each: (self.expires_at(each), each.order))
        del self.pods[one.pod.uid]
        self.flying[one.pod.uid] = one
        one.state, one.seen = "IN_FLIGHT", []
        one.attempts += 1
        return one

    def done(self, uid: str) -> None:
        one = self.flying.pop(uid, None)
        if one is not None:
            one.state, one.seen = "ABSENT", None

    def fail(self, one: NaivePod, pod: PodInfo, rejected_by: set[str], pending: set[str]) -> None:
        seen = one.seen
        self.done(pod.uid)
        if pod.uid in self.pods:
            return
        self.pods[pod.uid] = one
        one.pod, one.rejected_by, one.pending = pod, set(rejected_by), set(pending)
        if rejected_by or pending:
            one.rejections, one.errors = one.rejections + 1, 0
        else:
            one.errors += 1
        one.since, one.flushed_at, one.number = self.now, -math.inf, self.next_number()
        if (rejected_by or pending) and seen is not None:
            self.requeue(one, max((self.worth(one, *change) for change in seen), default=SKIP))
        elif self.is_backing_off(one):
            self.to_error_backoff(one)
        else:
            self.to_active(one)

    def move_all(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None = None
    ) -> None:
        if not event.is_wildcard and not any(self.registered(p, event) for p in self.plugins):
            return
        for one in self.not_ready():
            if pre_check is not None and not pre_check(one.pod):
                continue
            ignores_event = one.state == "GATED" and not self.registered(one.gated_by, event)
            if ignores_event and not event.is_wildcard:
                continue
            strategy = self.worth(one, event, old, new)
            if strategy != SKIP:
                self.requeue(one, strategy)
        self.tell_flying(event, old, new)

    def not_ready(self) -> list[NaivePod]:
        return [one for one in self.pods.values() if one.state in NOT_READY]

    def tell_flying(self, event: ClusterEvent, old: Any, new: Any) -> None:
        for one in self.flying.values():
            assert one.seen is not None
            one.seen.append((event, old, new))

    def activate(self, pod: PodInfo, event: ClusterEvent) -> None:
        one = self.pods.get(pod.uid)
        if one is not None and one.state in (*NOT_READY, *BACKING_OFF):
            self.to_active(one)
        elif pod.uid in self.flying:
            seen = self.flying[pod.uid].seen
            assert seen is not None
            seen.append((event, None, pod))

    def pass_time(self, until: float, timeout: ClusterEvent) -> None:
        """Check delays every second and the unschedulable and gated pods every 30 seconds."""
        for second in range(math.floor(self.now) + 1, math.floor(until) + 1):
            self.now = float(second)
            for one in self.pods.values():
                if one.state in BACKING_OFF and not self.is_backing_off(one):
                    self.to_active(one)
            if second % 30 == 0:
                self.flush(timeout)
        self.now = until

    def flush(self, timeout: ClusterEvent) -> None:
        overdue = [o for o in self.not_ready() if self.now - max(o.since, o.flushed_at) > 300]
        for one in overdue:
            one.flushed_at = self.now
            self.requeue(one, LATER)
        if overdue:
            self.tell_flying(timeout, None, None)
