"""One-shot questions: Filter, Score and preemption for a pod that this scheduler does not place."""

from typing import Any

import numpy as np
import pytest

from bayplan.engine.one_shot import UNKNOWN_NODE, EvaluationError
from bayplan.framework.status import Code, Rejection, Status, unresolvable
from bayplan.framework.types import PreFilterResult
from bayplan.testing import api_pod, node, pod
from tests.engine.kit import Engine, uid
from tests.framework.answering import answering
from tests.scenarios.world import PROFILE


def advised(weight: int = 1, **answers: Any) -> Engine:
    """Three nodes and a plugin with these answers."""
    plugin = answering("A", events_to_register=[], **answers)
    scores = "score" in answers
    engine = Engine(plugins=[("A", weight) if scores else "A"], classes=[plugin])
    engine.add(node("n1"), node("n2"), node("n3"))
    return engine


def filtered(engine: Engine, *names: str) -> tuple[list[str], dict[str, tuple[Code, str]]]:
    outcome = engine.scheduler.one_shot.filter(PROFILE, pod("p"), names)
    return outcome.fitting, {name: (s.code, s.message) for name, s in outcome.rejected.items()}


def no_n1(state: Any, pod: Any, nodes: Any, feasible: Any) -> Any:
    for position in nodes.positions(["n1"]):
        yield Rejection(np.array([position]), Code.UNSCHEDULABLE, ("no licence",))


UUU = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_filter_returns_the_feasible_nodes_in_the_order_of_the_request() -> None:
    engine = advised(filter=no_n1)
    assert filtered(engine, "n3", "n1") == (["n3"], {"n1": (Code.UNSCHEDULABLE, "no licence")})
    # The snapshot was returned, so the cluster may change again.
    engine.add(node("n4"))
    assert filtered(engine, "n4") == (["n4"], {})
    assert engine.run() == []


def test_an_unknown_node_is_rejected_as_resolvable() -> None:
    unknown = (Code.UNSCHEDULABLE, UNKNOWN_NODE)
    assert filtered(advised(filter=no_n1), "n2", "n9") == (["n2"], {"n9": unknown})
    assert filtered(advised(filter=no_n1), "n9") == ([], {"n9": unknown})


def test_a_pre_filter_result_applies_to_all_nodes() -> None:
    rejects = advised(pre_filter=unresolvable("no such claim"), filter=no_n1)
    assert filtered(rejects, "n1", "n2")[1] == dict.fromkeys(("n1", "n2"), (UUU, "no such claim"))
    narrows = advised(pre_filter=PreFilterResult(frozenset({"n1", "n2"})), filter=no_n1)
    fitting, rejected = filtered(narrows, "n1", "n2", "n3")
    assert fitting == ["n2"]
    assert rejected["n3"] == (UUU, "node(s) didn't satisfy plugin(s) [A]")


@pytest.mark.parametrize("point", ["pre_filter", "filter_node"])
def test_a_failing_plugin_is_named(point: str) -> None:
    answers: dict[str, Any] = {"filter_node": None, point: Status(Code.ERROR, ("broken",))}
    with pytest.raises(EvaluationError, match=r'"A".*broken'):
        filtered(advised(**answers), "n1")


def prioritized(engine: Engine, *names: str, score_max: int = 10) -> dict[str, int]:
    return engine.scheduler.one_shot.prioritize(PROFILE, pod("p"), names, score_max)


def by_name(**amount: int) -> Any:
    return lambda state, pod, nodes: np.array([amount[n] for n in nodes.names()], np.int64)


def test_scores_are_percentages_of_the_highest_possible_score() -> None:
    engine = advised(weight=3, score=by_name(n1=0, n2=74, n3=100))
    assert prioritized(engine, "n1", "n2", "n3") == {"n1": 0, "n2": 7, "n3": 10}
    assert prioritized(engine, "n2", "n9", score_max=100) == {"n2": 74}
    assert prioritized(engine, "n9") == {}


def test_without_scores_all_nodes_are_equal() -> None:
    assert prioritized(advised(filter=no_n1), "n1", "n2") == {"n1": 0, "n2": 0}


def test_a_pod_rejected_by_pre_filter_has_no_scores() -> None:
    engine = advised(pre_filter=unresolvable("no"), score=by_name(n1=1))
    assert prioritized(engine, "n1") == {}


def test_a_failing_score_plugin_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="A"):
        prioritized(advised(score=lambda *_: 1 / 0), "n1", "n2")


# ---- without victims -------------------------------------------------------------------------


def test_preempt_returns_the_nodes_that_fit_without_their_victims() -> None:
    engine = Engine(plugins=["NodeResourcesFit"])
    engine.add(*(node(name, cpu=2) for name in ("n1", "n2", "n3")))
    placed = {name: api_pod(f"on-{name}", cpu=2, node=name) for name in ("n1", "n2", "n3")}
    engine.add(*placed.values(), api_pod("more", node="n1"))
    advisor, scheduled_pod = engine.scheduler.one_shot, pod("p", cpu=1)
    victims = {
        "n1": [uid("on-n1")],
        "n2": ["gone since"],
        "n3": [uid("on-n1"), uid("on-n3")],
        "n9": [uid("on-n1")],
    }
    for _ in range(2):
        assert advisor.preempt(PROFILE, scheduled_pod, victims) == {"n1", "n3"}
    assert advisor.preempt(PROFILE, pod("huge", cpu=3), victims) == set()
    assert advisor.preempt(PROFILE, scheduled_pod, {"n9": []}) == set()
    assert advisor.filter(PROFILE, scheduled_pod, ["n1"]).fitting == []


def test_remove_pod_is_called_for_every_victim() -> None:
    engine = advised(pre_filter=None, filter=no_n1, remove_pod=None)
    engine.add(api_pod("low", node="n2"), api_pod("stays", node="n2"))
    victims = {"n1": [], "n2": [uid("low")]}
    assert engine.scheduler.one_shot.preempt(PROFILE, pod("p"), victims) == {"n2"}
    assert [point for _, point in engine.plugin("A").calls].count("remove_pod") == 1


def test_a_pre_filter_rejection_leaves_no_node_to_preempt() -> None:
    victims = {"n1": [uid("low")], "n2": [uid("low")]}
    rejects = advised(pre_filter=unresolvable("no such claim"), filter=no_n1)
    assert rejects.scheduler.one_shot.preempt(PROFILE, pod("p"), victims) == set()
    narrows = advised(pre_filter=PreFilterResult(frozenset({"n2"})), filter_node=None)
    assert narrows.scheduler.one_shot.preempt(PROFILE, pod("p"), victims) == {"n2"}
    fails = advised(filter_node=Status(Code.ERROR, ("broken",)))
    with pytest.raises(EvaluationError, match=r'"A".*broken'):
        fails.scheduler.one_shot.preempt(PROFILE, pod("p"), victims)
