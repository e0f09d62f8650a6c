"""Two schedulers, one with reuse and one without, receive the same events.

After each step everything visible must be equal: the result of each attempt for each node, the
journal, the effects, the queues, the cache and the nominations.
"""

import math
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import pytest

from bayplan.api.objects import NODE, POD, Pod
from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig, config_from
from bayplan.engine.binding import BindingOutcome
from bayplan.engine.cycle import Cycle
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Status, is_success
from bayplan.journal import AttemptRecord, Journal, MemorySink, NoteRecord, Record
from bayplan.plugins.registry import Registry
from bayplan.ports import (
    AskExtender,
    BindPod,
    Effect,
    EventType,
    ExtenderAnswer,
    ExtenderVerb,
    Perform,
    WatchEvent,
)
from bayplan.state.nodes import NodeView
from tests.engine.reuse_plugins import ALL, FILTERING, KEYS, SCORING
from tests.kit.ports import RecordingPort

#: The first capacity of the node table, small so that it grows.
INITIAL_CAPACITY = 4
FIRST, SECOND = "default-scheduler", "second"
#: An extender is called for pods that request its resource.
LICENCES = ("test.example/licence", "test.example/seat")
_EXTENDERS: Sequence[Mapping[str, Any]] = [
    {
        "urlPrefix": f"http://{name}.test.example",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": weight,
        "ignorable": name == "second",
        "managedResources": [{"name": resource, "ignoredByScheduler": True}],
    }
    for name, resource, weight in (("first", LICENCES[0], 1), ("second", LICENCES[1], 3))
]

#: Changes the scheduler with reuse before the first event.
Fault = Callable[[Scheduler], None]


def no_fault(scheduler: Scheduler) -> None: ...


def config_of(
    is_on: bool,
    *,
    is_plain: bool,
    has_keys: bool,
    bytes_max: int,
    has_graph: bool = False,
    percentage: int = 0,
    has_extenders: bool = False,
    refuses: bool = True,
    has_pins: bool = False,
    args: Sequence[Mapping[str, Any]] = (),
) -> SchedulerConfig:
    """``is_plain``: the first profile is upstream's default one, without plugins of the tests.
    ``args``: its pluginConfig. ``has_graph``: a plugin reads another's scores. ``percentage``: of
    nodes to score; 0: upstream's default. ``refuses``: a plugin takes part in Reserve and Permit,
    so that there are no runs. ``has_pins``: a plugin rejects pods by the node that they name."""
    enabled: list[dict[str, Any]] = []
    if not is_plain:
        enabled += [{"name": each.name} for each in FILTERING]
        enabled += [{"name": each.name, "weight": weight} for each, weight in SCORING]
    if refuses:
        enabled += [{"name": "Refuses"}]
    if has_pins:
        enabled += [{"name": "DislikesPins"}]
    if has_graph:
        enabled += [{"name": "Invert", "weight": 2}]
        args = [*args, {"name": "Invert", "args": {"scoreFrom": "NodeResourcesFit"}}]
    keys = {"tieBreak": {"enabled": [{"name": each.name} for each in KEYS]}}
    first = {"multiPoint": {"enabled": enabled}, **(keys if has_keys else {})}
    names = ("PrioritySort", "NodeResourcesFit", "TaintToleration", "Most", "DefaultPreemption")
    names = (*names, "DefaultBinder")
    second = {
        "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]},
    }
    return config_from(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": {"OpportunisticBatching": is_on},
            "reuse": {"maxBytes": bytes_max},
            **({"extenders": _EXTENDERS} if has_extenders else {}),
            "profiles": [
                {
                    "schedulerName": FIRST,
                    "plugins": first,
                    "pluginConfig": list(args),
                    **({"percentageOfNodesToScore": percentage} if percentage else {}),
                },
                {"schedulerName": SECOND, "plugins": second},
            ],
        }
    )


def seen(cycle: Cycle) -> Mapping[str, Any]:
    """All results of one attempt, node by node."""
    statuses = cycle.node_to_status()
    details: dict[str, Any] = {
        "pod": cycle.pod.key,
        "attempt": cycle.queued.attempts,
        "choice": cycle.choice,
        "status": cycle.status,
        "feasible": cycle.feasible_count,
        "rejected": {
            name: (each.code, each.reasons, each.plugin)
            for name, each in statuses.for_each_explicit_node()
        },
        "message": cycle.fit_error().message if cycle.choice is None else "",
    }
    table = cycle.score_table()
    if table is not None:
        columns = [(c.name, c.weight, c.raw.tolist(), c.normalized.tolist()) for c in table.columns]
        details["scores"] = (table.nodes.names(), table.totals.tolist(), columns)
        details["ties"] = [
            (step.key, step.equal_count, step.left_count) for step in table.tie_steps
        ]
    return details


@final
class Side:
    """One of the two schedulers."""

    def __init__(self, config: SchedulerConfig, tally: Counter[str], fault: Fault) -> None:
        registry = Registry()
        for each in ALL:
            registry.add(each)
        self._tally = tally
        self._clock = ManualClock()
        self.journal = MemorySink()
        self.attempts: list[Mapping[str, Any]] = []
        #: By pod: the last attempt since `validate`.
        self.tried: dict[str, Cycle] = {}
        self.scheduler = Scheduler(
            config,
            registry,
            self._clock,
            seed=7,
            journal=Journal([self.journal]),
            raise_bugs=True,
            on_attempt=self._note,
        )
        self._runs = self.scheduler._attempts.runs
        fault(self.scheduler)
        self.is_on = config.gate("OpportunisticBatching")

    def _note(self, cycle: Cycle) -> None:
        if self.is_on:
            self._tally["attempts"] += 1
            is_answered, is_ranked = cycle.ranked_answer is not None, cycle.ranking is not None
            self._tally["rankings used"] += is_answered
            self._tally["preparations reused"] += is_answered and cycle.step == 1
            self._tally["totals used"] += is_ranked and not is_answered
        self.tried[cycle.pod.key] = cycle
        self.attempts.append(seen(cycle))

    def validate(self) -> None:
        """All cached results for the pods that were tried equal the plugins' results now, and the
        rankings of all other signatures equal their row caches."""
        for profile in (FIRST, SECOND):
            for entry in self.scheduler.reuse(profile).entries():
                entry.validate()
        for cycle in self.tried.values():
            snapshot = self.scheduler.cache.lend()
            try:
                self._validate(cycle, snapshot.nodes)
            finally:
                snapshot.end()
        self.tried.clear()

    def _validate(self, cycle: Cycle, nodes: NodeView) -> None:
        framework, pod, state = cycle.framework, cycle.pod, CycleState()
        cache = self.scheduler.reuse(framework.profile_name)
        if not len(nodes):
            return
        result, status, _ = framework.run_pre_filter(state, pod, nodes)
        if not is_success(status) or result.node_names is not None:
            return
        outcome = framework.run_filter(state, pod, nodes)
        feasible = nodes.take(outcome.feasible)
        if len(feasible) < 2 or not is_success(framework.run_pre_score(state, pod, feasible)):
            state.skip_score_plugins.update(plugin.name for plugin, _ in framework.plugins.score)
        self._tally["validated"] += 1
        cache.validate(state, pod, nodes)

    def wait(self, seconds: float) -> None:
        self._clock.advance_to(self._clock.now() + seconds)
        self.scheduler.run_timers()

    def schedule_one(self) -> bool:
        """Run one attempt, and count the rows whose results were reused."""
        before = self._rows() if self.is_on else {}
        before_run = self._runs.attempt_count
        is_done = self.scheduler.schedule_one()
        self._tally["attempts of runs"] += self._runs.attempt_count - before_run
        if self.is_on:
            self._count(before, self._rows())
        return is_done

    def schedule_run(self, pods_max: int, *, is_watched: bool) -> int:
        """Run the attempts of a run, at most so many; returns how many."""
        before_run, end = self._runs.attempt_count, self.scheduler._attempts._end
        end.is_observed = is_watched
        count = self.scheduler.schedule_run(pods_max, math.inf)
        end.is_observed = True
        self._tally["attempts of runs"] += self._runs.attempt_count - before_run
        return count

    def _rows(self) -> dict[tuple[str, str], tuple[int, int]]:
        return {
            (profile, name): (counts.evaluated, counts.cached)
            for profile in (FIRST, SECOND)
            for name, counts in self.scheduler.reuse(profile).row_counts().items()
        }

    def _count(
        self,
        before: Mapping[tuple[str, str], tuple[int, int]],
        after: Mapping[tuple[str, str], tuple[int, int]],
    ) -> None:
        changed = [
            (evaluated - before[key][0], value - before[key][1])
            for key, (evaluated, value) in after.items()
        ]
        self._tally["partial refreshes"] += any(a > 0 and k > 0 for a, k in changed)
        self._tally["nothing evaluated"] += any(a == 0 and k > 0 for a, k in changed)

    def state(self, uids: Sequence[str]) -> Mapping[str, Any]:
        """Queues, placements and nominations."""
        scheduler = self.scheduler
        queue, cache = scheduler.queue, scheduler.cache
        nominator = scheduler.framework(FIRST).plugins.queue_sort.handle.nominator
        queued = {uid: queue.find(uid) for uid in uids}
        return {
            "states": {uid: queue.state_of(uid) for uid in uids},
            "queued": {
                uid: (
                    each.attempts,
                    sorted(each.unschedulable_plugins),
                    sorted(each.pending_plugins),
                )
                for uid, each in queued.items()
                if each is not None
            },
            "placed": sorted((pod.uid, pod.node_name) for pod in cache.pods()),
            "nominated": {
                name: [pod.uid for pod in nominator.nominated_pods_for_node(name)]
                for name in nominator.nominated_nodes()
            },
            "waiting": [waiting.pod.uid for waiting in scheduler.waiting_pods()],
        }

    def comparable_records(self) -> list[Record]:
        """The journal without the fields that only exist with reuse."""
        records = self.journal.records
        refusals = [r for r in records if isinstance(r, AttemptRecord) and r.plugin == "Refuses"]
        self._tally["turned down by Reserve or Permit"] += len(refusals) if self.is_on else 0
        return [
            r for r in records if not isinstance(r, NoteRecord) or "reuse.maxBytes" not in r.text
        ]

    def dropped(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for profile in (FIRST, SECOND):
            reuse = self.scheduler.reuse(profile)
            counts.update(reuse.dropped_counts)
            counts.update(reuse.flushed_counts)
        return counts


@final
class Pair:
    """Both schedulers."""

    def __init__(self, tally: Counter[str], fault: Fault = no_fault, **options: Any) -> None:
        """``options``: those of `config_of`."""
        self._tally = tally
        self.has_extenders = bool(options.get("has_extenders"))
        #: Pending writes of both schedulers outside of cycles.
        self.writes: list[tuple[Perform, Perform]] = []
        #: Calls of extenders without an answer.
        self.questions: list[AskExtender] = []
        self._effects_since: list[Effect] = []
        self._sides = (
            Side(config_of(True, **options), tally, fault),
            Side(config_of(False, **options), tally, no_fault),
        )

    # ---- the same for both ----------------------------------------------------------------

    def tell(self, kind: EventType, what: str, obj: Any) -> None:
        for side in self._sides:
            side.scheduler.handle(WatchEvent(kind, what, obj))

    def node(self, kind: EventType, obj: Any) -> None:
        self.tell(kind, NODE, obj)

    def pod(self, kind: EventType, new_pod: Pod) -> None:
        self.tell(kind, POD, new_pod)

    def wait(self, seconds: float) -> None:
        for side in self._sides:
            side.wait(seconds)

    def finish(self, uid: str, failure: Status | None) -> None:
        for side in self._sides:
            side.scheduler.binding_finished(BindingOutcome(uid, failure))

    def end_wait(self, place: int, *, is_allowed: bool) -> bool:
        """One of the pods at Permit continues or returns. False if no pod waits."""
        for side in self._sides:
            waiting = side.scheduler.waiting_pods()
            if not waiting:
                return False
            pod = waiting[place % len(waiting)]
            if is_allowed:
                pod.allow("Refuses")
            else:
                pod.reject("Refuses", "no longer")
        return True

    def schedule(self, count: int) -> None:
        for _ in range(count):
            done = [side.schedule_one() for side in self._sides]
            assert done[0] == done[1], "only one of them has a pod to try"
            if not done[0]:
                return

    def schedule_run(self, pods_max: int, *, is_watched: bool) -> None:
        """The scheduler with reuse makes a run of attempts, the other one the same attempts one by
        one.

        ``is_watched``: the results of each attempt are compared, too, so that the run places one
        pod after another.
        """
        on, off = self._sides
        before = len(off.attempts)
        for _ in range(on.schedule_run(pods_max, is_watched=is_watched)):
            assert off.schedule_one(), "only one of them has a pod to try"
        shown = {(each["pod"], each["attempt"]) for each in on.attempts}
        off.attempts[before:] = [
            each for each in off.attempts[before:] if (each["pod"], each["attempt"]) in shown
        ]

    # ---- comparing ------------------------------------------------------------------------

    def compare(self, uids: Sequence[str]) -> list[Effect]:
        """Returns the effects. Raises AssertionError if the schedulers differ."""
        on, off = self._sides
        for one, other in zip(on.attempts, off.attempts, strict=True):
            wrong = {key: (one.get(key), other[key]) for key in other if one.get(key) != other[key]}
            assert not wrong, f"{other['pod']} with reuse and without: {wrong}"
        on.validate()
        assert on.comparable_records() == off.comparable_records()
        assert on.state(uids) == off.state(uids)
        self._take_effects()
        for side in self._sides:
            side.attempts.clear()
            side.tried.clear()
            side.journal.records.clear()
        effects = self._effects_since
        self._effects_since = []
        return effects

    def answer_extenders(self) -> None:
        """Answer all calls of extenders, and those that follow from the answers."""
        self._take_effects()
        while self.questions:
            question = self.questions.pop(0)
            answer = answer_of(question)
            self._tally[f"an extender answered: {question.verb}"] += 1
            for side in self._sides:
                side.scheduler.extender_answered(question.token, answer)
            self._take_effects()

    def _take_effects(self) -> None:
        effects = [side.scheduler.take_effects() for side in self._sides]
        on, off = ([comparable(effect) for effect in each] for each in effects)
        assert on == off, f"effects with reuse and without: {on} and {off}"
        self.writes += [
            (one, other)
            for one, other in zip(*effects, strict=True)
            if isinstance(one, Perform) and isinstance(other, Perform)
        ]
        self.questions += [each for each in effects[0] if isinstance(each, AskExtender)]
        self._effects_since += effects[0]

    def perform(self) -> list[str]:
        """Perform the writes and those that follow from them. Returns the names of evicted pods."""
        ports = RecordingPort(), RecordingPort()
        while self.writes:
            for write, port in zip(self.writes.pop(0), ports, strict=True):
                with pytest.raises(StopIteration):
                    write.run(port).send(None)
            self._take_effects()
        assert ports[0].writes == ports[1].writes
        assert ports[0].patches == ports[1].patches
        return [key.partition("/")[2] for key in ports[0].deleted]

    def close(self) -> None:
        grown = self._sides[0].scheduler.cache.table.capacity // INITIAL_CAPACITY
        self._tally["the table grew"] += grown.bit_length() - 1
        for reason, count in self._sides[0].dropped().items():
            self._tally[f"dropped: {reason}"] += count
        for side in self._sides:
            side.scheduler.close()


def comparable(effect: Effect) -> Any:
    """An effect without its functions, which belong to one scheduler."""
    if isinstance(effect, Perform):
        return Perform
    if isinstance(effect, BindPod):
        return effect.pod.uid, effect.node_name
    if isinstance(effect, AskExtender):
        return effect.token, effect.extender, effect.verb, effect.pod.uid, effect.node_names
    return effect


def answer_of(question: AskExtender) -> ExtenderAnswer:
    """An extender's answer, which depends on the pod and the names of the nodes."""
    drawn = {
        name: zlib.crc32(f"{question.extender} {question.pod.uid} {name}".encode())
        for name in question.node_names
    }
    if zlib.crc32(f"{question.extender} {question.pod.uid}".encode()) % 7 == 0:
        return ExtenderAnswer(error="no connection")
    if question.verb is ExtenderVerb.FILTER:
        failed = {name: "no licence left" for name, number in drawn.items() if number % 5 == 0}
        never = {name: "no licence" for name, number in drawn.items() if number % 5 == 1}
        left = drawn.keys() - failed.keys() - never.keys()
        return ExtenderAnswer(
            node_names=frozenset(left), failed=failed, failed_and_unresolvable=never
        )
    return ExtenderAnswer(scores=tuple((name, number % 11) for name, number in drawn.items()))
