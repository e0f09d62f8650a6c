"""Scheduler: events in, effects out. Owns cache, queue and profiles; waits for nothing.

    scheduler.handle(event)              something changed in the cluster
    scheduler.schedule_one()             one attempt at the first entry of activeQ
    scheduler.take_effects()             what the shell is to perform
    scheduler.binding_finished(outcome)  results come back like events
    scheduler.run_timers()               what is due by the clock

It reads no clock but the one it was given, draws from no generator but its seed's, and does no I/O:
a run is a function of configuration, seed and events.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

from bayplan.clock import Clock
from bayplan.config import SchedulerConfig
from bayplan.engine.attempts import Attempts, OnAttempt
from bayplan.engine.binding import BindingOutcome
from bayplan.engine.cluster_events import ClusterEvents
from bayplan.engine.cycle import Extender, ExtenderAnswer
from bayplan.engine.engine_state import EngineState
from bayplan.engine.handle import PluginHandle
from bayplan.engine.profiles import BuiltProfile, build_profiles, make_plugin
from bayplan.engine.waiting import HeldPod, WaitingPods
from bayplan.framework.interface import Plugin
from bayplan.framework.runtime import Framework
from bayplan.journal import GateRecord, Journal
from bayplan.metrics import SchedulerMetrics
from bayplan.plugins.registry import Registry
from bayplan.ports import Effect, WatchEvent
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import (
    QueueProfile,
    QueueSettings,
    SchedulingQueue,
)
from bayplan.state.cache import Cache
from bayplan.state.object_store import KindStore, ObjectStore
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot


@final
class Scheduler:
    """One scheduler with all its profiles."""

    def __init__(
        self,
        config: SchedulerConfig,
        registry: Registry,
        clock: Clock,
        *,
        seed: int = 0,
        journal: Journal | None = None,
        extenders: Sequence[Extender] = (),
        on_attempt: OnAttempt | None = None,
        raise_bugs: bool = False,
    ) -> None:
        """``on_attempt``: called with each cycle while its snapshot is lent. ``raise_bugs``: an
        exception of ours ends the run (simulation) in place of the attempt (live)."""
        self._registry = registry
        self._raise_bugs = raise_bugs
        self._clock = clock
        self.seed = seed
        self.journal = journal or Journal()
        self.metrics = SchedulerMetrics()
        self.nominator = Nominator()
        self._objects = ObjectStore()
        self._profiles: Mapping[str, BuiltProfile] = {
            built.plugins.profile_name: built
            for built in build_profiles(config, registry, self._handle_for)
        }
        self._frameworks = {
            name: Framework(built.plugins, self.nominator) for name, built in self._profiles.items()
        }
        self._engine = EngineState(
            clock=clock,
            seed=seed,
            journal=self.journal,
            metrics=self.metrics,
            cache=Cache(),
            objects=self._objects,
            nominator=self.nominator,
            waiting=WaitingPods(),
            queue=self._make_queue(config),
            frameworks=self._frameworks,
        )
        self._attempts = Attempts(self._engine, extenders, on_attempt)
        self._events = ClusterEvents(self._engine, self._attempts.give_up)

    def _make_queue(self, config: SchedulerConfig) -> SchedulingQueue:
        profiles = {
            name: QueueProfile(built.plugins.pre_enqueue, built.events, built.sign)
            for name, built in self._profiles.items()
        }
        sort = next(iter(self._profiles.values())).plugins.queue_sort
        settings = QueueSettings(
            sort_key=sort.key,
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
            pop_from_backoff_q=config.gate("SchedulerPopFromBackoffQ"),
        )
        return SchedulingQueue(profiles, settings, self._clock.now, _Recorder(self), self.nominator)

    # ---- events in ------------------------------------------------------------------------

    def handle(self, event: WatchEvent) -> None:
        """Something changed in the cluster."""
        self._events.apply(event)

    def schedule_one(self) -> bool:
        """One attempt at the first entry that is ready. False: there is none."""
        queued = self._engine.queue.pop()
        if queued is None:
            return False
        pod = queued.pod
        if pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self.emit(pod.scheduler_name, pod, "Warning", "FailedScheduling", "Scheduling", note)
            self._engine.queue.done(pod.uid)
            return True
        if self._engine.cache.pod(pod.uid) is not None:
            self._engine.queue.done(pod.uid)
            return True
        try:
            self._attempts.start(queued)
        except Exception as problem:
            if self._raise_bugs:
                raise
            self.metrics.bugs.inc()
            self._attempts.fail_by_bug(queued, problem)
        return True

    def binding_finished(self, outcome: BindingOutcome) -> None:
        """A BindPod effect was performed."""
        self._attempts.binding_finished(outcome)

    def extender_answered(self, token: int, answer: ExtenderAnswer) -> None:
        """An AskExtender effect was performed."""
        self._attempts.resume(token, answer)

    def run_timers(self) -> None:
        """Do what is due: backoff, flushes, time-outs at Permit."""
        self._engine.queue.run_timers()
        self._engine.waiting.time_out_until(self._clock.now())

    # ---- effects out ----------------------------------------------------------------------

    def take_effects(self) -> list[Effect]:
        """What is to be performed, in order; each is handed out once."""
        effects = list(self._engine.effects)
        self._engine.effects.clear()
        return effects

    def next_deadline_seconds(self) -> float | None:
        """When `run_timers` has something to do next."""
        deadlines = (
            self._engine.queue.next_deadline_seconds(),
            self._engine.waiting.next_deadline_seconds(),
        )
        return min((d for d in deadlines if d is not None), default=None)

    # ---- looking in -----------------------------------------------------------------------

    @property
    def cache(self) -> Cache:
        return self._engine.cache

    @property
    def queue(self) -> SchedulingQueue:
        return self._engine.queue

    @property
    def kinds(self) -> list[str]:
        """Kinds that the configured plugins read, besides pods and nodes; sorted."""
        instances = (p for b in self._profiles.values() for p in b.plugins.instances())
        return sorted({kind for plugin in instances for kind in plugin.kinds})

    @property
    def only_retries_wait(self) -> bool:
        """Whether nothing but retry timers would make this scheduler act again by itself."""
        engine = self._engine
        nothing_begun = not self._attempts.unfinished_count and not engine.effects
        return nothing_begun and engine.queue.waiting_for_retry_only

    def close(self) -> None:
        """Close every plugin instance, once."""
        for built in self._profiles.values():
            for plugin in built.plugins.instances():
                plugin.close()

    # ---- what handles ask for (engine.handle.Services) -----------------------------------

    @property
    def lent_snapshot(self) -> Snapshot | None:
        return self._attempts.lent

    def now_seconds(self) -> float:
        return self._clock.now()

    def framework(self, profile_name: str) -> Framework:
        return self._frameworks[profile_name]

    def objects(self, kind: str) -> KindStore:
        return self._objects.of(kind)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        self._engine.queue.activate(list(pods))

    def waiting_pods(self) -> list[HeldPod]:
        return self._engine.waiting.all()

    def waiting_pod(self, uid: str) -> HeldPod | None:
        return self._engine.waiting.get(uid)

    def reject_waiting_pod(self, uid: str, plugin: str) -> bool:
        held = self._engine.waiting.get(uid)
        if held is not None:
            held.reject(plugin, "removed")
        return held is not None

    def make_plugin(self, name: str, args: Any, handle: PluginHandle) -> Plugin:
        path = f"{handle.instance_name}.make({name})"
        return make_plugin(self._registry, name, args, handle, path)

    def emit(
        self, profile_name: str, pod: PodInfo, kind: str, reason: str, action: str, note: str
    ) -> None:
        self._engine.emit(profile_name, pod, kind, reason, action, note)

    # ---- inside ---------------------------------------------------------------------------

    def _handle_for(
        self, profile_name: str, instance_name: str, plugin: type[Plugin]
    ) -> PluginHandle:
        return PluginHandle(self, profile_name, instance_name, plugin.kinds)


@final
class _Recorder:
    """queue.QueueRecorder: what happens in the queue goes to metrics and journal."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def incoming(self, queue: str, event: str) -> None:
        self._scheduler.metrics.incoming(queue, event)

    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        self._scheduler.metrics.hint_failures.labels(plugin).inc()

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        self._scheduler.metrics.unschedulable_delta(plugin, profile, delta)

    def gated(self, pod: PodInfo, plugin: str, message: str) -> None:
        record = GateRecord(
            at_seconds=self._scheduler.now_seconds(),
            pod=pod.key,
            uid=pod.uid,
            plugin=plugin,
            message=message,
        )
        self._scheduler.journal.write(record)
