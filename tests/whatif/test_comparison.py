"""A cluster before and after changes: moves, unplaced pods, blocked evictions, numbers."""

from typing import Any

import pytest

from bayplan.answers.table import Table
from bayplan.api.objects import POD
from bayplan.api.pod_groups import BUILT_IN_KINDS
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.problems import BadInputError
from bayplan.sim.input.what_if import NewNodes, Scaling, WhatIf
from bayplan.whatif.comparison import WhatIfAnswer, what_if
from tests.kit.manifests import Content, node, pod, priority_class
from tests.whatif.clusters import (
    budget,
    cluster_of,
    deployment,
    model_of,
    owned_pod,
)


def compared(*objects: Content, change: WhatIf, **options: Any) -> WhatIfAnswer:
    model = model_of(cluster_of(*objects))
    before = names(model)
    answer = what_if(model, change, AdditionsReader(model), BUILT_IN_KINDS, **options)
    assert names(model) == before
    return answer


def names(model: ClusterModel) -> list[str]:
    return sorted(each.metadata.name for each in model.objects(POD))


def moves(answer: WhatIfAnswer) -> list[tuple[str, str, str]]:
    return [(move.pod, move.source, move.target) for move in answer.moves]


def test_pods_of_a_drained_node_move() -> None:
    answer = compared(
        node("n1"), node("n2"), owned_pod("web-a", "n1"), change=WhatIf(drain=("n1",))
    )
    assert moves(answer) == [("default/web-a", "n1", "n2")]
    assert (answer.before.nodes, answer.after.nodes) == (2, 2)
    assert (answer.before.schedulable_nodes, answer.after.schedulable_nodes) == (2, 1)
    assert answer.after.utilization["cpu"].requested == 1000


def test_rows_are_sorted_by_name_and_pods_without_a_node_come_first() -> None:
    drained = [owned_pod(f"web-{number}", "n1", "100m") for number in (10, 9, 2)]
    large = owned_pod("web-11", "n1", "3")
    waiting = [pod(name, cpu="3") for name in ("job-10", "job-9")]
    answer = compared(
        node("n1"),
        node("n2", cpu="1"),
        *drained,
        large,
        *waiting,
        change=WhatIf(drain=("n1",), add=(NewNodes(template="n1", count=2),)),
    )
    # Two of the three large pods fit on the new nodes.
    first_cells = [line.split()[0] for line in str(answer).splitlines() if "default/" in line[:8]]
    assert first_cells == [
        "default/web-11",
        "default/web-2",
        "default/web-9",
        "default/web-10",
        "default/job-9",
        "default/job-10",
    ], str(answer)


def test_long_tables_end_with_how_many_rows_they_lack_and_wide_ones_have_all() -> None:
    drained = [owned_pod(f"web-{number}", "n1", "10m") for number in range(45)]
    answer = compared(node("n1"), node("n2"), *drained, change=WhatIf(drain=("n1",)))
    assert "and 5 pods more that are displaced; -o wide lists all" in str(answer)
    wide = [part for part in answer.parts(is_wide=True) if isinstance(part, Table)]
    assert len(wide[0].rows) == 45


def test_new_nodes_take_the_pods_of_a_removed_node() -> None:
    daemon = owned_pod("logs-a", "n1", "500m", kind="DaemonSet")
    answer = compared(
        node("n1", spec={"unschedulable": True}, labels={"kubernetes.io/hostname": "n1"}),
        daemon,
        owned_pod("web-a", "n1", "3"),
        pod("bare", nodeName="n1"),
        change=WhatIf(add=(NewNodes(template="n1", count=2),), remove=("n1",)),
    )
    (name, source, target), *daemons = moves(answer)
    assert [each[1:] for each in daemons] == [("", "n1-new-1"), ("", "n1-new-2")]
    assert (name, source) == ("default/web-a", "n1")
    assert target in ("n1-new-1", "n1-new-2")
    assert answer.after.nodes == answer.after.schedulable_nodes == 2
    assert answer.after.utilization["cpu"].requested == 3000 + 2 * 500
    assert answer.gone == {"lost with its node": ["default/bare"]}


def test_pods_that_are_left_over_have_the_schedulers_message() -> None:
    answer = compared(
        node("n1"),
        node("n2"),
        owned_pod("web-a", "n1", "3"),
        owned_pod("web-b", "n2", "3"),
        change=WhatIf(drain=("n1",)),
    )
    [left] = answer.left_over
    assert left.pod == "default/web-a"
    assert left.message.startswith("0/2 nodes are available: 1 Insufficient cpu")
    assert (answer.before.waiting, answer.after.waiting) == (0, 1)


def test_a_budget_and_a_bare_pod_block_a_drain() -> None:
    objects = [node("n1"), node("n2"), owned_pod("web-a", "n1"), budget("web", 1)]
    change = WhatIf(drain=("n1",))
    answer = compared(*objects, pod("bare", nodeName="n1"), change=change)
    assert [(one.pod, one.budgets) for one in answer.blocked] == [
        ("default/bare", ()),
        ("default/web-a", ("web",)),
    ]
    forced = compared(*objects, pod("bare", nodeName="n1"), change=change, force=True)
    assert forced.gone == {"evicted": ["default/bare"]}


@pytest.mark.parametrize(("replicas", "count", "waiting"), [(5, 3, 0), (9, 6, 1), (1, 0, 0)])
def test_a_deployment_is_scaled(replicas: int, count: int, waiting: int) -> None:
    web = deployment("web", 2)
    model = model_of(cluster_of(node("n1"), node("n2"), web))
    for info in model.pending():
        model.place(info.key)
    change = WhatIf(scale=(Scaling(kind="Deployment", name="web", replicas=replicas),))
    answer = what_if(model, change, AdditionsReader(model), BUILT_IN_KINDS)
    assert len(answer.moves) == count
    assert answer.after.waiting == waiting
    assert answer.after.pods == replicas
    assert len(answer.gone.get("scaled down", [])) == max(2 - replicas, 0)


def test_a_stateful_set_deletes_its_highest_ordinals() -> None:
    pods = [owned_pod(f"db-{number}", "n1", "1m", kind="StatefulSet") for number in (9, 10, 11)]
    scaling = Scaling(kind="StatefulSet", name="db", replicas=1)
    answer = compared(node("n1"), *pods, change=WhatIf(scale=(scaling,)))
    assert answer.gone == {"scaled down": ["default/db-11", "default/db-10"]}


def test_a_workload_that_was_not_read_is_scaled_by_copies_of_its_pods() -> None:
    scaling = Scaling(kind="ReplicaSet", name="web", replicas=3)
    answer = compared(node("n1"), owned_pod("web-a", "n1"), change=WhatIf(scale=(scaling,)))
    assert [target for _, _, target in moves(answer)] == ["n1", "n1"]


def test_objects_are_applied() -> None:
    bigger = {**node("n1"), "status": {"allocatable": {"cpu": "16", "pods": "110"}}}
    answer = compared(
        node("n1"),
        pod("waiting", cpu="8"),
        change=WhatIf(apply=(bigger, deployment("web", 3, "2"))),
    )
    assert ("default/waiting", "", "n1") in moves(answer)
    assert len(answer.moves) == 4
    assert answer.after.utilization["cpu"].allocatable == 16000


def test_cordoned_nodes_take_no_pods_and_uncordoned_nodes_do() -> None:
    closed = node("n2", spec={"unschedulable": True})
    full, waiting = owned_pod("web-a", "n1", "3"), pod("waiting", cpu="2")
    change = WhatIf(cordon=("n1",), uncordon=("n2",))
    answer = compared(node("n1"), closed, full, waiting, change=change)
    assert moves(answer) == [("default/waiting", "", "n2")]
    assert answer.moves[0].waited


def test_pods_that_are_preempted_are_placed_again() -> None:
    low = owned_pod("low-a", "n2", "3", priority=0)
    high = owned_pod("high-a", "n1", "3", priority=100)
    answer = compared(
        node("n1"), node("n2"), priority_class("x", 1), low, high, change=WhatIf(drain=("n1",))
    )
    assert moves(answer)[0] == ("default/high-a", "n1", "n2")
    assert [left.pod for left in answer.left_over] == ["default/low-a"]


def test_headroom_is_that_of_the_largest_workloads() -> None:
    pods = [owned_pod(f"web-{number}", "n1", "500m") for number in range(2)]
    answer = compared(node("n1"), node("n2"), *pods, change=WhatIf(remove=("n2",)))
    assert answer.before.headroom == {"web": 14}
    assert answer.after.headroom == {"web": 6}
    assert answer.before.headroom_victims == {}


def test_headroom_that_needs_preemption_names_the_number_of_victims() -> None:
    web = owned_pod("web-1", "n1", "1", priority=100)
    low = owned_pod("low-a", "n2", "4", priority=0)
    classes = priority_class("x", 100)
    answer = compared(node("n1"), node("n2"), classes, web, low, change=WhatIf(remove=("n2",)))
    assert answer.before.headroom["web"] == 7
    assert answer.before.headroom_victims["web"] == 1
    assert "pods evicted for them" in str(answer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (WhatIf(drain=("n11",)), 'there is no node n11; did you mean "n1"?'),
        (WhatIf(add=(NewNodes(template="x"),)), 'there is no node x; wanted "n1"'),
        (
            WhatIf(scale=(Scaling(kind="Deployment", name="wbe", replicas=1),)),
            'there is no Deployment default/wbe; did you mean "Deployment default/web"?',
        ),
        (
            WhatIf(apply=({"apiVersion": "v1", "kind": "Pod", "metadata": "x"},)),
            'apply[0]: metadata: found "x", wanted a mapping with a name',
        ),
    ],
)
def test_names_and_objects_that_do_not_exist_are_refused(change: WhatIf, message: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        compared(node("n1"), deployment("web", 1), change=change)
    assert str(refusal.value) == message


def test_the_answer_is_a_text_and_a_view_of_a_notebook() -> None:
    answer = compared(
        node("n1"), node("n2"), owned_pod("web-a", "n1"), change=WhatIf(drain=("n1",))
    )
    lines = str(answer).splitlines()
    assert lines[0] == "test: drain n1"
    assert "default/web-a   n1     n2" in lines
    assert "drain n1" in answer._repr_html_()
