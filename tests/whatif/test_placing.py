"""The pods that wait are placed as the scheduler of the cluster would place them."""

from typing import Any

import pytest

from bayplan.api.pod_groups import BUILT_IN_KINDS
from bayplan.api.selectors import selector_of_text
from bayplan.model.additions import AdditionsReader
from bayplan.problems import BadInputError
from bayplan.sim.input.what_if import NewNodes, Scaling, WhatIf
from bayplan.whatif.comparison import WhatIfAnswer, what_if
from bayplan.whatif.drain_each import Departures, drain_each, remove_each
from bayplan.whatif.placing import Placer
from bayplan.whatif.text import PendingPodCounts
from tests.kit.manifests import Content, node, pod
from tests.whatif.clusters import cluster_of, deployment, model_of, owned_pod

ZONE = "topology.kubernetes.io/zone"


def compared(change: WhatIf, *objects: Content) -> WhatIfAnswer:
    model = model_of(cluster_of(*objects))
    return what_if(model, change, AdditionsReader(model), BUILT_IN_KINDS)


def placed(*objects: Content) -> dict[str, str]:
    model = model_of(cluster_of(*objects))
    placer = Placer(model)
    placer.place_waiting()
    return {move.pod.partition("/")[2]: move.target for move in placer.moves()}


def aged(name: str, cpu: str, minute: int, **fields: Any) -> Content:
    stamp = f"2026-01-01T00:{minute:02}:00Z"
    made = pod(name, cpu=cpu, **fields)
    return {**made, "metadata": {**made["metadata"], "creationTimestamp": stamp}}


def test_the_priority_decides_who_is_placed_and_then_the_age() -> None:
    pods = [aged("a", "2", 9), aged("b", "2", 5), aged("c", "2", 7, priority=7)]
    assert placed(node("n1"), *pods) == {"c": "n1", "b": "n1"}


def test_a_pod_that_needs_another_is_tried_again() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    first = pod("a", cpu="1", priority=9, affinity=affinity)
    second = pod("z", cpu="1", labels={"app": "db"})
    assert placed(node("n1", labels={ZONE: "x"}), first, second) == {"a": "n1", "z": "n1"}


def test_a_victim_that_a_controller_owns_waits_in_turn() -> None:
    low = owned_pod("web-1", "n1", "3")
    objects = [node("n1"), node("n2"), low, pod("used", cpu="2", nodeName="n2", priority=9)]
    assert placed(*objects, pod("high", cpu="4", priority=9)) == {"high": "n1"}


def test_a_pod_that_waits_in_both_is_no_consequence_of_a_drain() -> None:
    pods = [owned_pod("web-1", "n1", "2"), owned_pod("web-2", "n1", "1")]
    answer = compared(
        WhatIf(drain=("n1",)),
        node("n1"),
        node("n2"),
        *pods,
        pod("fits", cpu="1", priority=3),
        pod("huge", cpu="9"),
    )
    assert [one.pod for one in answer.waited_before] == ["default/huge"]
    assert [move.pod for move in answer.placed_before] == ["default/fits"]
    assert (answer.before.waiting, answer.after.waiting) == (1, 1)
    assert {(one.pod, one.source) for one in answer.displaced} == {
        ("default/web-1", "n1"),
        ("default/web-2", "n1"),
    }
    lines = str(answer).splitlines()
    assert lines[1] == "2 pods displaced to another node"
    assert "1 pod waited before, too" in lines
    assert "1 pod waits in the cluster and gets a node without the change, too" in lines


def test_forty_displaced_pods_have_a_line_and_those_without_a_node_come_first() -> None:
    pods = [owned_pod(f"web-{number:03}", "n1", "10m") for number in range(60)]
    answer = compared(WhatIf(drain=("n1",)), node("n1"), node("n2"), *pods)
    assert sum("n1     n2" in line for line in str(answer).splitlines()) == 40
    full = owned_pod("db-1", "n2", "3800m", kind="StatefulSet")
    answer = compared(WhatIf(remove=("n1",)), node("n1"), node("n2"), full, *pods)
    targets = [line.split()[-1] for line in str(answer).splitlines() if " n1 " in line]
    assert targets == ["node"] * 40
    assert answer.verdict == "40 pods newly without a node, 20 pods displaced to another node"


def test_scaling_and_new_nodes_give_nodes_to_pods_that_had_none() -> None:
    objects = [node("n1"), deployment("web", 2, "1500m"), pod("waits", cpu="3")]
    scaling = Scaling(kind="Deployment", name="web", replicas=4)
    answer = compared(WhatIf(scale=(scaling,), add=(NewNodes(template="n1"),)), *objects)
    placed_pods = [(move.waited, move.source) for move in answer.moves]
    assert placed_pods == [(True, "")]
    assert len(answer.left_over) == 2
    assert not answer.waited_before


def test_the_answers_about_all_nodes_begin_with_the_cluster_at_rest() -> None:
    waits = pod("waits", cpu="4", priority=3)
    objects = [node("n1"), node("n2"), owned_pod("web-1", "n1", "1")]
    assert [row.can_go for row in drain_each(model_of(cluster_of(*objects))).departures] == [
        True,
        True,
    ]
    for question in (drain_each, remove_each):
        report = question(model_of(cluster_of(*objects, waits)))
        assert not report.departures[0].can_go
        assert report.waiting == PendingPodCounts(placed=1)


@pytest.mark.parametrize("key", ["zoned", "zone", "topology.kubernetes.io/zones", "Zone"])
def test_a_topology_key_that_no_node_has_is_refused_with_a_suggestion(key: str) -> None:
    model = model_of(cluster_of(node("n1", labels={ZONE: "a", "pool": "x", "tier": "y"})))
    with pytest.raises(BadInputError, match=f"no node has the label {key}; did you mean .*{ZONE}"):
        drain_each(model, Departures(topology_key=key))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("poool=x", 'no node has the label poool; did you mean "pool"?'),
        ("!gpu,pool=y", "no node has all of these labels"),
        ("pool!=x", "no node has all of these labels"),
    ],
)
def test_labels_that_no_node_has_are_refused(labels: str, message: str) -> None:
    model = model_of(cluster_of(node("n1", labels={"pool": "x"})))
    with pytest.raises(BadInputError) as problem:
        drain_each(model, Departures(selector=selector_of_text(labels)))
    assert str(problem.value) == message
