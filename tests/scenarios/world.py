"""The world of the scenarios: an embedded cluster, virtual time, one scheduler, and its effects.

    def test_a_pod_is_bound() -> None:
        async def scene(world: World) -> None:
            world.add_node("n1", cpu=4, memory="8Gi")
            world.add_pod("p", cpu=1)
            await world.until(0)
            assert world.bound("p") == (0.0, "n1")

        play(scene, plugins=["NodeResourcesFit"])

API calls take no time. Tests read only the API's objects, the metrics and the journal, and the
call logs of their own plugins.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import msgspec

from bayplan.adapters.embedded.api_features import api_features
from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import NODE, POD, Condition, Pod
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.engine.extenders.results import Extender
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.waiting import PodWaitingOnPermit
from bayplan.framework.plugin import Plugin
from bayplan.journal import AttemptRecord, DigestSink, Journal, MemorySink, NoteRecord
from bayplan.metrics import SchedulerMetrics
from bayplan.objects.keys import Content, object_key
from bayplan.plugins.registry import Registry
from bayplan.ports import Ask, Cluster
from bayplan.runner import Runner
from bayplan.sim.loop import run, settled
from bayplan.sim.world.checkers import GangChecker, differences
from bayplan.testing import NodeOptions, PodOptions, api_pod, node
from tests.kit.scenes import scene_of

PROFILE = "bayplan"

#: The name of a plugin, with a weight if its scores count.
Enabled = str | tuple[str, int]


@dataclass
class Setup:
    """The parts of a scheduler; all fields have defaults."""

    #: Only these are enabled, in this order, besides PrioritySort and DefaultBinder. The scores of
    #: a plugin count only if it has a weight.
    plugins: Sequence[Enabled] = ()
    #: Plugins of the test.
    classes: Sequence[type[Plugin]] = ()
    #: Instance → its args.
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    binders: Sequence[str] = ("DefaultBinder",)
    queue_sort: str = "PrioritySort"
    #: Keys, in order.
    tie_break: Sequence[str] = ()
    gates: Mapping[str, bool] = field(default_factory=dict)
    #: Further fields of the profile.
    profile: Mapping[str, Any] = field(default_factory=dict)
    #: Further fields of the configuration.
    config: Mapping[str, Any] = field(default_factory=dict)
    extenders: Sequence[Extender] = ()
    #: Name of an extender → the function that calls it.
    asks: Mapping[str, Ask] = field(default_factory=dict)
    kubernetes: KubernetesVersion = NEWEST
    seed: int = 1
    #: An exception in the scheduler ends the run.
    raise_bugs: bool = True
    #: Wraps the cluster for the scheduler.
    reach: Callable[[Cluster], Cluster] = lambda cluster: cluster


def config_dict(setup: Setup) -> dict[str, Any]:
    """The configuration as a user would write it."""
    names = [each if isinstance(each, str) else each[0] for each in setup.plugins]
    weights = [each for each in setup.plugins if not isinstance(each, str)]
    plugins = {
        "multiPoint": {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": name} for name in (setup.queue_sort, *names, *setup.binders)],
        },
        "score": {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": name, "weight": weight} for name, weight in weights],
        },
        "tieBreak": {"enabled": [{"name": name} for name in setup.tie_break]},
    }
    args = [{"name": name, "args": dict(fields)} for name, fields in setup.args.items()]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": {"SchedulerPopFromBackoffQ": False, **setup.gates},
        "profiles": [
            {"schedulerName": PROFILE, "plugins": plugins, "pluginConfig": args, **setup.profile}
        ],
        **setup.config,
    }


class World:
    """A cluster with a scheduler in it, at one moment of virtual time."""

    def __init__(self, setup: Setup, clock: ManualClock) -> None:
        self._setup = setup
        self._clock = clock
        self._config = config_from(config_dict(setup), kubernetes=setup.kubernetes)
        self.journal, self._digest = MemorySink(), DigestSink()
        self.scheduler = self._new_scheduler()
        self.cluster = EmbeddedCluster(
            clock,
            self.scheduler.declared_fields,
            features=api_features(self._config.gates),
        )
        self._reached = setup.reach(self.cluster)
        self.runner = Runner(self.scheduler, self._reached, setup.asks)
        self._running: asyncio.Task[None] | None = None
        self._bound: dict[str, tuple[float, str]] = {}
        self.cluster.observe(self._observe)

    def _new_scheduler(self) -> Scheduler:
        setup, registry = self._setup, Registry()
        for each in setup.classes:
            registry.add(each)
        scheduler = Scheduler(
            self._config,
            registry,
            self._clock,
            seed=setup.seed,
            journal=Journal((self.journal, self._digest)),
            extenders=setup.extenders,
            raise_bugs=setup.raise_bugs,
        )
        self.gangs = GangChecker(scheduler)
        return scheduler

    @property
    def metrics(self) -> SchedulerMetrics:
        return self.scheduler.metrics

    # ---- the scheduler's process ------------------------------------------------------------

    def start(self) -> None:
        """Start the scheduler. After a kill, a new scheduler without any state starts."""
        if self._running is not None:
            self.scheduler.close()
            self.scheduler = self._new_scheduler()
        self.runner = Runner(self.scheduler, self._reached, self._setup.asks)
        self._running = asyncio.get_running_loop().create_task(self.runner.run(), name="scheduler")

    def kill_at_once(self) -> None:
        """End the scheduler's process; calls in flight do not complete."""
        assert self._running is not None
        self._running.cancel()

    async def kill(self) -> None:
        """End the scheduler's process; returns when all its tasks have ended."""
        self.kill_at_once()
        assert self._running is not None
        await asyncio.wait([self._running])

    # ---- time -----------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return self._clock.now()

    async def until(self, seconds: float) -> None:
        """Advance time to this moment; returns when everything that is due has happened."""
        if seconds > self.now:
            loop = asyncio.get_running_loop()
            reached = loop.create_future()
            loop.call_at(seconds, reached.set_result, None)
            await reached
        await settled()

    # ---- what users do --------------------------------------------------------------------

    def add_node(self, name: str, **options: Unpack[NodeOptions]) -> None:
        self.cluster.create(manifest("Node", node(name, **options)))

    def change_node(self, name: str, **metadata: Mapping[str, str]) -> None:
        """Merge labels and annotations into those of the node."""
        stored = self.cluster.get(object_key(NODE, "", name))
        assert stored is not None
        old = stored.content["metadata"]
        merged = {each: {**old.get(each, {}), **fields} for each, fields in metadata.items()}
        self.cluster.update({**stored.content, "metadata": {**old, **merged}})

    def delete_node(self, name: str) -> None:
        self.cluster.delete(object_key(NODE, "", name))

    def add_pod(
        self, name: str, metadata: Mapping[str, Any] | None = None, **options: Unpack[PodOptions]
    ) -> None:
        """Create a pod of the scheduler; with ``node``, the pod already runs there. ``metadata``:
        further fields of the metadata."""
        options.setdefault("scheduler_name", PROFILE)
        # The pod ends at once when it is deleted.
        options["spec"] = {"terminationGracePeriodSeconds": 0, **options.get("spec", {})}
        content = manifest("Pod", api_pod(name, **options))
        content["metadata"] = {**content["metadata"], **(metadata or {})}
        self.cluster.create(content)

    def change_pod(self, name: str, change: Callable[[Content], None]) -> None:
        """``change`` modifies a copy of the pod's manifest."""
        content = msgspec.json.decode(msgspec.json.encode(self.pod(name).content))
        change(content)
        self.cluster.update(content)

    def delete_pod(self, name: str) -> None:
        self.cluster.delete(object_key(POD, "default", name))

    def end_pod(self, name: str, phase: str = "Succeeded") -> None:
        """End the containers of the pod."""
        self.cluster.end_pod(object_key(POD, "default", name), phase)

    # ---- objects of the API ---------------------------------------------------------------

    def pod(self, name: str) -> StoredObject:
        stored = self.cluster.get(object_key(POD, "default", name))
        assert stored is not None, f"there is no pod {name}"
        return stored

    def uid(self, name: str) -> str:
        return self.pod(name).content["metadata"]["uid"]

    def bound(self, name: str) -> tuple[float, str] | None:
        """(seconds, node name) of the binding."""
        return self._bound.get(name)

    def condition(self, name: str) -> Condition | None:
        """The condition PodScheduled."""
        pod = self.pod(name).object
        assert isinstance(pod, Pod)
        conditions = pod.status.conditions or ()
        return next((each for each in conditions if each.type == "PodScheduled"), None)

    def message(self, name: str) -> str:
        condition = self.condition(name)
        return (condition.message or "") if condition is not None else ""

    def reason(self, name: str) -> str:
        condition = self.condition(name)
        return (condition.reason or "") if condition is not None else ""

    def nominated(self, name: str) -> str:
        return self.pod(name).content["status"].get("nominatedNodeName", "")

    def events(self, name: str, reason: str) -> list[str]:
        """Notes of the events about a pod, oldest first."""
        contents = [stored.content for stored in self.cluster.objects(EVENT)]
        return [
            content["note"]
            for content in contents
            if content["regarding"]["name"] == name and content["reason"] == reason
        ]

    # ---- state of the scheduler -----------------------------------------------------------

    def plugin(self, name: str) -> Any:
        """The instance of a plugin."""
        instances = self.scheduler.framework(PROFILE).plugins.instances()
        return next(each for each in instances if each.instance_name == name)

    def attempts(self, name: str) -> list[AttemptRecord]:
        records = self.journal.records
        key = f"default/{name}"
        return [r for r in records if isinstance(r, AttemptRecord) and r.pod == key]

    def attempt_times(self, name: str) -> list[float]:
        return [record.at_seconds for record in self.attempts(name)]

    def notes(self, subject: str) -> list[str]:
        records = self.journal.records
        return [r.text for r in records if isinstance(r, NoteRecord) and r.subject == subject]

    def waiting(self, name: str) -> PodWaitingOnPermit | None:
        """The pod, if it waits at Permit."""
        pods = self.scheduler.waiting_pods()
        return next((waiting for waiting in pods if waiting.pod.name == name), None)

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.value(name, **labels)

    def incoming(self, event: str) -> dict[str, float]:
        """Queue → scheduler_queue_incoming_pods_total of an event; those above 0."""
        counts = {
            queue: self.metric("scheduler_queue_incoming_pods_total", queue=queue, event=event)
            for queue in ("active", "backoff", "unschedulable")
        }
        return {queue: count for queue, count in counts.items() if count}

    def unschedulable_plugins(self, name: str) -> set[str]:
        queued = self.scheduler.queue.find(self.uid(name))
        assert queued is not None, f"{name} is not queued"
        return set(queued.unschedulable_plugins)

    def requested(self, name: str) -> int:
        """The requested cpu on a node, in millicores."""
        snapshot = self.scheduler.cache.lend()
        try:
            return snapshot.node(name).requested.get("cpu", 0)
        finally:
            snapshot.end()

    @property
    def digest(self) -> str:
        return self._digest.digest

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if after is None or after.key.kind != POD or before is None:
            return
        node_name = after.content["spec"].get("nodeName")
        if node_name and not before.content["spec"].get("nodeName"):
            self._bound[after.key.name] = (self.now, node_name)


Scene = Callable[[World], Awaitable[None]]


def scenario(**options: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Make a test of a scene. Its first argument is a new world. ``options``: those of `play`."""
    return scene_of(play, **options)


def play(scene: Scene, setup: Setup | None = None, **options: Any) -> World:
    """Play a scene to its end and check that the cache equals the API. ``options``: those of Setup.

    Time has ended in the world that is returned; tests read its final state.
    """
    clock = ManualClock()
    worlds: list[World] = []

    async def main() -> None:
        world = World(setup or Setup(**options), clock)
        worlds.append(world)
        world.start()
        await world.until(0.0)
        await scene(world)
        await settled()
        await world.kill()

    try:
        run(main(), clock)
    finally:
        for world in worlds:
            world.scheduler.close()
    assert not differences(worlds[0].scheduler, worlds[0].cluster)
    return worlds[0]


def manifest(kind: str, api_object: Any) -> Content:
    """The object as a user writes it; the API server sets its uid."""
    content: Content = msgspec.to_builtins(api_object)
    content.pop("declared", None)
    meta = {key: value for key, value in content["metadata"].items() if key != "uid"}
    if kind == "Pod":
        for each in content["spec"]["containers"]:
            each.setdefault("image", "app")
    return {**content, "apiVersion": "v1", "kind": kind, "metadata": meta}


def create(world: World, kind: str, content: Any) -> None:
    api_version, _, name = kind.partition(" ")
    content["metadata"].pop("resourceVersion", None)
    world.cluster.create({"apiVersion": api_version, "kind": name, **content})
