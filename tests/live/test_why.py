"""`bayplan why` beside the real kube-scheduler: the same message. What the fixes come to is the
matter of `test_fixes`.

Each drawn pod fits nowhere. Its explanation must have the sentence that kube-scheduler wrote.
$BAYPLAN_WHY_PODS: how many pods; $BAYPLAN_WHY_SEED: other pods; $BAYPLAN_WHY_KUBERNETES: the
version of the kube-scheduler in $KUBEBUILDER_ASSETS, if it is not the newest.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bayplan.adapters.live.client import ApiClient, ClientOptions, open_client
from bayplan.cli.streams import EXIT_UNREADABLE
from bayplan.config import SchedulerConfig, config_from
from bayplan.config.kubernetes_versions import NEWEST, requested_version
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.model.live_reading import model_of_cluster
from bayplan.plugins.registry import default_registry
from bayplan.rng import stream
from tests.cli.command_line import bayplan
from tests.live.beside import Cluster, condition_of, kube_scheduler, node_of
from tests.live.control_plane import ControlPlane
from tests.live.mirror import Object
from tests.live.unschedulable_pods import base_objects, drawn

pytestmark = pytest.mark.timeout(3000)

PODS = int(os.environ.get("BAYPLAN_WHY_PODS", "20"))
SEED = os.environ.get("BAYPLAN_WHY_SEED", "unschedulable")
ATTEMPT_SECONDS = 15.0
VERSION = requested_version(os.environ.get("BAYPLAN_WHY_KUBERNETES", ""), "kubernetes") or NEWEST


async def explained(
    client: ApiClient, name: str, config: SchedulerConfig | None = None
) -> Explanation:
    registry = default_registry(())
    config = config or config_from(DEFAULT_CONFIG, kubernetes=VERSION)
    model = await model_of_cluster(client, config, registry, name)
    try:
        # Admission runs under virtual time, which has an event loop of its own.
        return await asyncio.to_thread(explain_pod, model, name)
    finally:
        model.close()


@asynccontextmanager
async def pod_that_waits(cluster: Cluster, objects: list[Object]) -> AsyncIterator[Object]:
    """Create the objects, of which the last is a pod; yields the pod after its first attempt."""
    try:
        for each in objects:
            await cluster.create(each)
        path = await cluster.path(objects[-1])
        yield await cluster.until(path, ATTEMPT_SECONDS, lambda p: condition_of(p) or node_of(p))
    finally:
        for each in reversed(objects):
            await cluster.delete(await cluster.path(each))


async def compare(plane: ControlPlane, lines: list[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    options = ClientOptions(qps=-1)
    async with open_client(plane.kubeconfig("admin"), options) as client:
        cluster = Cluster(client)
        await cluster.delete_priority_classes()
        for each in base_objects():
            await cluster.create(each)
        number = 0
        while counts["pods"] < PODS:
            name = f"p{number}"
            objects = drawn(stream(number, SEED), name)
            number += 1
            async with pod_that_waits(cluster, objects) as pod:
                if node_of(pod):
                    counts["fits after all"] += 1
                    continue
                counts["pods"] += 1
                await _compare_one(
                    cluster, name, condition_of(pod).get("message", ""), counts, lines
                )
    return counts


async def _compare_one(
    cluster: Cluster, name: str, message: str, counts: Counter[str], lines: list[str]
) -> None:
    explanation = await explained(cluster.client, f"default/{name}")
    if explanation.message == message:
        counts["same sentence"] += 1
        counts["of these, no condition"] += not message
    else:
        lines.append(f"{name}: {explanation.message!r} for {message!r}")


def test_the_message_equals_that_of_kube_scheduler(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    lines: list[str] = []
    with kube_scheduler(control_plane, tmp_path):
        counts = asyncio.run(compare(control_plane, lines))
    print(dict(counts), *lines, sep="\n")
    assert counts["same sentence"] == counts["pods"] == PODS, lines


# ---- groups -------------------------------------------------------------------------------------

GATES = {"GenericWorkload": True}
GROUP_VERSION = "scheduling.k8s.io/v1beta1"
GROUPS = 10


def drawn_group(number: int) -> list[Object]:
    """The PodGroup and its members, of which not all fit."""
    random = stream(number, "groups")
    name = f"g{number}"
    count = random.randint(2, 6)
    policy = {"gang": {"minCount": count}}
    group = {
        "apiVersion": GROUP_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy},
    }
    cpu = random.choice(["1100m", "3"]) if count < 5 else random.choice(["700m", "900m"])
    members: list[Object] = []
    for index in range(count):
        (*_, pod) = drawn(stream(number, "members"), f"{name}-{index}")
        requests = {"requests": {"cpu": cpu}}
        pod["spec"] = {
            "containers": [{"name": "c", "image": "x", "resources": requests}],
            "schedulingGroup": {"podGroupName": name},
        }
        members.append(pod)
    return [group, *members]


async def compare_groups(plane: ControlPlane, lines: list[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    config = config_from(DEFAULT_CONFIG, "", "GenericWorkload=true")
    async with open_client(plane.kubeconfig("admin"), ClientOptions(qps=-1)) as client:
        cluster = Cluster(client)
        for each in base_objects():
            await cluster.create(each)
        for number in range(GROUPS):
            objects = drawn_group(number)
            sentences: list[tuple[str, str]] = []
            async with pod_that_waits(cluster, objects):
                for member in objects[1:]:
                    name = member["metadata"]["name"]
                    path = await cluster.path(member)
                    pod = await cluster.until(path, ATTEMPT_SECONDS, condition_of)
                    explanation = await explained(client, f"default/{name}", config)
                    sentences.append((explanation.message, condition_of(pod).get("message", "")))
                    counts["with a fix"] += bool(explanation.fixes)
            counts["members"] += len(sentences)
            counts["same sentence"] += sum(ours == theirs for ours, theirs in sentences)
            ours, theirs = (sorted(each) for each in zip(*sentences, strict=True))
            counts["groups with the same sentences"] += ours == theirs
            if ours != theirs:
                lines.append(f"{objects[0]['metadata']['name']}: {ours} for {theirs}")
    return counts


def test_members_of_groups_have_the_messages_of_kube_scheduler(
    group_plane: ControlPlane, tmp_path: Path
) -> None:
    """The first failing member depends on the order in which kube-scheduler received the pods."""
    lines: list[str] = []
    with kube_scheduler(group_plane, tmp_path, assets=None, **GATES):
        counts = asyncio.run(compare_groups(group_plane, lines))
    print(dict(counts), *lines, sep="\n")
    assert counts["groups with the same sentences"] == GROUPS, lines
    assert counts["with a fix"] == counts["members"]


# ---- rights -------------------------------------------------------------------------------------


def test_a_user_without_rights_gets_one_line(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.kubeconfig("stranger")
    result = bayplan("why", "default/p", "--kubeconfig", kubeconfig)
    assert (result.exit_code, result.stdout) == (EXIT_UNREADABLE, "")
    assert len(result.stderr.splitlines()) == 1
    assert 'User "stranger" cannot list resource' in result.stderr
