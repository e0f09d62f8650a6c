"""`bayplan shadow` beside schedulers that place pods: it agrees, and it only reads.

$BAYPLAN_SHADOW_NODES, $BAYPLAN_SHADOW_PODS and $BAYPLAN_SHADOW_RATE (pods a second): another size.
The demonstration of docs/shadow.md has 1,000 nodes and 10,000 pods.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from bayplan.config import SchedulerConfig
from bayplan.plugins.registry import default_registry
from bayplan.rng import stream
from bayplan.serving.rbac import Names, reading_manifests
from tests.cli.command_line import answer
from tests.live.binaries import PROGRAMS
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import Kubelet, ready_node
from tests.live.mirror import Mirror
from tests.live.processes import SchedulerProcess, apply, config_file, replicas

NODE_COUNT = int(os.environ.get("BAYPLAN_SHADOW_NODES", "50"))
POD_COUNT = int(os.environ.get("BAYPLAN_SHADOW_PODS", "300"))
PODS_PER_SECOND = float(os.environ.get("BAYPLAN_SHADOW_RATE", "50"))
#: Preferences of pods: labels that half of the nodes have.
TRAIT_COUNT = 6
#: A deletion of more pods could exceed the API server's limit of a minute per request.
DELETED_AT_ONCE = 500
#: How long the binding of the last pod, and the report, may take.
PATIENCE_SECONDS = 400.0

pytestmark = pytest.mark.timeout(2 * POD_COUNT / PODS_PER_SECOND + 2 * PATIENCE_SECONDS)
#: Everything that the user of the shadow sends is in the audit log.
OF_THE_SHADOW = ({"level": "Metadata", "users": ["scheduler"]},)


@pytest.fixture(name="plane", scope="module")
def _plane() -> Iterator[ControlPlane]:
    """A control plane with the cluster role of the shadow."""
    plane = ControlPlane(PROGRAMS.get(), audit_rules=OF_THE_SHADOW)
    try:
        plane.start()
        asyncio.run(_grant(plane))
        yield plane
    finally:
        plane.stop()


async def _grant(plane: ControlPlane) -> None:
    role, binding = reading_manifests(SchedulerConfig(), default_registry(()), Names("shadow"))
    user = {"kind": "User", "name": "scheduler", "apiGroup": "rbac.authorization.k8s.io"}
    async with open_client(plane.kubeconfig("admin")) as client:
        await apply(client, [role, {**binding, "subjects": [user]}])


@contextlib.asynccontextmanager
async def cluster(plane: ControlPlane, namespace: str) -> AsyncGenerator[tuple[ApiClient, Mirror]]:
    """Nodes of many sizes and traits in three zones, with fake kubelets."""
    random = stream(7, namespace)
    async with open_client(plane.kubeconfig("admin"), ClientOptions(qps=-1)) as client:
        mirror = Mirror(client)
        kubelet = Kubelet(client, mirror)
        tasks = [asyncio.ensure_future(work) for work in (mirror.follow(), kubelet.run())]
        await apply(
            client, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
        )
        names = [f"{namespace}-{number}" for number in range(NODE_COUNT)]
        for number, name in enumerate(names):
            cpu = f"{8000 + int(random.random() * 24_000)}m"
            memory = f"{16_000 + int(random.random() * 96_000)}Mi"
            traits = {f"trait-{i}": "yes" for i in range(TRAIT_COUNT) if random.random() < 0.5}
            content = ready_node(
                name, cpu=cpu, memory=memory, zone=f"zone-{number % 3}", labels=traits
            )
            await client.request("POST", "/api/v1/nodes", content)
        try:
            yield client, mirror
        finally:
            await _delete_pods(client, namespace)
            for name in names:
                await client.request("DELETE", f"/api/v1/nodes/{name}")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _delete_pods(client: ApiClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods?limit={DELETED_AT_ONCE}"
    while (await client.get(path))["items"]:
        await client.request("DELETE", path, {"gracePeriodSeconds": 0})


def _preferences(random: Random) -> dict[str, Any]:
    """Drawn weights for the traits of nodes: few nodes are equally good."""
    terms = [
        {
            "weight": 1 + int(random.random() * 100),
            "preference": {"matchExpressions": [{"key": f"trait-{i}", "operator": "Exists"}]},
        }
        for i in range(TRAIT_COUNT)
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def sized_pod(name: str, random: Random) -> dict[str, Any]:
    """A pod with drawn requests and preferences."""
    cpu, memory = 50 + int(random.random() * 900), 64 + int(random.random() * 2000)
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    container = {"name": "c", "image": "registry.example/app", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "affinity": _preferences(random)},
    }


async def until_bound(mirror: Mirror, namespace: str, count: int) -> None:
    def bound_count() -> int:
        return sum(
            bool(pod["spec"].get("nodeName"))
            for (space, _), pod in mirror.pods.items()
            if space == namespace
        )

    await mirror.until(lambda: bound_count() == count, f"{count} pods bound", PATIENCE_SECONDS)


async def create_pods(client: ApiClient, mirror: Mirror, namespace: str) -> None:
    """Create pods of many sizes at a fixed rate, and wait until all are bound."""
    random = stream(11, namespace)
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(POD_COUNT):
        pod = sized_pod(f"p-{number}", random)
        await asyncio.sleep(max(start + number / PODS_PER_SECOND - loop.time(), 0.0))
        await client.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    # One pod was there before.
    await until_bound(mirror, namespace, POD_COUNT + 1)


async def until_the_scheduler_decides(client: ApiClient, mirror: Mirror, namespace: str) -> None:
    """Wait until a first pod is bound. A scheduler that starts reads the pods that wait as a list,
    in the order of their names, and the shadow cannot know this order."""
    pod = sized_pod("first", stream(12, namespace))
    await client.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    await until_bound(mirror, namespace, 1)


def shadowed(plane: ControlPlane, namespace: str, folder: Path, *more: str) -> dict[str, Any]:
    """The report of a shadow while pods are created and a scheduler places them."""
    arguments = ("shadow", "--kubeconfig", plane.kubeconfig("scheduler"), "-o", "json", *more)

    async def world() -> str:
        async with cluster(plane, namespace) as (client, mirror):
            await until_the_scheduler_decides(client, mirror, namespace)
            shadow = SchedulerProcess("shadow", arguments, folder / "shadow.log")
            with replicas(shadow):
                shadow.wait_until_printed("are compared")
                await create_pods(client, mirror, namespace)
                await asyncio.sleep(2.0)
                assert shadow.end(signal.SIGTERM) == 0, shadow.output
                return shadow.output

    lines = asyncio.run(world())
    return json.loads(lines[lines.index("\n{\n") :])


def check_reads_only(plane: ControlPlane) -> None:
    """Check in the audit log that there are only gets, lists and watches, and no refusals."""
    entries = plane.audited()
    verbs = Counter(entry["verb"] for entry in entries)
    assert set(verbs) <= {"get", "list", "watch"}, verbs
    assert verbs["watch"] > 5
    refused = [entry for entry in entries if entry["responseStatus"]["code"] in (401, 403)]
    assert not refused


def test_the_shadow_agrees_with_kube_scheduler_and_only_reads(
    plane: ControlPlane, kube_scheduler: Path, tmp_path: Path
) -> None:
    config = config_file(
        tmp_path / "theirs.json",
        {
            "clientConnection": {
                "kubeconfig": plane.kubeconfig("admin"),
                "qps": 5000,
                "burst": 5000,
            },
            "leaderElection": {"leaderElect": False},
            "percentageOfNodesToScore": 100,
        },
    )
    arguments = [kube_scheduler, "--config", config, "--secure-port=0"]
    with (tmp_path / "kube-scheduler.log").open("wb") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT)
    try:
        report = shadowed(plane, "upstream", tmp_path, "--out", str(tmp_path / "out"))
    finally:
        process.kill()
        process.wait()
    decisions = report["decisions"]
    print(f"{NODE_COUNT} nodes, {POD_COUNT} pods, {PODS_PER_SECOND} pods/s:")
    print(json.dumps(decisions), *report["disagreements"], sep="\n")
    assert decisions["compared"] == POD_COUNT
    assert decisions["medianBestNodes"] <= 3
    # The number of decisions during a binding in flight depends on the load of the machine.
    assert decisions["shareBest"] >= 0.99
    assert decisions["shareBestWhenReordered"] >= 0.999, report["disagreements"]
    assert report["stream"]["missedEvents"] == 0
    check_reads_only(plane)
    runs = [answer("simulate", tmp_path / "out" / "recording", "-o", "json") for _ in "12"]
    first, second = map(json.loads, runs)
    print(first["digest"])
    assert first["digest"] == second["digest"]
    assert sum(each["boundAt"] is not None for each in first["pods"].values()) == POD_COUNT


@pytest.mark.parametrize(("user", "context"), [("stranger", ""), ("scheduler", "nope")])
def test_without_rights_or_with_a_wrong_context_the_shadow_ends_with_one_line(
    plane: ControlPlane, tmp_path: Path, user: str, context: str
) -> None:
    more = ("--context", context) if context else ()
    arguments = ("shadow", "--kubeconfig", plane.kubeconfig(user), *more)
    shadow = SchedulerProcess("shadow", arguments, tmp_path / "shadow.log")
    with replicas(shadow):
        assert shadow.exit_code() == 3
    *_, line = shadow.output.splitlines()
    assert (context or "forbidden") in line
    assert "Traceback" not in shadow.output


def test_the_shadow_agrees_with_bayplan_run(plane: ControlPlane, tmp_path: Path) -> None:
    config = config_file(
        tmp_path / "ours.json",
        {
            "clientConnection": {"qps": 5000, "burst": 5000},
            "leaderElection": {"leaderElect": False},
        },
    )
    kubeconfig = plane.kubeconfig("admin")
    arguments = ("run", "--kubeconfig", kubeconfig, "--config", config, "--secure-port=0")
    running = SchedulerProcess("run", arguments, tmp_path / "run.log")
    with replicas(running):
        report = shadowed(plane, "own", tmp_path)
    decisions = report["decisions"]
    assert decisions["compared"] == POD_COUNT
    assert decisions["shareBestWhenReordered"] == 1.0, report["disagreements"]
    check_reads_only(plane)
