"""A small cluster with faults, as a function of a plan: the scheduler's main test.

The first phase is faulty: calls fail, watches break, nodes are deleted and created, the clock
jumps, schedulers stop and others take over, another program binds pods, and objects are created,
changed, deleted and replaced under their names. The second phase is calm. Each decision is checked
when it is made, each binding when the API server writes it (`decisions`). At the end of the calm
phase, no pending pod fits a node, and the scheduler's cache equals the API (`at_rest`).

The plan (`fault_plan`) is drawn from the seed. Each step draws from a stream of its own, so a step
does not depend on the other steps of the plan. `shrinking` uses this.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Set
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast, final

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.pod_gc_controller import (
    UPSTREAM_PERIOD_SECONDS,
    UPSTREAM_QUARANTINE_SECONDS,
    PodGcTimes,
)
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.device_objects import RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import CSI_NODE, NODE, PERSISTENT_VOLUME_CLAIM, POD, Pod
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import AttemptRecord, DigestSink, Journal, Record
from bayplan.objects.keys import object_key
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError, NotFoundError
from bayplan.rng import Stream, stream
from bayplan.runner import Runner
from bayplan.sim.loop import run, settled
from bayplan.sim.world.checkers import GangChecker
from bayplan.sim.world.volume_controller import VolumeController
from bayplan.state.pods import PodInfo, pod_info
from tests.adapters.faulty_cluster import FaultyCluster
from tests.sim import fault_objects
from tests.sim.at_rest import (
    POD_GROUP,
    could_preempt,
    differences,
    group_of,
    missed_placements,
    pending,
    picture_of,
)
from tests.sim.brute_force import Key, Picture, is_terminating, uid_of
from tests.sim.decisions import DecisionChecker, Findings, WriteChecker, named_claims
from tests.sim.delivered import Contents, DeliveringPort
from tests.sim.drawn_extender import DrawnExtender
from tests.sim.drawn_plugin import RAISING, drawn_plugin
from tests.sim.fault_objects import OTHER_SCHEDULER, Content
from tests.sim.fault_plan import FAULTY_SECONDS, Plan, Step
from tests.sim.refusing_provisioner import RefusingProvisioner
from tests.sim.silent_releases import SilentReleases

#: Longer than the longest backoff and the slowest calls, and shorter than the stay among the
#: unschedulable pods: until then only events have woken pods.
WOKEN_SECONDS = 60.0
#: Longer than the longest backoff and the provisioning of a volume. A pod that fits a node at the
#: beginning and at the end of this time was not woken.
WOKEN_AGAIN_SECONDS = 15.0
#: Longer than the stay among the unschedulable pods, which is 300 s and checked every 30 s.
CALM_SECONDS = 420.0
#: Longer than bindTimeoutSeconds, which is 600 s, and the backoff after it.
BIND_TIMEOUT_SECONDS = 660.0

_BURST = 5
#: Until most pods of a step are bound.
_SETTLING_SECONDS = 5.0
_UPSTREAM_POD_GC = (UPSTREAM_QUARANTINE_SECONDS, UPSTREAM_PERIOD_SECONDS)
_RESIZE_GATE = "InPlacePodVerticalScalingSchedulerPreemption"


@lru_cache(maxsize=1)
def _registry_of_the_tree() -> Registry:
    """Shared by all worlds."""
    return Registry()


@final
class Snatcher:
    """A journal sink: another program acts on a decision before the scheduler does."""

    def __init__(self, world: "FaultWorld") -> None:
        self._world = world

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord) and record.result == "scheduled":
            self._world.snatch(record)
            self._world.stop_amid_a_binding()


@final
class Leader:
    """A scheduler that runs against the cluster, and its checkers."""

    def __init__(self, world: "FaultWorld", number: int) -> None:
        extender, plan = world.extender, world.plan
        options = replace(plan.faults, seed=plan.seed + 1_000_003 * number)
        self.faulty = FaultyCluster(world.cluster, options)
        port = DeliveringPort(self.faulty, world.contents, world.releases)
        answers = {} if extender is None else extender.answers
        self.checker = DecisionChecker(port, world.findings, answers)
        port.on_delete_pod = self.checker.evicted
        registry, profile = _registry_of_the_tree(), {"schedulerName": "default-scheduler"}
        if plan.options.has_raising_plugin:
            registry = Registry()
            random = world.random_of("raising plugin")
            raising = drawn_plugin(random, lambda: world.is_calm, self.checker.note_raising_filter)
            registry.add(raising)
            profile |= {"plugins": {"multiPoint": {"enabled": [{"name": RAISING}]}}}
        gates = {_RESIZE_GATE: plan.options.preempts_for_resizes}
        config = {**DEFAULT_CONFIG, "profiles": [profile], "featureGates": gates}
        self.scheduler = Scheduler(
            config_from(config),
            registry,
            world.clock,
            seed=plan.seed,
            journal=Journal([world.digest_sink, self.checker, world.releases, Snatcher(world)]),
            extenders=() if extender is None else (extender,),
            raise_bugs=True,
        )
        self.checker.unclear_nodes = self._unclear_nodes
        nominations = self.scheduler.queue.nominator.node_of
        self.checker.nominated_node = lambda uid: nominations.get(uid, "")
        kinds = (NODE, POD, *self.scheduler.kinds, *self.scheduler.group_kinds)
        self.checker.kinds = frozenset(kinds)
        self.gangs = GangChecker(self.scheduler)
        asks = {} if extender is None else {extender.name: extender.ask}
        runner = Runner(self.scheduler, port, asks)
        loop = asyncio.get_running_loop()
        self._running = loop.create_task(runner.run(), name=f"scheduler {number}")

    def _unclear_nodes(self, picture: Picture) -> set[str]:
        """Nodes with nominated pods, and nodes with assumed pods that are not in the picture."""
        scheduler = self.scheduler
        assumed = {
            pod.node_name
            for pod in scheduler.cache.pods()
            if scheduler.cache.is_assumed(pod.uid) and pod.uid not in picture.placed
        }
        return {*assumed, *scheduler.queue.nominator.nominated_nodes()}

    async def stop(self) -> None:
        """Cancel the scheduler during its current work."""
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running


@final
class FaultWorld:
    """The world of one plan. ``play`` runs it and raises if an invariant is violated."""

    def __init__(self, plan: Plan | int) -> None:
        """``plan``: a plan, or the seed of one."""
        self.plan = plan if isinstance(plan, Plan) else Plan.drawn(plan)
        self._random = self.random_of("world")
        self._snatch_random = self.random_of("snatcher")
        self.clock = ManualClock()
        self.digest_sink = DigestSink()
        self.releases = SilentReleases()
        self.findings = Findings()
        self.contents = Contents()
        slow = self.plan.options.is_pod_gc_slow
        times = PodGcTimes(*_UPSTREAM_POD_GC) if slow else PodGcTimes()
        self.cluster = EmbeddedCluster(self.clock, pod_gc=times)
        self.writes = WriteChecker(self.findings)
        has_extender = self.plan.options.has_extender
        self.extender = DrawnExtender(self.plan.seed) if has_extender else None
        for observer in (self.contents, self.writes):
            self.cluster.observe(observer.observe)
        #: The newest last.
        self.leaders: list[Leader] = []
        #: How often each step and each fault happened.
        self.counts: Counter[str] = Counter()
        #: One line for each action of a step.
        self.step_log: list[str] = []
        self.is_calm = False
        self._step = Step(-1, 0.0, "")
        self._name_count = 0
        self._replaced_claims: set[tuple[str, Key]] = set()
        self._stops_at_next_decision = False
        self._tasks: list[asyncio.Task[None]] = []

    def __str__(self) -> str:
        return str(self.plan)

    def random_of(self, name: str) -> Stream:
        """A stream of random numbers for one part of the world."""
        return stream(self.plan.seed, name)

    @property
    def digest(self) -> str:
        return self.digest_sink.digest

    def play(self) -> None:
        """Raises InvariantBroken, AssertionError, and every exception of a bug."""
        try:
            run(self._main(), self.clock)
        finally:
            for leader in self.leaders:
                self.counts.update(leader.faulty.counts)
            self.findings.raise_first()

    def _log(self, text: str) -> None:
        """Add a line about the current step to ``step_log``."""
        self.step_log.append(f"{self._step.at_seconds:6.2f} s  {self._step.verb}: {text}")

    # ---- the two phases -------------------------------------------------------------------

    async def _main(self) -> None:
        options = self.plan.options
        VolumeController(self.cluster, self._refused)
        if options.provision_failures:
            random = self.random_of("provisioner")
            refusing = RefusingProvisioner(self.cluster, random, options.provision_failures)
            refusing.is_calm = lambda: self.is_calm
            refusing.counts = self.counts
        for content in fault_objects.namespaces():
            self.cluster.create(content)
        for content in fault_objects.budgets() if options.has_budgets else ():
            self.cluster.create(content)
        if options.has_storage or options.has_devices:
            for content in fault_objects.storage():
                self.cluster.create(content)
        begun = False
        for step in self.plan.steps:
            if step.at_seconds and not begun:
                self._begin_leader()
                begun = True
            await self._until(step.at_seconds)
            await self._take(step)
        if not begun:
            self._begin_leader()
        await self._until(FAULTY_SECONDS)
        self._calm()
        await self._until(self.clock.now() + WOKEN_SECONDS)
        await settled()
        await self._check_woken()
        await self._until(self.clock.now() + CALM_SECONDS - WOKEN_SECONDS)
        await settled()
        if self._bound_to_replaced_claims():
            await self._until(self.clock.now() + BIND_TIMEOUT_SECONDS)
            await settled()
        self._check_at_rest()
        await self.leaders[-1].stop()

    async def _until(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds - self.clock.now(), 0.0))

    async def _take(self, step: Step) -> None:
        self._step, self._name_count = step, 0
        self._random = self.random_of(f"step {step.number}")
        try:
            outcome = getattr(self, f"_{step.verb}")()
            if outcome is not None:
                await outcome
            self.counts[step.verb] += 1
        except ApiError:
            self.counts["refused"] += 1  # the object of the step does not exist

    def _refused(self, what: str, problem: ApiError) -> None:
        self.counts["refused to a controller"] += 1

    def _begin_leader(self) -> None:
        self.leaders.append(Leader(self, len(self.leaders)))
        self.writes.checkers.insert(0, self.leaders[-1].checker)
        if self.is_calm:
            self.leaders[-1].faulty.calm()

    def _calm(self) -> None:
        self.is_calm = True
        for leader in self.leaders:
            leader.faulty.calm()
        if self.extender is not None:
            self.extender.calm()

    # ---- nodes and time -------------------------------------------------------------------

    def _name(self, prefix: str) -> str:
        """A name that depends on the step only."""
        self._name_count += 1
        suffix = f"-{self._name_count}" if self._name_count > 1 else ""
        return f"{prefix}{self._step.number}{suffix}"

    def _add_node(self, name: str = "") -> None:
        name = name or self._name("n")
        content = fault_objects.random_node(self._random, name)
        self.cluster.create(content)
        self._log(fault_objects.summary(content))
        if self.plan.options.has_storage:
            self.cluster.create(fault_objects.attachments_of(self._random, name))
        if self.plan.options.has_devices and self._random.random() < 0.6:
            self.cluster.create(fault_objects.devices_of(name))

    def _some_node(self) -> StoredObject:
        """Raises NotFoundError."""
        nodes = self.cluster.objects(NODE)
        if not nodes:
            raise NotFoundError("there is no node")
        return self._random.choice(nodes)

    def _remove_node(self, name: str) -> None:
        self._log(f"node {name} is deleted")
        for kind in (NODE, CSI_NODE, RESOURCE_SLICE):
            if self.cluster.get(object_key(kind, "", name)) is not None:
                self.cluster.delete(object_key(kind, "", name))

    def _lose_node(self) -> None:
        """Delete a node. Its pods are deleted at once or after upstream's times."""
        if len(self.cluster.objects(NODE)) < 2:
            return
        self._remove_node(self._some_node().key.name)
        self._maybe_forget_history()

    def _replace_node(self) -> None:
        """Delete a node and create another under its name before its pods are collected."""
        name = self._some_node().key.name
        self._remove_node(name)
        self._add_node(name)
        self._maybe_forget_history()

    async def _flap_node(self) -> None:
        """Delete a node and create it again, up to three times in a short time."""
        node = self._some_node()
        name, content = node.key.name, node.content
        meta = {key: content["metadata"][key] for key in ("name", "labels")}
        for _ in range(self._random.randint(1, 3)):
            self._remove_node(name)
            await asyncio.sleep(self._random.choice((0.0, 0.05, 1.0)))
            self.cluster.create({**content, "metadata": meta})
            self._log(f"node {name} is created again")
            await asyncio.sleep(self._random.choice((0.0, 0.05, 1.0)))
        if self.plan.options.has_storage:
            self.cluster.create(fault_objects.attachments_of(self._random, name))

    def _change_node(self) -> None:
        """Change a node's zone, its taints, or whether it is cordoned."""
        stored = self._some_node()
        labels = {**stored.content["metadata"]["labels"], "zone": self._random.choice("abcd")}
        if self._random.random() < 0.5:
            metadata = {**stored.content["metadata"], "labels": labels}
            self.cluster.update({**stored.content, "metadata": metadata})
            self._log(f"node {stored.key.name} is in zone {labels['zone']}")
        else:
            spec = fault_objects.node_spec(self._random)
            self.cluster.update({**stored.content, "spec": spec})
            self._log(f"node {stored.key.name} has spec {spec}")

    def _step_clock(self) -> None:
        seconds = self._random.uniform(0, 45)
        self.clock.advance_to(self.clock.now() + seconds)
        self._log(f"{seconds:g} s forward")

    def _maybe_forget_history(self) -> None:
        """By chance, drop the API server's history: each watch has to list again and gets no
        deletions."""
        if (
            self.plan.options.forget_chance
            and self._random.random() < self.plan.options.forget_chance
        ):
            self.cluster.forget_history()
            self._log("the API server forgets its history")
            self.counts["history forgotten"] += 1

    # ---- pods -----------------------------------------------------------------------------

    def _add_pod(
        self, name: str = "", namespace: str = "", scheduler_name: str | None = None
    ) -> None:
        left_out: list[Any] = []
        if not self.plan.options.has_storage:
            left_out.append(fault_objects.names_volumes)
        if not self.plan.options.has_devices:
            left_out.append(fault_objects.names_devices)
        content = fault_objects.random_pod(self._random, name or self._name("p"), left_out)
        if namespace:
            content["metadata"]["namespace"] = namespace
        if scheduler_name is not None:
            content["spec"]["schedulerName"] = scheduler_name
        self.cluster.create(content)
        self._log(fault_objects.summary(content))
        for claim in fault_objects.claims_of(self._random, content):
            with contextlib.suppress(ApiError):
                self.cluster.create(claim)

    def _add_burst(self) -> None:
        """Create several pods at once: a pod is tried before the previous binding is delivered."""
        for _ in range(_BURST):
            self._add_pod()

    def _create_pod(self, content: Content) -> None:
        self.cluster.create(content)
        self._log(fault_objects.summary(content))

    def _add_sidecars(self) -> None:
        """Create pods whose sidecars have host ports."""
        for _ in range(_BURST):
            self._create_pod(fault_objects.sidecar_pod(self._random, self._name("s")))

    async def _roll_out(self) -> None:
        """Create pods that spread, delete some of them, and create others while those terminate."""
        fields, names = fault_objects.spread_fields(self._random), list[str]()
        for _ in range(_BURST):
            names.append(self._name("r"))
            self._create_pod(fault_objects.plain_pod(names[-1], "100m", "roll", **fields))
        await asyncio.sleep(_SETTLING_SECONDS)
        for name in names:
            stored = self.cluster.get(object_key(POD, fault_objects.NAMESPACES[0], name))
            is_placed = stored is not None and stored.content["spec"].get("nodeName")
            if stored is not None and is_placed and self._random.random() < 0.7:
                self.cluster.delete(stored.key)
                self._log(f"pod {_name(stored)} is deleted")
        await asyncio.sleep(self._random.choice((0.0, 1.0)))
        for _ in range(_BURST):
            self._create_pod(fault_objects.plain_pod(self._name("r"), "100m", "roll", **fields))

    async def _fill(self) -> None:
        """Resize pods and fill the nodes; then create pods that need room for their priority."""
        pods = [s for s in self.cluster.objects(POD) if fault_objects.is_resizable(s.content)]
        for stored in pods[:_BURST]:
            with contextlib.suppress(ApiError):
                self.cluster.update(fault_objects.resized(self._random, stored.content))
        for _ in range(2 * _BURST):
            cpu, app = self._random.choice(("500m", "1", "1", "2")), self._random.choice("ab")
            fields = {"terminationGracePeriodSeconds": self._random.choice((0, 0, 0, 30))}
            name = {"a": "web", "b": "db"}[app]
            self._create_pod(fault_objects.plain_pod(self._name("f"), cpu, name, **fields))
        await asyncio.sleep(_SETTLING_SECONDS)
        for priority in (10, 10, 10, 5, 0):
            cpu = self._random.choice(("1", "2", "3"))
            self._create_pod(fault_objects.plain_pod(self._name("h"), cpu, priority=priority))
            await asyncio.sleep(self._random.choice((0.0, 2.0)))

    def _add_gang(self) -> None:
        for each in fault_objects.gang(self._random, self._name("g")):
            self.cluster.create(each)
            self._log(fault_objects.summary(each))

    def _change_group(self) -> None:
        """Change the minimum of a group, or delete its object."""
        groups = self.cluster.objects(POD_GROUP)
        if not groups:
            return
        stored = self._random.choice(groups)
        minimum = self._random.randint(0, 5)
        self._log(f"group {stored.key.name} has minimum {minimum or 'nothing: it is deleted'}")
        if minimum:
            self.cluster.update({**stored.content, "spec": {"minMember": minimum}})
        else:
            self.cluster.delete(stored.key)

    def _some_pod(self) -> StoredObject | None:
        pods = self.cluster.objects(POD)
        return self._random.choice(pods) if pods else None

    def _delete_pod(self) -> None:
        stored = self._some_pod()
        if stored is not None:
            self.cluster.delete(stored.key)
            self._log(f"pod {_name(stored)} is deleted")
            self._maybe_forget_history()

    def _replace_pod(self) -> None:
        """Delete a pod without grace period, and create another under its name."""
        pods = [s for s in self.cluster.objects(POD) if _goes_at_once(s.content)]
        if not pods:
            return
        stored = self._random.choice(pods)
        self.cluster.delete(stored.key)
        self._log(f"pod {_name(stored)} is deleted and created again")
        self._add_pod(stored.key.name, namespace=stored.key.namespace)
        self._maybe_forget_history()

    def _end_pod(self) -> None:
        stored = self._some_pod()
        if stored is not None and stored.content["spec"].get("nodeName"):
            self.cluster.end_pod(stored.key)
            self._log(f"pod {_name(stored)} succeeds")

    def _resize_pod(self) -> None:
        """A placed pod requests another amount of cpu; its kubelet grants, defers or refuses it."""
        pods = [s for s in self.cluster.objects(POD) if fault_objects.is_resizable(s.content)]
        if not pods:
            raise NotFoundError("there is no pod to resize")
        stored = self._random.choice(pods)
        resized = fault_objects.resized(self._random, stored.content)
        self.cluster.update(resized)
        self._log(fault_objects.summary(resized))

    def _ungate(self) -> None:
        for stored in self.cluster.objects(POD):
            gated = stored.content["spec"].get("schedulingGates")
            if gated:
                spec = {k: v for k, v in stored.content["spec"].items() if k != "schedulingGates"}
                self.cluster.update({**stored.content, "spec": spec})
                self._log(f"pod {_name(stored)} has no gates any more")

    def _replace_claim(self) -> None:
        """Delete a claim that no placed pod uses, and create another under its name."""
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
        self._replaced_claims.add((chosen.kind, (chosen.namespace, chosen.name)))
        self._log(f"claim {chosen.namespace}/{chosen.name} is deleted and created again")
        self._maybe_forget_history()

    # ---- schedulers -----------------------------------------------------------------------

    async def _change_leader(self) -> None:
        """Stop the scheduler, and start a new one after a pause."""
        pause_seconds = self._random.choice((0.0, self._random.uniform(0, 10)))
        self._log(f"the scheduler stops, and {pause_seconds:g} s later another one starts")
        await self._replace_leader(pause_seconds)

    def _change_leader_amid_a_binding(self) -> None:
        """Stop the scheduler at its next decision, during the binding, and start a new one."""
        self._log("the scheduler stops at its next decision, and another one starts")
        self._stops_at_next_decision = True

    def stop_amid_a_binding(self) -> None:
        """Called after each decision."""
        if self._stops_at_next_decision and not self.is_calm:
            self._stops_at_next_decision = False
            self.counts["leader changed amid a binding"] += 1
            replacing = self._replace_leader(self._snatch_random.choice((0.0, 2.0)))
            self._tasks.append(asyncio.get_running_loop().create_task(replacing))

    async def _replace_leader(self, pause_seconds: float) -> None:
        leader = self.leaders[-1]
        await leader.stop()
        await asyncio.sleep(pause_seconds)
        if leader is self.leaders[-1]:
            self._begin_leader()

    def _add_foreign_pod(self) -> None:
        self._add_pod(scheduler_name=OTHER_SCHEDULER)

    async def _bind_foreign(self) -> None:
        """Another program binds a pod to a drawn node, sometimes a pod of our scheduler."""
        picks_foreign = self._random.random() < 0.6
        pods = [
            stored
            for stored in self.cluster.objects(POD)
            if not stored.content["spec"].get("nodeName")
            and (stored.content["spec"].get("schedulerName") == OTHER_SCHEDULER) == picks_foreign
        ]
        if not pods:
            return
        pod = pod_info(cast(Pod, self._random.choice(pods).object))
        node_name = self._some_node().key.name
        await self._bind_as_another(pod, node_name)
        self._log(f"another program binds {pod.key} to {node_name}")

    def snatch(self, record: AttemptRecord) -> None:
        """By chance: another program binds the pod of a decision, before its scheduler does."""
        chance = self.plan.options.snatch_chance
        if self.is_calm or not chance or self._snatch_random.random() >= chance:
            return
        namespace, _, name = record.pod.partition("/")
        stored = self.cluster.get(object_key(POD, namespace, name))
        if stored is None or stored.content["metadata"]["uid"] != record.uid:
            return
        node_names = [each.key.name for each in self.cluster.objects(NODE)]
        if not node_names:
            return
        node_name = self._snatch_random.choice(node_names)
        pod = pod_info(cast(Pod, stored.object))
        self._tasks.append(asyncio.get_running_loop().create_task(self._snatch(pod, node_name)))

    async def _snatch(self, pod: PodInfo, node_name: str) -> None:
        with contextlib.suppress(ApiError):
            await self._bind_as_another(pod, node_name)
            self.counts["bound by another at its decision"] += 1

    async def _bind_as_another(self, pod: PodInfo, node_name: str) -> None:
        self.writes.foreign_uids.add(pod.uid)
        try:
            await self.cluster.bind(pod, node_name)
        except ApiError:
            self.writes.foreign_uids.discard(pod.uid)
            raise

    # ---- checks of the calm phase ---------------------------------------------------------

    async def _check_woken(self) -> None:
        """Check that events woke every pending pod that fits a node."""
        missed = self._not_woken()
        if not missed:
            return
        await self._until(self.clock.now() + WOKEN_AGAIN_SECONDS)
        await settled()
        still_missed = [each for each in self._not_woken() if each in missed]
        if still_missed:
            self.findings.fail("woken", f"not woken: {still_missed}")

    def _not_woken(self) -> list[str]:
        """Pending pods that fit a node. A new answer of an extender is no event."""
        picture, cache = picture_of(self.cluster), self.leaders[-1].scheduler.cache
        in_binding = self._bound_to_replaced_claims()
        for pod in pending(picture):
            assumed = cache.pod(uid_of(pod)) if uid_of(pod) in in_binding else None
            if assumed is not None:
                picture = picture.with_pod(pod, assumed.node_name)
        excused = self.releases.excused_uids | in_binding
        if self.extender is not None:
            excused |= self.extender.rejected_uids
        return missed_placements(picture, excused, self.releases.excused_nodes)

    def _check_at_rest(self) -> None:
        wrong = differences(self.leaders[-1].scheduler, self.cluster)
        if wrong:
            self.findings.fail("cache", f"cache and API differ: {wrong}")
        picture = picture_of(self.cluster)
        missed = missed_placements(picture)
        if missed:
            self.findings.fail("placed", f"could have been placed: {missed}")
        missed = could_preempt(picture)
        if missed:
            self.findings.fail("preempts", f"could have been placed: {missed}")

    def _bound_to_replaced_claims(self) -> Set[str]:
        """Pods that are bound to a node and wait for the binding of a claim that was replaced after
        the decision: until bindTimeoutSeconds, as in kube-scheduler (binder.go, checkBindings)."""
        find = self.leaders[-1].scheduler.queue.find
        return {
            uid_of(pod)
            for pod in pending(picture_of(self.cluster))
            if not self._replaced_claims.isdisjoint(named_claims(pod)) and find(uid_of(pod)) is None
        }


def _name(stored: StoredObject) -> str:
    return f"{stored.key.namespace}/{stored.key.name}"


def _goes_at_once(pod: Content) -> bool:
    spec = pod["spec"]
    is_quick = not spec.get("nodeName") or not spec.get("terminationGracePeriodSeconds")
    return is_quick and not group_of(pod) and not is_terminating(pod)
