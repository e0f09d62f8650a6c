"""Workloads that are to be added to a cluster: admission, controllers, refusals."""

import pytest

from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import PERSISTENT_VOLUME_CLAIM, POD
from bayplan.problems import BadInputError
from bayplan.sim.input.errors import InputError
from tests.kit.manifests import node, pod, pod_group, priority_class
from tests.sim.manifests import controller, owned, scenario, template
from tests.whatif.clusters import additions_to, cluster_of, deployment, model_of


def test_controllers_are_expanded_and_defaults_are_set() -> None:
    additions = additions_to(cluster_of(node("n1")), deployment("web", 2))
    assert len(additions.pods) == 2
    assert {pod.spec.scheduler_name for pod in additions.pods} == {"default-scheduler"}
    assert additions.notes == ()


def test_several_controllers_have_a_note_on_their_pods() -> None:
    workloads = [deployment("web", 2), deployment("api", 1)]
    additions = additions_to(cluster_of(node("n1")), *workloads)
    assert additions.notes == ("3 pods were created for controllers: 3 for 2 Deployments",)


def test_a_priority_class_of_the_cluster_counts() -> None:
    cluster = cluster_of(node("n1"), priority_class("high", 1000))
    [high] = additions_to(cluster, pod("a", priorityClassName="high")).pods
    assert high.spec.priority == 1000
    [refused] = additions_to(cluster, pod("a", priorityClassName="hihg")).refused_pods
    assert refused.reason == "forbidden: no PriorityClass with name hihg was found"


def test_a_claim_template_of_the_cluster_gives_a_pod_its_claim() -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    claim_template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu", "namespace": "default"},
        "spec": {"spec": spec},
    }
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    additions = additions_to(
        cluster_of(node("n1"), claim_template), pod("a", resourceClaims=claims)
    )
    assert [kind for kind, _ in additions.objects] == [RESOURCE_CLAIM]
    [added] = additions.pods
    assert added.status.resource_claim_statuses


def test_daemon_sets_get_a_pod_for_each_node_of_the_cluster() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    assert len(additions_to(cluster, controller("DaemonSet", "logs")).pods) == 2


def test_a_deployment_of_the_cluster_gets_the_pods_that_it_lacks() -> None:
    cluster = cluster_of(node("n1"), deployment("web", 2))
    additions = additions_to(cluster, deployment("web", 5))
    assert len(additions.pods) == 3
    [note] = [note for note in additions.notes if "already" in note]
    assert note.startswith("Deployment default/web is in the cluster already")
    model = model_of(cluster)
    for each in additions.pods:
        model.add(POD, each)  # raises if the name exists
    assert len(list(model.objects(POD))) == 5


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize("replicas", [0, 2, 9])
def test_the_next_pod_of_a_workload_of_the_cluster_is_a_shape(kind: str, replicas: int) -> None:
    cluster = cluster_of(node("n1"), controller(kind, "web", replicas=2))
    shape = controller(kind, "web", replicas=replicas)
    additions = additions_to(cluster, shape, are_shapes=True)
    assert additions.pods
    assert additions.pods[0].metadata.name not in {p.metadata.name for p in cluster.of(POD)}
    assert (additions.unjudged, additions.notes) == ((), ())


def test_a_workload_whose_replica_set_is_there_is_judged_by_the_pods_that_it_lacks() -> None:
    there = deployment("web", 2)
    there["metadata"]["uid"] = "uid-web"
    replica_set = owned(controller("ReplicaSet", "web-x", replicas=2), there)
    cluster = cluster_of(node("n1"), there, replica_set)
    additions = additions_to(cluster, deployment("web", 5))
    assert additions.pods
    assert additions.unjudged == ()


def test_an_object_that_is_in_the_cluster_is_refused() -> None:
    with pytest.raises(BadInputError, match="Pod default/a is in the cluster already"):
        additions_to(cluster_of(node("n1"), pod("a")), pod("a"))


def test_pods_with_a_node_are_added_but_not_scheduled() -> None:
    additions = additions_to(cluster_of(node("n1")), pod("a", nodeName="n1"), pod("b"))
    assert [each.metadata.name for each in additions.pods] == ["b"]
    assert "a" in [each.metadata.name for _, each in additions.objects]


def test_claims_and_groups_are_added_with_the_pods() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": spec}
    stateful = controller("StatefulSet", "db", replicas=2, volumeClaimTemplates=[claim])
    additions = additions_to(cluster_of(node("n1")), stateful, pod_group())
    names = {(kind, each.metadata.name) for kind, each in additions.objects}
    assert {(PERSISTENT_VOLUME_CLAIM, "data-db-0"), (PERSISTENT_VOLUME_CLAIM, "data-db-1")} < names
    assert ("scheduling.x-k8s.io/v1alpha1 PodGroup", "g") in names


def test_a_scenario_is_refused_as_a_workload() -> None:
    with pytest.raises(BadInputError, match=r"found a Scenario .*, wanted a workload"):
        additions_to(cluster_of(node("n1")), scenario())


def test_invalid_objects_are_refused_with_their_place() -> None:
    with pytest.raises(InputError, match="object 2"):
        additions_to(cluster_of(node("n1")), pod("a"), {"kind": "Pod"})
    broken = controller("Deployment", "web", template=template(nodeName=3))
    with pytest.raises(InputError, match="object 1"):
        additions_to(cluster_of(node("n1")), owned(broken, pod("a")))


def test_a_pod_with_the_uid_of_a_pod_of_the_cluster_gets_a_new_one() -> None:
    placed = pod("a", nodeName="n1")
    copy = pod("b")
    for content in (placed, copy):
        content["metadata"]["uid"] = "u"
    additions = additions_to(cluster_of(node("n1"), placed), copy)
    assert additions.pods[0].metadata.uid != "u"
    assert additions.notes == ("Pod default/b has the uid of Pod default/a, so it got a new one",)


def test_a_workload_without_a_name_gets_one_that_the_cluster_does_not_have() -> None:
    job = controller("Job", completions=2, parallelism=2)
    job["metadata"] = {"generateName": "sample-"}
    cluster = cluster_of(node("n1"), job)
    additions = additions_to(cluster, job)
    assert len(additions.pods) == 2
    assert additions.unjudged == ()
