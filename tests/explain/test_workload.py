"""A question about a workload: which pod is explained, and why there may be none."""

import pytest

from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Cause, Explanation, WorkloadPods
from bayplan.explain.workload import NoSuchWorkloadError, explain_workload
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, template
from tests.whatif.clusters import cluster_of, deployment, model_of, owned_pod


def answer(kind: str, name: str, *objects: Content) -> Explanation:
    return explain_workload(model_of(cluster_of(node("n1"), *objects)), kind, f"default/{name}")


def unknown(api_version: str, kind: str, **metadata: str) -> Content:
    meta = {"name": "x", **metadata}
    spec = {"replicas": 2, "workerTemplate": template()}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def owned(name: str, api_version: str, kind: str, owner: str) -> Content:
    reference = {"apiVersion": api_version, "kind": kind, "name": owner, "uid": f"uid-{owner}"}
    return pod(name, cpu="1", ownerReferences=[{**reference, "controller": True}])


def test_the_answer_names_its_pod_and_says_how_many_pods_have_a_node() -> None:
    pods = [owned_pod(f"web-{number}", "n1", "500m") for number in range(3)]
    waiting = owned_pod("web-9", "n1", "4")
    waiting["spec"].pop("nodeName")
    explanation = answer("ReplicaSet", "web", *pods, waiting)
    assert (explanation.pod, explanation.result) == ("default/web-9", "unschedulable")
    assert explanation.workload == WorkloadPods(
        kind="ReplicaSet", name="default/web", pods=4, placed=3
    )
    assert str(explanation).splitlines()[0] == (
        "ReplicaSet default/web: 4 pods, 3 with a node, 1 waiting; the first that waits is "
        "default/web-9:"
    )


def test_the_pod_that_the_scheduler_would_try_first_is_explained() -> None:
    pods = [owned_pod(f"web-{number}", "", "5", priority=number) for number in range(3)]
    for each in pods:
        each["spec"].pop("nodeName")
    assert answer("replicasets", "web", *pods).pod == "default/web-2"


def test_the_first_pod_that_gets_no_node_is_explained() -> None:
    pods = [owned_pod(f"web-{number}", "", "3") for number in range(3)]
    for each in pods:
        each["spec"].pop("nodeName")
    explanation = answer("replicasets", "web", *pods)
    assert (explanation.pod, explanation.result) == ("default/web-1", "unschedulable")
    assert str(explanation).splitlines()[0] == (
        "ReplicaSet default/web: 3 pods, 0 with a node, 3 waiting, of which 1 gets a node as "
        "things are; the first that gets none is default/web-1:"
    )
    assert "then both pods that wait get a node" in str(explanation)
    fits = answer("replicasets", "web", pods[0])
    assert (fits.pod, fits.result) == ("default/web-0", "fits")
    assert "1 waiting, of which 1 gets a node as things are; the first is" in str(fits)


def test_pods_of_a_deployment_and_of_a_kind_that_is_not_known_are_its_pods() -> None:
    explanation = answer("deployment", "web", deployment("web", 2))
    assert explanation.workload is not None
    assert (explanation.workload.kind, explanation.workload.pods) == ("Deployment", 2)
    explanation = answer("rollout", "ro", owned("ro-1", "argoproj.io/v1alpha1", "Rollout", "ro"))
    assert explanation.workload is not None
    assert explanation.workload.kind == "Rollout"


@pytest.mark.parametrize(
    ("kind", "name", "workload", "why"),
    [
        ("Job", "j", controller("Job", "j", suspend=True), "is suspended (spec.suspend)"),
        ("deployment", "web", deployment("web", 0), "has spec.replicas 0, so it has no pods"),
        ("statefulset", "db", controller("StatefulSet", "db", replicas=0), "has spec.replicas 0"),
        ("", "db", controller("StatefulSet", "db", replicas=0), "has spec.replicas 0"),
        (
            "lws",
            "x",
            unknown("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
            "LeaderWorkerSet default/x is of a kind that Bayplan does not know",
        ),
        (
            "Job",
            "x",
            unknown("batch.volcano.sh/v1alpha1", "Job"),
            "(batch.volcano.sh/v1alpha1 Job)",
        ),
        ("jobset", "x", unknown("jobset.x-k8s.io/v1alpha2", "JobSet"), "jobset.x-k8s.io/v1alpha2"),
        (
            "rollouts",
            "x",
            unknown("argoproj.io/v1alpha1", "Rollout", namespace="default"),
            "ask about one of its pods",
        ),
    ],
)
def test_a_workload_without_pods_says_why(
    kind: str, name: str, workload: Content, why: str
) -> None:
    explanation = answer(kind, name, workload)
    assert (explanation.result, explanation.pod) == ("no-pods", "")
    assert why in explanation.message
    assert str(explanation).splitlines()[0] == explanation.message


def test_a_workload_that_does_not_exist_has_a_near_name() -> None:
    with pytest.raises(NoSuchWorkloadError, match='did you mean "default/web"'):
        answer("Deployment", "wbe", deployment("web", 0))


@pytest.mark.parametrize("scheduler", ["default-scheduler", "mine"])
def test_a_pod_whose_node_does_not_exist_is_on_no_node(scheduler: str) -> None:
    model = model_of(cluster_of(node("worker-1"), pod("q", nodeName="worker-l")))
    explanation = explain_pod(model, "default/q")
    assert explanation.result == "missing-node"
    assert explanation.message == (
        'default/q: the pod\'s node worker-l does not exist; did you mean "worker-1"?'
    )
    assert explanation.comparison is None
    foreign = model_of(cluster_of(node("n1"), pod("q", nodeName="ghost", schedulerName=scheduler)))
    assert (
        explain_pod(foreign, "default/q").message
        == "default/q: the pod's node ghost does not exist"
    )


def test_a_pod_that_fits_now_may_have_others_before_it() -> None:
    pods = [pod("a", cpu="3", priority=5), pod("b", cpu="3", priority=9), pod("c")]
    model = model_of(cluster_of(node("n1"), *pods))
    assert explain_pod(model, "default/b").remarks == ()
    [remark] = explain_pod(model, "default/a").remarks
    assert remark == (
        "1 pod that waits is before it in the queue of the scheduler, and may take the room"
    )


def test_a_cause_without_words_has_no_heading() -> None:
    explanation = Explanation(
        pod="default/a",
        scheduler="default-scheduler",
        result="gated",
        causes=(Cause(plugin="GangScheduling", reason=""),),
    )
    assert "Causes" not in str(explanation)
