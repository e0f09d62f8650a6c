"""The queue does the same as its naive model, for any sequence of calls."""

from collections import Counter
from typing import Any
from zlib import crc32

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
    QueueingHint,
)
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import counted_as
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.queue.factories import (
    NODE_ADD,
    NODE_LABEL,
    OWN_LABEL,
    OWN_SCALE_DOWN,
    gate,
    on,
    rig,
)
from tests.queue.naive_queue import NaivePod, NaiveQueue
from tests.seeded import depth

GATES = ("GateA", "GateB")
PLUGINS = ("Fit", "Spread", "Claims", *GATES)
EVENTS = (NODE_ADD, NODE_LABEL, EVENT_ASSIGNED_POD_DELETE, OWN_LABEL, OWN_SCALE_DOWN)
CLUSTER_EVENTS = (NODE_ADD, NODE_LABEL, EVENT_ASSIGNED_POD_DELETE)
SHAPES = ("", "s1", "s2")

few_plugins = st.sets(st.sampled_from(["Fit", "Spread", "Claims"]), max_size=2)
labels = st.fixed_dictionaries(
    {"shape": st.sampled_from(SHAPES), "gate": st.sampled_from(["", "", *GATES])}
).map(lambda drawn: {key: value for key, value in drawn.items() if value})
numbers = st.integers(0, 9)
priorities = st.integers(0, 2)
#: plugin → events it registers for
registrations = st.fixed_dictionaries(
    {plugin: st.sets(st.sampled_from(EVENTS), min_size=2) for plugin in PLUGINS}
)


class QueueMachine(RuleBasedStateMachine):
    """Both queues get the same calls and must be in the same state after each step."""

    @initialize(
        windows=st.booleans(),
        registered=registrations,
        without_hints=st.sampled_from(["", *PLUGINS]),
        salt=st.integers(0, 2**16),
    )
    def begin(
        self,
        windows: bool,
        registered: dict[str, set[ClusterEvent]],
        without_hints: str,
        salt: int,
    ) -> None:
        """``without_hints``: a plugin without hints. ``salt``: decides the other plugins' hints."""
        self.registered, self.without_hints, self.salt = registered, without_hints, salt
        #: Gates that are closed now, for pods that have their label.
        self.closed = set(GATES)
        events = {
            plugin: [
                on(event, None if plugin == without_hints else self.hint(plugin, event))
                for event in EVENTS
                if event in registered[plugin]
            ]
            for plugin in PLUGINS
        }
        gates = [gate(name, self.closed_for(name)) for name in GATES]
        self.rig = rig(events=events, gates=gates, pop_from_backoff_q=windows)
        self.model = NaiveQueue(windows, self.is_helpful, self.is_registered, self.refuses, PLUGINS)
        #: The pods of the API, and the entries that are popped and not done.
        self.api_pods: dict[str, PodInfo] = {}
        self.popped: dict[str, tuple[QueuedPodInfo, NaivePod]] = {}
        self.uids = 0

    # ---- the plugins ----------------------------------------------------------------------

    def closed_for(self, name: str) -> Any:
        return lambda waiting: name in self.closed and waiting.labels.get("gate") == name

    def refuses(self, waiting: PodInfo, gated_by: str) -> str:
        order = sorted(GATES, key=lambda name: name != gated_by)
        return next((name for name in order if self.closed_for(name)(waiting)), "")

    def answer(self, plugin: str, waiting: PodInfo, event: ClusterEvent, about: Any) -> str:
        """Follows from the salt; equal for all pods of a shape, except for the event's own pod."""
        is_own = isinstance(about, PodInfo) and about.uid == waiting.uid
        # Unsigned pods may have different answers.
        who = waiting.labels.get("shape", waiting.uid)
        drawn = crc32(repr((self.salt, plugin, event.label, who, is_own)).encode()) % 8
        return ("queue", "queue", "raise", *["skip"] * 5)[drawn]

    def hint(self, plugin: str, event: ClusterEvent) -> Any:
        def hint(waiting: PodInfo, old: Any, new: Any) -> QueueingHint:
            hint_answer = self.answer(plugin, waiting, event, old if new is None else new)
            if hint_answer == "raise":
                raise ValueError(plugin)
            return QueueingHint.QUEUE if hint_answer == "queue" else QueueingHint.QUEUE_SKIP

        return hint

    def is_registered(self, plugin: str, event: ClusterEvent) -> bool:
        return event in self.registered[plugin]

    def is_helpful(
        self, plugin: str, waiting: PodInfo, event: ClusterEvent, old: Any, new: Any
    ) -> bool:
        if plugin == self.without_hints:
            return True
        return self.answer(plugin, waiting, event, old if new is None else new) != "skip"

    # ---- pods come, change and go ---------------------------------------------------------

    def some_api_pod(self, number: int) -> PodInfo | None:
        uids = sorted(self.api_pods)
        return self.api_pods[uids[number % len(uids)]] if uids else None

    @rule(priority=priorities, labels=labels)
    def add(self, priority: int, labels: dict[str, str]) -> None:
        self.uids += 1
        new = pod(f"p{self.uids}", priority=priority, labels=labels)
        self.api_pods[new.uid] = new
        self.rig.queue.add(new)
        self.model.add(new)

    @rule(
        number=numbers,
        priority=priorities,
        labels=labels,
        events=st.lists(st.sampled_from([OWN_LABEL, OWN_SCALE_DOWN]), unique=True),
    )
    def update(
        self, number: int, priority: int, labels: dict[str, str], events: list[ClusterEvent]
    ) -> None:
        old = self.some_api_pod(number)
        if old is not None:
            new = pod(old.name, priority=priority, labels=labels)
            self.api_pods[new.uid] = new
            self.rig.queue.update(old, new, events)
            self.model.update(old, new, events)

    @rule(number=numbers)
    def delete(self, number: int) -> None:
        gone = self.some_api_pod(number)
        if gone is not None:
            del self.api_pods[gone.uid]
            self.rig.queue.delete(gone)
            self.model.delete(gone)

    @rule(number=numbers)
    def activate(self, number: int) -> None:
        values = self.some_api_pod(number)
        if values is not None:
            self.rig.queue.activate([values])
            self.model.activate(values, EVENT_FORCE_ACTIVATE)

    # ---- attempts -------------------------------------------------------------------------

    @rule()
    def pop(self) -> None:
        is_ready = self.rig.queue.has_ready
        result, expected = self.rig.queue.pop(), self.model.pop()
        assert is_ready == (result is not None)
        assert (result is None) == (expected is None)
        if result is not None and expected is not None:
            assert result.pod.uid == expected.pod.uid
            self.popped[result.pod.uid] = (result, expected)

    @rule(priority=priorities, labels=labels, rejected_by=few_plugins, pending=few_plugins)
    def add_and_fail(
        self, priority: int, labels: dict[str, str], rejected_by: set[str], pending: set[str]
    ) -> None:
        """A pod is added, and the attempt of the first pod in the queue fails."""
        self.add(priority, labels)
        before = set(self.popped)
        self.pop()
        for uid in set(self.popped) - before:
            self.fail(sorted(self.popped).index(uid), rejected_by, pending)

    def take_popped(self, number: int) -> tuple[QueuedPodInfo, NaivePod]:
        uids = sorted(self.popped)
        return self.popped.pop(uids[number % len(uids)])

    @precondition(lambda self: self.popped)
    @rule(number=numbers, rejected_by=few_plugins, pending=few_plugins)
    def fail(self, number: int, rejected_by: set[str], pending: set[str]) -> None:
        """An attempt or a binding fails. A pod that was deleted meanwhile does not come back."""
        claims, expected = self.take_popped(number)
        newest = self.api_pods.get(claims.pod.uid)
        if newest is None:
            self.rig.queue.done(claims.pod.uid)
            self.model.done(claims.pod.uid)
            return
        is_back = newest.uid in self.model.pods
        if not is_back:
            claims.pod = newest
            claims.unschedulable_plugins = frozenset(rejected_by)
            claims.pending_plugins = frozenset(pending)
        self.rig.queue.add_unschedulable(claims)
        self.model.fail(expected, newest, rejected_by, pending)

    @precondition(lambda self: self.popped)
    @rule(number=numbers, is_bound=st.booleans())
    def finish(self, number: int, is_bound: bool) -> None:
        """The queue's part ends; the binding may still fail."""
        claims, expected = self.take_popped(number)
        uid = claims.pod.uid
        self.rig.queue.done(uid)
        self.model.done(uid)
        if is_bound:
            self.api_pods.pop(uid, None)
        else:
            self.popped[uid] = (claims, expected)

    # ---- the cluster ----------------------------------------------------------------------

    @rule(
        event=st.sampled_from([*CLUSTER_EVENTS, EVENT_UNSCHEDULABLE_TIMEOUT]),
        number=st.none() | numbers,
        lowest=st.none() | st.integers(0, 2),
    )
    def happen(self, event: ClusterEvent, number: int | None, lowest: int | None) -> None:
        """``number``: the event's pod; ``lowest``: the highest priority that the check accepts."""
        about = None if number is None else self.some_api_pod(number)

        def pre_check(waiting: PodInfo) -> bool:
            return lowest is None or waiting.priority <= lowest

        self.rig.queue.move_all(event, None, about, pre_check)
        self.model.move_all(event, None, about, pre_check)

    @rule(name=st.sampled_from(GATES))
    def turn_gate(self, name: str) -> None:
        self.closed ^= {name}

    @rule(quarters=st.sampled_from([0, 1, 3, 4, 5, 8, 30, 120, 1000, 1300]))
    def pass_time(self, quarters: int) -> None:
        until = self.rig.clock.now() + quarters / 4
        self.rig.run_until(until)
        self.model.pass_time(until, EVENT_UNSCHEDULABLE_TIMEOUT)

    # ---- invariants ----------------------------------------------------------------------

    @invariant()
    def every_pod_has_the_state_of_the_model(self) -> None:
        expected = {**self.model.pods, **self.model.flying}
        for uid in {*expected, *self.api_pods, *self.popped}:
            state = expected[uid].state if uid in expected else "ABSENT"
            assert self.rig.queue.state_of(uid).name == state

    @invariant()
    def counts_are_right(self) -> None:
        queue = self.rig.queue
        expected = Counter(counted_as(queue.state_of(uid)) for uid in self.model.pods)
        assert {name: n for name, n in queue.counts().items() if n} == expected
        listed = {name: len(pods) for name, pods in queue.pending_pods().items()}
        assert listed == queue.counts()

    @invariant()
    def pods_have_the_values_of_the_model(self) -> None:
        for uid, expected in self.model.pods.items():
            result = self.rig.queue.find(uid)
            assert result is not None
            assert result.pod is expected.pod
            assert result.attempts == expected.attempts
            assert result.unschedulable_plugins == expected.rejected_by
            assert result.pending_plugins == expected.pending
            assert result.gating_plugin == expected.gated_by

    @invariant()
    def the_gauge_counts_rejectors_of_waiting_pods(self) -> None:
        expected = Counter(
            plugin
            for waiting in self.model.pods.values()
            for plugin in waiting.rejected_by | waiting.pending
        )
        assert +self.rig.recorder.unschedulable == expected
        assert not -self.rig.recorder.unschedulable

    @invariant()
    def the_queue_waits_only_for_retries_if_the_model_does(self) -> None:
        states = {one.state for one in self.model.pods.values()}
        assert self.rig.queue.waiting_for_retry_only == states.isdisjoint({"ACTIVE", "BACKOFF"})

    @invariant()
    def there_is_a_deadline_only_while_pods_wait(self) -> None:
        due = self.rig.queue.next_deadline_seconds()
        waits = {one.state for one in self.model.pods.values()} - {"ACTIVE"}
        assert (due is not None) == bool(waits)
        assert due is None or due > self.rig.clock.now()


def test_the_queue_agrees_with_the_naive_queue() -> None:
    run_state_machine_as_test(QueueMachine, settings=settings(max_examples=depth(80, 200)))
