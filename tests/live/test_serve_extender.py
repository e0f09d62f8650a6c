"""`bayplan serve-extender` with a real kube-scheduler as its client."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.control_plane import ControlPlane
from tests.live.kubelet import ready_node
from tests.live.priorities import add_running, priority
from tests.live.processes import SchedulerProcess, config_file, free_port, replicas
from tests.live.run_world import Cluster, run_replicas
from tests.live.world import World, small_pod
from tests.live.world import play as play_in_a_world

pytestmark = pytest.mark.timeout(400)

#: A policy that no plugin of kube-scheduler has: reject the first node, prefer the last.
POLICY = """
from bayplan import ScalarFilterPlugin, ScalarScorePlugin, Code, Status


class LastLetter(ScalarFilterPlugin, ScalarScorePlugin):
    name = "LastLetter"

    def filter_node(self, state, pod, node):
        return Status(Code.UNSCHEDULABLE, ("not the first",)) if node.name.endswith("-0") else None

    def score_node(self, state, pod, node):
        return 10 * int(node.name[-1])
"""


@contextlib.contextmanager
def running(program: Path, config: str, log: Path) -> Iterator[None]:
    """A kube-scheduler that runs as long as the block."""
    arguments = ["--config", config, "--secure-port=0", "--leader-elect=false"]
    with log.open("wb") as file:
        process = subprocess.Popen([program, *arguments], stdout=file, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def profile() -> dict[str, Any]:
    enabled = [{"name": name} for name in ("PrioritySort", "LastLetter", "DefaultBinder")]
    plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    return {"profiles": [{"schedulerName": "policy", "plugins": plugins}]}


@contextlib.contextmanager
def lending(
    control_plane: ControlPlane, kube_scheduler: Path, folder: Path, verbs: dict[str, Any]
) -> Iterator[None]:
    """A kube-scheduler that calls `bayplan serve-extender` for Filter and ``verbs``. Both run as
    long as the block."""
    policy, port = folder / "policy.py", free_port()
    policy.write_text(POLICY)
    kubeconfig = control_plane.kubeconfig("admin")
    extender = {"urlPrefix": f"http://127.0.0.1:{port}/", "filterVerb": "filter", **verbs}
    ours = config_file(folder / "ours.json", profile())
    theirs = config_file(
        folder / "theirs.json",
        {
            "clientConnection": {"kubeconfig": kubeconfig},
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": "upstream"}],
            "extenders": [extender],
        },
    )
    arguments = ("serve-extender", "--kubeconfig", kubeconfig, "--config", ours)
    extra = ("--plugin", str(policy), "--port", str(port))
    serving = SchedulerProcess("extender", (*arguments, *extra), folder / "extender.log")
    with replicas(serving), running(kube_scheduler, theirs, folder / "kube-scheduler.log"):
        serving.wait_until_printed("Serving a scheduler extender")
        yield


@pytest.mark.parametrize("cache_capable", [True, False])
def test_kube_scheduler_places_pods_by_the_policy_of_the_extender(
    control_plane: ControlPlane, kube_scheduler: Path, tmp_path: Path, cache_capable: bool
) -> None:
    namespace = f"lent-{str(cache_capable).lower()}"

    async def scene(cluster: Cluster) -> None:
        names = ["a", "b", "c"]
        await cluster.add_pods("upstream", *names)
        await cluster.until_bound(*names)
        placed = {cluster.mirror.pods[namespace, name]["spec"]["nodeName"] for name in names}
        assert placed == {f"{namespace}-9"}
        await only_the_first(cluster)

    async def only_the_first(cluster: Cluster) -> None:
        refused = small_pod("d", "upstream")
        refused["spec"]["nodeSelector"] = {"kubernetes.io/hostname": f"{namespace}-0"}
        path = f"/api/v1/namespaces/{namespace}/pods"
        await cluster.client.request("POST", path, refused)
        await cluster.mirror.until(
            lambda: "not the first" in _message(cluster, "d"), "the extender's reason at the pod"
        )

    def _message(cluster: Cluster, name: str) -> str:
        status = cluster.mirror.pods.get((namespace, name), {}).get("status", {})
        return " ".join(each.get("message", "") for each in status.get("conditions", []))

    verbs = {"prioritizeVerb": "prioritize", "weight": 100, "nodeCacheCapable": cache_capable}
    with lending(control_plane, kube_scheduler, tmp_path, verbs):
        run_replicas(control_plane, namespace, scene)


@pytest.mark.parametrize("cache_capable", [True, False])
def test_kube_scheduler_evicts_no_pod_from_a_node_that_the_extender_rejects(
    control_plane: ControlPlane, kube_scheduler: Path, tmp_path: Path, cache_capable: bool
) -> None:
    """The pod on the first node has lower priority: without the extender it would be evicted."""

    async def scene(world: World) -> None:
        await world.add_nodes(ready_node("n-0", cpu=1), ready_node("n-1", cpu=1))
        await add_running(world, "n-0", "a", 0)
        await add_running(world, "n-1", "b", 100)
        high = await priority(world, 1000)
        await world.until_running(2)
        await world.add_pods(small_pod("p", cpu=1, scheduler="upstream", spec=high))
        await world.until_bound("p")
        assert world.bound() == {"a": "n-0", "p": "n-1"}

    verbs = {"preemptVerb": "preempt", "nodeCacheCapable": cache_capable}
    with lending(control_plane, kube_scheduler, tmp_path, verbs):
        play_in_a_world(control_plane, scene)
