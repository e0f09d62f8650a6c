"""Changes made in a model, one by one."""

import pytest

from bayplan.api.device_objects import RESOURCE_SLICE
from bayplan.api.objects import NODE, POD, Node
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import plain
from bayplan.sim.input.what_if import NewNodes, Scaling, WhatIf
from bayplan.whatif.changes import Outcome, make_changes
from tests.kit.manifests import Content, node, pod
from tests.whatif.clusters import cluster_of, deployment, model_of, owned_pod

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
DEDICATED = {"key": "team", "value": "a", "effect": "NoSchedule"}


def changed(change: WhatIf, *objects: Content) -> tuple[ClusterModel, Outcome]:
    model = model_of(cluster_of(*objects))
    return model, make_changes(model, change, AdditionsReader(model))


def test_a_new_node_is_ready_and_has_the_taints_of_its_pool() -> None:
    sick = node(
        "n1",
        labels={"kubernetes.io/hostname": "n1", "pool": "x"},
        spec={"unschedulable": True, "taints": [UNREACHABLE, DEDICATED]},
    )
    model, _ = changed(WhatIf(add=(NewNodes(template="n1", count=2),)), sick)
    new = model.get(NODE, "", "n1-new-2")
    assert isinstance(new, Node)
    assert [taint.key for taint in new.spec.taints or ()] == ["team"]
    assert not new.spec.unschedulable
    assert new.metadata.labels == {"kubernetes.io/hostname": "n1-new-2", "pool": "x"}


def test_new_nodes_have_names_that_no_existing_node_has() -> None:
    change = WhatIf(add=(NewNodes(template="n1"), NewNodes(template="n1")))
    model, _ = changed(change, node("n1"), node("n1-new-1"))
    names = [each.metadata.name for each in model.objects(NODE)]
    assert names == ["n1", "n1-new-1", "n1-new-2", "n1-new-3"]


def test_pods_of_daemon_sets_are_removed_with_their_node() -> None:
    daemon = owned_pod("logs-a", "n1", kind="DaemonSet")
    model, outcome = changed(WhatIf(remove=("n1",)), node("n1"), node("n2"), daemon)
    assert not list(model.objects(POD))
    assert not outcome.gone


def test_a_pod_of_higher_priority_is_placed_first() -> None:
    full = owned_pod("web-a", "n1", "3", priority=10)
    waiting = pod("waiting", cpu="2", priority=0)
    objects = [node("n1"), node("n2", spec={"unschedulable": True}), full, waiting]
    _, outcome = changed(WhatIf(uncordon=("n2",), remove=("n1",)), *objects)
    assert [(move.pod, move.target) for move in outcome.moves] == [("default/web-a", "n2")]
    assert [left.pod for left in outcome.waited_before] == ["default/waiting"]
    assert not outcome.left_over


def labelled(name: str, **labels: str) -> Content:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def test_two_changes_of_one_object_both_count() -> None:
    change = WhatIf(apply=(labelled("n1", disk="ssd"), labelled("n1", zone="a")))
    model, _ = changed(change, node("n1"))
    present = model.get(NODE, "", "n1")
    assert isinstance(present, Node)
    assert present.metadata.labels == {"disk": "ssd", "zone": "a"}


def test_a_change_of_fields_leaves_an_uncordoned_node_uncordoned() -> None:
    cordoned = node("n1", spec={"unschedulable": True})
    change = WhatIf(uncordon=("n1",), apply=(labelled("n1", disk="ssd"),))
    model, outcome = changed(change, cordoned, pod("waiting", cpu="1"))
    assert [(move.pod, move.target) for move in outcome.moves] == [("default/waiting", "n1")]
    assert isinstance(present := model.get(NODE, "", "n1"), Node)
    assert not present.spec.unschedulable


@pytest.mark.parametrize(
    "taint",
    [
        "karpenter.sh/disrupted",
        "karpenter.sh/unregistered",
        "ToBeDeletedByClusterAutoscaler",
        "node.cilium.io/agent-not-ready",
        "node.cloudprovider.kubernetes.io/uninitialized",
    ],
)
def test_a_new_node_does_not_leave_because_its_template_does(taint: str) -> None:
    leaving = node("n1", spec={"taints": [{"key": taint, "effect": "NoSchedule"}, DEDICATED]})
    model, _ = changed(WhatIf(add=(NewNodes(template="n1"),)), leaving)
    new = model.get(NODE, "", "n1-new-1")
    assert isinstance(new, Node)
    assert [each.key for each in new.spec.taints or ()] == ["team"]


def test_a_new_node_has_devices_of_its_own() -> None:
    slices = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }
    model, _ = changed(WhatIf(add=(NewNodes(template="n1"),)), node("n1"), slices)
    offers = [plain(each)["spec"] for each in model.objects(RESOURCE_SLICE)]
    assert [(spec["nodeName"], spec["pool"]["name"]) for spec in offers] == [
        ("n1", "n1"),
        ("n1-new-1", "n1-new-1"),
    ]


# ---- kubectl apply -------------------------------------------------------------------------


def daemon_set(name: str) -> Content:
    content = deployment(name, 1, "100m")
    del content["spec"]["replicas"]
    return {**content, "kind": "DaemonSet"}


def test_a_manifest_without_replicas_leaves_their_number() -> None:
    web, pods = deployment("web", 3), [owned_pod(f"web-{n}", "n1", "100m") for n in "abc"]
    replica_set = {**web, "kind": "ReplicaSet"}
    replica_set["metadata"] = {**web["metadata"], "uid": "uid-web"}
    manifest = {**web, "kind": "ReplicaSet"}
    manifest["spec"] = {name: part for name, part in web["spec"].items() if name != "replicas"}
    _, outcome = changed(WhatIf(apply=(manifest,)), node("n1"), replica_set, *pods)
    assert (outcome.gone, outcome.moves) == ({}, [])


def test_a_daemon_set_that_is_applied_again_keeps_its_pods() -> None:
    agent = daemon_set("agent")
    present = {**agent, "metadata": {**agent["metadata"], "uid": "uid-agent"}}
    pods = [owned_pod(f"agent-{on}", on, "100m", "DaemonSet") for on in ("n1", "n2")]
    _, outcome = changed(WhatIf(apply=(agent,)), node("n1"), node("n2"), present, *pods)
    assert (outcome.gone, outcome.moves) == ({}, [])


def test_another_template_is_not_passed_over_in_silence() -> None:
    web, pods = deployment("web", 1), [owned_pod("web-a", "n1")]
    present = {**web, "metadata": {**web["metadata"], "uid": "uid-web"}}
    _, outcome = changed(WhatIf(apply=(deployment("web", 1, "2"),)), node("n1"), present, *pods)
    assert any("has another template now" in note for note in outcome.notes)
    _, outcome = changed(WhatIf(apply=(deployment("web", 1, "1000m"),)), node("n1"), present, *pods)
    assert not any("another template" in note for note in outcome.notes)


# ---- kubectl scale -------------------------------------------------------------------------


def test_a_smaller_workload_loses_the_pods_that_its_controller_removes_first() -> None:
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    for first in (
        owned_pod("web-a", "n1", annotations=cost),
        owned_pod("web-a", "n1", status=unready),
    ):
        change = WhatIf(scale=(Scaling(kind="ReplicaSet", name="web", replicas=1),))
        _, outcome = changed(change, node("n1"), node("n2"), first, owned_pod("web-b", "n2"))
        assert outcome.gone == {"scaled down": ["default/web-a"]}


def test_a_stateful_set_that_was_not_read_gets_the_next_ordinals() -> None:
    pods = [owned_pod(f"db-{number}", "n1", "100m", "StatefulSet") for number in range(2)]
    change = WhatIf(scale=(Scaling(kind="StatefulSet", name="db", replicas=3),))
    _, outcome = changed(change, node("n1"), *pods)
    assert [move.pod for move in outcome.moves] == ["default/db-2"]
