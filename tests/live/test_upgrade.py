"""`bayplan upgrade` beside two real kube-schedulers, one after the other, over the same cluster.

Each waiting pod of a drawn cluster is created alone, decided by kube-scheduler of one version, and
deleted; then the other version decides the same. A pod that `upgrade` names must get one of the
nodes, or the sentence, that it has for each version; of any other pod the recorders say what both
versions do (tests/parity/upgrades.py).

$BAYPLAN_UPGRADE_FROM and $BAYPLAN_UPGRADE_TO: folders with kube-scheduler and recorder of a
version. $BAYPLAN_UPGRADE_LIVE_SEEDS: as in 0-9.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.adapters.live.client import MERGE_PATCH, ClientOptions, open_client
from bayplan.api.objects import NODE
from bayplan.ports import ApiError
from tests.live.beside import Cluster, condition_of, empty, kube_scheduler, node_of
from tests.live.control_plane import ControlPlane
from tests.live.mirror import Object
from tests.parity import upgrades
from tests.parity.objects import KINDS
from tests.parity.upgrade_clusters import draw_cluster

pytestmark = pytest.mark.timeout(3000)

FIRST, LAST = map(int, os.environ.get("BAYPLAN_UPGRADE_LIVE_SEEDS", "0-9").split("-"))
ATTEMPT_SECONDS = 20.0
#: Families whose pods change the cluster when they are tried, wait while they are bound, are held
#: back without a condition, or whose binding fails (kube-scheduler 1.37.2 sends a claim that is
#: allocated without its allocation).
WITHOUT = (
    "preemptor",
    "claim to release",
    "free volumes",
    "storage capacity",
    "binding conditions",
    "claim of another pod",
    "allocated and free claims",
)


@pytest.fixture
def peers() -> tuple[upgrades.Peer, upgrades.Peer]:
    folders = [os.environ.get(f"BAYPLAN_UPGRADE_{each}") for each in ("FROM", "TO")]
    if not all(folders):
        pytest.skip("needs kube-schedulers in BAYPLAN_UPGRADE_FROM and BAYPLAN_UPGRADE_TO")
    old, new = (upgrades.peer_of(Path(folder or "")) for folder in folders)
    return old, new


def objects_of(lists: upgrades.Lists) -> Iterator[Object]:
    """The objects of a cluster without the pods that wait, in the order of their creation."""
    for name, kind in {"namespaces": "v1 Namespace", "nodes": NODE, **KINDS}.items():
        for content in lists.get(name, ()):
            yield with_kind(kind, content)
    for pod in lists["pods"]:
        if node_of(pod):
            yield with_kind("v1 Pod", pod)


def with_kind(kind: str, content: Object) -> Object:
    version, _, name = kind.partition(" ")
    meta = {key: value for key, value in content["metadata"].items() if key != "uid"}
    return {**content, "apiVersion": version, "kind": name, "metadata": meta}


def draw(seed: int) -> tuple[upgrades.Lists, list[str]]:
    """A cluster whose pods have no priority of their own, which an API server refuses."""
    lists, families = draw_cluster(seed, WITHOUT)
    for pod in lists["pods"]:
        pod["spec"].pop("priority", None)
    return lists, families


async def set_namespace(cluster: Cluster, content: Object) -> None:
    """Create it, or give it the labels: without its controller a namespace never goes."""
    try:
        await cluster.create(content)
    except ApiError as problem:
        if problem.reason != "AlreadyExists":
            raise
    patch = {"metadata": {"labels": content["metadata"]["labels"]}}
    await cluster.client.request(
        "PATCH", await cluster.path(content), patch, media_type=MERGE_PATCH
    )


async def decided(
    plane: ControlPlane, peer: upgrades.Peer, folder: Path, lists: upgrades.Lists
) -> dict[str, upgrades.Answer]:
    """Waiting pod → the node or the sentence that kube-scheduler gives it."""
    answers: dict[str, upgrades.Answer] = {}
    async with open_client(plane.kubeconfig("admin"), ClientOptions(qps=-1)) as client:
        cluster = Cluster(client)
        for each in objects_of(lists):
            if each["kind"] == "Namespace":
                await set_namespace(cluster, each)
            else:
                await cluster.create(each)
        with kube_scheduler(plane, folder, peer.program.parent):
            for pod in lists["pods"]:
                if node_of(pod):
                    continue
                content = with_kind("v1 Pod", pod)
                await cluster.create(content)
                path = await cluster.path(content)
                state = await cluster.until(
                    path, ATTEMPT_SECONDS, lambda p: node_of(p) or condition_of(p)
                )
                message = condition_of(state).get("message", "") if not node_of(state) else ""
                nodes = (node_of(state),) if node_of(state) else ()
                answers[upgrades.key_of(pod)] = upgrades.Answer(nodes, message, ())
                await cluster.delete(path)
    return answers


def is_one_of(actual: upgrades.Answer, expected: upgrades.Answer) -> bool:
    """Whether a pod got one of the best nodes, or the sentence."""
    if actual.nodes or expected.nodes:
        return bool(set(actual.nodes) & set(expected.nodes))
    return actual.message == expected.message


def test_the_two_kube_schedulers_decide_as_upgrade_says(
    peers: tuple[upgrades.Peer, upgrades.Peer], control_plane: ControlPlane, tmp_path: Path
) -> None:
    wrong: list[str] = []
    named_count = pod_count = 0
    for seed in range(FIRST, LAST + 1):
        lists, families = draw(seed)
        answer = upgrades.upgraded(lists, peers[0].version, peers[1].version)
        named = {pod.pod: upgrades.answers_of(pod) for pod in answer.pods}
        for index, peer in enumerate(peers):
            expected = upgrades.recorded(peer, lists)
            actual = asyncio.run(decided(control_plane, peer, tmp_path, lists))
            asyncio.run(empty(control_plane))
            for key, decision in actual.items():
                wanted = named[key][index] if key in named else expected[key]
                pod_count += 1
                named_count += key in named
                if not is_one_of(decision, wanted):
                    text = f"seed {seed} ({', '.join(families)}) {peer.release} {key}"
                    wrong.append(f"{text}: {decision}, and not {wanted}")
    assert not wrong, "\n".join(wrong)
    assert pod_count > named_count > 0
