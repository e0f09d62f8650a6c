"""Only edits that make the pod fit are solutions, and their number of trials is bounded."""

from collections.abc import Iterable

import pytest

from bayplan.api.objects import POD
from bayplan.explain.diagnosis import diagnose
from bayplan.explain.fixes.edits import Edit
from bayplan.explain.fixes.new_node import new_node_edits
from bayplan.explain.fixes.object_edits import object_edits
from bayplan.explain.fixes.owners import Owners
from bayplan.explain.fixes.rule_edits import rule_edits
from bayplan.explain.fixes.search import TRIALS_MAX, Search
from bayplan.explain.fixes.workload_edits import PlacedPods, room_edits
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.rng import stream
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from bayplan.testing import node as drawn_node
from bayplan.testing import pod as drawn_pod
from bayplan.testing.generators import Draws, draw_node, draw_placed_pod, draw_pod
from tests.model.clusters import model_of


def texts(edits: Iterable[Edit]) -> list[str]:
    return [edit.text for edit in edits]


def test_every_rule_of_a_pod_has_an_edit() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    expressions = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    affinity = {
        "podAffinity": rules,
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
    }
    waiting = pod("p", affinity=affinity, node_selector={"disk": "ssd"})
    model = model_of([node("n1")], [waiting])
    diagnosis = diagnose(model, "default/p")
    assert texts(rule_edits(model, Owners(model), diagnosis)) == [
        "drop disk=ssd from the node selector",
        "drop a Exists from the node affinity",
        "drop b Exists from the node affinity",
        "drop the required node affinity (a Exists and b Exists)",
        "drop the required affinity to app=web over zone",
    ]
    assert "label node n1 with disk=ssd" in texts(object_edits(model, Owners(model), diagnosis))


def test_the_fewest_pods_that_make_room_are_removed() -> None:
    placed = [pod(f"a{i}", node="n1", cpu=cpu) for i, cpu in enumerate(("100m", "500m", "400m"))]
    model = model_of([node("n1", cpu="1")], [*placed, pod("p", cpu="500m")])
    edits = room_edits(model, Owners(model), diagnose(model, "default/p"))
    assert set(texts(edits)) == {"remove default/a1 from n1"}


def test_only_removals_that_free_what_the_node_lacks_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placed = [pod(f"a{i}", node="n1", cpu="250m") for i in range(4)]
    model = model_of([node("n1", cpu="1")], [*placed, pod("p", cpu="1")])
    diagnosis = diagnose(model, "default/p")
    tried: list[str] = []
    attempt = ClusterModel.attempt

    def counted(self: ClusterModel, pod: str) -> Attempt:
        tried.append(pod)
        return attempt(self, pod)

    monkeypatch.setattr(ClusterModel, "attempt", counted)
    names = ", ".join(f"default/a{i} from n1" for i in range(4))
    assert texts(room_edits(model, Owners(model), diagnosis)) == [f"remove {names}"]
    assert tried == ["default/p"]


def test_placed_pods_go_in_one_order_also_after_the_changes_of_a_trial() -> None:
    def named(prefix: str, priority: int, cpu: str) -> list[PodInfo]:
        return [pod(f"{prefix}{i}", node="n1", priority=priority, cpu=cpu) for i in range(2)]

    placed = [*named("high", 5, "1"), *named("small", 0, "100m"), *named("large", 0, "500m")]
    model = model_of([node("n1", cpu="8")], placed)
    pods = model.once(PlacedPods)

    def order() -> list[str]:
        return [each.name for each in pods.in_order({"cpu": 400})]

    before = ["large0", "large1", "small0", "small1", "high0", "high1"]
    assert order() == before
    with model.trial():
        model.remove(POD, "default", "large0")
        model.add(POD, pod("b", node="n1", cpu="2").pod)
        model.add(POD, pod("a", node="n1", priority=-1).pod)
        assert order() == ["a", "b", "large1", "small0", "small1", "high0", "high1"]
    assert order() == before


def test_a_new_node_has_what_the_pod_needs() -> None:
    model = model_of([node("n1", cpu="1")], [pod("p", cpu="3", node_selector={"disk": "ssd"})])
    edits = texts(new_node_edits(model, diagnose(model, "default/p")))
    assert edits == ["add one node like n1 with 3 cpu, label disk=ssd"]


def test_solutions_of_drawn_pods_work_in_a_second_trial() -> None:
    solved = 0
    for seed in range(8):
        draws = Draws(stream(seed, "fixes"))
        nodes = [drawn_node(f"n{i}", **draw_node(draws)) for i in range(5)]
        names = {each.metadata.name for each in nodes}
        pods = [drawn_pod(f"a{i}", **draw_placed_pod(draws)) for i in range(12)]
        pods += [drawn_pod(f"p{i}", **draw_pod(draws)) for i in range(4)]
        model = model_of(nodes, [each for each in pods if each.node_name in {"", *names}])
        for waiting in model.pending():
            diagnosis = diagnose(model, waiting.key)
            if diagnosis.attempt.fits or diagnosis.attempt.nominated_node:
                continue
            search = Search(model, Owners(model), waiting, [waiting.key])
            solutions = search.run(diagnosis)
            assert search.trials <= TRIALS_MAX + len(solutions)
            for solution in solutions:
                outcome = search.outcome_of(solution.fix, solution.edits)
                assert (outcome.node, outcome.helped) == (solution.fix.node, 1)
            solved += bool(solutions)
    assert solved >= 8
