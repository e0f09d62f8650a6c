"""The parts of one scheduler, made once, and the executor that runs one piece of work at a time.

`EngineCore` makes the parts, and decides nothing. No part gets the core: each is handed what it
uses, in engine/wiring.py.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, final

from bayplan.api.pod_groups import BUILT_IN_KINDS, GroupKey, PodGroupKinds
from bayplan.clock import Clock
from bayplan.config.feature_gates import FeatureGates, default_gates
from bayplan.config.topology_levels import TopologyLevels
from bayplan.engine.binding import PodInPreBind
from bayplan.engine.extenders.results import Extenders
from bayplan.engine.outbox import Outbox
from bayplan.engine.reservations import Reservations
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.telemetry import Telemetry
from bayplan.engine.waiting import Activations, Deadlines, WaitingPods
from bayplan.framework.cluster_rules import device_rules, group_rules, pod_rules
from bayplan.framework.handle import HandleServices, SharedDRAManager
from bayplan.framework.runtime import Framework
from bayplan.journal import Journal
from bayplan.plugins.registry import Registry
from bayplan.ports import EmitEvent
from bayplan.profile.filter_runner import ProfileFilters
from bayplan.profile.profiles import make_plugin
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import ClusterView
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo

Work = Callable[[], None]


@final
class SerialExecutor:
    """Runs work in the order in which it was submitted, never one piece inside another.

    A plugin may act at any moment: a hint activates pods, a cycle rejects a waiting pod, Reserve
    hands in an event. None of that may change what the present work looks at, so it waits for the
    end of the present work. Before `start` all work waits.
    """

    def __init__(self, on_failure: Callable[[str, Exception], None]) -> None:
        """``on_failure`` gets the subject of work that raised, and the exception. The executor
        goes on with the next work unless ``on_failure`` raises."""
        self._on_failure = on_failure
        self._is_running = True
        #: Work that waits for the end of the present work. Only this class writes.
        self.pending: deque[tuple[str, Work]] = deque()
        #: Called after each piece of work. Only this class writes.
        self.observers: list[Work] = []

    def observe(self, observer: Work) -> None:
        """Call ``observer`` after each piece of work."""
        self.observers.append(observer)

    def between(self) -> bool:
        """Call the observers between two pieces of work that are run as one. Returns whether other
        work comes first."""
        for observer in self.observers:
            observer()
        return bool(self.pending)

    def start(self) -> None:
        """Run the work submitted so far; from now on new work runs at once."""
        self._is_running = False
        if self.pending:
            self.run("start", _nothing)

    def run(self, subject: str, work: Work) -> None:
        """Run the work now, or after the present work."""
        pending = self.pending
        pending.append((subject, work))
        if self._is_running:
            return
        self._is_running = True
        try:
            while pending:
                subject, work = pending.popleft()
                try:
                    work()
                except Exception as problem:  # noqa: BLE001 - on_failure decides what it ends
                    self._on_failure(subject, problem)
                for observer in self.observers:
                    observer()
        finally:
            self._is_running = False


def _nothing() -> None: ...


class GroupController(Protocol):
    """Follows changes of pod groups; see engine.podgroups.controller."""

    def changed(self, states: Iterable[GroupState], *, wakes: bool = False) -> None: ...
    def changed_by(self, pods: Iterable[PodInfo]) -> None: ...
    def explain(
        self, key: GroupKey, message: str, condition_message: str = "", *, failure_reason: str = ""
    ) -> None: ...
    def forget(self, uid: str) -> None: ...
    @property
    def messages(self) -> Mapping[str, Any]: ...
    def flush(self) -> None: ...
    def run_timers(self) -> None: ...
    @property
    def changes(self) -> Mapping[GroupKey, GroupState]: ...
    @property
    def deadlines(self) -> Sequence[Deadlines[GroupKey]]: ...


@final
class EngineCore:
    """The parts of one scheduler."""

    #: Made after the plugins have started.
    queue: SchedulingQueue
    group_controller: GroupController
    reservations: Reservations

    def __init__(
        self,
        clock: Clock,
        seed: int,
        journal: Journal,
        *,
        raise_bugs: bool = False,
        gates: FeatureGates | None = None,
        group_kinds: PodGroupKinds = BUILT_IN_KINDS,
        extenders: Extenders | None = None,
        devices: SharedDRAManager | None = None,
    ) -> None:
        """``devices``: the manager that plugins read in place of the cluster's own."""
        self.clock = clock
        self.seed = seed
        self.gates = default_gates() if gates is None else gates
        self.group_kinds = group_kinds
        self.topology_levels = TopologyLevels()
        self.extenders = Extenders() if extenders is None else extenders
        #: By profile; filled when the plugins have started.
        self.frameworks: dict[str, Framework] = {}
        self.reuse: dict[str, ResultCache] = {}
        self.telemetry = Telemetry(clock, journal, raise_bugs=raise_bugs)
        self.metrics = self.telemetry.metrics
        self.outbox = Outbox(self.telemetry)
        self.cluster = ClusterView(
            self.frameworks.__contains__,
            group_kinds,
            device_rules=device_rules(self.gates),
            group_rules=group_rules(self.gates),
        )
        self.devices = self.cluster.devices if devices is None else devices
        self.nominator = Nominator(self.cluster.pods.get)
        self.executor = SerialExecutor(self.telemetry.bug)
        self.waiting = WaitingPods()
        #: Pods whose PreBind plugins have something to do, until the binding ends; by uid.
        self.pods_in_pre_bind: dict[str, PodInPreBind] = {}
        self.activations = Activations(clock)
        #: Kinds that plugins look up. Pods and nodes are in ``cluster.objects`` only if listed.
        self.listed_kinds: frozenset[str] = frozenset()
        #: Whether pods with a deferred resize are tried: see engine.resizes.
        self.tries_resizes = self.gates.enabled("InPlacePodVerticalScalingSchedulerPreemption")
        #: The rules that say what a pod requests and which of its fields count.
        self.pod_rules = pod_rules(self.gates)

    def activate_due(self) -> None:
        """Activate the pods that plugins want tried at this time, unless they are gone."""
        if not self.activations.deadlines:
            return
        pods = self.cluster.pods
        self.queue.activate(pods[uid] for uid in self.activations.take_due() if uid in pods)

    def handle_services(self, registry: Registry) -> HandleServices:
        """What the handles of plugins use. ``registry``: finds the plugins that others make."""
        return HandleServices(
            seed=self.seed,
            gates=self.gates,
            clock=self.clock,
            metrics=self.metrics,
            cluster=self.cluster,
            devices=self.devices,
            nominator=self.nominator,
            extenders=self.extenders,
            waiting=self.waiting.by_uid,
            pods_in_pre_bind=self.pods_in_pre_bind,
            filter_runner=partial(ProfileFilters, self.cluster, self.frameworks),
            make_plugin=partial(make_plugin, registry),
            activate=self._activate,
            emit=self._emit,
            perform=self.outbox.perform,
        )

    def _activate(self, pods: Iterable[PodInfo], at_seconds: float | None) -> None:
        selected = list(pods)
        if at_seconds is not None:
            self.activations.add(selected, at_seconds)
        else:
            self.executor.run("activate", lambda: self.queue.activate(selected))
        self.outbox.wake()

    def _emit(self, pod: PodInfo, event: EmitEvent) -> None:
        """Emit a plugin's event about a pod, and note it."""
        self.outbox.emit_event(event)
        self.telemetry.note(pod.key, f"event {event.reason}: {event.note}")
        self.outbox.wake()
