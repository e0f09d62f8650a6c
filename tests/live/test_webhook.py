"""`bayplan webhook` on a real API server: its warnings are what kube-scheduler decides, and it
never refuses a creation.

$BAYPLAN_WEBHOOK_CREATIONS: how many pods are created beside kube-scheduler.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from bayplan.ports import NotFoundError
from bayplan.rng import Stream, stream
from tests.kit.manifests import pod
from tests.live.beside import Cluster, condition_of, kube_scheduler, node_of
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import ready_node
from tests.live.mirror import Mirror, Object
from tests.live.processes import SchedulerProcess, replicas
from tests.live.unschedulable_pods import base_objects, drawn
from tests.live.webhook_world import (
    REGISTRATION,
    Creator,
    Webhook,
    creator,
    grant,
    metrics,
    registered,
)

CREATIONS = int(os.environ.get("BAYPLAN_WEBHOOK_CREATIONS", "120"))
#: Pods that stay placed at once.
PLACED_MAX = 6

pytestmark = pytest.mark.timeout(300 + CREATIONS)


class Stage(NamedTuple):
    """A webhook that an API server calls."""

    webhook: Webhook
    process: SchedulerProcess
    client: ApiClient
    creator: Creator
    mirror: Mirror


@asynccontextmanager
async def _stage(plane: ControlPlane, folder: Path, *arguments: str) -> AsyncGenerator[Stage]:
    webhook = Webhook(plane, folder, *arguments)
    async with (
        open_client(plane.kubeconfig("admin"), ClientOptions(qps=-1)) as client,
        creator(plane, client) as creating,
    ):
        await grant(client)
        mirror = Mirror(client)
        following = asyncio.ensure_future(mirror.follow())
        process = webhook.start()
        try:
            with replicas(process):
                process.wait_until_printed("The cluster was read")
                async with registered(webhook, client, creating):
                    yield Stage(webhook, process, client, creating, mirror)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


def pod_spec(cpu: int) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"containers": [container]}


def workload(kind: str, cpu: int, **spec: Any) -> Object:
    version, _, own_kind = kind.rpartition(" ")
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(cpu)}
    own: dict[str, Any] = {"template": template, **spec}
    if version == "batch/v1":
        template["spec"]["restartPolicy"] = "Never"
    else:
        own["selector"] = {"matchLabels": labels}
    if own_kind == "CronJob":
        own = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": own}}
    meta = {"name": own_kind.lower(), "namespace": "default"}
    return {"apiVersion": version, "kind": own_kind, "metadata": meta, "spec": own}


# ---- texts --------------------------------------------------------------------------------------


async def test_a_pod_and_each_workload_that_no_node_can_hold_are_warned_of(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with _stage(control_plane, tmp_path, "--budget", "5s") as stage:
        create = stage.creator.create
        cluster = Cluster(stage.client)
        await cluster.create(ready_node("small", cpu=2))
        tainted = [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]
        await cluster.create(ready_node("tainted", cpu=64, taints=tainted))
        await _until_known(stage, nodes=2)
        shortage = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)"
        nearest = "nearest small lacks 2 cpu"
        assert await create(pod("large", cpu=4)) == [
            f"no node can hold this pod: {shortage}, {nearest}"
        ]
        assert await create(pod("small", cpu=1)) == []
        for kind in ("apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet"):
            name = kind.partition(" ")[2]
            assert await create(workload(kind, 4)) == [
                f"no node can hold a pod of this {name}: {shortage}, {nearest}"
            ]
        for kind in ("batch/v1 Job", "batch/v1 CronJob"):
            name = kind.partition(" ")[2]
            assert await create(workload(kind, 4), dry_run=True) == [
                f"no node can hold a pod of this {name}: {shortage}, {nearest}"
            ]
            assert await create(workload(kind, 1)) == []
        assert await create(workload("apps/v1 DaemonSet", 4), dry_run=True) == [
            "1 of 1 node of this DaemonSet cannot hold its pod: 1 Insufficient cpu"
        ]
        assert await create(workload("apps/v1 DaemonSet", 1)) == []
        three = workload("apps/v1 ReplicaSet", 1, replicas=4)
        three["metadata"]["name"] = "three"
        assert await create(three) == [
            f"only 2 pods of this ReplicaSet have a node: {shortage}, nearest small lacks 1 cpu"
        ]
        samples = await metrics(stage.webhook)
        assert samples["bayplan_webhook_read_failures_total"] == 0
        assert 'bayplan_webhook_reviews_total{result="failed"}' not in samples


async def _until_known(stage: Stage, *, nodes: int) -> None:
    """Wait until the webhook knows the nodes."""
    async with asyncio.timeout(60.0):
        while True:
            texts = await stage.creator.create(pod("probe", cpu=1_000_000), dry_run=True)
            if any(f"0/{nodes} nodes" in text for text in texts):
                return
            await asyncio.sleep(0.05)


# ---- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_no_creation_is_refused_when_the_webhook_is_killed_or_hangs(
    control_plane: ControlPlane, tmp_path: Path, number: signal.Signals
) -> None:
    async with _stage(control_plane, tmp_path) as stage:
        await Cluster(stage.client).create(ready_node("n", cpu=2))
        # Until now it was called: the stage waits for a warning.
        stage.process.send(number)
        for count in range(5):
            assert await stage.creator.create(pod(f"after-{count}", cpu=4)) == []


async def test_an_answer_that_would_be_late_has_no_warning_and_is_counted(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    webhook = Webhook(control_plane, tmp_path, "--budget", "1us")
    async with (
        open_client(control_plane.kubeconfig("admin")) as client,
        creator(control_plane, client) as creating,
    ):
        await grant(client)
        process = webhook.start()
        with replicas(process):
            process.wait_until_printed("The cluster was read")
            await Cluster(client).create(webhook.registration())
            try:
                async with asyncio.timeout(60.0):
                    late = 'bayplan_webhook_reviews_total{result="late"}'
                    while not (await metrics(webhook)).get(late):
                        assert await creating.create(pod("p", cpu=4), dry_run=True) == []
            finally:
                await client.request("DELETE", REGISTRATION)


# ---- beside kube-scheduler ----------------------------------------------------------------------


def _fitting(random: Stream, name: str) -> Object:
    """A pod that has a node as long as there is room."""
    made = pod(name, cpu=1)
    requests = made["spec"]["containers"][0]["resources"]["requests"]
    requests["cpu"] = f"{random.randint(50, 700)}m"
    requests["memory"] = f"{random.randint(64, 500)}Mi"
    return made


async def test_a_pod_is_warned_of_if_and_only_if_kube_scheduler_has_no_node_for_it(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    counts: Counter[str] = Counter()
    wrong: list[str] = []

    with kube_scheduler(control_plane, tmp_path):
        async with _stage(control_plane, tmp_path, "--budget", "5s") as stage:
            cluster, random = Cluster(stage.client), stream(5, "webhook")
            for content in base_objects():
                await cluster.create(content)
            await _until_known(stage, nodes=6)
            placed: list[Object] = []
            for number in range(CREATIONS):
                name = f"p{number}"
                objects = [_fitting(random, name)] if random.random() < 0.5 else drawn(random, name)
                *needed, made = objects
                for content in needed:
                    await cluster.create(content)
                warnings = await stage.creator.create(made)
                decision = await _decision(stage, made)
                counts[f"{decision}, {'warned' if warnings else 'not warned'}"] += 1
                if bool(warnings) != (decision == "unschedulable"):
                    wrong.append(f"{name}: {decision}, but {warnings}: {made['spec']}")
                placed.append(made)
                if decision != "bound" or len(placed) > PLACED_MAX:
                    await cluster.delete(
                        await cluster.path(placed.pop(0 if decision == "bound" else -1))
                    )
    print(dict(counts), *wrong, sep="\n")
    assert not wrong
    assert min(counts["bound, not warned"], counts["unschedulable, warned"]) > CREATIONS // 5


async def _decision(stage: Stage, made: Object) -> str:
    """What kube-scheduler decided about a pod: bound, unschedulable, or none."""
    key = (made["metadata"]["namespace"], made["metadata"]["name"])
    if made["spec"].get("schedulingGates") or await _lacks_claim(stage, made):
        return "none"

    def present() -> Object:
        return stage.mirror.pods.get(key, {})

    await stage.mirror.until(lambda: bool(node_of(present()) or condition_of(present())), str(key))
    return "bound" if node_of(present()) else "unschedulable"


async def _lacks_claim(stage: Stage, made: Object) -> bool:
    """Whether the claim of a pod does not exist: kube-scheduler does not try such a pod."""
    for each in made["spec"].get("resourceClaims") or ():
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/"
        try:
            await stage.client.get(path + each["resourceClaimName"])
        except NotFoundError:
            return True
    return False
