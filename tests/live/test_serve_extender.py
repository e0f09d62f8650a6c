"""`bayplan serve-extender` with a real kube-scheduler as its client."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.control_plane import ControlPlane
from tests.live.kubelet import node
from tests.live.priorities import add_running, priority
from tests.live.processes import SchedulerProcess, config_file, free_port, replicas
from tests.live.run_world import Cluster, run_replicas, small_pod
from tests.live.world import World
from tests.live.world import play as play_in_a_world
from tests.live.world import pod as world_pod

pytestmark = pytest.mark.timeout(400)

#: A policy that no plugin of kube-scheduler has: never the first, best the last.
POLICY = """
from bayplan import ScalarFilterPlugin, ScalarScorePlugin, Code, Status


class LastLetter(ScalarFilterPlugin, ScalarScorePlugin):
    name = "LastLetter"

    def filter_node(self, state, pod, node):
        return Status(Code.UNSCHEDULABLE, ("not the first",)) if node.name.endswith("-0") else None

    def score_node(self, state, pod, node):
        return 10 * int(node.name[-1])
"""


@pytest.fixture(name="kube_scheduler")
def _kube_scheduler() -> Path:
    found = Path(os.environ.get("KUBEBUILDER_ASSETS") or "") / "kube-scheduler"
    if not os.access(found, os.X_OK):
        pytest.skip("wants a kube-scheduler in KUBEBUILDER_ASSETS")
    return found


@contextlib.contextmanager
def running(program: Path, config: str, log: Path) -> Iterator[None]:
    """A kube-scheduler as long as the block lasts."""
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
    """A kube-scheduler that asks our policy to filter and what ``verbs`` say, as long as the block
    lasts."""
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

    async def story(found: Cluster) -> None:
        names = ["a", "b", "c"]
        await found.add_pods("upstream", *names)
        await found.until_bound(*names)
        placed = {found.mirror.pods[namespace, name]["spec"]["nodeName"] for name in names}
        assert placed == {f"{namespace}-9"}
        await only_the_first(found)

    async def only_the_first(found: Cluster) -> None:
        refused = small_pod("d", "upstream")
        refused["spec"]["nodeSelector"] = {"kubernetes.io/hostname": f"{namespace}-0"}
        path = f"/api/v1/namespaces/{namespace}/pods"
        await found.client.request("POST", path, refused)
        await found.mirror.until(
            lambda: "not the first" in _message(found, "d"), "the extender's reason at the pod"
        )

    def _message(found: Cluster, name: str) -> str:
        status = found.mirror.pods.get((namespace, name), {}).get("status", {})
        return " ".join(each.get("message", "") for each in status.get("conditions", []))

    verbs = {"prioritizeVerb": "prioritize", "weight": 100, "nodeCacheCapable": cache_capable}
    with lending(control_plane, kube_scheduler, tmp_path, verbs):
        run_replicas(control_plane, namespace, story)


@pytest.mark.parametrize("cache_capable", [True, False])
def test_kube_scheduler_evicts_nothing_where_the_extender_would_reject_the_pod(
    control_plane: ControlPlane, kube_scheduler: Path, tmp_path: Path, cache_capable: bool
) -> None:
    """Those on the first node are the less important ones: without us they would have to go."""

    async def story(world: World) -> None:
        await world.add_nodes(node("n-0", cpu=1), node("n-1", cpu=1))
        await add_running(world, "n-0", "a", 0)
        await add_running(world, "n-1", "b", 100)
        high = await priority(world, 1000)
        await world.until_running(2)
        await world.add_pods(world_pod("p", cpu=1, scheduler="upstream", spec=high))
        await world.until_bound("p")
        assert world.bound() == {"a": "n-0", "p": "n-1"}

    verbs = {"preemptVerb": "preempt", "nodeCacheCapable": cache_capable}
    with lending(control_plane, kube_scheduler, tmp_path, verbs):
        play_in_a_world(control_plane, story)
