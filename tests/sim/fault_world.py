"""A small cluster with faults, as a function of a seed: the scheduler's main test.

A faulty phase in which calls fail, watches break, nodes go and come, the clock jumps and pods are
created, changed and deleted; then a calm phase long enough for every retry. Safety is checked while
it runs, liveness when it is quiet.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.faults import FaultOptions, FaultyCluster
from bayplan.adapters.object_store import Stored
from bayplan.api.objects import NAMESPACE, NODE, POD, Pod, is_terminal
from bayplan.api.pod_groups import COSCHEDULING_GROUP, COSCHEDULING_LABEL
from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import DigestSink, Journal
from bayplan.plugins.registry import default_registry
from bayplan.ports import ApiError, BindPod, EventType, WatchEvent
from bayplan.rng import stream
from bayplan.runner import Runner
from bayplan.sim.checkers import CapacityChecker, InvariantBroken, differences
from bayplan.sim.gang_checker import GangChecker
from bayplan.sim.loop import run, settled

POD_GROUP = f"{COSCHEDULING_GROUP}/v1alpha1 PodGroup"

FAULTY_SECONDS = 60.0
#: Longer than the longest stay among the unschedulable, the longest backoff and the slowest calls.
CALM_SECONDS = 900.0

Content = dict[str, Any]


class FaultWorld:
    """One seed's world. ``play`` runs it and raises AssertionError where something is wrong."""

    def __init__(self, seed: int) -> None:
        self.options = FaultOptions.sampled(seed)
        self._random = stream(seed, "fault world")
        self._clock = ManualClock()
        self._digest = DigestSink()
        self.scheduler = Scheduler(
            SchedulerConfig(),
            default_registry(),
            self._clock,
            seed=seed,
            journal=Journal([self._digest]),
            raise_bugs=True,
        )
        self.gangs = GangChecker(self.scheduler)
        self.cluster = EmbeddedCluster(self._clock)
        self.faulty = FaultyCluster(self.cluster, self.options)
        self._nodes_of: dict[str, str] = {}
        self.cluster.observe(self._never_bound_twice)
        if not self.options.unknown_outcomes:
            # A binding whose outcome stays unknown may be there and not counted for a while.
            self.cluster.observe(CapacityChecker(self.cluster).observe)
        self._names = 0

    @property
    def digest(self) -> str:
        return self._digest.digest

    def play(self) -> None:
        run(self._main(), self._clock)
        wrong = differences(self.scheduler, self.cluster)
        assert not wrong, f"cache and API differ: {wrong}"
        self._check_nobody_waits_in_vain()

    # ---- the two phases -------------------------------------------------------------------

    async def _main(self) -> None:
        self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": _meta("default")})
        for _ in range(self._random.randint(2, 8)):
            self._add_node()
        runner = Runner(self.scheduler, self.faulty)
        running = asyncio.get_running_loop().create_task(runner.run(), name="scheduler")
        for at_seconds, happening in self._happenings():
            await self._until(at_seconds)
            try:
                happening()
            except ApiError:
                continue  # what it was to happen to is gone already
        await self._until(FAULTY_SECONDS)
        self.faulty.calm()
        await self._until(FAULTY_SECONDS + CALM_SECONDS)
        await settled()
        running.cancel()

    async def _until(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds - self._clock.now(), 0.0))

    def _happenings(self) -> list[tuple[float, Callable[[], None]]]:
        random, options = self._random, self.options
        verbs: list[Callable[[], None]] = [self._add_pod] * random.randint(15, 50)
        verbs += [self._delete_pod] * random.randint(0, 10)
        verbs += [self._end_pod] * random.randint(0, 10)
        verbs += [self._ungate] * 4
        verbs += [self._add_gang] * random.randint(0, 4)
        verbs += [self._change_group] * random.randint(0, 3)
        verbs += [self._relabel_node] * random.randint(0, 4)
        verbs += [self._lose_node] * options.node_losses
        verbs += [self._add_node] * random.randint(0, options.node_losses + 1)
        verbs += [self._step_clock] * options.clock_steps
        timed = [(random.uniform(0, FAULTY_SECONDS), verb) for verb in verbs]
        return sorted(timed, key=lambda entry: entry[0])

    # ---- what happens ---------------------------------------------------------------------

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def _add_node(self) -> None:
        name = self._name("n")
        labels = {"kubernetes.io/hostname": name, "zone": self._random.choice("abc")}
        cpu, pods = self._random.choice(("2", "4", "8")), self._random.choice(("4", "110"))
        self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": pods}},
            }
        )

    def _lose_node(self) -> None:
        """A node goes, and as a garbage collector would, its pods with it."""
        nodes = self.cluster.objects(NODE)
        if len(nodes) < 2:
            return
        lost = self._random.choice(nodes)
        self.cluster.delete(lost.key)
        for stored in self.cluster.objects(POD):
            if isinstance(stored.object, Pod) and stored.object.spec.node_name == lost.key.name:
                self.cluster.delete(stored.key)

    def _relabel_node(self) -> None:
        nodes = self.cluster.objects(NODE)
        stored = self._random.choice(nodes)
        labels = {**stored.content["metadata"]["labels"], "zone": self._random.choice("abcd")}
        metadata = {**stored.content["metadata"], "labels": labels}
        self.cluster.update({**stored.content, "metadata": metadata})

    def _step_clock(self) -> None:
        self._clock.advance_to(self._clock.now() + self._random.uniform(0, 45))

    def _add_pod(self) -> None:
        name = self._name("p")
        labels = {"app": self._random.choice(("web", "db"))}
        spec: Content = {
            "priority": self._random.choice((0, 0, 0, 10)),
            "containers": [self._container()],
            **self._wishes(labels),
        }
        self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**_meta(name), "namespace": "default", "labels": labels},
                "spec": spec,
            }
        )

    def _container(self) -> Content:
        cpu = self._random.choice(("100m", "500m", "1", "2", "16"))
        container: Content = {
            "name": "c",
            "image": "app",
            "resources": {"requests": {"cpu": cpu, "memory": "100Mi"}},
        }
        if self._random.random() < 0.1:
            container["ports"] = [{"containerPort": 80, "hostPort": 80}]
        return container

    def _wishes(self, labels: dict[str, str]) -> Content:
        """At most one of: spread, anti-affinity, affinity, a zone, a gate."""
        selector = {"matchLabels": labels}
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        wishes: list[Content] = [
            {},
            {},
            {"schedulingGates": [{"name": "wait"}]},
            {"nodeSelector": {"zone": self._random.choice("abc")}},
            {"affinity": {"podAntiAffinity": _required(term)}},
            {"affinity": {"podAffinity": _required({**term, "topologyKey": "zone"})}},
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": selector,
                    }
                ]
            },
        ]
        return self._random.choice(wishes)

    def _add_gang(self) -> None:
        """Members that are all alike: how many fit does not follow from who goes first. Some are
        missing, or too many, and the group's object may come last."""
        name, minimum = self._name("g"), self._random.randint(2, 5)
        group: Content = {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": minimum},
        }
        cpu = self._random.choice(("500m", "1", "2"))
        resources = {"requests": {"cpu": cpu, "memory": "100Mi"}}
        spec = {"containers": [{"name": "c", "image": "app", "resources": resources}]}
        meta = {"namespace": "default", "labels": {COSCHEDULING_LABEL: name}}
        count = minimum + self._random.choice((-1, 0, 0, 0, 1))
        members: list[Content] = [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": f"{name}-{n}"}}
            for n in range(count)
        ]
        objects = [group, *({**member, "spec": spec} for member in members)]
        if self._random.random() < 0.3:
            objects.reverse()
        for each in objects:
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

    def _end_pod(self) -> None:
        stored = self._some_pod()
        if stored is not None and stored.object.spec.node_name:  # type: ignore[union-attr]
            self.cluster.end_pod(stored.key)

    def _ungate(self) -> None:
        for stored in self.cluster.objects(POD):
            gated = stored.content["spec"].get("schedulingGates")
            if gated:
                spec = {k: v for k, v in stored.content["spec"].items() if k != "schedulingGates"}
                self.cluster.update({**stored.content, "spec": spec})

    # ---- what must hold -------------------------------------------------------------------

    def _never_bound_twice(self, before: Stored | None, after: Stored | None) -> None:
        if after is None or not isinstance(after.object, Pod):
            return
        uid, node = after.object.metadata.uid or "", after.object.spec.node_name
        if node:
            first = self._nodes_of.setdefault(uid, node)
            if first != node:
                raise InvariantBroken(f"{after.key} was bound to {first} and then to {node}")

    def _check_nobody_waits_in_vain(self) -> None:
        """A scheduler that begins afresh finds no place for any pod that still waits."""
        fresh = Scheduler(SchedulerConfig(), default_registry(), ManualClock(), raise_bugs=True)
        for kind in (NAMESPACE, NODE, POD_GROUP, POD):
            for stored in self.cluster.objects(kind):
                if not (isinstance(stored.object, Pod) and is_terminal(stored.object)):
                    fresh.handle(WatchEvent(EventType.ADDED, kind, stored.object))
        while fresh.schedule_one():
            bound = [e.pod.key for e in fresh.take_effects() if isinstance(e, BindPod)]
            assert not bound, f"{bound} could have been placed and still wait"


def _meta(name: str) -> Content:
    return {"name": name}


def _required(term: Content) -> Content:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
