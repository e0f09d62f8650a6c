"""A pending pod that waits in real queues after rejections, and the change that may activate it.

The change goes through the engine's own `EventHandlers`. A `Tap` replaces the scheduling queue
behind them. It records the events, and passes every call to queues in which the pod waits: one
queue for each plugin that may have rejected the pod and each state of the pod.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast, final

from bayplan.api.objects import NODE, POD
from bayplan.engine.core import EngineCore
from bayplan.engine.exclusive_domains import ExclusiveDomains
from bayplan.engine.placements import Placements
from bayplan.engine.podgroups.controller import PodGroupController, QueueGroups
from bayplan.engine.reservations import Reservations
from bayplan.engine.resizes import Resizes
from bayplan.engine.wiring import event_handlers
from bayplan.framework.cluster_rules import device_rules
from bayplan.framework.events import ClusterEvent, EventResource
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import Journal
from bayplan.ports import EventType, WatchEvent
from bayplan.profile.profiles import BuiltProfile
from bayplan.queue.entry import State
from bayplan.queue.hints import Change, Hints
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.sub_queues import PreCheck
from bayplan.state.cache import ClusterView
from bayplan.state.pods import PodInfo
from tests.parity.world import Remarks, World

IN_BACKOFF, BACKOFF_OVER, PENDING, IN_FLIGHT = "inBackoff", "backoffOver", "pending", "inFlight"
STATES = (IN_BACKOFF, BACKOFF_OVER, PENDING, IN_FLIGHT)
GATED = "gated"

#: State → queue in upstream's words; gated pods are in unschedulablePods.
PLACES: Mapping[State, str] = {
    State.ABSENT: "none",
    State.ACTIVE: "activeQ",
    State.BACKOFF: "backoffQ",
    State.ERROR_BACKOFF: "backoffQ",
    State.UNSCHEDULABLE: "unschedulable",
    State.GATED: "unschedulable",
}
_LONG_SECONDS = 10.0
_POD_OR_NODE = frozenset(
    (
        EventResource.NODE,
        EventResource.ASSIGNED_POD,
        EventResource.UNSCHEDULED_POD,
        EventResource.TARGET_POD,
        EventResource.UNSCHEDULABLE_POD,
    )
)


@final
class WaitingRoom:
    """A real queue in which the pod waits after one plugin has rejected it."""

    def __init__(self, world: World, pod: PodInfo, plugin: str, state: str) -> None:
        self.plugin = plugin
        self.state = state
        self._now = 0.0
        self._uid = pod.uid
        self.queue = world.queue(lambda: self._now, Remarks())
        self._queued = self._reject(pod)

    def _reject(self, pod: PodInfo) -> QueuedPodInfo | None:
        """Bring the pod into its state. What is still in flight is returned."""
        self.queue.add(pod)
        if self.state == GATED:
            return None
        queued = self.queue.pop()
        assert queued is not None, f"{pod!r} is gated"
        if self.state == IN_FLIGHT:
            return queued
        if self.state == PENDING:
            queued.pending_plugins |= {self.plugin}
        else:
            queued.unschedulable_plugins |= {self.plugin}
        self.queue.add_unschedulable(queued)
        if self.state == BACKOFF_OVER:
            self._now += _LONG_SECONDS
        return None

    def place_after(self, newest: PodInfo) -> str:
        """The queue of the pod; an attempt in flight ends with a rejection first."""
        if self._queued is not None:
            self._queued.pod = newest
            self._queued.unschedulable_plugins = frozenset((self.plugin,))
            self.queue.add_unschedulable(self._queued)
            self._queued = None
        return PLACES[self.queue.state_of(self._uid)]


@dataclass(slots=True)
class Tap:
    """Replaces the scheduling queue for EventHandlers; records nothing until it is armed."""

    pod: PodInfo
    hints: Hints
    remarks: Remarks
    rooms: Sequence[WaitingRoom] = ()
    is_armed: bool = False
    events: list[ClusterEvent] = field(default_factory=list[ClusterEvent])
    #: Per event: plugin → Queue, QueueSkip or error.
    answers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    pre_check: bool | None = None
    #: As in the queue: not empty, so that each event comes.
    listening: Sequence[Sequence[str]] = (("the pod",),)

    def add(self, pod: PodInfo) -> None: ...
    def delete(self, pod: PodInfo) -> None: ...

    def holds(self, uid: str) -> bool:
        return True

    def renew_concerns(self) -> None:
        for room in self.rooms:
            room.queue.renew_concerns()

    def update(
        self, old: PodInfo | None, new: PodInfo, events: Sequence[ClusterEvent] = ()
    ) -> None:
        if not self.is_armed or new.uid != self.pod.uid:
            return
        self.pod = new
        for event in events:
            self._note(Change(event, old, new))
        for room in self.rooms:
            room.queue.update(old, new, events)

    def move_all(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None = None
    ) -> None:
        if not self.is_armed:
            return
        self._note(Change(event, old, new))
        if pre_check is not None:
            self.pre_check = pre_check(self.pod)
        for room in self.rooms:
            room.queue.move_all(event, old, new, pre_check)

    def _note(self, change: Change) -> None:
        label = change.event.label
        answers: dict[str, str] = {}
        for plugin in self.hints.interested(change.event):
            self.remarks.failed.discard((plugin, label))
            helps = self.hints.helps(plugin, change, self.pod)
            failed = (plugin, label) in self.remarks.failed
            answers[plugin] = "error" if failed else "Queue" if helps else "QueueSkip"
        self.events.append(change.event)
        self.answers.append(answers)


class NothingPlaced:
    """Replaces the placed pods for EventHandlers: there are none."""

    by_uid: Mapping[str, PodInfo] = MappingProxyType({})


@final
class HintWorld:
    """A scheduler's event handling around the cluster of one case."""

    def __init__(self, world: World, pod: PodInfo) -> None:
        self.world = world
        self.built: BuiltProfile = world.built[pod.scheduler_name]
        remarks = Remarks()
        cluster = world.cluster
        self.tap = Tap(pod, Hints(self.built.queued_events, remarks, cluster.clock.now), remarks)
        engine = EngineCore(cluster.clock, 0, Journal(), gates=cluster.gates)
        engine.frameworks.update(cluster.frameworks)
        engine.cluster = ClusterView(
            engine.frameworks.__contains__,
            device_rules=device_rules(cluster.gates),
            cache=cluster.cache,
            objects=cluster.store,
        )
        engine.nominator = Nominator(engine.cluster.pods.get)
        engine.queue = cast(SchedulingQueue, self.tap)
        engine.reservations = Reservations(
            cluster.clock, 0, ExclusiveDomains(engine.cluster.pod_groups)
        )
        engine.group_controller = PodGroupController(
            engine.cluster,
            engine.queue,
            engine.outbox,
            engine.telemetry,
            frameworks=engine.frameworks,
            queue_groups=QueueGroups(engine.cluster.group_trees, engine.frameworks, cluster.clock),
            reservations=engine.reservations,
            reports_assembling=False,
        )
        pods, frameworks = engine.cluster.pods, engine.frameworks
        resizes = Resizes(engine.queue, pods, frameworks, is_on=engine.tries_resizes)
        placements = cast(Placements, NothingPlaced())
        self._events = event_handlers(engine, placements, resizes)

    def heard_events(self) -> list[ClusterEvent]:
        """The announced events that some plugin registers for, and all events of pods and nodes."""
        hints = self.tap.hints
        return [e for e in self.tap.events if e.resource in _POD_OR_NODE or hints.interested(e)]

    def apply(self, kind: str, how: EventType, content: Any) -> None:
        """Apply one change as a watch event."""
        self._events.apply(WatchEvent(how, kind, content))

    def add_all(self, objects: Sequence[tuple[str, Any]]) -> None:
        """Add the objects that exist before the change."""
        for kind, content in sorted(objects, key=lambda each: _ORDER.get(each[0], 0)):
            self.apply(kind, EventType.ADDED, content)

    def listen(self) -> None:
        """Record events from now on."""
        self.tap.is_armed = True

    def wait(self, gated_by: Sequence[str]) -> None:
        """Make the pod wait in its queues: for its gate, or for every plugin that may reject."""
        pod, rooms = self.tap.pod, list[WaitingRoom]()
        if gated_by:
            rooms.append(WaitingRoom(self.world, pod, gated_by[0], GATED))
        else:
            for plugin in sorted(self.built.events):
                rooms += [WaitingRoom(self.world, pod, plugin, state) for state in STATES]
        self.tap.rooms = rooms


#: Nodes before pods, everything else before both, so that no event refers to a missing object.
_ORDER = {NODE: 1, POD: 2}
