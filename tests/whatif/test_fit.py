"""Whether a workload fits, and how many more copies fit."""

import pytest
from msgspec.structs import replace

import bayplan
from bayplan.problems import BadInputError
from bayplan.whatif.fit import fit, max_fit
from bayplan.whatif.text import PendingPodCounts
from tests.kit.manifests import Content, node, pod, pod_group, priority_class
from tests.sim.manifests import controller, template
from tests.whatif.clusters import (
    additions_to,
    cluster_of,
    deployment,
    model_of,
    unit_of,
)

GANG_LABEL = "scheduling.x-k8s.io/pod-group"


def gang_job(parallelism: int, cpu: str = "1") -> Content:
    job = controller("Job", "train", parallelism=parallelism, completions=parallelism)
    spec = deployment("train", 1, cpu)["spec"]["template"]["spec"]
    job["spec"]["template"] = {"metadata": {"labels": {GANG_LABEL: "g"}}, "spec": spec}
    return job


def test_pods_get_the_nodes_that_a_simulation_gives_them() -> None:
    nodes = [node(f"n{number}") for number in range(1, 6)]
    running = [pod(f"r{number}", nodeName=f"n{number}") for number in (1, 1 + 1)]
    workload = [deployment("web", 6), pod("big", cpu="4"), pod("huge", cpu="5")]
    cluster = cluster_of(*nodes, *running)
    answer = fit(model_of(cluster), additions_to(cluster, *workload))
    simulated = bayplan.simulate(*nodes, *running, *workload).summary
    assert {pod.pod: pod.node for pod in answer.pods if pod.node} == simulated.placements
    assert {pod.pod: pod.message for pod in answer.left_over} == simulated.unschedulable
    assert not answer.fits


def test_a_group_fits_as_a_whole_or_not_at_all() -> None:
    cluster = cluster_of(node("n1"))
    fits = fit(model_of(cluster), additions_to(cluster, pod_group(minimum=4), gang_job(4)))
    assert fits.fits
    assert [pod.node for pod in fits.pods] == ["n1"] * 4
    too_many = fit(model_of(cluster), additions_to(cluster, pod_group(minimum=5), gang_job(5)))
    assert not too_many.fits
    assert [pod.node for pod in too_many.pods] == [""] * 5
    assert all("Insufficient cpu" in pod.message for pod in too_many.pods)


def test_victims_of_preemption_are_named() -> None:
    low = pod("low", cpu="3", nodeName="n1", priority=0)
    cluster = cluster_of(node("n1"), priority_class("high", 1000), low)
    high = pod("high", cpu="2", priorityClassName="high")
    answer = fit(model_of(cluster), additions_to(cluster, high))
    assert answer.fits
    assert answer.victims == ["default/low"]


def test_pods_of_the_cluster_that_wait_are_placed_first() -> None:
    cluster = cluster_of(node("n1"), pod("waiting", cpu="2"), pod("huge", cpu="5"))
    workload = additions_to(cluster, pod("a", cpu="3"))
    model = model_of(cluster)
    with model.trial():
        answer = fit(model, workload)
    assert not answer.fits
    assert answer.waiting == PendingPodCounts(placed=1, waiting=1)
    answer = fit(model, workload, ignores_waiting=True)
    assert answer.fits
    assert answer.waiting == PendingPodCounts(waiting=2, is_ignored=True)


def test_a_pod_of_another_scheduler_is_refused() -> None:
    cluster = cluster_of(node("n1"))
    additions = additions_to(cluster, pod("a"))
    stranger = additions.pods[0]
    renamed = replace(stranger, spec=replace(stranger.spec, scheduler_name="volcano"))
    with pytest.raises(BadInputError, match="default/a is left to scheduler volcano"):
        fit(model_of(cluster), type(additions)((), (renamed,)))


# ---- how many ------------------------------------------------------------------------------


def test_the_count_ends_at_the_first_pod_that_does_not_fit() -> None:
    cluster = cluster_of(node("n1"), node("n2"), pod("a", cpu="3", nodeName="n1"))
    answer = max_fit(model_of(cluster), unit_of(additions_to(cluster, deployment("web", 1, "2"))))
    assert answer.count == 2
    assert answer.nodes == {"n2": 2}
    assert answer.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_the_count_is_that_of_a_simulation_with_too_many_replicas() -> None:
    zones = ("a", "b", "c")
    nodes = [node(f"n{i}", labels={"zone": zones[i % 3]}) for i in range(7)]
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = deployment("web", 40, "1500m", topologySpreadConstraints=[spread])
    cluster = cluster_of(*nodes)
    answer = max_fit(model_of(cluster), unit_of(additions_to(cluster, web)))
    assert answer.count == bayplan.simulate(*nodes, web).summary.counts.scheduled


def test_a_limit_ends_the_count() -> None:
    cluster = cluster_of(node("n1"))
    unit = unit_of(additions_to(cluster, deployment("web", 1, "1m")))
    answer = max_fit(model_of(cluster), unit, limit=5)
    assert (answer.count, answer.is_limit, answer.message) == (5, True, "")


def test_groups_are_counted_as_a_whole() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    additions = additions_to(cluster, pod_group(minimum=3), gang_job(3))
    unit = unit_of(additions)
    assert unit.name == "PodGroup default/g"
    answer = max_fit(model_of(cluster), unit)
    assert answer.count == 2
    assert sum(answer.nodes.values()) == 6


def test_copies_have_claims_of_their_own() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stateful = controller("StatefulSet", "db", replicas=2, volumeClaimTemplates=[claim])
    cluster = cluster_of(node("n1"), node("n2"))
    answer = max_fit(model_of(cluster), unit_of(additions_to(cluster, stateful)))
    assert answer.count == 8


def test_copies_of_an_ephemeral_volume_have_claims_of_their_own() -> None:
    requests = {"storage": "1Gi"}
    volume_claim = {
        "spec": {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": requests}}
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": volume_claim}}
    web = controller("Deployment", "web", replicas=1, template=template(volumes=[volume]))
    web["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    cluster = cluster_of(node("n1"))
    answer = max_fit(model_of(cluster), unit_of(additions_to(cluster, web)))
    assert answer.count == 4


@pytest.mark.parametrize(
    ("objects", "actual"),
    [
        ([], "no pod to place"),
        ([pod("a"), pod("b")], "2: Pod default/a, Pod default/b"),
        ([deployment("web", 1), pod_group(minimum=1), gang_job(1)], "2: "),
    ],
)
def test_several_workloads_are_refused(objects: list[Content], actual: str) -> None:
    cluster = cluster_of(node("n1"))
    with pytest.raises(BadInputError, match=f"found {actual}.*; wanted one workload"):
        unit_of(additions_to(cluster, *objects, priority_class("x", 1)))
