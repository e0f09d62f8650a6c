"""One thing at a time: what is asked for in the middle of something comes after it.

A plugin may do anything at any moment: activate pods from a hint, reject a waiting pod while a
cycle reads the cluster, hand in an event from Reserve. Nothing of that may change what is being
looked at, so it waits for the end of the present turn; outside of one it happens at once. Before
`begin` everything waits.

What the parts of the scheduler share: the cluster as known, the queue, and the way out.

One object, made once, handed to the parts that change it. It decides nothing.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from traceback import format_exception
from typing import Any, Protocol, final

from bayplan.api.objects import PodCondition
from bayplan.api.pod_groups import BUILT_IN_KINDS, GroupKey, PodGroup, PodGroupKinds
from bayplan.clock import Clock
from bayplan.config.feature_gates import FeatureGates, default_gates
from bayplan.engine.deadlines import Activations
from bayplan.engine.extenders.results import Extenders
from bayplan.engine.pending_patches import PendingPatches
from bayplan.engine.reservations import Reservations
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.waiting import WaitingPods
from bayplan.framework.handle import PodInPreBind
from bayplan.framework.queued_group import QueueGroup
from bayplan.framework.runtime import Framework
from bayplan.framework.validation import failure_of
from bayplan.journal import BUG_PREFIX, GroupRecord, Journal, NoteRecord
from bayplan.metrics import SchedulerMetrics
from bayplan.ports import (
    ApiError,
    BindPort,
    Effect,
    EmitEvent,
    ObjectReference,
    OutcomeUnknownError,
    PatchPodStatus,
    Perform,
    pod_reference,
)
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import Cache
from bayplan.state.cluster_objects import ClusterObjects
from bayplan.state.device_table import Devices
from bayplan.state.pod_groups import GroupState, PodGroups
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot
from bayplan.state.volumes import Volumes

# ---- turns ----------------------------------------------------------------------------------


Work = Callable[[], None]


@final
class SerialExecutor:
    """Runs work in the order it was asked for, never one inside another."""

    def __init__(self, failed: Callable[[str, Exception], None]) -> None:
        """``failed``: told what was being done, and how it failed; the rest goes on unless it
        raises."""
        self._failed = failed
        self._is_taken = True
        self._later: deque[tuple[str, Work]] = deque()
        self._observers: list[Work] = []

    def observe(self, look: Work) -> None:
        """Have ``look`` called after each turn, when nothing is half done."""
        self._observers.append(look)

    def start(self) -> None:
        """From now on work is done; first what was asked for until now."""
        self._is_taken = False
        self._run_all()

    def run(self, subject: str, work: Work) -> None:
        """Do it now, or after what is being done."""
        self._later.append((subject, work))
        if not self._is_taken:
            self._run_all()

    def _run_all(self) -> None:
        self._is_taken = True
        try:
            while self._later:
                subject, work = self._later.popleft()
                try:
                    work()
                except Exception as problem:  # noqa: BLE001 - who was told decides what it ends
                    self._failed(subject, problem)
                for look in self._observers:
                    look()
        finally:
            self._is_taken = False


# ---- engine state ---------------------------------------------------------------------------


#: Longer notes of events are cut, as upstream cuts them; bytes, for that is what the API counts.
NOTE_BYTES_MAX = 1024
_CUT = " ..."


def _nobody_to_wake() -> None: ...


class GroupController(Protocol):
    """Told what changes in groups of pods; see engine.gangs."""

    def queue_group(self, pod: PodInfo) -> QueueGroup | None: ...
    def changed(self, states: Iterable[GroupState], *, wakes: bool = False) -> None: ...
    def changed_by(self, pods: Iterable[PodInfo]) -> None: ...
    def explain(
        self, key: GroupKey, message: str, condition_message: str = "", *, has_failed: bool = False
    ) -> None: ...
    def forget(self, uid: str) -> None: ...
    def flush(self) -> None: ...
    def run_timers(self) -> None: ...
    def next_deadline_seconds(self) -> float | None: ...


@dataclass(slots=True)
class EngineState:
    """The scheduler's memory, and the effects it wants performed."""

    clock: Clock
    seed: int
    journal: Journal
    #: A bug of ours ends the run (simulation), not just what failed by it (live).
    raise_bugs: bool = False
    gates: FeatureGates = field(default_factory=default_gates)
    group_kinds: PodGroupKinds = BUILT_IN_KINDS
    metrics: SchedulerMetrics = field(default_factory=SchedulerMetrics)
    cache: Cache = field(default_factory=Cache)
    objects: ClusterObjects = field(default_factory=ClusterObjects)
    waiting: WaitingPods = field(default_factory=WaitingPods)
    #: Pods whose PreBind plugins have something to do, until the binding ends; by uid.
    pods_in_pre_bind: dict[str, PodInPreBind] = field(default_factory=dict[str, PodInPreBind])
    #: The newest version of each pod the API has told of, by uid.
    known: dict[str, PodInfo] = field(default_factory=dict[str, PodInfo])
    pending_patches: PendingPatches = field(default_factory=PendingPatches)
    extenders: Extenders = field(default_factory=Extenders)
    #: Kinds that plugins look up; pods and nodes are kept in ``objects`` only where one does.
    listed: frozenset[str] = frozenset()
    effects: deque[Effect] = field(default_factory=deque[Effect])
    #: By profile; filled when the plugins stand.
    frameworks: dict[str, Framework] = field(default_factory=dict[str, Framework])
    reuse: dict[str, ResultCache] = field(default_factory=dict[str, ResultCache])
    #: The cluster on loan to the cycle under way.
    lent: Snapshot | None = None
    #: Called when something is to be done that no call of the shell asked for.
    wake: Callable[[], None] = _nobody_to_wake
    #: Writes under way that no cycle waits for.
    writes_count: int = 0
    #: Whether pods that run are tried for resizes that were deferred: see engine.resizes.
    tries_resizes: bool = field(init=False)
    #: What of ``objects`` is storage, with what is assumed of it.
    volumes: Volumes = field(init=False)
    executor: SerialExecutor = field(init=False)
    devices: Devices = field(init=False)
    nominator: Nominator = field(init=False)
    activations: Activations = field(init=False)
    pod_groups: PodGroups = field(init=False)
    group_controller: GroupController = field(init=False)
    reservations: Reservations = field(init=False)
    #: Made when the plugins stand.
    queue: SchedulingQueue = field(init=False)

    def __post_init__(self) -> None:
        self.volumes = Volumes(self.cache.table, self.objects)
        self.executor = SerialExecutor(self.bug)
        self.tries_resizes = self.gates.enabled("InPlacePodVerticalScalingSchedulerPreemption")
        has_rules = self.gates.enabled("DRADeviceTaintRules")
        self.devices = Devices(self.cache.table, self.objects, has_taint_rules=has_rules)
        self.nominator = Nominator(self.known.get)
        self.activations = Activations(self.clock)
        self.pod_groups = PodGroups(self.frameworks.__contains__, self.group_kinds)

    # ---- the loan -------------------------------------------------------------------------

    def lend(self) -> Snapshot:
        """Lend the cluster to a cycle."""
        self.lent = self.cache.lend()
        return self.lent

    def take_back(self) -> None:
        """From here on the cluster may change, and nobody reads the snapshot; may be repeated."""
        if self.lent is not None:
            self.lent.end()
            self.lent = None

    # ---- a step ahead of the API ------------------------------------------------------------

    def assume(self, placed: PodInfo) -> None:
        """Count a pod on a node before the API knows."""
        self.cache.assume(placed)
        if placed.group_key is not None:
            self.pod_groups.assume(placed)

    def forget(self, placed: PodInfo) -> None:
        """Take an assumed pod back."""
        self.cache.forget(placed)
        self.pod_groups.forget(placed)

    def forget_kind(self, kind: str) -> None:
        """An object of this kind came, changed or went: answers that follow from it are void."""
        for reuse in self.reuse.values():
            reuse.forget_kind(kind)

    def activate_due(self) -> None:
        """Have those tried whom plugins wanted tried about now, unless they are gone."""
        due = self.activations.take_due()
        self.queue.activate(self.known[uid] for uid in due if uid in self.known)

    # ---- telling --------------------------------------------------------------------------

    def note(self, subject: str, text: str, plugin: str = "") -> None:
        """Keep something for the journal. ``plugin``: the one that failed, if one did."""
        if self.journal.is_recording:
            now = self.clock.now()
            record = NoteRecord(at_seconds=now, subject=subject, text=text, plugin=plugin)
            self.journal.write(record)

    def plugin_failed(self, subject: str, plugin: str, text: str) -> None:
        """A plugin raised or answered what it may not, and nothing else follows from it."""
        self.metrics.plugin_failures.add(plugin)
        self.note(subject, text, plugin)

    def bug(self, subject: str, problem: Exception) -> None:
        """Something of ours failed. Raises it again where that ends the run."""
        if self.raise_bugs:
            raise problem
        self.metrics.bugs.add()
        self.note(subject, f"{BUG_PREFIX}: " + "".join(format_exception(problem)))

    def patch_status(
        self, pod: PodInfo, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Write a condition, a nomination ("" clears it), or both; nothing if nothing changes."""
        if nominated_node_name == self.pending_patches.nominated_node(pod):
            nominated_node_name = None
        if nominated_node_name is None and condition is None:
            return
        patch = PatchPodStatus(pod.namespace, pod.name, pod.uid, condition, nominated_node_name)
        self.pending_patches.note(patch)
        self.effects.append(patch)

    def emit(
        self, profile_name: str, pod: PodInfo, kind: str, reason: str, action: str, note: str
    ) -> None:
        """An event about a pod."""
        self.emit_event(EmitEvent(pod_reference(pod), kind, reason, action, note, profile_name))

    def emit_about_group(
        self, profile_name: str, group: PodGroup, kind: str, reason: str, note: str
    ) -> None:
        """An event about a group's object."""
        self.emit_event(
            EmitEvent(
                group_reference(group),
                kind,
                reason,
                "Scheduling",
                f"group {group.key}: {note}",
                profile_name,
            )
        )

    def emit_event(self, event: EmitEvent) -> None:
        """An event, its note cut where the API would refuse it."""
        self.effects.append(replace(event, note=cut(event.note, NOTE_BYTES_MAX)))

    def record_group(self, state: GroupState, result: str, **told: Any) -> None:
        """Keep what became of a group for the journal; ``told``: fields of GroupRecord."""
        if self.journal.is_recording:
            record = GroupRecord(
                at_seconds=self.clock.now(),
                group=str(state.key),
                api_group=state.key.api_group,
                result=result,
                min_member=state.min_member,
                **told,
            )
            self.journal.write(record)

    def perform(
        self, subject: str, write: Callable[[BindPort], Awaitable[None]], plugin: str
    ) -> None:
        """Write something that no cycle waits for. A refusal, or a failure of the plugin that
        writes it, is noted."""

        async def run(port: BindPort) -> None:
            try:
                await write(port)
            except (ApiError, OutcomeUnknownError) as problem:
                self.note(subject, str(problem))
            except GeneratorExit:
                raise
            except BaseException as problem:  # noqa: BLE001 - a plugin's failure stops nothing else
                status = failure_of(plugin, "Handle.perform of", problem)
                self.plugin_failed(subject, plugin, status.message)
            finally:
                self.writes_count -= 1
                self.wake()

        self.writes_count += 1
        self.effects.append(Perform(run))
        self.wake()


def group_reference(group: PodGroup) -> ObjectReference:
    """The version of a group's object that an event is about."""
    key, metadata = group.key, group.metadata
    uid, version = metadata.uid or "", metadata.resource_version or ""
    return ObjectReference(group.kind, key.namespace, key.name, uid, version)


def cut(text: str, bytes_max: int) -> str:
    """The text, ending in dots where it is too long."""
    if len(text) * 4 <= bytes_max or len(encoded := text.encode()) <= bytes_max:
        return text
    return encoded[: bytes_max - len(_CUT)].decode(errors="ignore") + _CUT
