"""Scheduler: events in, effects out. It owns cache, queue and profiles, and waits for nothing.

    scheduler.handle(event)              something changed in the cluster
    scheduler.schedule_one()             one attempt at the first entry of activeQ
    scheduler.schedule_run(64, 0.002)    the same, and attempts at equal pods behind it
    scheduler.take_effects()             work for the shell
    scheduler.binding_finished(outcome)  results come back like events
    scheduler.run_timers()               work that is due by the clock

The scheduler reads only the clock that it is given, draws numbers only from its seed, and does no
I/O: a run is a function of configuration, seed and events.

`QueueOrder` protects the one queue from a faulty QueueSort plugin. A pod whose key fails comes
after all others. All keys must be of one type, because keys that cannot be compared would fail
later.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, TypedDict, Unpack, cast, final

from bayplan.api.objects import DEFAULT_SCHEDULER, NODE, POD, Pod
from bayplan.clock import Clock
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.config.topology_levels import TopologyLevels
from bayplan.engine.arrivals import Arrivals
from bayplan.engine.attempt_record import OnAttempt
from bayplan.engine.attempts import DryRuns
from bayplan.engine.binding import BindingOutcome
from bayplan.engine.core import EngineCore
from bayplan.engine.event_handlers import added
from bayplan.engine.exclusive_domains import (
    EXCLUSIVE_EVENTS,
    EXCLUSIVE_NAME,
    ExclusiveDomains,
)
from bayplan.engine.extenders.results import (
    Extender,
    Extenders,
    configured_extenders,
    in_process_extenders,
)
from bayplan.engine.instrumentation import (
    QueueJournal,
    reuse_of,
    show_evaluations,
    show_features,
    show_reuse,
    show_sizes,
)
from bayplan.engine.one_shot import OneShotEvaluator
from bayplan.engine.podgroups.controller import PodGroupController, QueueGroups
from bayplan.engine.podgroups.domains import TOPOLOGY_EVENTS, TOPOLOGY_NAME
from bayplan.engine.reservations import RESERVATION_EVENTS, RESERVATION_NAME, Reservations
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.telemetry import StateLog
from bayplan.engine.waiting import PodWaitingOnPermit
from bayplan.engine.wiring import event_handlers, make_attempts
from bayplan.framework.calls import fields_of, with_parts
from bayplan.framework.events import default_events
from bayplan.framework.handle import Handle, SharedDRAManager
from bayplan.framework.in_process_extender import InProcessExtender
from bayplan.framework.plugin import Plugin, QueueSortPlugin
from bayplan.framework.runtime import Framework
from bayplan.framework.status import EXTENDER_NAME
from bayplan.framework.timing import Watch
from bayplan.framework.types import QueuedPodInfo
from bayplan.framework.validation import WrongAnswer, described, failure_of
from bayplan.journal import Journal
from bayplan.plugins.registry import Registry
from bayplan.ports import Ask, BindPort, Effect, ExtenderAnswer, WatchEvent
from bayplan.profile.profiles import BuiltProfile, build_profiles, event_kinds
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.settings import QueueProfile, QueueSettings

# ---- queue order ----------------------------------------------------------------------------


#: (pod, plugin instance, failure)
OnFailure = Callable[[QueuedPodInfo, str, BaseException], None]


@final
class QueueOrder:
    """The sort key of queue.settings.QueueSettings, from a QueueSort plugin."""

    def __init__(self, plugin: QueueSortPlugin, failed: OnFailure) -> None:
        self._name = plugin.instance_name
        self._key = plugin.key
        self._failed = failed
        self._kind: object = None
        #: Types of the members of keys that are tuples of this kind.
        self._member_types: set[tuple[type, ...]] = set()

    def __call__(self, queued: QueuedPodInfo) -> tuple[int, Any]:
        try:
            key: Any = self._key(queued)
            types = tuple(map(type, key)) if key.__class__ is tuple else ()
            if types in self._member_types:
                return 0, key
            kind = _kind(key)
            if kind != self._kind:
                self._take_kind(key, kind)
            if types and _PLAIN_TYPES.issuperset(types):
                self._member_types.add(types)
            return 0, key
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure does not stop the queue
            self._failed(queued, self._name, problem)
            return 1, 0

    def _take_kind(self, key: object, kind: object) -> None:
        """The first key defines the kind of all keys. Raises WrongAnswer."""
        if self._kind is not None:
            raise WrongAnswer(described(key), "a key of the same kind as of other pods", self._key)
        try:
            is_ordered = not (cast("Any", key) < key) and key == key
        except (TypeError, ValueError):
            is_ordered = False
        if not is_ordered:
            raise WrongAnswer(
                described(key), "a key that can be compared with others, as a number", self._key
            )
        self._kind = kind


#: Types of members that can be compared with the members of another key.
_PLAIN_TYPES = frozenset((int, float, str))


def _kind(key: object) -> object:
    """The kind of a key. Keys of one kind can be compared."""
    if isinstance(key, tuple):
        return tuple(map(_kind, cast("tuple[object, ...]", key)))
    return float if isinstance(key, int) else type(key)


def queue_profile(built: BuiltProfile, has_extenders: bool) -> QueueProfile:
    """The settings of a profile for the queue.

    Extenders register no events, so each event may help a pod that an extender rejected.
    """
    events = {
        **built.queued_events,
        TOPOLOGY_NAME: TOPOLOGY_EVENTS,
        RESERVATION_NAME: RESERVATION_EVENTS,
        EXCLUSIVE_NAME: EXCLUSIVE_EVENTS,
    }
    if has_extenders:
        events[EXTENDER_NAME] = default_events()
    return QueueProfile(built.plugins.pre_enqueue, events, built.signer.part)


# ---- the scheduler --------------------------------------------------------------------------


class SchedulerOptions(TypedDict, total=False):
    """Options of a scheduler besides its configuration."""

    seed: int
    journal: Journal
    #: Extenders besides those of the configuration.
    extenders: Sequence[Extender]
    #: The manager of devices that plugins see; default: the cluster's slices, classes and claims.
    devices: SharedDRAManager | None
    #: The function that gets each cycle while its snapshot is lent.
    on_attempt: OnAttempt | None
    #: Logs what attempts depend on.
    state_log: StateLog | None
    #: Kinds of pod groups that the API server has. Default: all kinds of the configuration.
    pod_group_kinds: Iterable[str]
    #: Optional kinds of plugins that the API server does not have.
    absent_kinds: Iterable[str]
    #: Whether an exception of Bayplan ends the run (simulation), and not only its attempt (live).
    raise_bugs: bool


@final
class Scheduler:
    """One scheduler with all its profiles."""

    def __init__(
        self,
        config: SchedulerConfig,
        registry: Registry,
        clock: Clock,
        **options: Unpack[SchedulerOptions],
    ) -> None:
        """Starts the plugins. Raises ConfigError."""
        self._own_extenders = registry.make_extenders()
        engine = _core(config, clock, options, own_extenders=self._own_extenders)
        self._start(engine, config, registry)
        self._absent_kinds = frozenset(options.get("absent_kinds", ()))
        self.journal = engine.telemetry.journal
        self.metrics = engine.metrics
        self.cache = engine.cluster.cache
        self.queue = engine.queue
        self._clock = engine.clock
        self._frameworks = engine.frameworks
        self._group_controller = engine.group_controller
        self._listed_kinds = engine.listed_kinds
        self._outbox = engine.outbox
        self._reuse = engine.reuse
        self._telemetry = engine.telemetry
        self._waiting = engine.waiting
        self._activate_due = engine.activate_due
        #: The rules that say what a pod requests and which of its fields count.
        self.pod_rules = engine.pod_rules
        #: In the order of the configuration.
        self.profile_names = tuple(engine.frameworks)
        #: Runs each call of the engine, one at a time, and can be observed.
        self.executor = engine.executor
        #: Whether deferred resizes of running pods are tried.
        self.tries_resizes = engine.tries_resizes
        #: The present state of the groups of pods.
        self.pod_groups = engine.cluster.pod_groups
        #: The CompositePodGroups above them.
        self.group_trees = engine.cluster.group_trees
        #: Kinds of pod groups that the scheduler watches and no plugin looks up.
        self.group_kinds = sorted(
            {*options.get("pod_group_kinds", engine.group_kinds)} - engine.listed_kinds
        )
        #: Pods that plugins activate later.
        self.activations = engine.activations
        #: Filter and Score for callers that place pods themselves.
        self.one_shot = OneShotEvaluator(engine.cluster, engine.frameworks)
        #: The extenders that the shell connects.
        self.extenders = engine.extenders
        self._deadlines: tuple[Mapping[Any, float], ...] = (
            engine.activations.deadlines,
            *engine.group_controller.deadlines,
        )
        #: All that has deadlines. While all of it is empty, there is no next deadline.
        self._timed = (*engine.queue.timed, engine.waiting.by_uid, *self._deadlines)
        self._state_log = options.get("state_log")
        begins = None if self._state_log is None else self._begins
        group_settings, on_attempt = config.spec.pod_groups, options.get("on_attempt")
        self._attempts = make_attempts(engine, group_settings, on_attempt, begins)
        #: Makes attempts without effects.
        self.dry_runs = DryRuns(engine.queue, engine.executor, self._attempts.dry_run)
        #: Profile → where the next search of a sample starts.
        self.sampling_starts = self._attempts.sampling_starts
        self._events = event_handlers(engine, self._attempts.placements, self._attempts.resizes)
        #: Places pods that come one by one.
        self.place_arrivals = self._arrivals(engine).place
        show_sizes(engine.metrics, engine.queue, self.cache)
        show_features(engine.metrics, engine.gates)
        show_reuse(engine.metrics, engine.reuse)
        show_evaluations(engine.metrics, engine.frameworks)
        engine.executor.start()
        if self._state_log is not None:
            self.journal.add(self._state_log)

    def _arrivals(self, engine: EngineCore) -> Arrivals:
        return Arrivals(
            engine.queue,
            engine.executor,
            engine.outbox,
            engine.group_controller,
            attempts=self._attempts,
            events=self._events,
            state_log=self._state_log,
            timed=self._timed,
            has_due_timer=self._has_due_timer,
        )

    def _start(self, engine: EngineCore, config: SchedulerConfig, registry: Registry) -> None:
        """Start the plugins, and the parts of the engine that need to know them."""
        services = engine.handle_services(registry)

        def handle_for(profile: str, instance: str, plugin: type[Plugin]) -> Handle:
            return Handle(services, profile, instance, plugin.kinds)

        self._profiles = build_profiles(config, registry, handle_for)
        watch = Watch(
            engine.clock.now,
            plugin=engine.metrics.plugin_execution_duration.of,
            point=engine.metrics.extension_point_duration.of,
        )
        for built in self._profiles:
            name = built.plugins.profile_name
            framework = Framework(built.plugins, engine.nominator, watch, built.signer)
            engine.frameworks[name] = framework
            engine.reuse[name] = reuse_of(framework, engine.cluster, engine.telemetry)
        kinds = event_kinds(self._profiles, bool(engine.extenders))
        self._event_kinds = kinds - frozenset(engine.group_kinds)
        plugins = _instances(self._profiles)
        engine.listed_kinds = frozenset(
            kind for plugin in with_parts(plugins) for kind in plugin.kinds
        )
        group_settings = config.spec.pod_groups
        engine.topology_levels = TopologyLevels(group_settings.topology)
        engine.reservations = Reservations(
            engine.clock,
            group_settings.reserve_after_seconds,
            ExclusiveDomains(engine.cluster.pod_groups),
        )
        queue_groups = QueueGroups(engine.cluster.group_trees, engine.frameworks, engine.clock)
        recorder = QueueJournal(engine.telemetry)
        settings = QueueSettings(
            sort_key=QueueOrder(self._profiles[0].plugins.queue_sort, recorder.key_failed),
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
            unschedulable_max_seconds=config.unschedulable_max_seconds,
            pop_from_backoff_q=config.gate("SchedulerPopFromBackoffQ"),
            queue_group=queue_groups.of,
        )
        profiles = {
            built.plugins.profile_name: queue_profile(built, bool(engine.extenders))
            for built in self._profiles
        }
        engine.queue = SchedulingQueue(
            profiles, settings, engine.clock.now, recorder, nominator=engine.nominator
        )
        engine.group_controller = PodGroupController(
            engine.cluster,
            engine.queue,
            engine.outbox,
            engine.telemetry,
            frameworks=engine.frameworks,
            queue_groups=queue_groups,
            reservations=engine.reservations,
            reports_assembling=group_settings.report_assembling,
        )

    # ---- events in ------------------------------------------------------------------------

    def handle(self, event: WatchEvent) -> None:
        """Apply a change in the cluster."""
        if self._state_log is not None:
            self._state_log.handled(event)
        self.executor.run(event.kind, partial(self._events.apply, event))

    def add_pods(self, pods: Sequence[Pod]) -> None:
        """Do what `handle` does for an event ADDED of each pod, in this order, in less time."""
        if self._state_log is not None:
            for pod in pods:
                self._state_log.handled(added(pod))
        self.executor.run(POD, partial(self._events.add_pods, pods))

    def schedule_one(self, uid: str | None = None) -> bool:
        """Try the first entry that is ready. False: no entry is ready.

        ``uid``: try this pod, or its group, out of order. False: the pod does
        not wait for an attempt, or PreEnqueue rejects it.
        """
        if uid is None:
            for entries in self.queue.ready:
                if entries:
                    break
            else:
                return False
        queued = self.queue.pop(uid)
        if queued is None:
            return False
        self.executor.run(queued.pod.key, partial(self._attempts.start, [queued]))
        return True

    def schedule_run(self, pods_max: int, seconds_max: float) -> int:
        """Try the first entry that is ready, and the pods with runs that follow it in the queue,
        within these bounds. Returns how many entries were tried.

        No event is handled in between, and all effects of the run leave together.
        """
        queue, shapes, now = self.queue, self._attempts.runs.of_shape, self._clock.now
        count, end = 0, now() + seconds_max
        while count < pods_max:
            if count:
                following = queue.first_active()
                if following is None or following.pod.shape not in shapes or now() >= end:
                    break
            pods = queue.pop_run(pods_max - count, shapes)
            if not pods:
                break
            self.executor.run(pods[0].pod.key, partial(self._attempts.start, pods, end))
            count += len(pods)
        return count

    def _begins(self, queued: QueuedPodInfo) -> None:
        """Log that an attempt begins."""
        assert self._state_log is not None, "nobody reads the log of states"
        self._state_log.begins(queued, self._clock.now(), self.sampling_starts)

    def binding_finished(self, outcome: BindingOutcome) -> None:
        """Take the outcome of a BindPod effect."""
        finished = self._attempts.placements.binding_finished
        self.executor.run(outcome.uid, partial(finished, outcome))

    def extender_answered(self, token: int, answer: ExtenderAnswer) -> None:
        """Take the answer to an AskExtender effect."""
        resume = partial(self._attempts.resume, token, answer)
        self.executor.run(f"question {token}", resume)

    def run_timers(self) -> None:
        """Do the work that is due by the clock: backoff, flushes, time-outs at Permit."""
        if not self._has_due_timer():
            return
        self.executor.run("timers", self.queue.run_timers)
        self.executor.run("timers", self._group_controller.run_timers)
        self.executor.run("timers", self._activate_due)
        time_out = partial(self._waiting.time_out_until, self._clock.now())
        self.executor.run("timers", time_out)

    def _has_due_timer(self) -> bool:
        """Whether work is due by the clock."""
        for timed in self._timed:
            if timed:
                due = self.next_deadline_seconds()
                return due is not None and due <= self._clock.now()
        return False

    # ---- effects out ----------------------------------------------------------------------

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        if self._group_controller.changes:
            self._group_controller.flush()
        pending = self._outbox.effects
        if not pending:
            return []
        effects = list(pending)
        pending.clear()
        return effects

    def next_deadline_seconds(self) -> float | None:
        """The time of the next work of `run_timers`, in seconds of the clock. None: no work."""
        for timed in self._timed:
            if timed:
                break
        else:
            return None
        due, waiting = self.queue.next_deadline_seconds(), self._waiting
        earliest = inf if due is None else due
        for waiting_pod in waiting.by_uid.values():
            earliest = min(earliest, waiting_pod.deadline_seconds)
        for deadlines in self._deadlines:
            if deadlines:
                earliest = min(earliest, *deadlines.values())
        return None if earliest == inf else earliest

    def on_wake(self, wake: Callable[[], None]) -> None:
        """Set the function that is called when work arises without a call from outside.

        Example: a plugin activates a pod after a request to the API server.
        """
        self._outbox.wake = wake

    def bug(self, subject: str, problem: Exception) -> None:
        """Report an exception of the shell. Raises it if ``raise_bugs`` is set."""
        self._telemetry.bug(subject, problem)

    def asks(self, port: BindPort) -> dict[str, Ask]:
        """Name → callable of each extender that is a Python class. They write to ``port``."""
        return {each.name: partial(each.answer, port=port) for each in self._own_extenders}

    # ---- queries --------------------------------------------------------------------------

    def now_seconds(self) -> float:
        return self._clock.now()

    def framework(self, profile_name: str) -> Framework:
        """Raises KeyError."""
        return self._frameworks[profile_name]

    def reuse(self, profile_name: str) -> ResultCache:
        """The result cache of a profile. Raises KeyError."""
        return self._reuse[profile_name]

    def waiting_pods(self) -> list[PodWaitingOnPermit]:
        """Pods at Permit, in order of their uids."""
        return self._waiting.all()

    @property
    def awaited_api_groups(self) -> frozenset[str]:
        """The API groups of pod groups that have waiting members and no object."""
        states = self.pod_groups.all()
        waiting = (state for state in states if state.group is None and state.waiting_count)
        return frozenset(state.key.api_group for state in waiting)

    def is_responsible_for(self, scheduler_name: str | None) -> bool:
        """Whether a profile has this spec.schedulerName. None: the default name."""
        return (scheduler_name or DEFAULT_SCHEDULER) in self._frameworks

    @property
    def kinds(self) -> list[str]:
        """The kinds that configured plugins look up or register for, sorted.

        Without pods, nodes and groups of pods.
        """
        followed = self._listed_kinds | self._event_kinds
        return sorted(followed - {POD, NODE} - self._absent_kinds)

    @property
    def declared_fields(self) -> dict[str, tuple[str, ...]]:
        """Kind → additional field paths of pods and nodes that configured plugins read."""
        return fields_of(_instances(self._profiles))

    @property
    def only_retries_wait(self) -> bool:
        """Whether the scheduler has no pending work except retries at a later time."""
        begun_count = self._attempts.unfinished_count + self._outbox.write_count
        nothing_begun = not begun_count and not self._outbox.effects
        return nothing_begun and self.queue.waiting_for_retry_only

    def close(self) -> None:
        """Close each plugin instance once. All are closed, even if one fails."""
        profiles, self._profiles = self._profiles, []
        for plugin in _instances(profiles):
            try:
                plugin.close()
            except BaseException as problem:  # noqa: BLE001
                status = failure_of(plugin, "Close", problem)
                self._telemetry.plugin_failed(plugin.instance_name, status.plugin, status.message)


def _core(
    config: SchedulerConfig,
    clock: Clock,
    options: SchedulerOptions,
    *,
    own_extenders: Sequence[InProcessExtender],
) -> EngineCore:
    """The parts that exist before the plugins. ``own_extenders``: those of the registry."""
    extenders = (
        *configured_extenders(config.spec.extenders),
        *in_process_extenders(own_extenders),
        *options.get("extenders", ()),
    )
    return EngineCore(
        clock,
        options.get("seed", 0),
        options.get("journal", Journal()),
        raise_bugs=options.get("raise_bugs", False),
        gates=config.gates,
        group_kinds=group_kinds(config.spec.pod_groups.kinds),
        extenders=Extenders(extenders),
        devices=options.get("devices"),
    )


def _instances(profiles: Iterable[BuiltProfile]) -> Iterator[Plugin]:
    for built in profiles:
        yield from built.plugins.instances()
