"""The world of one test: a namespace, nodes, schedulers, and functions that wait for conditions.

async def scene(world: World) -> None:
    await world.add_nodes(ready_node("n1"))
    async with world.scheduler():
        await world.add_pods(small_pod("p"))
        await world.until_bound("p")

play(control_plane, scene)
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bayplan.adapters.live.access import WRITING, Right, missing_rights, rights_to_follow
from bayplan.adapters.live.client import MERGE_PATCH, ApiClient, ClientOptions, open_client
from bayplan.adapters.live.cluster import ClusterOptions, LiveCluster, open_cluster
from bayplan.api.objects import NODE, POD
from bayplan.clock import Clock, RealClock
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import AttemptRecord, Journal, MemorySink, NoteRecord
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError
from bayplan.runner import Runner, check_cache
from tests.kit.manifests import Amount, pod
from tests.kit.scenes import scene_of
from tests.live.control_plane import ControlPlane
from tests.live.invariants import broken
from tests.live.kubelet import Kubelet
from tests.live.mirror import Mirror, Object
from tests.scenarios.world import Setup, config_dict

#: The limit of a whole test, which only a hanging test exceeds.
SCENE_SECONDS = 200.0
POLL_SECONDS = 0.05
PARALLEL = 16
UNLIMITED = ClientOptions(qps=-1)
ROLE = "bayplan-live"

Scene = Callable[["World"], Awaitable[None]]


def play(control_plane: ControlPlane, scene: Scene) -> None:
    """Play a scene in a new world, and check the invariants at its end."""

    async def main() -> None:
        async with asyncio.timeout(SCENE_SECONDS), _world(control_plane) as world:
            await scene(world)
            result = world.broken()
            assert not result, result

    asyncio.run(main())


def scenario(
    plane: str = "control_plane",
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Make a test of a scene. Its first argument is a new world of the control plane that the
    fixture ``plane`` gives."""
    return scene_of(play, place=plane)


def small_pod(
    name: str,
    scheduler: str = "default-scheduler",
    *,
    cpu: Amount = "100m",
    spec: Object | None = None,
    **options: Any,
) -> Object:
    """A pod for the namespace in which it is created, with options of tests.kit.manifests.pod."""
    fields = {**options, **(spec or {})}
    return pod(name, namespace="", cpu=cpu, schedulerName=scheduler, **fields)


@dataclass
class Running:
    """A running scheduler."""

    scheduler: Scheduler
    cluster: LiveCluster
    journal: MemorySink
    task: "asyncio.Task[None]"

    def attempts(self) -> list[AttemptRecord]:
        return [one for one in self.journal.records if isinstance(one, AttemptRecord)]

    def bugs(self) -> list[str]:
        notes = (one.text for one in self.journal.records if isinstance(one, NoteRecord))
        return [text for text in notes if text.startswith("bug")]

    async def differences(self) -> list[str]:
        """The differences between the cache and the server's state."""
        return await check_cache(self.scheduler, self.cluster)


@dataclass
class SchedulerOptions:
    """The parts of a scheduler; all fields have defaults."""

    #: The values of spec.schedulerName.
    names: Sequence[str] = ("default-scheduler",)
    #: Another URL of the API server.
    server: str = ""
    seed: int = 1
    clock: Clock = field(default_factory=RealClock)
    client: ClientOptions = UNLIMITED
    #: An option of the LiveCluster.
    silence_seconds_max: float = 150.0
    #: The plugins of a scenario, in place of the default profile.
    setup: Setup | None = None

    def new_scheduler(self, journal: MemorySink) -> Scheduler:
        registry = Registry()
        if self.setup is None:
            profiles = [{"schedulerName": name} for name in self.names]
            config = {**DEFAULT_CONFIG, "profiles": profiles}
        else:
            config = config_dict(self.setup)
            for each in self.setup.classes:
                registry.add(each)
        return Scheduler(
            config_from(config),
            registry,
            self.clock,
            seed=self.seed if self.setup is None else self.setup.seed,
            journal=Journal([journal]),
            # This API server has no kinds of pod groups.
            pod_group_kinds=(),
        )


class World:
    """The world of a scene. `play` creates it."""

    def __init__(
        self, control_plane: ControlPlane, client: ApiClient, mirror: Mirror, namespace: str
    ) -> None:
        self.control_plane = control_plane
        self.client = client
        self.mirror = mirror
        self.namespace = namespace

    # ---- changes ----------------------------------------------------------------------------

    async def add_nodes(self, *nodes: Object) -> None:
        await self._create("/api/v1/nodes", nodes)

    async def add_pods(self, *pods: Object) -> None:
        """Create the pods in this order, PARALLEL at a time."""
        await self._create(self.path("pods"), pods)

    async def _create(self, path: str, objects: Iterable[Object]) -> None:
        gate = asyncio.Semaphore(PARALLEL)

        async def create(content: Object) -> None:
            async with gate:
                await self.client.request("POST", path, content)

        await asyncio.gather(*map(create, objects))

    async def delete_node(self, name: str) -> None:
        await self.client.request("DELETE", f"/api/v1/nodes/{name}")

    async def delete_pod(self, name: str) -> None:
        await self.client.request("DELETE", self.path("pods", name))

    async def move_to_new_namespace(self) -> None:
        """Use a new namespace for the pods of this test from now on."""
        self.namespace = await _new_namespace(self.client)

    async def patch_pod(self, name: str, patch: Object) -> None:
        path = self.path("pods", name)
        await self.client.request("PATCH", path, patch, media_type=MERGE_PATCH)

    def path(self, plural: str, name: str = "") -> str:
        path = f"/api/v1/namespaces/{self.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    # ---- state ------------------------------------------------------------------------------

    def pods(self) -> list[Object]:
        """The pods of this test."""
        return [
            content
            for (namespace, _), content in sorted(self.mirror.pods.items())
            if namespace == self.namespace
        ]

    def bound(self) -> dict[str, str]:
        """Pod → node, for all bound pods."""
        return {
            content["metadata"]["name"]: content["spec"]["nodeName"]
            for content in self.pods()
            if content["spec"].get("nodeName")
        }

    def condition(self, name: str) -> Object:
        """The condition PodScheduled of a pod, or {} if it is absent."""
        content = self.mirror.pods.get((self.namespace, name), {})
        conditions = content.get("status", {}).get("conditions", ())
        return next((c for c in conditions if c["type"] == "PodScheduled"), {})

    def bindings(self) -> dict[tuple[str, int], int]:
        return self.control_plane.bindings(self.namespace)

    def broken(self) -> list[str]:
        nodes = self.mirror.nodes.values()
        return broken(nodes, self.pods(), self.bindings(), self.mirror.nodes_of)

    async def events(self, name: str, reason: str) -> list[Object]:
        """The events with this reason about a pod."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        events = (await self.client.get(path))["items"]
        return [e for e in events if (e["regarding"]["name"], e["reason"]) == (name, reason)]

    # ---- waiting ----------------------------------------------------------------------------

    async def until_event(self, name: str, reason: str) -> Object:
        """Wait for an event with this reason about a pod, because events are written later."""
        while not (events := await self.events(name, reason)):
            await asyncio.sleep(POLL_SECONDS)
        return events[0]

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        await self.mirror.until(is_so, what)

    async def until_bound(self, *names: str) -> None:
        await self.until(lambda: set(names) <= self.bound().keys(), f"bound: {names}")

    async def until_bound_count(self, count: int) -> None:
        await self.until(lambda: len(self.bound()) >= count, f"{count} pods are bound")

    async def until_unschedulable(self, *names: str) -> None:
        """Wait until all these pods have the condition PodScheduled with status False."""
        await self.until(
            lambda: all(self.condition(name).get("status") == "False" for name in names),
            f"unschedulable: {names}",
        )

    async def until_running(self, count: int) -> None:
        await self.until(
            lambda: (
                sum(content["status"]["phase"] == "Running" for content in self.pods()) >= count
            ),
            f"{count} pods run",
        )

    # ---- schedulers -------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def scheduler(self, options: SchedulerOptions | None = None) -> AsyncGenerator[Running]:
        """A scheduler that runs as long as the block. Its internal errors end the test."""
        options = options or SchedulerOptions()
        journal = MemorySink()
        scheduler = options.new_scheduler(journal)
        kubeconfig = self.control_plane.kubeconfig("scheduler", options.server)
        cluster_options = ClusterOptions(
            clock=options.clock,
            seed=options.seed,
            declared=scheduler.declared_fields,
            silence_seconds_max=options.silence_seconds_max,
        )
        async with (
            open_client(kubeconfig, options.client) as client,
            open_cluster(client, cluster_options) as cluster,
        ):
            task = asyncio.create_task(Runner(scheduler, cluster).run())
            running = Running(scheduler, cluster, journal, task)
            try:
                yield running
                assert not task.done(), "the scheduler ended"
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                scheduler.close()
            result = running.bugs()
            assert not result, result


@contextlib.asynccontextmanager
async def _world(control_plane: ControlPlane) -> AsyncGenerator[World]:
    async with open_client(control_plane.kubeconfig("admin"), UNLIMITED) as client:
        namespace = await _new_namespace(client)
        await _grant(control_plane, client)
        mirror = Mirror(client)
        world = World(control_plane, client, mirror, namespace)
        kubelet = Kubelet(client, mirror)
        around = [asyncio.create_task(mirror.follow()), asyncio.create_task(kubelet.run())]
        try:
            yield world
        finally:
            for task in around:
                task.cancel()
            await asyncio.gather(*around, return_exceptions=True)
            await client.request("DELETE", world.path("pods"), {"gracePeriodSeconds": 0})
            await client.request("DELETE", "/api/v1/nodes")


async def _new_namespace(client: ApiClient) -> str:
    content = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "live-"}}
    body = await client.request("POST", "/api/v1/namespaces", content)
    return msgspec.json.decode(body)["metadata"]["name"]


async def _grant(control_plane: ControlPlane, client: ApiClient) -> None:
    """Grant the scheduler exactly the rights for its kinds; returns when they are in force."""
    rights = await scheduler_rights(client)
    await _create_if_absent(client, "clusterroles", cluster_role(ROLE, rights))
    await _create_if_absent(client, "clusterrolebindings", _role_binding(ROLE, "scheduler"))
    async with open_client(control_plane.kubeconfig("scheduler"), UNLIMITED) as scheduler:
        while await missing_rights(scheduler, rights):
            await asyncio.sleep(POLL_SECONDS)


async def scheduler_rights(client: ApiClient) -> list[Right]:
    """All rights of a scheduler with the default profile."""
    scheduler = Scheduler(config_from(DEFAULT_CONFIG), Registry(), RealClock())
    async with open_cluster(client) as cluster:
        kinds = [NODE, POD, *scheduler.kinds]
        resources = [await cluster.resource(kind) for kind in kinds]
    scheduler.close()
    return sorted({*WRITING, *rights_to_follow(resources)})


def cluster_role(name: str, rights: Iterable[Right]) -> Object:
    rules = [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
        for right in rights
    ]
    return {**_rbac("ClusterRole", name), "rules": rules}


def _role_binding(role: str, user: str) -> Object:
    group = "rbac.authorization.k8s.io"
    return {
        **_rbac("ClusterRoleBinding", role),
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def _rbac(kind: str, name: str) -> Object:
    version = "rbac.authorization.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


async def _create_if_absent(client: ApiClient, plural: str, content: Object) -> None:
    try:
        path = f"/apis/rbac.authorization.k8s.io/v1/{plural}"
        await client.request("POST", path, content)
    except ApiError as problem:
        if problem.reason != "AlreadyExists":
            raise
