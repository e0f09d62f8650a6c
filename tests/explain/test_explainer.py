"""Explanations: the sentence first, then causes with distances, preemption, groups, fixes."""

from typing import Any

import pytest

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import PRIORITY_CLASS, decode
from bayplan.explain.explainer import NoSuchPodError, explain_pod
from bayplan.explain.explanation import Cause, Explanation, members_text
from bayplan.model.cluster_model import ClusterModel
from bayplan.testing import node, pod
from tests.model.clusters import model_of

ZONE = "topology.kubernetes.io/zone"
APP = {"matchLabels": {"app": "web"}}


def answer(model: ClusterModel, name: str = "default/p") -> Explanation:
    return explain_pod(model, name)


def cause_of(explanation: Explanation, plugin: str) -> Cause:
    return next(each for each in explanation.causes if each.plugin == plugin)


def steps(explanation: Explanation) -> list[tuple[str, ...]]:
    return [fix.steps for fix in explanation.fixes]


def test_the_nearest_node_is_named_with_what_it_lacks() -> None:
    placed = [pod("a", node="n1", cpu="600m"), pod("b", node="n2", cpu="1")]
    explanation = answer(
        model_of([node("n1", cpu="1"), node("n2", cpu="1")], [*placed, pod("p", cpu="500m")])
    )
    cause = cause_of(explanation, "NodeResourcesFit")
    assert (cause.reason, cause.nodes, cause.is_preemptible) == ("Insufficient cpu", 2, True)
    assert cause.nearest is not None
    assert (cause.nearest.node, cause.nearest.distance) == ("n1", "lacks 100m")
    text = str(explanation)
    assert text.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert "Insufficient cpu: 2 nodes, the nearest lacks 100m: n1" in text


def test_fixes_are_ordered_by_their_harm() -> None:
    placed = [pod("a", node="n1", cpu="600m")]
    explanation = answer(model_of([node("n1", cpu="1")], [*placed, pod("p", cpu="500m")]))
    assert steps(explanation) == [
        ("add one node like n1",),
        ("lower the request for cpu from 500m to 400m",),
        ("remove default/a from n1",),
    ]
    assert [fix.changes_what for fix in explanation.fixes] == ["node", "pod", "workload"]
    assert explanation.trials > 0


def test_a_fix_of_a_bare_pod_is_a_manifest_that_replaces_the_pod() -> None:
    explanation = answer(model_of([node("n1", cpu="1")], [pod("p", cpu="2")]))
    change = explanation.fixes[0].changes[0]
    assert (change.verb, change.kind, change.name) == ("replace", "v1 Pod", "p")
    assert change.content is not None
    assert change.content["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    assert "status" not in change.content
    assert "uid" not in change.content["metadata"]
    (command,) = explanation.fixes[0].commands
    assert command.startswith("kubectl get pod/p -n default -o json | kubectl patch --local -f - ")
    assert command.endswith(" -o json | kubectl replace --force -f -")


def test_a_toleration_is_a_patch_because_the_server_accepts_it() -> None:
    tainted = node("n1", taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
    explanation = answer(model_of([tainted], [pod("p")]))
    cause = cause_of(explanation, "TaintToleration")
    assert cause.details == ("team=a:NoSchedule on 1 node, for example n1",)
    assert steps(explanation)[:2] == [
        ("tolerate team=a:NoSchedule",),
        ("remove the taint team=a:NoSchedule from node n1",),
    ]
    assert explanation.fixes[0].changes[0].verb == "patch"
    assert explanation.fixes[0].commands[0].startswith("kubectl patch pod/p -n default --type=json")
    assert explanation.fixes[1].commands == ("kubectl taint node n1 team:NoSchedule-",)


def test_a_taint_of_a_broken_node_is_not_tolerated() -> None:
    broken = node("n1", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}])
    assert steps(answer(model_of([broken], [pod("p")]))) == [("add one node like n1",)]


def test_changes_that_work_only_together_are_one_fix() -> None:
    cordoned = node("n1", cpu="1", unschedulable=True)
    explanation = answer(model_of([cordoned], [pod("p", cpu="2")]))
    together = explanation.fixes[0]
    assert together.is_combined
    assert set(together.steps) == {
        "uncordon node n1",
        "lower the request for cpu from 2 to 1",
    }
    assert "(only together)" in str(explanation)


def test_spreading_shows_its_domains_and_how_much_skew_is_needed() -> None:
    nodes = [node("n1", zone="a"), node("n2", zone="b", cpu="1")]
    placed = [pod(f"w{i}", node="n1", labels={"app": "web"}) for i in range(3)]
    placed.append(pod("full", node="n2", cpu="1"))
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    waiting = pod(
        "p", cpu="1", labels={"app": "web"}, spread=[{**constraint, "labelSelector": APP}]
    )
    explanation = answer(model_of(nodes, [*placed, waiting]))
    details = cause_of(explanation, "PodTopologySpread").details
    assert details == (f"maxSkew 1 over {ZONE}: pods with app=web per domain: b: 0, a: 3",)
    assert (f"raise maxSkew over {ZONE} from 1 to 4",) in steps(explanation)


def test_anti_affinity_shows_the_occupied_domains() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": APP}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    placed = pod("w", node="n1", labels={"app": "web"})
    explanation = answer(model_of([node("n1")], [placed, pod("p", affinity=rule)]))
    details = cause_of(explanation, "InterPodAffinity").details
    assert details[0].endswith("1 of 1 domains have such pods: n1: 1")
    assert ("drop the required anti-affinity to app=web over kubernetes.io/hostname",) in steps(
        explanation
    )
    assert ("remove default/w from n1",) in steps(explanation)


def test_a_missing_claim_is_a_cause_and_its_creation_is_a_fix() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    explanation = answer(model_of([node("n1")], [pod("p", spec={"volumes": volumes})]))
    assert explanation.message.startswith("0/1 nodes are available: persistentvolumeclaim")
    assert explanation.causes[0].nodes == 0
    assert explanation.causes[0].details == ("PersistentVolumeClaim default/data does not exist",)


def test_a_gate_is_left_to_its_owner() -> None:
    explanation = answer(model_of([node("n1")], [pod("p", gates=["example.com/quota"])]))
    assert explanation.result == "gated"
    assert steps(explanation) == []
    remark = "the scheduling gate example.com/quota is removed by the controller that set it"
    assert explanation.remarks == (remark,)


def test_preemption_names_victims_and_budgets() -> None:
    low = pod("low", node="n1", cpu="1", priority=0, labels={"app": "web"})
    budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": APP}}
    objects = {POD_DISRUPTION_BUDGET: [decode(POD_DISRUPTION_BUDGET, budget)]}
    waiting = pod("p", cpu="1", priority=10)
    explanation = answer(model_of([node("n1", cpu="1")], [low, waiting], objects))
    assert explanation.result == "nominated"
    assert explanation.preemption is not None
    assert explanation.preemption.victims == ("default/low",)
    assert [each.name for each in explanation.preemption.budgets] == ["default/b"]
    assert explanation.fixes == ()


def test_a_priority_class_that_lets_the_pod_preempt_is_a_fix() -> None:
    high = {"metadata": {"name": "high"}, "value": 1000}
    objects = {PRIORITY_CLASS: [decode(PRIORITY_CLASS, high)]}
    placed = pod("a", node="n1", requests={"example.com/gpu": "1"})
    waiting = pod("p", requests={"example.com/gpu": "1"})
    nodes = [node("n1", allocatable={"example.com/gpu": "1"})]
    explanation = answer(model_of(nodes, [placed, waiting], objects))
    assert steps(explanation) == [
        ("add one node like n1",),
        ("give it the priority class high, so that it preempts",),
        ("remove default/a from n1",),
    ]


def test_a_bound_pod_is_compared_with_all_nodes() -> None:
    explanation = answer(
        model_of([node("n1", cpu="4"), node("n2", cpu="8")], [pod("p", node="n1", cpu="1")])
    )
    assert (explanation.result, explanation.node) == ("bound", "n1")
    comparison = explanation.comparison
    assert comparison is not None
    assert (comparison.feasible, comparison.better) == (2, 1)
    assert [each.node for each in comparison.nodes] == ["n1", "n2"]
    assert "Nodes with a higher score than n1: 1." in str(explanation)


def test_the_comparison_of_a_bound_pod_that_no_longer_fits_has_the_rejection() -> None:
    explanation = answer(
        model_of([node("n1", unschedulable=True), node("n2")], [pod("p", node="n1")])
    )
    assert explanation.comparison is not None
    assert explanation.comparison.rejection == "node(s) were unschedulable"


def test_a_stored_message_that_differs_is_part_of_the_explanation() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "an old sentence"}
    waiting = pod("p", cpu="9", status={"conditions": [condition]})
    explanation = answer(model_of([node("n1", cpu="1")], [waiting]))
    assert explanation.stored_message == "an old sentence"
    assert explanation.message != "an old sentence"


@pytest.mark.parametrize(
    ("options", "result"),
    [
        ({"scheduler_name": "theirs"}, "foreign"),
        ({"status": {"phase": "Succeeded"}, "node": "n1"}, "ended"),
    ],
)
def test_pods_of_other_schedulers_and_ended_pods_have_results_of_their_own(
    options: dict[str, Any], result: str
) -> None:
    assert answer(model_of([node("n1")], [pod("p", **options)])).result == result


def test_an_unknown_pod_is_refused() -> None:
    with pytest.raises(NoSuchPodError):
        answer(model_of([node("n1")]), "default/p")


def test_a_question_leaves_the_model_unchanged() -> None:
    model = model_of([node("n1", cpu="1")], [pod("a", node="n1", cpu="600m"), pod("p", cpu="500m")])
    assert answer(model) == answer(model)


@pytest.mark.parametrize(
    ("requests", "counted"),
    [({"cpu": "1E"}, "cpu"), ({"cpu": "1", "memory": "1e30"}, "memory")],
)
def test_a_request_that_overflows_is_remarked(requests: dict[str, str], counted: str) -> None:
    containers = [{"name": "c", "resources": {"requests": requests}}]
    explanation = answer(model_of([node("n1", cpu="4")], [pod("p", containers=containers)]))
    assert explanation.result == "fits"
    (remark,) = explanation.remarks
    assert remark.startswith(f"the request for {counted} is more than 2^63-1 ")
    assert "counts it as 0, so the pod may get a node that cannot hold it" in remark


def test_a_group_without_its_object_may_be_one_that_nobody_reads() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    explanation = answer(model_of([node("n1")], [pod("p", labels=labels)]))
    [remark] = explanation.remarks
    assert remark == (
        "kube-scheduler does not read PodGroups of scheduling.x-k8s.io: without a plugin that "
        "does, such as Coscheduling, it places such pods one by one"
    )
    group = explanation.group
    assert group is not None
    assert members_text(group.have, group.need) == "1 member exists", (
        "nobody says how many it needs"
    )


@pytest.mark.parametrize(
    ("have", "need", "text"),
    [
        (1, 1, "1 member exists, 1 is needed"),
        (6, 1, "6 members exist, 1 is needed"),
        (0, 2, "0 members exist, 2 are needed, 2 missing"),
    ],
)
def test_the_members_of_a_group_are_counted_in_a_sentence(have: int, need: int, text: str) -> None:
    assert members_text(have, need) == text
