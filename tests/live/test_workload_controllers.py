"""After a drain, the pods that controllers create in a simulation are those of
kube-controller-manager: count, owner, node selector and tolerations.

The program is taken from $E2E_ASSETS or from where `make test-e2e` builds it.
"""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from bayplan.adapters.live.client import MERGE_PATCH
from bayplan.api.objects import POD
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import default_registry
from bayplan.rng import stream
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import has_ended
from bayplan.sim.simulation import Simulation
from tests.kit.scenes import scene_of
from tests.live.kubelet import ready_node
from tests.live.mirror import Object
from tests.live.world import World, play
from tests.sim.manifests import controller, scenario

CLUSTERS = 20
SETTLE_SECONDS = 100.0
KINDS = {
    "deployments": ("apps/v1", "Deployment"),
    "replicasets": ("apps/v1", "ReplicaSet"),
    "statefulsets": ("apps/v1", "StatefulSet"),
    "daemonsets": ("apps/v1", "DaemonSet"),
    "replicationcontrollers": ("v1", "ReplicationController"),
    "jobs": ("batch/v1", "Job"),
}
TOLERATIONS = (
    {"key": "maintenance", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "team", "operator": "Equal", "value": "a", "effect": "NoExecute"},
)


class Drawn:
    """A cluster: nodes that only its pods use, and controllers."""

    def __init__(self, number: int) -> None:
        draw = stream(number, "clusters to drain")
        self.name = f"c{number}"
        labels = {"cluster": self.name}
        names = [f"{self.name}-n{i}" for i in range(draw.randrange(3, 6))]
        self.nodes = [ready_node(name, labels=labels) for name in names]
        self.new_node = ready_node(f"{self.name}-new", labels=labels)
        self.drained = names[0]
        self.controllers = self._controllers(draw)

    def _controllers(self, draw: Random) -> list[Object]:
        sizes = {
            "Deployment": {"replicas": draw.randrange(1, 5)},
            "ReplicaSet": {"replicas": draw.randrange(1, 4)},
            "ReplicationController": {"replicas": draw.randrange(1, 4)},
            "StatefulSet": {
                "replicas": draw.randrange(1, 5),
                "podManagementPolicy": draw.choice(("OrderedReady", "Parallel")),
                "serviceName": "db",
            },
            "DaemonSet": {},
            "Job": {
                "completions": draw.randrange(1, 5),
                "parallelism": draw.randrange(1, 4),
                "completionMode": draw.choice(("Indexed", "NonIndexed")),
            },
        }
        return [self._controller(draw, kind, spec) for kind, spec in sizes.items()]

    def _controller(self, draw: Random, kind: str, spec: Object) -> Object:
        name = f"{self.name}-{kind.lower()}"
        container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "10m"}}}
        template: Object = {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "containers": [container],
                "nodeSelector": {"cluster": self.name},
                "tolerations": draw.sample(TOLERATIONS, draw.randrange(3)),
                "terminationGracePeriodSeconds": 0,
            },
        }
        content = controller(kind, name=name, template=template, **spec)
        del content["status"], content["metadata"]["namespace"]
        if kind == "Job":
            template["spec"]["restartPolicy"] = "Never"
        elif kind == "ReplicationController":
            content["spec"]["selector"] = {"app": name}
        else:
            content["spec"]["selector"] = {"matchLabels": {"app": name}}
        return content

    @property
    def pod_count(self) -> int:
        """The desired number of pods of all controllers."""
        counts = [one["spec"].get("replicas", 0) for one in self.controllers]
        job = self.controllers[-1]["spec"]
        return sum(counts) + len(self.nodes) + min(job["completions"], job["parallelism"])

    def owns(self, pod: Object) -> bool:
        return pod["spec"].get("nodeSelector", {}).get("cluster") == self.name


def plural_path(world: World, plural: str) -> str:
    api_version = KINDS[plural][0]
    prefix = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
    return f"{prefix}/namespaces/{world.namespace}/{plural}"


async def snapshot(world: World) -> list[Object]:
    """All objects of the cluster that a simulation reads."""
    objects: list[Object] = []
    sources = {plural: plural_path(world, plural) for plural in KINDS}
    sources |= {"nodes": "/api/v1/nodes", "pods": world.path("pods")}
    kinds = {**KINDS, "nodes": ("v1", "Node"), "pods": ("v1", "Pod")}
    for plural, path in sources.items():
        api_version, kind = kinds[plural]
        items = (await world.client.get(path))["items"]
        objects += [{**one, "apiVersion": api_version, "kind": kind} for one in items]
    return objects


def facts(pod: Object) -> tuple[Any, ...]:
    """The compared parts of a new pod, without the timed tolerations of the API server."""
    (owner,) = pod["metadata"]["ownerReferences"]
    tolerations = pod["spec"].get("tolerations") or ()
    lasting = sorted(str(sorted(t.items())) for t in tolerations if "tolerationSeconds" not in t)
    affinity = msgspec.json.encode(pod["spec"].get("affinity"), order="deterministic")
    labels = pod["metadata"].get("labels") or {}
    identity = (
        labels.get("statefulset.kubernetes.io/pod-name"),
        labels.get("batch.kubernetes.io/job-completion-index"),
        affinity,
    )
    flags = owner["controller"], owner["blockOwnerDeletion"], owner["uid"]
    selector = tuple(sorted((pod["spec"].get("nodeSelector") or {}).items()))
    return owner["kind"], owner["name"], flags, selector, tuple(lasting), identity


def simulated(objects: list[Object], clusters: list[Drawn], folder: Path) -> list[Object]:
    """All pods after the drains in a simulation."""
    drains = [{"name": one.drained, "ignoreDaemonsets": True} for one in clusters]
    events = {"at": 1, "create": [one.new_node for one in clusters], "drain": drains}
    path = folder / "cluster.json"
    listed = {"apiVersion": "v1", "kind": "List", "items": [*objects, scenario(events)]}
    path.write_bytes(msgspec.json.encode(listed))
    run = Simulation(load_inputs([str(path)]), config_from(DEFAULT_CONFIG), default_registry())
    result = run.run()
    assert not [note for note in result.notes if note.startswith("at ")], result.notes
    return [one.content for one in run.cluster.objects(POD)]


async def drain(world: World, cluster: Drawn) -> None:
    """Drain the node, as `kubectl drain --ignore-daemonsets` does."""
    client, path = world.client, f"/api/v1/nodes/{cluster.drained}"
    patch = {"spec": {"unschedulable": True}}
    await client.request("PATCH", path, patch, media_type=MERGE_PATCH)
    for pod in world.pods():
        meta = pod["metadata"]
        is_daemon = meta["ownerReferences"][0]["kind"] == "DaemonSet"
        if pod["spec"].get("nodeName") == cluster.drained and not is_daemon:
            name = {"name": meta["name"], "namespace": meta["namespace"]}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name}
            path = world.path("pods", f"{meta['name']}/eviction")
            await client.request("POST", path, eviction)


def is_settled(world: World, expected: int) -> bool:
    pods = [one for one in world.pods() if not one["metadata"].get("deletionTimestamp")]
    running = [one for one in pods if one["status"].get("phase") == "Running"]
    return len(running) == len(pods) == expected


@scene_of(play, place="control_plane")
async def test_a_drain_has_the_same_new_pods_as_with_kube_controller_manager(
    world: World, controller_manager: None, tmp_path: Path
) -> None:
    clusters = [Drawn(number) for number in range(CLUSTERS)]
    await world.add_nodes(*[each for one in clusters for each in one.nodes])
    async with world.scheduler():
        for one in (each for cluster in clusters for each in cluster.controllers):
            plural = next(name for name, kind in KINDS.items() if kind[1] == one["kind"])
            await world.client.request("POST", plural_path(world, plural), one)
        expected = sum(one.pod_count for one in clusters)
        await settled(world, expected)
        before = await snapshot(world)
        old = {one["metadata"]["uid"] for one in before}
        await world.add_nodes(*[one.new_node for one in clusters])
        await asyncio.gather(*[drain(world, one) for one in clusters])
        await settled(world, expected + CLUSTERS)
        after = await snapshot(world)
        await clean_up(world)
    pods = await asyncio.to_thread(simulated, before, clusters, tmp_path)
    compared = 0
    for cluster in clusters:
        real, ours = (
            Counter(
                facts(one)
                for one in source
                if one["kind"] == "Pod"
                and one["metadata"]["uid"] not in old
                and not has_ended(one)
                and cluster.owns(one)
            )
            for source in (after, pods)
        )
        assert ours == real, cluster.name
        compared += real.total()
    assert compared > 2 * CLUSTERS


async def clean_up(world: World) -> None:
    """Remove all controllers and their pods. Pods of StatefulSets were bound once per pod, but more
    than once per name, so the world's invariants are checked in an empty namespace."""
    for plural in KINDS:
        path = f"{plural_path(world, plural)}?propagationPolicy=Background"
        await world.client.request("DELETE", path)
    await world.until(lambda: not world.pods(), "all pods are gone")
    await world.move_to_new_namespace()


async def settled(world: World, expected: int) -> None:
    """Wait until all pods run and none is terminating. A Job waits 10 s after a failure."""
    async with asyncio.timeout(SETTLE_SECONDS):
        while not is_settled(world, expected):
            await asyncio.sleep(0.2)
