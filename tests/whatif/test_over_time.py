"""Changes that are simulated: controllers, and drains that wait for budgets."""

from typing import Any

import pytest
from msgspec import structs

import bayplan
from bayplan.api.objects import POD
from bayplan.config import SchedulerConfig
from bayplan.model.picture import ClusterPicture
from bayplan.plugins.registry import default_registry
from bayplan.problems import BadInputError
from bayplan.sim.input.what_if import Scaling, WhatIf
from bayplan.whatif.comparison import WhatIfAnswer
from bayplan.whatif.over_time import what_if_over_time
from tests.kit.manifests import Content, node
from tests.sim.manifests import controller
from tests.whatif.clusters import budget, cluster_of, model_of, owned_pod


def simulated(change: WhatIf, cluster: ClusterPicture) -> WhatIfAnswer:
    model = model_of(cluster)
    before = sum(1 for _ in model.objects(POD))
    answer = what_if_over_time(model, change, SchedulerConfig(), default_registry(()))
    assert sum(1 for _ in model.objects(POD)) == before
    return answer


def stateful(replicas: int) -> list[Content]:
    """A StatefulSet with all its pods on n1, and a budget that allows no disruption."""
    selector = {"matchLabels": {"app": "db"}}
    owner = controller("StatefulSet", "db", replicas=replicas, selector=selector, uid="uid-db")
    owner["spec"]["template"]["metadata"]["labels"] = {"app": "db"}
    pods = [owned_pod(f"db-{i}", "n1", kind="StatefulSet") for i in range(replicas)]
    return [owner, *pods, budget("db", replicas)]


def test_a_budget_without_disruptions_delays_a_drain_to_the_end() -> None:
    cluster = cluster_of(node("n1"), node("n2"), *stateful(2))
    answer = simulated(WhatIf(drain=("n1",), until="30s"), cluster)
    assert not answer.moves
    [first, second] = [note for note in answer.notes if "the drain of n1 is not done" in note]
    assert first.startswith("at 30 s")
    assert "needs 2 healthy pods and has 2 currently" in second


def test_with_one_more_replica_all_pods_are_evicted_one_by_one() -> None:
    cluster = cluster_of(node("n1"), node("n2"), *stateful(2))
    scaling = Scaling(kind="StatefulSet", name="db", replicas=3)
    answer = simulated(WhatIf(drain=("n1",), scale=(scaling,), until="60s"), cluster)
    assert {(move.pod, move.target) for move in answer.moves} == {
        ("default/db-0", "n2"),
        ("default/db-1", "n2"),
        ("default/db-2", "n2"),
    }
    assert {move.source for move in answer.moves} == {"n1", ""}
    assert any("delayed the drain of n1 by 5 s" in note for note in answer.notes)
    assert (answer.before.pods, answer.after.pods) == (2, 3)
    assert answer.after.utilization["cpu"].requested == 3000


def test_a_pod_whose_node_was_gone_before_is_not_displaced() -> None:
    owner, *_ = stateful(1)
    stray = owned_pod("db-0", "gone", kind="StatefulSet")
    cluster = cluster_of(node("n1"), node("n2"), owner, stray)
    answer = simulated(WhatIf(cordon=("n1",), until="60s"), cluster)
    assert (answer.moves, answer.left_over, answer.after.waiting) == ((), (), 0)


def test_pods_that_do_not_fit_at_the_end_are_left_over() -> None:
    cluster = cluster_of(node("n1"), *stateful(1))
    answer = simulated(WhatIf(remove=("n1",), until="10s"), cluster)
    assert [left.pod for left in answer.left_over] == ["default/db-0"]
    assert answer.after.nodes == 0


def test_objects_without_their_content_are_refused() -> None:
    cluster = cluster_of(node("n1"))
    with pytest.raises(BadInputError, match="needs the content of all objects"):
        simulated(WhatIf(cordon=("n1",), until=1), ClusterPicture(cluster.objects))


@pytest.mark.parametrize("options", [{"until": "30s"}, {"until": 30.0}])
def test_a_cluster_in_python_simulates_changes_until_a_time(options: dict[str, Any]) -> None:
    with bayplan.Cluster.from_files(node("n1"), node("n2"), *stateful(2)) as cluster:
        answer = cluster.whatif(drain=["n1"], **options)
        assert answer.change.until_seconds == 30.0
        assert any("the drain of n1 is not done" in note for note in answer.notes)


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController", "Job"])
@pytest.mark.parametrize("change", [WhatIf(drain=("n1",), until="60s"), WhatIf(remove=("n1",))])
def test_pods_of_controllers_that_were_not_read_come_back(kind: str, change: WhatIf) -> None:
    pods = [owned_pod(f"web-{number}", "n1", kind=kind) for number in range(2)]
    answer = simulated(change, cluster_of(node("n1"), node("n2"), *pods))
    assert {(move.pod, move.source, move.target) for move in answer.moves} == {
        ("default/web-0", "n1", "n2"),
        ("default/web-1", "n1", "n2"),
    }
    assert not answer.gone
    assert any(f"{kind} default/web was not read" in note for note in answer.notes)


def test_a_stateful_set_that_was_not_read_keeps_the_claims_of_its_pods() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-0", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    database = owned_pod("db-0", "n1", kind="StatefulSet", volumes=volumes)
    cluster = cluster_of(node("n1"), node("n2"), claim, database)
    scaling = Scaling(kind="StatefulSet", name="db", replicas=2)
    answer = simulated(WhatIf(scale=(scaling,), until="60s"), cluster)
    assert [move.pod for move in answer.moves] == ["default/db-1"]


def test_daemon_pods_do_not_hinder_the_drain_of_a_dump_of_pods_and_nodes() -> None:
    agent = owned_pod("agent-a", "n1", kind="DaemonSet")
    cluster = cluster_of(node("n1"), node("n2"), agent, owned_pod("web-a", "n1"))
    answer = simulated(WhatIf(drain=("n1",), until="60s"), cluster)
    assert [move.pod for move in answer.moves] == ["default/web-a"]
    assert not any("unable to drain" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"),
        ("RayCluster", "ray.io/v1"),
        ("CloneSet", "apps.kruise.io/v1alpha1"),
    ],
)
@pytest.mark.parametrize("change", [WhatIf(drain=("n1",)), WhatIf(remove=("n1",))])
def test_pods_of_controllers_of_unknown_kinds_come_back(
    kind: str, version: str, change: WhatIf
) -> None:
    pods = [owned_pod("a-0", "n1"), owned_pod("a-1", "n1", "2"), owned_pod("b-0", "n1", "3")]
    for pod in pods:
        [owner] = pod["metadata"]["ownerReferences"]
        owner |= {"kind": kind, "apiVersion": version}
    cluster = cluster_of(node("n1", cpu="8"), node("n2", cpu="4"), *pods)
    answer = simulated(structs.replace(change, until="60s"), cluster)
    assert {(move.pod, move.source, move.target) for move in answer.moves} == {
        ("default/a-0", "n1", "n2"),
        ("default/a-1", "n1", "n2"),
    }
    assert [one.pod for one in answer.left_over] == ["default/b-0"]
    assert any(f"{kind} default/a" in n and "come back as they were" in n for n in answer.notes)


def test_pods_of_unknown_daemons_go_with_their_node() -> None:
    pod = owned_pod("a-0", "n1")
    [owner] = pod["metadata"]["ownerReferences"]
    owner |= {"kind": "DaemonSet", "apiVersion": "apps.kruise.io/v1alpha1"}
    cluster = cluster_of(node("n1"), node("n2"), pod)
    answer = simulated(WhatIf(remove=("n1",), until="60s"), cluster)
    assert not answer.moves
    assert not answer.left_over
