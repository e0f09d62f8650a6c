"""A small cluster with faults, as a function of a seed: the scheduler's main test.

A faulty phase in which calls fail, watches break, nodes go and come, the clock jumps, schedulers
stop and others take over, another program binds pods, and objects are created, changed, deleted and
replaced under their names; then a calm phase. Each decision is checked when it is made, each
binding when it is carried out (`decisions`). When it is quiet, nobody waits in vain, and the
scheduler's picture is the API's (`at_rest`).
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, cast, final

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.field_validation import object_key
from bayplan.adapters.embedded.object_store import Stored
from bayplan.adapters.embedded.pod_gc_controller import (
    UPSTREAM_PERIOD_SECONDS,
    UPSTREAM_QUARANTINE_SECONDS,
    PodGcTimes,
)
from bayplan.api.device_objects import RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import CSI_NODE, NODE, PERSISTENT_VOLUME_CLAIM, POD, Pod
from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import AttemptRecord, DigestSink, Journal, Record
from bayplan.plugins.registry import default_registry
from bayplan.ports import ApiError
from bayplan.rng import stream
from bayplan.runner import Runner
from bayplan.sim.loop import run, settled
from bayplan.sim.world.checkers import GangChecker
from bayplan.sim.world.volume_controller import VolumeController
from bayplan.state.pods import PodInfo, pod_info
from tests.adapters.faulty_cluster import FaultOptions, FaultyCluster
from tests.sim import fault_objects
from tests.sim.at_rest import (
    POD_GROUP,
    could_preempt,
    differences,
    group_of,
    picture_of,
    waits_in_vain,
)
from tests.sim.brute_force import is_terminating
from tests.sim.decisions import DecisionChecker, Findings, WriteChecker, named_claims
from tests.sim.delivered import Contents, DeliveringPort
from tests.sim.drawn_extender import DrawnExtender
from tests.sim.fault_objects import OTHER_SCHEDULER, Content

FAULTY_SECONDS = 60.0
#: Longer than the longest backoff and the slowest calls, and shorter than the stay among the
#: unschedulable pods: until then only events have woken pods.
WOKEN_SECONDS = 60.0
#: Longer than the stay among the unschedulable pods, which is 300 s, looked at every 30 s.
CALM_SECONDS = 420.0

#: Worlds are small: what happens rarely would hardly happen at all.
_CHANCES = (0.02, 0.1, 0.3)
_SLOW_SECONDS = (0.05, 0.5, 3.0, 20.0)
_BURST = 5
_UPSTREAM_POD_GC = (UPSTREAM_QUARANTINE_SECONDS, UPSTREAM_PERIOD_SECONDS)

_Happening = Callable[[], Awaitable[None] | None]


def sampled_faults(seed: int) -> FaultOptions:
    """What goes wrong between scheduler and API server; each kind of fault is absent in a part of
    all worlds."""
    random = stream(seed, "faults of a world")

    def chance() -> float:
        return random.choice(_CHANCES) if random.random() < 0.5 else 0.0

    return FaultOptions(
        seed=seed,
        watch_drops=chance(),
        watch_lags=chance(),
        gone_on_resume=chance(),
        list_failures=chance(),
        conflicts=chance(),
        unknown_outcomes=chance(),
        slow_calls=chance(),
        slow_seconds=random.choice(_SLOW_SECONDS),
        node_losses=random.choice((0, 0, 1, 2, 5)),
        clock_steps=random.choice((0, 0, 1, 3)),
    )


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """What a world contains; each kind of thing is absent in a part of all worlds."""

    has_storage: bool
    has_devices: bool
    has_extender: bool
    foreign_count: int
    #: Of each decision: another program is faster, and binds the pod elsewhere.
    snatch_chance: float
    #: After each removal: the API server forgets its history, so that nobody sees the removal.
    forget_chance: float
    leader_changes: int

    @classmethod
    def sampled(cls, seed: int) -> "WorldOptions":
        random = stream(seed, "world options")
        return cls(
            has_storage=random.random() < 0.7,
            has_devices=random.random() < 0.7,
            has_extender=random.random() < 0.3,
            foreign_count=random.choice((0, 4, 12)),
            snatch_chance=random.choice((0.0, 0.1)),
            forget_chance=random.choice((0.0, 0.5)),
            leader_changes=random.choice((0, 0, 1, 2)),
        )


@final
class Snatcher:
    """A journal sink: another program learns of a decision, and is faster."""

    def __init__(self, world: "FaultWorld") -> None:
        self._world = world

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord) and record.result == "scheduled":
            self._world.snatch(record)


@final
class Leader:
    """A scheduler that runs against the cluster, and those who watch it."""

    def __init__(self, world: "FaultWorld", number: int) -> None:
        extender = world.extender
        options = replace(world.faults, seed=world.faults.seed + 1_000_003 * number)
        self.faulty = FaultyCluster(world.cluster, options)
        port = DeliveringPort(self.faulty, world.contents)
        answers = {} if extender is None else extender.answers
        self.checker = DecisionChecker(port, world.findings, answers)
        self.scheduler = Scheduler(
            SchedulerConfig(),
            default_registry(),
            world.clock,
            seed=world.faults.seed,
            journal=Journal([world.digest_sink, self.checker, Snatcher(world)]),
            extenders=() if extender is None else (extender,),
            raise_bugs=True,
        )
        kinds = (NODE, POD, *self.scheduler.kinds, *self.scheduler.group_kinds)
        self.checker.kinds = frozenset(kinds)
        self.gangs = GangChecker(self.scheduler)
        asks = {} if extender is None else {extender.name: extender.ask}
        runner = Runner(self.scheduler, port, asks)
        loop = asyncio.get_running_loop()
        self._running = loop.create_task(runner.run(), name=f"scheduler {number}")

    async def stop(self) -> None:
        """In the middle of whatever it does."""
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running


@final
class FaultWorld:
    """One seed's world. ``play`` runs it and raises where something is wrong."""

    def __init__(self, seed: int) -> None:
        self.faults = sampled_faults(seed)
        self.options = WorldOptions.sampled(seed)
        self._random = stream(seed, "fault world")
        self.clock = ManualClock()
        self.digest_sink = DigestSink()
        self.findings = Findings()
        self.contents = Contents()
        times = self._random.choice((PodGcTimes(), PodGcTimes(*_UPSTREAM_POD_GC)))
        self.cluster = EmbeddedCluster(self.clock, pod_gc=times)
        self.writes = WriteChecker(self.findings)
        self.extender = DrawnExtender(seed) if self.options.has_extender else None
        for observer in (self.contents, self.writes):
            self.cluster.observe(observer.observe)
        #: The newest last.
        self.leaders: list[Leader] = []
        #: What happened; how often something was refused, because it was gone.
        self.counts: Counter[str] = Counter()
        self._names = 0
        self._is_calm = False
        self._snatching: list[asyncio.Task[None]] = []

    def __str__(self) -> str:
        return f"{self.faults} {self.options}"

    @property
    def digest(self) -> str:
        return self.digest_sink.digest

    def play(self) -> None:
        """Raises InvariantBroken, AssertionError, and what a bug of ours raises."""
        try:
            run(self._main(), self.clock)
        finally:
            self.findings.raise_first()

    # ---- the two phases -------------------------------------------------------------------

    async def _main(self) -> None:
        VolumeController(self.cluster, self._refused)
        for content in fault_objects.namespaces():
            self.cluster.create(content)
        if self.options.has_storage or self.options.has_devices:
            for content in fault_objects.storage():
                self.cluster.create(content)
        for _ in range(self._random.randint(2, 8)):
            self._add_node()
        self._begin_leader()
        for at_seconds, happening in self._happenings():
            await self._until(at_seconds)
            await self._let_happen(happening)
        await self._until(FAULTY_SECONDS)
        self._calm()
        await self._until(self.clock.now() + WOKEN_SECONDS)
        await settled()
        self._check_woken()
        await self._until(self.clock.now() + CALM_SECONDS - WOKEN_SECONDS)
        await settled()
        self._check_at_rest()
        await self.leaders[-1].stop()

    async def _until(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds - self.clock.now(), 0.0))

    async def _let_happen(self, happening: _Happening) -> None:
        try:
            outcome = happening()
            if outcome is not None:
                await outcome
            self.counts[getattr(happening, "__name__", "")] += 1
        except ApiError:
            self.counts["refused"] += 1  # what it was to happen to is gone already

    def _refused(self, what: str, problem: ApiError) -> None:
        self.counts["refused to a controller"] += 1

    def _begin_leader(self) -> None:
        self.leaders.append(Leader(self, len(self.leaders)))
        self.writes.checkers.insert(0, self.leaders[-1].checker)

    def _calm(self) -> None:
        self._is_calm = True
        for leader in self.leaders:
            leader.faulty.calm()
        if self.extender is not None:
            self.extender.calm()

    def _happenings(self) -> list[tuple[float, _Happening]]:
        random, faults, options = self._random, self.faults, self.options
        counts: list[tuple[_Happening, int]] = [
            (self._add_pod, random.randint(15, 40)),
            (self._add_burst, random.randint(0, 3)),
            (self._delete_pod, random.randint(0, 10)),
            (self._replace_pod, random.randint(0, 6)),
            (self._end_pod, random.randint(0, 10)),
            (self._ungate, 4),
            (self._add_gang, random.randint(0, 4)),
            (self._change_group, random.randint(0, 3)),
            (self._change_node, random.randint(0, 6)),
            (self._lose_node, faults.node_losses),
            (self._add_node, random.randint(0, faults.node_losses + 1)),
            (self._replace_node, random.randint(0, faults.node_losses)),
            (self._replace_claim, random.randint(0, 3)),
            (self._step_clock, faults.clock_steps),
            (self._add_foreign_pod, options.foreign_count),
            (self._bind_foreign, options.foreign_count),
            (self._change_leader, options.leader_changes),
        ]
        verbs = [verb for verb, count in counts for _ in range(count)]
        timed = [(random.uniform(0, FAULTY_SECONDS), verb) for verb in verbs]
        return sorted(timed, key=lambda entry: entry[0])

    # ---- nodes and time -------------------------------------------------------------------

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def _add_node(self, name: str = "") -> None:
        name = name or self._name("n")
        self.cluster.create(fault_objects.random_node(self._random, name))
        if self.options.has_storage:
            self.cluster.create(fault_objects.attachments_of(self._random, name))
        if self.options.has_devices and self._random.random() < 0.6:
            self.cluster.create(fault_objects.devices_of(name))

    def _some_node(self) -> Stored:
        return self._random.choice(self.cluster.objects(NODE))

    def _remove_node(self, name: str) -> None:
        for kind in (NODE, CSI_NODE, RESOURCE_SLICE):
            if self.cluster.get(object_key(kind, "", name)) is not None:
                self.cluster.delete(object_key(kind, "", name))

    def _lose_node(self) -> None:
        """A node goes; its pods are collected, at once or after upstream's times."""
        if len(self.cluster.objects(NODE)) < 2:
            return
        self._remove_node(self._some_node().key.name)
        self._maybe_forget_history()

    def _replace_node(self) -> None:
        """A node goes and another comes under its name, before its pods are collected."""
        name = self._some_node().key.name
        self._remove_node(name)
        self._add_node(name)
        self._maybe_forget_history()

    def _change_node(self) -> None:
        """Its zone, its taints, or whether it is cordoned."""
        stored = self._some_node()
        labels = {**stored.content["metadata"]["labels"], "zone": self._random.choice("abcd")}
        if self._random.random() < 0.5:
            metadata = {**stored.content["metadata"], "labels": labels}
            self.cluster.update({**stored.content, "metadata": metadata})
        else:
            spec = fault_objects.node_spec(self._random)
            self.cluster.update({**stored.content, "spec": spec})

    def _step_clock(self) -> None:
        self.clock.advance_to(self.clock.now() + self._random.uniform(0, 45))

    def _maybe_forget_history(self) -> None:
        """Whoever watches has to list again, and sees what is there only."""
        if self.options.forget_chance and self._random.random() < self.options.forget_chance:
            self.cluster.forget_history()
            self.counts["history forgotten"] += 1

    # ---- pods -----------------------------------------------------------------------------

    def _add_pod(
        self, name: str = "", namespace: str = "", scheduler_name: str | None = None
    ) -> None:
        left_out: list[Any] = []
        if not self.options.has_storage:
            left_out.append(fault_objects.names_volumes)
        if not self.options.has_devices:
            left_out.append(fault_objects.names_devices)
        content = fault_objects.random_pod(self._random, name or self._name("p"), left_out)
        if namespace:
            content["metadata"]["namespace"] = namespace
        if scheduler_name is not None:
            content["spec"]["schedulerName"] = scheduler_name
        self.cluster.create(content)
        for claim in fault_objects.claims_of(self._random, content):
            with contextlib.suppress(ApiError):
                self.cluster.create(claim)

    def _add_burst(self) -> None:
        """Pods of one moment: the next is tried before anybody tells of the one before."""
        for _ in range(_BURST):
            self._add_pod()

    def _add_gang(self) -> None:
        for each in fault_objects.gang(self._random, self._name("g")):
            self.cluster.create(each)

    def _change_group(self) -> None:
        """Another minimum, or no object any more."""
        groups = self.cluster.objects(POD_GROUP)
        if not groups:
            return
        stored = self._random.choice(groups)
        minimum = self._random.randint(0, 5)
        if minimum:
            self.cluster.update({**stored.content, "spec": {"minMember": minimum}})
        else:
            self.cluster.delete(stored.key)

    def _some_pod(self) -> Stored | None:
        pods = self.cluster.objects(POD)
        return self._random.choice(pods) if pods else None

    def _delete_pod(self) -> None:
        stored = self._some_pod()
        if stored is not None:
            self.cluster.delete(stored.key)
            self._maybe_forget_history()

    def _replace_pod(self) -> None:
        """A pod goes at once, and another comes under its name."""
        pods = [s for s in self.cluster.objects(POD) if _goes_at_once(s.content)]
        if not pods:
            return
        stored = self._random.choice(pods)
        self.cluster.delete(stored.key)
        self._add_pod(stored.key.name, namespace=stored.key.namespace)
        self._maybe_forget_history()

    def _end_pod(self) -> None:
        stored = self._some_pod()
        if stored is not None and stored.content["spec"].get("nodeName"):
            self.cluster.end_pod(stored.key)

    def _ungate(self) -> None:
        for stored in self.cluster.objects(POD):
            gated = stored.content["spec"].get("schedulingGates")
            if gated:
                spec = {k: v for k, v in stored.content["spec"].items() if k != "schedulingGates"}
                self.cluster.update({**stored.content, "spec": spec})

    def _replace_claim(self) -> None:
        """A claim that no placed pod uses goes, and another comes under its name."""
        in_use = {
            claim
            for stored in self.cluster.objects(POD)
            if stored.content["spec"].get("nodeName")
            for claim in named_claims(stored.content)
        }
        claims = [
            *self.cluster.objects(PERSISTENT_VOLUME_CLAIM),
            *self.cluster.objects(RESOURCE_CLAIM),
        ]
        free = [s for s in claims if (s.key.kind, (s.key.namespace, s.key.name)) not in in_use]
        if not free:
            return
        chosen = self._random.choice(free).key
        is_volume = chosen.kind == PERSISTENT_VOLUME_CLAIM
        draw = fault_objects.volume_claim if is_volume else fault_objects.device_claim
        self.cluster.delete(chosen)
        self.cluster.create(draw(self._random, chosen.name, chosen.namespace))
        self._maybe_forget_history()

    # ---- schedulers -----------------------------------------------------------------------

    async def _change_leader(self) -> None:
        """The scheduler stops, and after a while one begins that knows nothing."""
        await self.leaders[-1].stop()
        await asyncio.sleep(self._random.choice((0.0, self._random.uniform(0, 10))))
        self._begin_leader()

    def _add_foreign_pod(self) -> None:
        self._add_pod(scheduler_name=OTHER_SCHEDULER)

    async def _bind_foreign(self) -> None:
        """Another program binds a pod wherever it likes, sometimes one of ours."""
        others = self._random.random() < 0.6
        pods = [
            stored
            for stored in self.cluster.objects(POD)
            if not stored.content["spec"].get("nodeName")
            and (stored.content["spec"].get("schedulerName") == OTHER_SCHEDULER) == others
        ]
        if not pods:
            return
        pod = pod_info(cast(Pod, self._random.choice(pods).object))
        await self._bind_as_another(pod, self._some_node().key.name)

    def snatch(self, record: AttemptRecord) -> None:
        """By chance: another program binds the pod of a decision, before its scheduler does."""
        chance = self.options.snatch_chance
        if self._is_calm or not chance or self._random.random() >= chance:
            return
        namespace, _, name = record.pod.partition("/")
        stored = self.cluster.get(object_key(POD, namespace, name))
        if stored is None or stored.content["metadata"]["uid"] != record.uid:
            return
        others = [each.key.name for each in self.cluster.objects(NODE)]
        node_name = self._random.choice(others)
        pod = pod_info(cast(Pod, stored.object))
        bind = self._let_happen(lambda: self._bind_as_another(pod, node_name))
        self._snatching.append(asyncio.get_running_loop().create_task(bind))

    async def _bind_as_another(self, pod: PodInfo, node_name: str) -> None:
        self.writes.foreign_uids.add(pod.uid)
        try:
            await self.cluster.bind(pod, node_name)
        except ApiError:
            self.writes.foreign_uids.discard(pod.uid)
            raise

    # ---- when it is quiet -----------------------------------------------------------------

    def _check_woken(self) -> None:
        """Whoever fits somewhere was woken by what made room. What made an extender change its
        mind is no event."""
        excused = () if self.extender is None else self.extender.rejected_uids
        vain = waits_in_vain(picture_of(self.cluster), excused)
        assert not vain, f"not woken: {vain}"

    def _check_at_rest(self) -> None:
        wrong = differences(self.leaders[-1].scheduler, self.cluster)
        assert not wrong, f"cache and API differ: {wrong}"
        picture = picture_of(self.cluster)
        vain = waits_in_vain(picture) or could_preempt(picture)
        assert not vain, f"could have been placed: {vain}"


def _goes_at_once(pod: Content) -> bool:
    spec = pod["spec"]
    is_quick = not spec.get("nodeName") or not spec.get("terminationGracePeriodSeconds")
    return is_quick and not group_of(pod) and not is_terminating(pod)
