"""Pods, nodes and controllers that are being deleted and have finalizers."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import ExpansionMode
from bayplan.sim.output.result import SimulationResult
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, owned, scenario
from tests.sim.runs import run_by_default, simulation

CASES = Path("tests/cases")
SMALL = {"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "110"}}
WAIT = ["example.com/wait"]
LONG_AGO = "2025-01-01T00:00:00Z"


def simulated(*sources: Any, mode: ExpansionMode | None = None) -> SimulationResult:
    workload = load_inputs(sources, expansion=mode).for_scheduler("default-scheduler")
    return run_by_default(workload)


def leaving(name: str = "stuck", **fields: Any) -> Content:
    fields = {"finalizers": WAIT, "nodeName": "n1", **fields}
    return pod(name, deletionTimestamp=LONG_AGO, **fields)


def with_grace(content: Content, seconds: int) -> Content:
    meta = {**content["metadata"], "deletionGracePeriodSeconds": seconds}
    return {**content, "metadata": meta}


def one(kind: str, name: str, **meta: Any) -> Content:
    version = {"Job": "batch/v1"}.get(kind, "apps/v1" if kind == "ReplicaSet" else "v1")
    named = {"name": name, **meta}
    return {"apiVersion": version, "kind": kind, "metadata": named}


def test_a_pod_that_a_finalizer_keeps_keeps_its_room_and_the_run_ends() -> None:
    result = simulated(str(CASES / "154-term.yaml"))
    assert set(result.unschedulable) == {"default/p"}
    assert "1 Insufficient cpu" in result.unschedulable["default/p"]
    remark = "Pod default/stuck is being deleted and keeps its room on n1"
    assert result.notes == (f"{remark}: it has the finalizer example.com/wait",)


def test_a_pod_of_a_job_that_is_gone_is_no_deadlock() -> None:
    result = simulated(str(CASES / "158-jobpod-pending.yaml"))
    assert result.placements == {"default/p": "n1"}
    remark = "Pod default/job-1 is being deleted and keeps its room on n1"
    finalizer = "batch.kubernetes.io/job-tracking"
    assert result.notes == (f"{remark}: it has the finalizer {finalizer}",)


@pytest.mark.parametrize("grace", [0, 30])
@pytest.mark.parametrize("duration", [None, "10s"])
def test_a_run_ends_whatever_grace_and_running_time_a_stuck_pod_has(
    grace: int, duration: str | None
) -> None:
    annotations = {"bayplan.dev/when-done": "delete"}
    if duration:
        annotations["bayplan.dev/duration"] = duration
    stuck = leaving(annotations=annotations)
    result = simulated(node("n1", status=SMALL), with_grace(stuck, grace), pod("p"))
    assert set(result.unschedulable) == {"default/p"}


def test_the_grace_period_of_a_pod_that_was_terminating_is_its_own() -> None:
    short = leaving(finalizers=[], terminationGracePeriodSeconds=300)
    result = simulated(node("n1", status=SMALL), with_grace(short, 20), pod("p"))
    assert result.pods["default/p"].bound_at == 20


def test_a_pod_on_a_missing_node_has_no_room_and_stays_until_its_finalizer_goes() -> None:
    result = simulated(node("n1", status=SMALL), leaving(nodeName="gone"), pod("p"))
    assert result.placements == {"default/p": "n1"}
    remark = "Pod default/stuck is being deleted and stays: it has the finalizer example.com/wait"
    missing = "1 pod is on 1 node that the input lacks, as if deleted: gone"
    assert result.notes == (missing, remark)


def test_a_node_that_a_finalizer_keeps_stays() -> None:
    kept = node("n1")
    kept["metadata"] |= {"finalizers": ["karpenter.sh/termination"], "deletionTimestamp": LONG_AGO}
    result = simulated(kept, pod("p"))
    assert result.placements == {"default/p": "n1"}
    remark = "Node n1 is being deleted and stays: it has the finalizer karpenter.sh/termination"
    assert result.notes == (remark,)


def test_objects_that_nothing_keeps_are_gone_with_a_remark() -> None:
    lost = node("n2")
    lost["metadata"]["deletionTimestamp"] = LONG_AGO
    pending = leaving("a", finalizers=[], nodeName="")
    result = simulated(node("n1"), lost, pending, leaving("b", finalizers=[], nodeName=""))
    assert result.nodes == 1
    of_pods = "Pod default/a and 1 more were being deleted in the input"
    assert set(result.notes) == {
        "Node n2 was being deleted in the input, and nothing keeps it: it is gone",
        f"{of_pods}, and nothing keeps them: they are gone",
    }


def test_objects_with_the_same_finalizers_share_a_remark() -> None:
    notes = simulated(node("n1"), *(leaving(f"s{number}") for number in range(3))).notes
    names = "Pod default/s0 and 2 more are being deleted and keep their room"
    assert notes == (f"{names}: they have the finalizer example.com/wait",)


def test_the_controller_of_a_job_removes_its_own_finalizer() -> None:
    job = controller("Job", "j", uid="u", completions=1)
    stuck = leaving("j-a", finalizers=["batch.kubernetes.io/job-tracking"])
    result = simulated(node("n1", status=SMALL), job, owned(stuck, job, controller=True))
    assert result.pods["default/j-a"].deleted_at == 0
    assert not any("finalizer" in note for note in result.notes)


# ---- scenarios ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ExpansionMode)
def test_a_later_patch_lets_a_deleted_pod_go(mode: ExpansionMode) -> None:
    stuck = pod("stuck", nodeName="n1", finalizers=WAIT)
    steps = scenario(
        {"at": 10, "delete": [one("Pod", "stuck")]},
        {"at": 20, "patch": [one("Pod", "stuck", finalizers=[])]},
        {"at": 30, "create": [pod("stuck")]},
    )
    result = simulated(node("n1", status=SMALL), stuck, pod("p"), steps, mode=mode)
    assert result.pods["default/p"].bound_at == 20
    assert not result.notes


@pytest.mark.parametrize("mode", ExpansionMode)
def test_the_pods_of_a_deleted_controller_go_when_its_finalizer_goes(mode: ExpansionMode) -> None:
    kept = controller("ReplicaSet", replicas=1)
    kept["metadata"]["finalizers"] = WAIT
    steps = scenario(
        {"at": 10, "delete": [one("ReplicaSet", "web")]},
        {"at": 20, "patch": [one("ReplicaSet", "web", finalizers=None)]},
    )
    result = simulated(node("n1", status=SMALL), kept, steps, mode=mode)
    [owned_pod] = result.pods.values()
    assert owned_pod.deleted_at == 20


def test_a_deletion_in_the_foreground_takes_the_pods_along() -> None:
    kept = controller("ReplicaSet", replicas=1, uid="u")
    kept["metadata"] |= {"finalizers": ["foregroundDeletion"], "deletionTimestamp": LONG_AGO}
    result = simulated(node("n1", status=SMALL), kept, owned(pod("a", nodeName="n1"), kept))
    assert result.pods["default/a"].deleted_at == 0
    [note] = result.notes
    assert note.startswith("ReplicaSet default/web is being deleted and makes no more pods")


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_node_that_is_removed_in_a_what_if_goes_at_once(is_deleted: bool) -> None:
    kept = node("n1")
    kept["metadata"]["finalizers"] = ["karpenter.sh/termination"]
    if is_deleted:
        kept["metadata"]["deletionTimestamp"] = LONG_AGO
    change = {
        "apiVersion": "bayplan.dev/v1alpha1",
        "kind": "WhatIf",
        "spec": {"remove": ["n1"]},
    }
    assert simulated(kept, change).nodes == 0


# ---- finalizers of Kubernetes' own controllers ------------------------------------------------

GROUP = "scheduling.k8s.io/v1beta1"
PROTECTED = ["scheduling.k8s.io/podgroup-protection"]


def pod_group(**meta: Any) -> Content:
    named = {"name": "g", "namespace": "default", "uid": "u", "finalizers": PROTECTED, **meta}
    spec = {"schedulingPolicy": {"basic": {}}}
    return {"apiVersion": GROUP, "kind": "PodGroup", "metadata": named, "spec": spec}


def member(name: str, **fields: Any) -> Content:
    return pod(name, schedulingGroup={"podGroupName": "g"}, **fields)


def test_a_deleted_group_goes_with_its_last_pod() -> None:
    gone = simulated(node("n1"), pod_group(deletionTimestamp=LONG_AGO), pod("p"))
    assert not gone.notes
    kept = simulated(node("n1"), pod_group(deletionTimestamp=LONG_AGO), member("a", nodeName="n1"))
    what = "PodGroup default/g is being deleted and stays"
    assert kept.notes == (f"{what}: it has the finalizer {PROTECTED[0]}",)
    steps = scenario(
        {"at": 10, "delete": [{"apiVersion": GROUP, "kind": "PodGroup", "name": "g"}]},
        {"at": 20, "delete": [one("Pod", "a")]},
    )
    late = simulated(node("n1"), pod_group(), member("a", nodeName="n1"), steps)
    assert not late.notes


@pytest.mark.parametrize("finalizer", ["foregroundDeletion", "orphan"])
def test_the_garbage_collector_lets_objects_of_all_kinds_go(finalizer: str) -> None:
    terminating = {"finalizers": [finalizer], "deletionTimestamp": LONG_AGO}
    left = node("n1")
    left["metadata"] |= terminating
    stuck = leaving(finalizers=[finalizer])
    result = simulated(node("n2"), left, stuck, pod_group(**terminating))
    assert not result.notes
    assert result.nodes == 1
    assert result.pods["default/stuck"].deleted_at == 0


@pytest.mark.parametrize("mode", ExpansionMode)
def test_what_is_in_a_namespace_goes_with_it(mode: ExpansionMode) -> None:
    here: dict[str, Any] = {"namespace": "team", "cpu": "500m"}
    web = controller("ReplicaSet", replicas=1)
    web["metadata"]["namespace"] = "team"
    steps = scenario(
        {"at": 10, "delete": [one("Namespace", "team")]},
        {"at": 20, "create": [one("Namespace", "team"), pod("a", **here)]},
    )
    contents = [one("Namespace", "team"), web, pod("a", **here), pod("other", cpu="500m")]
    run = simulation(load_inputs((node("n1", status=SMALL), *contents, steps), expansion=mode))
    result = run.run()
    assert [each.key.name for each in run.cluster.objects("v1 Pod")] == ["other", "a"]
    assert not run.cluster.objects("apps/v1 ReplicaSet")
    assert all("created for controllers" in note for note in result.notes)


def test_what_a_node_owns_goes_with_it() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}
    here = node("n1")
    here["metadata"]["uid"] = "u"
    slices = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {
                "driver": "d",
                "nodeName": "n1",
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu"}],
            },
        }
        for name, owners in (("own", [owner]), ("free", []))
    ]
    steps = scenario({"at": 10, "delete": [one("Node", "n1")]})
    run = simulation(load_inputs((here, *slices, steps)))
    run.run()
    (left,) = run.cluster.objects("resource.k8s.io/v1 ResourceSlice")
    assert left.key.name == "free"
