"""Changes made in a model, one by one."""

from bayplan.api.objects import NODE, POD, Node
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.sim.input.what_if import NewNodes, WhatIf
from bayplan.whatif.changes import Outcome, make_changes
from tests.kit.manifests import Content, node
from tests.whatif.clusters import cluster_of, model_of, owned_pod, pod_with_cpu

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
    waiting = pod_with_cpu("waiting", "2", priority=0)
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
    model, outcome = changed(change, cordoned, pod_with_cpu("waiting", "1"))
    assert [(move.pod, move.target) for move in outcome.moves] == [("default/waiting", "n1")]
    assert isinstance(present := model.get(NODE, "", "n1"), Node)
    assert not present.spec.unschedulable
