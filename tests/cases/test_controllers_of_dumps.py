"""Workloads as dumps of clusters have them: what their controllers do, and what becomes of it."""

import json
from pathlib import Path

import pytest

from tests.cases.workloads import TERMINATING, owned, simulated, workload
from tests.cli.command_line import answer, bayplan, write_objects
from tests.kit.manifests import Content, api_object, container, node, pod


def fitted(path: Path, *objects: Content) -> tuple[int, str]:
    cluster = write_objects(path / "cluster.yaml", node("n1"))
    result = bayplan("fit", "-f", write_objects(path / "in.yaml", *objects), cluster)
    return result.exit_code, result.stdout


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (
            workload("Job", "j", {"managedBy": "kueue.x-k8s.io/multikueue"}),
            "is left to kueue.x-k8s.io/multikueue (spec.managedBy)",
        ),
        *(
            (
                workload("Job", "j", status={"conditions": [{"type": kind, "status": "True"}]}),
                reason,
            )
            for kind, reason in (
                ("Complete", "is complete: it makes no more pods"),
                ("SuccessCriteriaMet", "is complete: it makes no more pods"),
                ("Failed", "failed: it makes no more pods"),
                ("FailureTarget", "failed: it makes no more pods"),
            )
        ),
        (workload("Deployment", "j", {"paused": True}), "is paused (spec.paused)"),
    ],
)
def test_a_workload_that_makes_no_pods_says_why(job: Content, reason: str, tmp_path: Path) -> None:
    assert simulated(tmp_path, node("n1"), job)["counts"]["pods"] == 0
    code, text = fitted(tmp_path, job)
    assert code == 4
    assert reason in text


def test_a_daemon_pod_that_is_terminating_is_replaced_when_it_is_gone(tmp_path: Path) -> None:
    daemon_set = workload("DaemonSet", "agent")
    leaving = {**TERMINATING, "finalizers": ["example.com/wait"]}
    stuck = owned(daemon_set, "agent-a", nodeName="n1", **leaving)
    assert simulated(tmp_path, node("n1"), daemon_set, stuck)["placements"] == {}
    goes = owned(daemon_set, "agent-a", nodeName="n1", **TERMINATING)
    assert len(simulated(tmp_path, node("n1"), daemon_set, goes)["placements"]) == 1


def test_a_job_that_replaces_failed_pods_waits_for_those_that_terminate(tmp_path: Path) -> None:
    spec = {"completions": 2, "parallelism": 2, "podReplacementPolicy": "Failed"}
    job = workload("Job", "j", spec)
    leaving = {**TERMINATING, "finalizers": ["example.com/wait"]}
    stuck = owned(job, "j-a", nodeName="n1", **leaving)
    assert len(simulated(tmp_path, node("n1"), job, stuck)["placements"]) == 1


def test_a_failed_pod_of_a_stateful_set_is_made_again_under_its_name(tmp_path: Path) -> None:
    database = workload("StatefulSet", "db", {"replicas": 1, "serviceName": "db"})
    failed = owned(database, "db-0", nodeName="n1", status={"phase": "Failed"})
    result = simulated(tmp_path, node("n1"), failed, database)
    assert result["placements"] == {"default/db-0": "n1"}
    assert not any("already exists" in note for note in result["notes"])


# ---- who decides about a workload -----------------------------------------------------------


PROMETHEUS = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "Prometheus",
    "name": "k8s",
    "uid": "p",
    "controller": True,
}


def scaled_by(kind: str, target: Content) -> Content:
    return {
        "apiVersion": kind,
        "kind": "ScaledObject" if kind.startswith("keda") else "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minReplicas": 2, "maxReplicas": 9, "scaleTargetRef": {"name": "web", **target}},
    }


@pytest.mark.parametrize(
    ("meta", "others"),
    [
        ({"ownerReferences": [PROMETHEUS]}, []),
        ({}, [scaled_by("autoscaling/v2", {"apiVersion": "apps/v1", "kind": "StatefulSet"})]),
        ({}, [scaled_by("autoscaling/v2beta2", {"kind": "StatefulSet"})]),
        ({}, [scaled_by("keda.sh/v1alpha1", {"kind": "StatefulSet"})]),
    ],
)
def test_no_room_is_made_by_scaling_what_is_scaled_back(
    meta: Content, others: list[Content], tmp_path: Path
) -> None:
    web = workload("StatefulSet", "web", {"replicas": 2, "serviceName": "web"}, **meta)
    pods = [owned(web, f"web-{number}", nodeName="n1") for number in range(2)]
    small = node("n1", cpu="2")
    waiting = pod("p", cpu="1")
    file = write_objects(tmp_path / "in.yaml", small, web, *pods, waiting, *others)
    offered = bayplan("why", "default/p", file).stdout
    assert "add one node like n1" in offered
    assert "scale" not in offered
    if others:
        change = ("--scale", "StatefulSet/web=1", "-n", "default")
        assert "sets the size of StatefulSet default/web" in answer("whatif", file, *change)


def test_a_fix_names_the_operator_that_writes_the_workload(tmp_path: Path) -> None:
    web = workload("StatefulSet", "web", {"replicas": 1}, ownerReferences=[PROMETHEUS])
    waiting = owned(web, "web-0", nodeSelector={"disk": "ssd"})
    web["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    file = write_objects(tmp_path / "in.yaml", node("n1"), web, waiting)
    offered = bayplan("why", "default/web-0", file).stdout
    assert "Prometheus default/k8s writes StatefulSet default/web" in offered


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_no_command_names_an_object_whose_name_the_server_makes(kind: str, tmp_path: Path) -> None:
    selector: Content = {"nodeSelector": {"disk": "ssd"}}
    made = pod("x", **selector) if kind == "Pod" else workload("Job", "x")
    if kind == "Job":
        made["spec"]["template"]["spec"] |= selector
    made["metadata"] = {"generateName": "x-", "namespace": "default"}
    disk = node("n1", labels={"disk": "hdd"})
    cluster = write_objects(tmp_path / "cluster.yaml", disk)
    text = bayplan("fit", "-f", write_objects(tmp_path / "x.yaml", made), cluster).stdout
    assert "change disk=ssd to disk=hdd in the node selector" in text
    assert "kubectl replace" not in text
    assert "kubectl label node/n1 disk=ssd" in text


# ---- what a dump lacks ----------------------------------------------------------------------


def prioritized(name: str) -> Content:
    web = workload("Deployment", "web", {"replicas": 2})
    web["spec"]["template"]["spec"]["priorityClassName"] = name
    return web


def test_a_priority_class_follows_from_the_pods_that_have_it(tmp_path: Path) -> None:
    other = pod("other", nodeName="n1", priorityClassName="high", priority=1000)
    result = simulated(tmp_path, node("n1"), prioritized("high"), other)
    assert len(result["placements"]) == 2
    note = "the input has no PriorityClass high: it was added with the priority of its pods, 1000"
    assert note in result["notes"]


def test_a_class_that_nothing_tells_refuses_the_pods_and_not_the_dump(tmp_path: Path) -> None:
    result = simulated(tmp_path, node("n1"), prioritized("high"), pod("p"))
    assert result["placements"] == {"default/p": "n1"}
    assert any("no PriorityClass with name high was found" in note for note in result["notes"])


# ---- pods that nobody controls --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("ReplicaSet", ("a", "b")),
        ("ReplicationController", ("a", "b")),
        ("StatefulSet", ("web-0", "web-1")),
        ("DaemonSet", ("a", "b")),
    ],
)
def test_a_controller_adopts_the_pods_that_its_selector_matches(
    tmp_path: Path, kind: str, names: tuple[str, str]
) -> None:
    owner = workload(kind, "web", {} if kind == "DaemonSet" else {"replicas": 2})
    if kind == "ReplicationController":
        owner |= {"apiVersion": "v1"}
        owner["spec"]["selector"] = {"app": "web"}
    labels = {"app": "web"}
    pods = [pod(each, labels=labels, nodeName=f"n{i}") for i, each in enumerate(names, 1)]
    other = pod("c", labels={"app": "other"}, nodeName="n2")
    result = simulated(tmp_path, node("n1"), node("n2"), owner, *pods, other)
    assert set(result["pods"]) == {f"default/{name}" for name in (*names, "c")}
    cluster = tmp_path / "in.yaml"
    change = ("--drain", "n1", "--until", "60s", "-o", "json")
    changed = json.loads(answer("whatif", cluster, *change))
    moves = [move["pod"] for move in changed["moves"]]
    assert moves == ([] if kind == "DaemonSet" else [f"default/{names[0]}"])


# ---- more pods than wanted ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ReplicaSet", {"replicas": 1}),
        ("ReplicationController", {"replicas": 1}),
        ("StatefulSet", {"replicas": 1}),
        ("Job", {"parallelism": 1, "completions": 9}),
        ("DaemonSet", {}),
    ],
)
def test_pods_that_a_controller_no_longer_wants_go(
    tmp_path: Path, kind: str, spec: Content
) -> None:
    owner = workload(kind, "web", spec)
    if kind == "ReplicationController":
        owner |= {"apiVersion": "v1"}
        owner["spec"]["selector"] = {"app": "web"}
    if kind == "DaemonSet":
        owner["spec"]["template"]["spec"]["nodeSelector"] = {"role": "a"}
    nodes = [node("n1", labels={"role": "a"}), node("n2"), node("n3")]
    pods = [owned(owner, f"web-{i}", nodeName=f"n{i + 1}") for i in range(3)]
    result = simulated(tmp_path, *nodes, owner, *pods)
    left = [name for name, one in result["pods"].items() if one["deletedAt"] is None]
    assert (result["counts"]["running"], len(left)) == (1, 1)
    if kind in ("StatefulSet", "DaemonSet"):
        assert left == ["default/web-0"]


def test_the_pods_of_a_job_that_was_suspended_go(tmp_path: Path) -> None:
    job = workload("Job", "web", {"parallelism": 2, "completions": 2, "suspend": True})
    pods = [owned(job, f"web-{i}", nodeName="n1") for i in range(2)]
    assert simulated(tmp_path, node("n1"), job, *pods)["counts"]["running"] == 0


# ---- quotas ---------------------------------------------------------------------------------


def test_no_more_pods_fit_than_the_quota_allows(tmp_path: Path) -> None:
    quota = api_object("v1 ResourceQuota", "q", "default", spec={"hard": {"pods": "3"}})
    running = pod("r", nodeName="n1")
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1", cpu="9"), quota, running)
    shape = write_objects(tmp_path / "shape.yaml", pod("one"))
    fit = json.loads(answer("fit", "-f", shape, cluster, "--max", "-o", "json"))
    assert fit["max"]["count"] == 2
    assert "exceeded quota: q" in fit["max"]["message"]
    [counted] = json.loads(answer("headroom", "-f", shape, cluster, "-o", "json"))["shapes"]
    assert counted["max"]["count"] == 2
    without = ("--disable-admission-plugins", "ResourceQuota")
    fit = json.loads(answer("fit", "-f", shape, cluster, "--max", *without, "-o", "json"))
    assert fit["max"]["count"] == 8


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "Job"])
def test_the_headroom_of_a_workload_that_the_server_refuses_is_0_and_the_reason_is_told(
    tmp_path: Path, kind: str
) -> None:
    quota = api_object("v1 ResourceQuota", "q", "default", spec={"hard": {"pods": "0"}})
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"), quota)
    made = pod("one") if kind == "Pod" else workload(kind, "one")
    made["metadata"].pop("uid", None)
    shape = write_objects(tmp_path / "shape.yaml", made)
    result = bayplan("headroom", "-f", shape, cluster, "-o", "json")
    [counted] = json.loads(result.stdout)["shapes"]
    assert (result.exit_code, counted["shape"], counted["max"]["count"]) == (0, "one", 0)
    assert "exceeded quota: q" in counted["max"]["message"]
    fit = bayplan("fit", "-f", shape, cluster, "--max", "-o", "json")
    assert (fit.exit_code, json.loads(fit.stdout)["max"]) == (1, counted["max"])


def test_a_daemon_pod_that_a_quota_refuses_is_named(tmp_path: Path) -> None:
    quota = api_object("v1 ResourceQuota", "q", "default", spec={"hard": {"pods": "1"}})
    agent = workload("DaemonSet", "agent")
    present = owned(agent, "agent-a", nodeName="n1")
    file = write_objects(tmp_path / "in.yaml", node("n1"), agent, present, quota)
    text = answer("whatif", file, "--add", "1", "--like", "n1")
    assert "1 pod of DaemonSet default/agent cannot be created: forbidden: exceeded quota" in text


def test_an_applied_object_that_hides_pods_is_named(tmp_path: Path) -> None:
    template = {"spec": {"containers": [container("1")]}}
    spec = {"replicas": 2, "template": template}
    rollout = api_object("argoproj.io/v1alpha1 Rollout", "web", "default", spec=spec)
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"))
    text = answer("whatif", cluster, "--apply", write_objects(tmp_path / "r.yaml", rollout))
    assert "Rollout default/web is of a kind that Bayplan does not know" in text


def test_a_workload_fits_only_if_the_server_accepts_all_its_pods(tmp_path: Path) -> None:
    quota = api_object("v1 ResourceQuota", "q", "default", spec={"hard": {"pods": "1"}})
    web = workload("Deployment", "web", {"replicas": 3})
    del web["metadata"]["uid"]
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"), quota)
    result = bayplan("fit", "-f", write_objects(tmp_path / "web.yaml", web), cluster)
    assert result.exit_code == 1
    assert "1 of 3 pods fit" in result.stdout
    assert "forbidden: exceeded quota: q" in result.stdout
    web["spec"]["template"]["spec"]["runtimeClassName"] = "kata"
    result = bayplan("fit", "-f", write_objects(tmp_path / "kata.yaml", web), cluster)
    assert result.exit_code == 1
    assert "0 of 3 pods fit" in result.stdout
    assert 'pod rejected: RuntimeClass "kata" not found' in result.stdout
    assert "not judged" not in result.stdout
