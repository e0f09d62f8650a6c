"""The commands of every fix are run by a shell, word for word, and the pods that wait bind.

A story is a cluster with a pod or a workload that waits. Each fix is tried in a fresh copy of the
story, on a real API server with kube-controller-manager and kube-scheduler. A fix that adds a node
has no command for that: the test adds the node.

$BAYPLAN_FIX_PODS, $BAYPLAN_FIX_WORKLOADS: how many stories of each; $BAYPLAN_FIX_SEED: other ones.
The full test has 100 and 40.
"""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pytest

from bayplan.adapters.live.client import (
    STRATEGIC_MERGE_PATCH,
    ApiClient,
    ClientOptions,
    open_client,
)
from bayplan.config import SchedulerConfig
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Explanation, Fix
from bayplan.model.live_reading import model_of_cluster
from bayplan.plugins.registry import default_registry
from bayplan.rng import stream
from tests.live.beside import Cluster, condition_of, kube_scheduler, node_of
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import Kubelet
from tests.live.mirror import Mirror, Object
from tests.live.unschedulable_pods import base_objects, drawn
from tests.live.waiting_workloads import drawn_workload, pod_count, surroundings

pytestmark = pytest.mark.timeout(7200)

PODS = int(os.environ.get("BAYPLAN_FIX_PODS", "6"))
WORKLOADS = int(os.environ.get("BAYPLAN_FIX_WORKLOADS", "3"))
SEED = os.environ.get("BAYPLAN_FIX_SEED", "fixes")
SETTLE_SECONDS = 30.0
BOUND_SECONDS = 30.0
POLL_SECONDS = 0.1
COMMAND_SECONDS = 60.0
NAME = "waiting"


@final
@dataclass
class Story:
    """One cluster, which can be created again and again."""

    name: str
    #: Created first, and decided before the rest is created.
    surroundings: list[Object]
    objects: list[Object]
    #: Pods that are to exist at the beginning, with a node or without.
    pods: int = 1
    #: The pods that the workload is to have at the end.
    wanted: int = 1
    #: A change of the last object, when all its pods run.
    patch: Object | None = None
    is_own: Callable[[Object], bool] = bool


def pod_story(number: int) -> Story:
    objects = drawn(stream(number, SEED), NAME)
    base = [_without_binding(each) for each in base_objects()]
    return Story(f"pod {number}", base, objects, is_own=_is_named)


def _without_binding(content: Object) -> Object:
    """A claim that its controller binds: the controller wants to do that itself."""
    if content["kind"] == "PersistentVolumeClaim":
        content["metadata"].pop("annotations")
        content["spec"].pop("volumeName")
    return content


def workload_story(number: int) -> Story:
    made, patch = drawn_workload(stream(number, f"{SEED} of workloads"), NAME)
    count = pod_count(made)
    is_ordered = made["kind"] == "StatefulSet"
    before = 1 if is_ordered else count
    return Story(f"workload {number}", surroundings(), [made], before, count, patch, _is_labelled)


def _is_named(pod: Object) -> bool:
    return pod["metadata"]["name"] == NAME


def _is_labelled(pod: Object) -> bool:
    return (pod["metadata"].get("labels") or {}).get("app") == NAME


@final
class Stage:
    """The control plane on which stories are played."""

    def __init__(self, client: ApiClient, mirror: Mirror, kubeconfig: str, folder: Path) -> None:
        self.client = client
        self.cluster = Cluster(client)
        self.mirror = mirror
        self.env = {**os.environ, "KUBECONFIG": kubeconfig, "KUBECACHEDIR": str(folder)}

    def pods(self, story: Story) -> list[Object]:
        """The pods of the workload that are not being deleted."""
        pods = [pod for pod in self.mirror.pods.values() if story.is_own(pod)]
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]

    def waiting(self, story: Story) -> list[Object]:
        return [pod for pod in self.pods(story) if not node_of(pod)]

    async def until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        end = asyncio.get_running_loop().time() + seconds
        while not is_so():
            if asyncio.get_running_loop().time() > end:
                return False
            await self.cluster.provision("default")
            await asyncio.sleep(POLL_SECONDS)
        return True

    @asynccontextmanager
    async def copy(self, story: Story) -> AsyncIterator[bool]:
        """A fresh copy of a story's state. Yields whether pods wait in it."""
        await self.cluster.empty()
        await self.until(lambda: not self.mirror.pods and not self.mirror.nodes, SETTLE_SECONDS)
        for each in story.surroundings:
            await self.cluster.create(each)
        claims = [each for each in story.surroundings if each["kind"] == "PersistentVolumeClaim"]
        for each in claims:
            await self._until_bound(each)
        controllers = [each for each in story.surroundings if "template" in each.get("spec", {})]
        if controllers:
            await self.until(lambda: self._are_running(4 + 3 + 2 + 2), SETTLE_SECONDS)
        for each in story.objects:
            await self.cluster.create(each)
        if story.patch is not None:
            await self.until(lambda: self._all_run(story), SETTLE_SECONDS)
            path = await self.cluster.path(story.objects[-1])
            await self.client.request("PATCH", path, story.patch, media_type=STRATEGIC_MERGE_PATCH)
            await self.until(lambda: len(self.pods(story)) > story.pods, SETTLE_SECONDS)
        await self.until(lambda: self._is_decided(story), SETTLE_SECONDS)
        yield bool(self.waiting(story))

    async def _until_bound(self, claim: Object) -> None:
        path = await self.cluster.path(claim)
        while (await self.client.get(path))["status"].get("phase") != "Bound":
            await asyncio.sleep(POLL_SECONDS)

    def _are_running(self, count: int) -> bool:
        pods = self.mirror.pods.values()
        return sum(pod["status"].get("phase") == "Running" for pod in pods) >= count

    def _all_run(self, story: Story) -> bool:
        pods = self.pods(story)
        running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
        return len(running) == len(pods) == story.pods

    def _is_decided(self, story: Story) -> bool:
        """Whether all pods of the workload are there, and each has a node or was refused one."""
        pods = self.pods(story)
        decided = [pod for pod in pods if node_of(pod) or condition_of(pod)]
        gated = [pod for pod in pods if pod["spec"].get("schedulingGates")]
        return len(pods) >= story.pods and len(decided) + len(gated) >= len(pods)

    async def explanation(self, story: Story) -> Explanation:
        meta = min(self.waiting(story), key=lambda pod: pod["metadata"]["name"])["metadata"]
        name = f"{meta['namespace']}/{meta['name']}"
        registry, config = default_registry(()), SchedulerConfig()
        model = await model_of_cluster(self.client, config, registry, name)
        try:
            # Admission runs under virtual time, which has an event loop of its own.
            return await asyncio.to_thread(explain_pod, model, name)
        finally:
            model.close()

    async def carry_out(self, fix: Fix) -> str:
        """Run the commands of a fix. Returns what the shell says of one that fails; "": none."""
        for change in fix.changes:
            if change.verb == "create" and (fix.changes_what == "node" or not fix.commands):
                await self.cluster.apply(change)
        for command in fix.commands:
            process = await asyncio.create_subprocess_exec(
                "sh",
                "-c",
                command,
                env=self.env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            _, errors = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
            if process.returncode:
                return f"{command}: {errors.decode().strip()}"
        return ""

    def helps(self, story: Story, fix: Fix) -> bool:
        """Whether as many pods have a node as the fix says."""
        pods, waiting = self.pods(story), len(self.waiting(story))
        is_whole = fix.helped >= fix.waiting
        placed = len(pods) - waiting
        if is_whole:
            return not waiting and placed >= story.wanted
        return placed >= story.wanted - (fix.waiting - fix.helped)


async def play(stage: Stage, story: Story, counts: Counter[str], lines: list[str]) -> None:
    """Try every fix of a story."""
    number = 0
    while True:
        async with stage.copy(story) as waits:
            if not waits:
                counts["stories in which nothing waits"] += 1
                return
            explanation = await stage.explanation(story)
            if not number:
                counts["stories"] += 1
                counts["stories without a fix"] += not explanation.fixes
            if number >= len(explanation.fixes):
                if not explanation.fixes:
                    lines.append(f"{story.name}: no fix: {explanation.message}")
                return
            await _try(stage, story, explanation.fixes[number], counts, lines)
        number += 1


async def _try(
    stage: Stage, story: Story, fix: Fix, counts: Counter[str], lines: list[str]
) -> None:
    counts["fixes"] += 1
    counts[f"fixes of a {fix.changes_what}"] += 1
    head = f"{story.name}: {fix.steps} ({fix.helped} of {fix.waiting})"
    problem = await stage.carry_out(fix)
    if problem:
        lines.append(f"{head}: {problem}")
        return
    if await stage.until(lambda: stage.helps(story, fix), BOUND_SECONDS):
        counts["work"] += 1
        return
    pods = {
        pod["metadata"]["name"]: node_of(pod) or condition_of(pod).get("message", "")
        for pod in stage.pods(story)
    }
    lines.append(f"{head}: {fix.commands}: {pods}")


Playing = Callable[[Stage], Awaitable[None]]


async def on_stage(plane: ControlPlane, folder: Path, playing: Playing) -> None:
    async with open_client(plane.kubeconfig("admin"), ClientOptions(qps=-1)) as client:
        await Cluster(client).delete_priority_classes()
        mirror = Mirror(client)
        kubelet = Kubelet(client, mirror)
        around = [asyncio.create_task(each) for each in (mirror.follow(), kubelet.run())]
        try:
            await playing(Stage(client, mirror, plane.kubeconfig("admin"), folder))
        finally:
            for task in around:
                task.cancel()
            await asyncio.gather(*around, return_exceptions=True)


@pytest.mark.usefixtures("controller_manager_with_volumes")
@pytest.mark.parametrize(
    ("count", "story_of"),
    [(PODS, pod_story), (WORKLOADS, workload_story)],
    ids=["pods", "workloads"],
)
def test_the_commands_of_every_fix_give_pods_that_wait_a_node(
    control_plane: ControlPlane, tmp_path: Path, count: int, story_of: Callable[[int], Story]
) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl")
    counts: Counter[str] = Counter()
    lines: list[str] = []

    async def playing(stage: Stage) -> None:
        number = 0
        while counts["stories"] < count:
            await play(stage, story_of(number), counts, lines)
            print(number, dict(counts), *lines[-1:], flush=True)
            number += 1

    with kube_scheduler(control_plane, tmp_path):
        asyncio.run(on_stage(control_plane, tmp_path, playing))
    print(dict(counts), *lines, sep="\n")
    assert counts["work"] >= 0.98 * counts["fixes"], lines
    assert counts["fixes"] >= count
