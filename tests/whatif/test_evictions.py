"""Replacements of evicted pods, and evictions that a budget blocks."""

from collections import defaultdict

import pytest

from bayplan.model.additions import AdditionsReader
from bayplan.objects.workloads import controller_kind
from bayplan.sim.input.what_if import WhatIf
from bayplan.state.pods import PodInfo
from bayplan.whatif.changes import make_changes
from bayplan.whatif.evictions import Budgets, blocked_by, recreated, replacement
from tests.kit.manifests import Content, node, pod
from tests.whatif.clusters import budget, cluster_of, model_of, owned_pod


def placed(*objects: Content) -> tuple[list[PodInfo], Budgets]:
    model = model_of(cluster_of(node("n1"), *objects))
    return sorted(model.scheduler.cache.pods(), key=lambda info: info.key), Budgets(model)


def test_a_replacement_waits_and_has_the_same_spec() -> None:
    [info], _ = placed(owned_pod("web-a", "n1", nodeSelector={"disk": "ssd"}))
    copy = replacement(info, suffix="-b")
    assert copy.metadata.name == "web-a-b"
    assert copy.metadata.uid is None
    assert copy.metadata.owner_references == info.metadata.owner_references
    assert copy.spec.node_name is None
    assert copy.spec.node_selector == {"disk": "ssd"}
    assert not copy.status.conditions


@pytest.mark.parametrize(
    ("kind", "count"), [("ReplicaSet", 1), ("StatefulSet", 1), ("Job", 1), ("DaemonSet", 0)]
)
def test_controllers_create_replacements_for_their_pods(kind: str, count: int) -> None:
    pods, _ = placed(owned_pod("web-a", "n1", kind=kind), pod("bare", nodeName="n1"))
    assert [controller_kind(info.metadata) for info in pods] == ["", kind]
    assert len(recreated(pods)) == count


def test_a_budget_counts_disruptions_that_have_not_ended() -> None:
    objects = [owned_pod("web-a", "n1"), owned_pod("web-b", "n1"), owned_pod("db-a", "n1")]
    pods, budgets = placed(*objects, budget("web", 1))
    by_name = {info.name: info for info in pods}
    used = defaultdict[str, int](int)
    assert blocked_by(by_name["web-a"], budgets.of(by_name["web-a"]), used) is None
    used["default/web"] += 1
    blocked = blocked_by(by_name["web-b"], budgets.of(by_name["web-b"]), used)
    assert blocked is not None
    assert blocked.budgets == ("web",)
    assert blocked_by(by_name["db-a"], budgets.of(by_name["db-a"]), used) is None


@pytest.mark.parametrize(
    ("policy", "is_blocked"), [("AlwaysAllow", False), ("IfHealthyBudget", True)]
)
def test_an_unready_pod_goes_where_its_budget_lets_it(policy: str, is_blocked: bool) -> None:
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    strict = budget("web", 1)
    strict["spec"]["unhealthyPodEvictionPolicy"] = policy
    [info], budgets = placed(owned_pod("web-a", "n1", status=unready), strict)
    assert (blocked_by(info, budgets.of(info), {}) is not None) is is_blocked


def test_an_unready_pod_goes_if_enough_others_are_healthy() -> None:
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    sick = owned_pod("web-a", "n1", status=unready)
    pods, budgets = placed(sick, owned_pod("web-b", "n1"), budget("web", 1))
    blocked = [blocked_by(info, budgets.of(info), {}) is not None for info in pods]
    assert blocked == [False, True]


def test_a_pod_of_a_stateful_set_does_not_leave_a_node_that_does_not_answer() -> None:
    lost = node("n1", taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}])
    pods = [owned_pod("db-0", "n1", kind="StatefulSet"), owned_pod("web-a", "n1")]
    model = model_of(cluster_of(lost, node("n2"), *pods))
    outcome = make_changes(model, WhatIf(drain=("n1",)), AdditionsReader(model))
    assert [move.pod for move in outcome.moves] == ["default/web-a"]
    [blocked] = outcome.blocked
    assert (blocked.pod, blocked.budgets) == ("default/db-0", ())
    assert "the kubelet of n1 does not answer" in blocked.message
