"""A new node first gets the pods of its DaemonSets: one answer from every question."""

from typing import Any

import pytest

from bayplan.api.objects import POD, Pod
from bayplan.config import SchedulerConfig
from bayplan.explain.explainer import explain_pod
from bayplan.model.additions import AdditionsReader
from bayplan.model.daemon_pods import place_daemon_pods
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.what_if import NewNodes, WhatIf
from bayplan.whatif.changes import make_changes
from bayplan.whatif.over_time import what_if_over_time
from tests.kit.manifests import Content, api_object, container, node, pod, priority_class
from tests.sim.manifests import controller
from tests.whatif.clusters import cluster_of, model_of, owned_pod

HOSTNAME = "kubernetes.io/hostname"


def agent(cpu: str, **spec: Any) -> Content:
    """A DaemonSet whose pods request this much CPU. ``spec``: of the pods."""
    daemon_set = controller("DaemonSet", "agent", uid="uid-agent")
    daemon_set["spec"]["template"] = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [container(cpu)], **spec},
    }
    return daemon_set


def pool_node(**spec: Any) -> Content:
    """A node with 4 CPUs, in the pool "x"."""
    return node("n1", labels={HOSTNAME: "n1", "pool": "x"}, spec=spec)


TAINT = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
NETWORK = {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}
TERMS = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["y"]}]}
        ]
    }
}
RUNNING = owned_pod("agent-1", "n1", kind="DaemonSet")
#: With 1 CPU of the agent in use and 1 of another pod, 2 of n1 are free.
USED = [RUNNING, pod("used", cpu="1500m", nodeName="n1")]


@pytest.mark.parametrize(
    ("objects", "fits"),
    [
        ([pool_node(), agent("1"), *USED], False),
        ([pool_node(), agent("500m"), *USED], True),
        ([pool_node(), agent("1", nodeSelector={"pool": "y"}), *USED], True),
        ([pool_node(), agent("1", nodeSelector={"pool": "x"}), *USED], False),
        ([pool_node(), agent("1", affinity={"nodeAffinity": TERMS}), *USED], True),
        ([pool_node(), agent("1", nodeName="n1"), *USED], True),
        ([pool_node(taints=[TAINT]), agent("1"), *USED], True),
        ([pool_node(taints=[TAINT]), agent("1", tolerations=[{"operator": "Exists"}])], False),
        # Taints of conditions do not come to the copy, and a DaemonSet tolerates most of them.
        ([pool_node(taints=[NETWORK]), agent("1"), *USED], False),
        ([pool_node(unschedulable=True), agent("1"), *USED], False),
        # The agents do not fit themselves.
        ([pool_node(), agent("5"), *USED], True),
        # The DaemonSet itself was not read.
        ([pool_node(), *USED], False),
        # Its pods have a higher priority than the pod that waits.
        ([pool_node(), priority_class("up", 9), agent("1", priorityClassName="up"), *USED], False),
    ],
)
def test_every_question_gives_the_same_answer(objects: list[Content], fits: bool) -> None:
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    cluster = cluster_of(*objects, pod("big", cpu="3500m", tolerations=tolerations))
    model = model_of(cluster)
    fixes = explain_pod(model, "default/big").fixes
    by_fix = any(fix.steps == ("add one node like n1",) for fix in fixes)
    change = WhatIf(add=(NewNodes(template="n1"),))
    with model.trial():
        moves = make_changes(model, change, AdditionsReader(model)).moves
    by_change = [move.target for move in moves if move.pod == "default/big"] == ["n1-new-1"]
    over_time = what_if_over_time(
        model, WhatIf(add=change.add, until="60s"), SchedulerConfig(), default_registry(())
    )
    in_time = [m.target for m in over_time.moves if m.pod == "default/big"] == ["n1-new-1"]
    assert (by_fix, by_change, in_time) == (fits, fits, fits)


@pytest.mark.parametrize(
    "objects",
    [
        [
            agent("1", runtimeClassName="kata"),
            api_object(
                "node.k8s.io/v1 RuntimeClass",
                "kata",
                handler="kata",
                overhead={"podFixed": {"cpu": "500m"}},
            ),
        ],
        [
            agent("0"),
            api_object(
                "v1 LimitRange",
                "l",
                "default",
                spec={"limits": [{"type": "Container", "min": {"cpu": "1500m"}}]},
            ),
        ],
    ],
)
def test_a_larger_node_has_room_for_what_admission_adds_to_daemon_pods(
    objects: list[Content],
) -> None:
    if objects[1]["kind"] == "LimitRange":
        del objects[0]["spec"]["template"]["spec"]["containers"][0]["resources"]
    full = pod("full", cpu="4", nodeName="n1")
    cluster = cluster_of(pool_node(), *objects, full, pod("big", cpu="3500m"))
    fixes = explain_pod(model_of(cluster), "default/big").fixes
    steps = [step for fix in fixes for step in fix.steps]
    assert "add one node like n1 with 5 cpu" in steps


def test_a_node_that_is_applied_gets_the_pods_of_its_daemon_sets() -> None:
    model = model_of(cluster_of(pool_node(), agent("1"), *USED, pod("big", cpu="3500m")))
    change = WhatIf(apply=(node("n2"),))
    outcome = make_changes(model, change, AdditionsReader(model))
    assert [(move.pod[:14], move.target) for move in outcome.moves] == [("default/agent-", "n2")]


def test_a_daemon_pod_of_another_scheduler_is_on_the_new_node_at_once() -> None:
    model = model_of(cluster_of(pool_node(), agent("1", schedulerName="mine"), *USED))
    make_changes(model, WhatIf(apply=(node("n2"),)), AdditionsReader(model, scheduler_name=None))
    pods = [each for each in model.objects(POD) if isinstance(each, Pod)]
    assert sorted(each.spec.node_name or "" for each in pods) == ["n1", "n1", "n2"]


def test_pods_of_a_daemon_set_have_names_that_no_pod_has() -> None:
    model = model_of(cluster_of(pool_node(), node("n2"), agent("1")))
    names = [each.metadata.name for each in model.objects(POD)]
    [new] = place_daemon_pods(model, ["n2"], AdditionsReader(model))
    assert new.name.startswith("default/agent-")
    assert new.name.removeprefix("default/") not in names


def test_a_pod_of_a_node_that_a_daemon_set_does_not_tolerate_is_not_made() -> None:
    model = model_of(cluster_of(node("n1", spec={"taints": [TAINT]}), agent("1"), pod("web")))
    assert place_daemon_pods(model, ["n1"], AdditionsReader(model)) == []
