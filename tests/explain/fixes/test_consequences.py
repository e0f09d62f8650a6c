"""A fix is what its commands do: through admission and the controllers, on the object that the user
owns, for the whole workload."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.adapters.embedded.api_features import NO_FEATURES
from bayplan.config import SchedulerConfig
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Fix
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.reading import objects_of_files
from bayplan.plugins.registry import default_registry
from bayplan.whatif.cluster import Cluster
from bayplan.whatif.fit import fit
from tests.kit.manifests import container, node, pod, priority_class

CASES = Path(__file__).parents[2] / "cases"
TAINT = "node-role.kubernetes.io/control-plane:NoSchedule"
HOST = "kubernetes.io/hostname"


def model_of_file(path: Path) -> ClusterModel:
    return ClusterModel(
        objects_of_files([str(path)], features=NO_FEATURES), SchedulerConfig(), default_registry(())
    )


def fixes_of(path: Path, name: str = "default/p") -> list[Fix]:
    return list(explain_pod(model_of_file(path), name).fixes)


def fixes_of_case(name: str) -> list[Fix]:
    return fixes_of(CASES / f"{name}.yaml")


def fixes_for(tmp_path: Path, objects: list[dict[str, Any]], name: str = "") -> list[Fix]:
    """Fixes of a pod; "": of the first that waits."""
    path = tmp_path / "in.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    model = model_of_file(path)
    return list(explain_pod(model, name or model.pending()[0].key).fixes)


def steps(fixes: list[Fix]) -> list[tuple[str, ...]]:
    return [fix.steps for fix in fixes]


def node_of(name: str, cpu: str = "2", **spec: Any) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return node(name, labels={HOST: name}, spec=spec, status={"allocatable": room})


def pod_of(name: str, cpu: str = "1", **options: Any) -> dict[str, Any]:
    metadata = options.pop("metadata", {})
    return pod(name, cpu=cpu, **metadata, **options)


def controller(kind: str, name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_of(name, cpu)["spec"]}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {
            **({} if kind == "Job" else {"selector": {"matchLabels": labels}}),
            "template": template,
            **spec,
        },
    }


# ---- room -----------------------------------------------------------------------------------


def test_a_deployment_is_scaled_down_whether_or_not_it_was_read() -> None:
    for name in ("122b", "122g"):
        fix = next(fix for fix in fixes_of_case(name) if fix.changes_what == "workload")
        assert fix.steps == ("scale Deployment default/web from 2 to 1",)
        assert fix.commands == ("kubectl scale deployment.apps/web -n default --replicas=1",)
        assert fix.node == "n1"


def test_a_smaller_stateful_set_keeps_its_lowest_ordinals() -> None:
    assert not any(
        "scale StatefulSet default/db from 2 to 1" in fix.steps and fix.node == "n1"
        for fix in fixes_of_case("124-stsroom")
    )


def test_critical_pods_and_pods_of_a_budget_that_allows_nothing_stay() -> None:
    assert steps(fixes_of_case("121-room")) == [("add one node like n1",)]


def owned(name: str, node_name: str, **options: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r"}
    metadata = {
        "labels": {"app": "web", "pod-template-hash": "1"},
        "ownerReferences": [{**owner, "controller": True}],
        **options,
    }
    placed = pod_of(name, nodeName=node_name, metadata=metadata)
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    return {**placed, "status": {"phase": "Running", "conditions": ready}}


def test_an_annotation_makes_the_controller_remove_the_pod_that_is_in_the_way(
    tmp_path: Path,
) -> None:
    # Of two pods that are equal otherwise, the one on n2 would go: two of them are there.
    small = node_of("n2", cpu="2", taints=[{"key": "db", "effect": "NoSchedule"}])
    pods = [owned("a", "n1"), owned("b", "n2"), owned("c", "n2")]
    room = [
        fix
        for fix in fixes_for(
            tmp_path, [node_of("n1", cpu="1"), small, *pods, pod_of("p")], "default/p"
        )
        if fix.changes_what == "workload" and fix.node == "n1"
    ]
    assert [fix.steps for fix in room] == [
        ("mark default/a as the first to go; scale Deployment default/web from 3 to 2",)
    ]
    cost = "controller.kubernetes.io/pod-deletion-cost"
    assert room[0].commands == (
        f"kubectl annotate pod/a -n default {cost}=-1000 --overwrite",
        "kubectl scale deployment.apps/web -n default --replicas=2",
    )


@pytest.mark.parametrize("restarted", ["a", "b"])
def test_of_pods_of_one_age_the_controller_removes_the_one_that_was_restarted(
    tmp_path: Path, restarted: str
) -> None:
    # Only the removal of a gives the pod its room, and the controller chooses.
    large, small = owned("a", "n1"), owned("b", "n1")
    large["spec"]["containers"] = [container("2")]
    for each in (large, small):
        count = 3 if each["metadata"]["name"] == restarted else 0
        each["status"]["containerStatuses"] = [{"name": "main", "restartCount": count}]
    objects = [node_of("n1", cpu="3"), large, small, pod_of("p", cpu="2")]
    room = [fix.steps for fix in fixes_for(tmp_path, objects, "default/p")]
    scaled = ("scale Deployment default/web from 2 to 1",)
    assert (scaled in room) is (restarted == "a")


def test_the_last_pod_of_a_controller_stays(tmp_path: Path) -> None:
    fixes = fixes_for(
        tmp_path, [node_of("n1", cpu="1"), owned("a", "n1"), pod_of("p")], "default/p"
    )
    assert steps(fixes) == [("add one node like n1",)]


def test_a_budget_is_named_and_respected(tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    objects = [
        node_of("n1", cpu="3"),
        controller("Deployment", "web", replicas=3),
        budget,
        *(owned(name, "n1") for name in "abc"),
    ]
    one = fixes_for(tmp_path, [*objects, pod_of("p", "1")], "default/p")
    room = next(fix for fix in one if fix.changes_what == "workload")
    assert room.notes == ("PodDisruptionBudget default/web allows 1 disruption, this takes 1",)
    two = fixes_for(tmp_path, [*objects, pod_of("p", "2")], "default/p")
    assert not [fix for fix in two if fix.changes_what == "workload"]


# ---- the workload ---------------------------------------------------------------------------


def test_a_fix_of_a_workload_is_a_change_of_the_users_own_object_for_all_its_pods() -> None:
    model = model_of_file(CASES / "02-nodes.yaml")
    additions = AdditionsReader(model)([str(CASES / "02-wl.yaml")])
    (explanation,) = fit(model, additions).explanations
    by_step = {fix.steps[0].partition(" of the spreading")[0]: fix for fix in explanation.fixes}
    order = list(by_step)
    honor = by_step["set nodeTaintsPolicy: Honor"]
    assert order[0] == "set nodeTaintsPolicy: Honor"
    assert order.index(f"remove the taint {TAINT} from node cp") == len(order) - 1
    assert (honor.target, honor.helped, honor.waiting) == ("your Deployment default/web", 4, 4)
    (command,) = honor.commands
    head, _, patch = command.partition(" -p ")
    assert head == "kubectl patch deployment.apps/web -n default --type=json"
    path = "/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy"
    assert json.loads(patch.strip("'")) == [{"op": "add", "path": path, "value": "Honor"}]


def test_a_rollout_that_needs_room_for_old_and_new_pods_removes_old_ones_first() -> None:
    fixes = fixes_of(CASES / "160-rollout.yaml", "default/d-new-c")
    limits = "set maxSurge: 0 and maxUnavailable: 1 of Deployment default/d"
    assert fixes[0].steps == (f"{limits}: its rollout removes an old pod before it adds a new one",)


def test_a_fix_that_helps_some_pods_says_how_many(tmp_path: Path) -> None:
    tainted = node_of("n2", "4", taints=[{"key": "team", "effect": "NoSchedule"}])
    busy = pod_of("busy", "2", nodeName="n1")
    objects = [node_of("n1"), tainted, busy, controller("Deployment", "web", replicas=6)]
    fixes = {fix.steps: fix for fix in fixes_for(tmp_path, objects)}
    tolerated = fixes["tolerate team:NoSchedule",]
    assert (tolerated.waiting, tolerated.helped) == (6, 4)
    added = fixes["add 3 nodes like n1",]
    assert (added.waiting, added.helped) == (6, 6)


def test_a_tool_that_writes_the_workload_is_named(tmp_path: Path) -> None:
    metadata = {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "shop"},
    }
    objects = [node_of("n1"), controller("Deployment", "web", "4", metadata=metadata)]
    fix = fixes_for(tmp_path, objects)[0]
    assert (fix.target, fix.managed_by) == ("Deployment default/web", "Helm release shop")


def test_the_pods_of_a_stateful_set_that_wait_are_deleted_after_the_patch(tmp_path: Path) -> None:
    objects = [node_of("n1"), controller("StatefulSet", "db", "4", serviceName="db")]
    fix = fixes_for(tmp_path, objects)[0]
    assert fix.commands[1:] == ("kubectl delete pod/db-0 -n default",)
    assert (fix.node, fix.helped) == ("n1", 1)


# ---- order and sense ------------------------------------------------------------------------


def test_a_new_node_needs_the_labels_of_one_term_only() -> None:
    assert steps(fixes_of_case("125-minlabel")) == [
        ("lower the request for cpu from 2 to 1",),
        ("add one node like c with 2 cpu",),
    ]


def test_a_new_node_gets_the_pods_of_its_daemon_sets_first() -> None:
    fixes = fixes_of(CASES / "40-dsadd.yaml", "default/big")
    assert ("add one node like n1",) not in steps(fixes)


def test_a_volume_that_was_released_is_made_available_before_a_new_one_is_made() -> None:
    fix = fixes_of_case("38-released")[0]
    patch = """'[{"op":"remove","path":"/spec/claimRef"}]'"""
    assert fix.commands == (f"kubectl patch persistentvolume/lpv --type=json -p {patch}",)
    assert fix.notes == ("the volume still holds the data of default/data",)


def test_a_node_of_a_kind_that_has_the_device_is_added_and_no_other(tmp_path: Path) -> None:
    plain, gpu = node_of("m6i"), node_of("g5")
    gpu["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    gpu["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "g5.xlarge"
    gpu["metadata"]["labels"]["karpenter.sh/nodepool"] = "gpu"
    gpu["spec"]["taints"] = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    user = pod_of("user", nodeName="g5", tolerations=tolerations)
    waiting = pod_of("p", tolerations=tolerations)
    for each in (user, waiting):
        each["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
        each["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    fixes = fixes_for(tmp_path, [plain, gpu, user, waiting], "default/p")
    assert steps(fixes) == [
        ("add one node like g5 (node pool gpu, g5.xlarge)",),
        ("remove default/user from g5",),
    ]


def test_a_plain_pod_does_not_go_to_special_hardware(tmp_path: Path) -> None:
    gpu = node_of("g5", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])
    gpu["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    busy = pod_of("busy", cpu="2", nodeName="n1")
    fixes = fixes_for(tmp_path, [node_of("n1"), gpu, busy, pod_of("p", cpu="2")], "default/p")
    assert steps(fixes) == [("add one node like n1",), ("remove default/busy from n1",)]


def test_a_typing_error_in_a_selector_is_the_first_fix(tmp_path: Path) -> None:
    n1 = node_of("n1")
    n1["metadata"]["labels"] |= {"disktype": "nvme", "zone": "a"}
    fixes = fixes_for(tmp_path, [n1, pod_of("p", nodeSelector={"disktype": "nvmee"})], "default/p")
    assert fixes[0].steps == ("change disktype=nvmee to disktype=nvme in the node selector",)


def test_below_the_partition_of_a_stateful_set_a_new_template_changes_nothing(
    tmp_path: Path,
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    made = controller("StatefulSet", "db", "4", serviceName="db", updateStrategy=strategy)
    assert steps(fixes_for(tmp_path, [node_of("n1"), made])) == [
        ("add one node like n1 with 4 cpu",)
    ]


def test_new_nodes_of_a_larger_kind_are_as_many_as_the_workload_needs(tmp_path: Path) -> None:
    fixes = fixes_for(tmp_path, [node_of("n1"), controller("Deployment", "web", "3", replicas=2)])
    last = fixes[-1]
    assert (last.steps, last.helped) == (("add 2 nodes like n1 with 3 cpu",), 2)


def test_the_owner_of_a_job_is_named(tmp_path: Path) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u"}
    metadata = {"ownerReferences": [{**owner, "controller": True}]}
    job = controller("Job", "nightly-1", "3", metadata=metadata)
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    fix = fixes_for(tmp_path, [node_of("n1"), job])[0]
    assert (fix.target, fix.managed_by) == ("Job default/nightly-1", "CronJob default/nightly")


def test_preemption_by_a_higher_class_names_whom_it_evicts(tmp_path: Path) -> None:
    objects = [
        node_of("n1"),
        priority_class("high", 1000),
        pod_of("low", "2", nodeName="n1"),
        pod_of("p"),
    ]
    by_step = {fix.steps[0]: fix for fix in fixes_for(tmp_path, objects, "default/p")}
    fix = by_step["give it the priority class high, so that it preempts"]
    assert fix.notes == ("preemption evicts default/low",)
    assert "/spec/priority" in fix.commands[0]


def test_a_higher_class_of_a_workload_evicts_none_of_its_own_pods() -> None:
    """The pod that runs gets the class, too, so the older pod of another workload goes."""
    high = priority_class("high", 1000)
    with Cluster.from_files(node_of("n1"), high, pod_of("low", nodeName="n1")) as cluster:
        (explanation,) = cluster.fit(controller("Deployment", "web", replicas=2)).explanations
    by_step = {fix.steps[0]: fix for fix in explanation.fixes}
    fix = by_step["give it the priority class high, so that it preempts"]
    assert (fix.helped, fix.notes) == (1, ("preemption evicts default/low",))


def test_the_pods_of_a_job_that_may_choose_stay(tmp_path: Path) -> None:
    job = controller("Job", "batch", parallelism=2, completions=2)
    job["metadata"]["uid"] = "u"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "batch", "uid": "u"}
    metadata = {"ownerReferences": [{**owner, "controller": True}]}
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    pods = [pod_of(f"batch-{n}", nodeName=n, metadata=metadata) for n in ("n1", "n2")]
    objects = [node_of("n1", "1"), node_of("n2", "1"), job, *pods, pod_of("p")]
    fixes = fixes_for(tmp_path, objects, "default/p")
    assert steps(fixes) == [("add one node like n1",)]


# ---- what a constraint counts ---------------------------------------------------------------


def zoned(name: str, zone: str, **options: Any) -> dict[str, Any]:
    made = node_of(name, **options)
    made["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone
    return made


def spreading(**fields: Any) -> dict[str, Any]:
    """A pod spread over zones, with what makes its constraint count too much."""
    labels = {"app": "spread"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
        **fields,
    }
    made = pod_of("p")
    made["metadata"]["labels"] = labels
    made["spec"]["topologySpreadConstraints"] = [constraint]
    return made


def test_a_constraint_that_counts_nodes_that_the_pod_cannot_use_honors_its_affinity(
    tmp_path: Path,
) -> None:
    waiting = spreading(nodeAffinityPolicy="Ignore")
    waiting["spec"]["nodeSelector"] = {HOST: "n1"}
    placed = spreading()
    placed["metadata"]["name"] = "q"
    placed["spec"]["nodeName"] = "n1"
    objects = [zoned("n1", "a"), zoned("n2", "b"), placed, waiting]
    first = fixes_for(tmp_path, objects, "default/p")[0]
    where = "of the spreading over topology.kubernetes.io/zone"
    assert first.steps == (
        f"set nodeAffinityPolicy: Honor {where}: nodes that it cannot use do not count",
    )


def test_a_constraint_that_wants_more_domains_than_there_are_wants_fewer(tmp_path: Path) -> None:
    placed = [spreading() for _ in range(2)]
    for each, name in zip(placed, ("n1", "n2"), strict=True):
        each["metadata"]["name"] = f"q-{name}"
        each["spec"]["nodeName"] = name
    objects = [zoned("n1", "a"), zoned("n2", "b"), *placed, spreading(minDomains=3)]
    first = fixes_for(tmp_path, objects, "default/p")[0]
    where = "of the spreading over topology.kubernetes.io/zone"
    assert first.steps == (f"lower minDomains {where} from 3 to 2",)


def test_a_rollout_whose_old_pod_counts_is_spread_by_revision(tmp_path: Path) -> None:
    """The old pod is in one zone, and the other zone takes no pod."""
    labels, spec = {"app": "spread"}, spreading()["spec"]
    template = {"metadata": {"labels": labels}, "spec": spec}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web"}
    chosen: dict[str, Any] = {"replicas": 1, "selector": {"matchLabels": labels}}
    objects = [
        zoned("n1", "a"),
        zoned("n2", "b", unschedulable=True),
        controller("Deployment", "web", metadata={"uid": "web"}, template=template, **chosen),
    ]
    for revision in ("old", "new"):
        hashed = {**labels, "pod-template-hash": revision}
        metadata = {"labels": hashed, "ownerReferences": [{**owner, "controller": True}]}
        kept: dict[str, Any] = {"replicas": 1, "selector": {"matchLabels": hashed}}
        own = {"metadata": {"labels": hashed}, "spec": spec}
        name = f"web-{revision}"
        metadata["uid"] = revision
        objects.append(controller("ReplicaSet", name, metadata=metadata, template=own, **kept))
        replica_set = {**owner, "kind": "ReplicaSet", "name": name, "uid": revision}
        made = spreading()
        made["metadata"] = {
            "name": f"{name}-1",
            "labels": hashed,
            "ownerReferences": [{**replica_set, "controller": True}],
        }
        if revision == "old":
            made["spec"]["nodeName"] = "n1"
        objects.append(made)
    fixes = fixes_for(tmp_path, objects, "default/web-new-1")
    where = "of the spreading over topology.kubernetes.io/zone"
    text = f"set matchLabelKeys: [pod-template-hash] {where}: old pods do not count"
    assert (text,) in steps(fixes)


def test_more_nodes_are_not_tried_where_one_of_them_does_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []
    attempt = ClusterModel.attempt

    def noted(model: ClusterModel, pod: str, look: Any = None) -> Attempt:
        attempts.append(pod)
        return attempt(model, pod, look)

    monkeypatch.setattr(ClusterModel, "attempt", noted)
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    waiting = controller("ReplicaSet", "web", replicas=8)
    waiting["spec"]["template"]["spec"]["volumes"] = [claim]
    fixes_for(tmp_path, [node_of("n", cpu="64"), waiting])
    assert len(attempts) < 8


# ---- equal pods ----------------------------------------------------------------------------


def waiting_set(pod_count: int, **options: Any) -> list[dict[str, Any]]:
    """A full node, a tainted empty one, and a ReplicaSet whose pods wait."""
    taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    nodes = [node_of("full", cpu="1"), node_of("other", cpu="64", taints=taints)]
    placed = pod_of("placed", nodeName="full")
    return [*nodes, placed, controller("ReplicaSet", "web", replicas=pod_count, **options)]


def attempts_of(monkeypatch: pytest.MonkeyPatch) -> list[Attempt]:
    """What the attempts at pods that are placed come to, from now on."""
    attempts: list[Attempt] = []
    place = ClusterModel.place

    def noted(model: ClusterModel, pod: str, look: Any = None) -> Attempt:
        attempts.append(place(model, pod, look))
        return attempts[-1]

    monkeypatch.setattr(ClusterModel, "place", noted)
    return attempts


def counted_fix(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    objects: list[dict[str, Any]],
    *,
    name: str = "",
    step: str = "tolerate",
) -> tuple[Fix, int]:
    """The fix with this step, and how many pods were placed in the search."""
    attempts = attempts_of(monkeypatch)
    fixes = fixes_for(tmp_path, objects, name)
    fix = next(fix for fix in fixes if fix.steps[0].startswith(step))
    return fix, len({attempt.pod.key for attempt in attempts})


def test_of_equal_pods_one_is_placed_and_the_others_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fix, placed_count = counted_fix(tmp_path, monkeypatch, waiting_set(40))
    assert (fix.helped, fix.waiting, fix.node) == (40, 40, "other")
    assert placed_count < 40


def test_pods_that_are_equal_but_for_the_one_in_question_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
    references = [{**owner, "controller": True}]
    odd = pod_of("a", "3", metadata={"labels": {"app": "web"}, "ownerReferences": references})
    objects = [*waiting_set(40, metadata={"uid": "u"}), odd]
    what = {"name": "default/a", "step": "remove the taint"}
    fix, placed_count = counted_fix(tmp_path, monkeypatch, objects, **what)
    assert (fix.helped, fix.waiting) == (40, 40)
    assert placed_count < 40


def test_equal_pods_that_do_not_all_fit_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fix, placed_count = counted_fix(tmp_path, monkeypatch, waiting_set(70))
    assert (fix.helped, fix.waiting) == (64, 70)
    assert placed_count < 10


def test_pods_are_placed_one_by_one_where_they_may_preempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = pod_of("low", cpu="4", nodeName="other", priority=-1)
    fix, placed_count = counted_fix(tmp_path, monkeypatch, [*waiting_set(70), low])
    assert (fix.helped, fix.waiting) == (64, 70)
    assert placed_count >= 64


def test_pods_that_keep_one_another_away_are_placed_until_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    objects = waiting_set(40)
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    objects[-1]["spec"]["template"]["spec"]["affinity"] = affinity
    attempts = attempts_of(monkeypatch)
    fix = next(fix for fix in fixes_for(tmp_path, objects) if fix.steps[0].startswith("tolerate"))
    assert (fix.helped, fix.waiting) == (1, 40)
    assert sum(not attempt.node for attempt in attempts) < 40


def test_a_template_gets_a_priority_class_and_leaves_its_priority_to_admission() -> None:
    high, low = priority_class("high", 1000), pod_of("low", "2", nodeName="n1")
    with Cluster.from_files(node_of("n1"), high, low) as cluster:
        (explanation,) = cluster.fit(controller("Deployment", "web")).explanations
    step = "give it the priority class high, so that it preempts"
    [fix] = [fix for fix in explanation.fixes if fix.steps == (step,)]
    paths = [each["path"] for each in json.loads(fix.commands[0].split("'")[1])]
    assert paths == ["/spec/template/spec/priorityClassName"]
