"""The cycle of one pod, step by step, with nothing but the lent snapshot."""

from typing import Any

import numpy as np
import pytest

from bayplan.engine.cycle import Cycle
from bayplan.framework.status import EXTENDER_NAME, Code, Rejection, Status, unschedulable
from bayplan.framework.types import NominatingMode, Nomination
from bayplan.ports import ExtenderAnswer, ExtenderVerb
from bayplan.testing import node, pod
from tests.engine.cycle_kit import THREE, Walk, only, refused
from tests.framework.answering import answering
from tests.kit.extenders import FakeExtender


def chosen(cycle: Cycle) -> str:
    return cycle.choice.node_name if cycle.choice is not None else ""


def best(name: str) -> Any:
    """A plugin that scores this node 100."""
    return lambda state, pod, nodes: np.array(
        [100 * (each == name) for each in nodes.names()], np.int64
    )


# ---- cycles without extenders ---------------------------------------------------------------


def test_the_best_feasible_node_is_chosen() -> None:
    walk = Walk(answering("A", filter=refused("n3")), answering("B", score=best("n2")))
    cycle = walk.cycle()
    assert (chosen(cycle), cycle.feasible_count, cycle.status) == ("n2", 2, None)
    assert cycle.table is not None
    assert cycle.table.row("n2") == ([("B", 100)], 100)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        pytest.param({"pre_filter": ValueError("boom")}, "PreFilter", id="PreFilter"),
        pytest.param({"filter": ValueError("boom")}, "Filter", id="Filter"),
        pytest.param({"pre_score": ValueError("boom")}, "PreScore", id="PreScore"),
        pytest.param({"score": ValueError("boom")}, "Score", id="Score"),
    ],
)
def test_an_error_at_any_point_ends_the_cycle(answers: dict[str, Any], message: str) -> None:
    cycle = Walk(answering("A", **answers)).cycle()
    assert cycle.status is not None
    assert (cycle.status.code, cycle.status.plugin) == (Code.ERROR, "A")
    assert message in cycle.status.message


# ---- cycles without a feasible node ---------------------------------------------------------


def test_if_no_named_node_exists_no_filter_is_evaluated() -> None:
    plugin = answering("A", pre_filter=only("ghost"), filter=[])
    cycle = Walk(plugin).cycle()
    assert plugin.calls == [("A", "pre_filter")]
    assert cycle.fit_error().message == (
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [A]."
    )


# ---- nominated nodes ------------------------------------------------------------------------


def test_a_feasible_nominated_node_is_taken_without_further_search() -> None:
    calls: list[int] = []

    def looks(state: Any, who: Any, nodes: Any, feasible: Any) -> list[Rejection]:
        calls.append(len(nodes))
        return []

    plugin = answering("A", filter=looks, score=best("n1"))
    cycle = Walk(plugin).cycle(pod("p", nominated_node="n3"))
    assert (chosen(cycle), calls, cycle.table, cycle.feasible_count) == ("n3", [1], None, 1)


@pytest.mark.parametrize(
    ("nominated", "answers"),
    [
        pytest.param("n3", {"filter": refused("n3")}, id="the node rejects the pod"),
        pytest.param("ghost", {}, id="the node is deleted"),
        pytest.param("n3", {"pre_filter": only("n1", "n2")}, id="PreFilter excluded the node"),
    ],
)
def test_if_the_nominated_node_is_not_feasible_all_nodes_are_evaluated(
    nominated: str, answers: dict[str, Any]
) -> None:
    walk = Walk(answering("A", **answers, score=best("n2")))
    assert chosen(walk.cycle(pod("p", nominated_node=nominated))) == "n2"


def test_an_error_on_the_nominated_node_is_evaluated_again() -> None:
    answers = iter([ValueError("boom"), None, None, None])

    def fails_once(*_: Any) -> Any:
        answer = next(answers)
        if answer is not None:
            raise answer

    walk = Walk(answering("A", filter_node=fails_once, score=best("n2")))
    assert chosen(walk.cycle(pod("p", nominated_node="n3"))) == "n2"


def takes(count: int) -> Any:
    """A filter that accepts a limited number of pods per node."""
    return lambda state, pod, info: unschedulable("full") if len(info.pods) >= count else None


def nominate(walk: Walk, name: str, where: str, priority: int = 10) -> None:
    nomination = Nomination(NominatingMode.OVERRIDE, where)
    walk.nominator.add_nominated_pod(pod(name, priority=priority), nomination)


def test_nominated_pods_count_on_their_nodes() -> None:
    walk = Walk(answering("A", filter_node=takes(1), score=best("n2")))
    nominate(walk, "high", "n2")
    nominate(walk, "gone", "ghost")
    cycle = walk.cycle()
    assert chosen(cycle) in ("n1", "n3")
    assert cycle.node_to_status().get("n2") == unschedulable("full").with_plugin("A")
    # A nominated pod of higher priority takes the room.
    assert chosen(walk.cycle(pod("urgent", priority=20))) == "n2"


def test_an_error_with_nominated_pods_ends_the_cycle() -> None:
    def fails(state: Any, pod: Any, added: Any, info: Any) -> Status:
        return Status(Code.ERROR, ("broken",))

    plugin = answering("A", pre_filter=None, add_pod=fails, filter_node=None)
    walk = Walk(plugin)
    for where in ("n1", "n2"):
        nominate(walk, f"on-{where}", where)
    cycle = walk.cycle()
    assert cycle.status is not None
    assert cycle.status.message == 'running AddPod on PreFilter plugin "A": broken'
    assert plugin.calls.count(("A", "add_pod")) == 1


# ---- sampling -------------------------------------------------------------------------------


def many(count: int) -> tuple[str, ...]:
    return tuple(f"n{number}" for number in range(count))


def test_a_share_of_the_nodes_is_scored_from_a_moving_start() -> None:
    walk = Walk(answering("A", score_node=0), nodes=many(1000), share=20)
    sampled: list[set[str]] = []
    for _ in range(5):
        table = walk.cycle().table
        assert table is not None
        sampled.append(set(table.nodes.names()))
    assert [len(names) for names in sampled] == [200] * 5
    assert len(set().union(*sampled)) == 1000


# ---- extenders ------------------------------------------------------------------------------


def test_the_cycle_stops_with_a_question_about_the_feasible_nodes() -> None:
    walk = Walk(answering("A", filter=refused("n1")), extenders=(FakeExtender(),))
    cycle = walk.cycle()
    assert not cycle.is_done
    assert cycle.question is not None
    assert cycle.question.extender.name == "far"
    assert sorted(cycle.question.node_names) == ["n2", "n3"]


def test_the_answer_filters_nodes_and_then_the_scores_decide() -> None:
    walk = Walk(answering("A", score=best("n1")), extenders=(FakeExtender(),))
    cycle = walk.cycle()
    walk.answered(cycle, "n2", "n3", failed={"n1": "licence missing"})
    assert chosen(cycle) in ("n2", "n3")
    assert cycle.feasible_count == 2
    assert cycle.node_to_status().get("n1") == Status(
        Code.UNSCHEDULABLE, ("licence missing",), EXTENDER_NAME
    )


def test_each_extender_gets_the_nodes_that_the_previous_one_left() -> None:
    extenders = FakeExtender("soft", ignorable=True), FakeExtender("hard")
    walk = Walk(answering("A", score=best("n1")), extenders=extenders)
    cycle = walk.cycle()
    assert cycle.question is not None
    # An extender whose failure counts is called first.
    assert cycle.question.extender.name == "hard"
    walk.answered(cycle, "n1", "n2")
    assert cycle.question is not None
    assert (cycle.question.extender.name, set(cycle.question.node_names)) == ("soft", {"n1", "n2"})
    walk.answered(cycle, "n2")
    assert chosen(cycle) == "n2"


def test_an_extender_that_rejects_all_nodes_is_named_as_extender() -> None:
    walk = Walk(answering("A", filter=refused("n3")), extenders=(FakeExtender(),))
    cycle = walk.cycle()
    walk.answered(cycle, failed={"n1": "licence missing", "n2": "licence missing"})
    error = cycle.fit_error()
    assert error.message == "0/3 nodes are available: 1 no, 2 licence missing."
    assert error.diagnosis.unschedulable_plugins == {"A", "Extender"}


@pytest.mark.parametrize(
    ("ignorable", "node_name", "code"), [(True, "n2", None), (False, "", Code.ERROR)]
)
def test_a_missing_answer_counts_according_to_the_extenders_configuration(
    ignorable: bool, node_name: str, code: Code | None
) -> None:
    walk = Walk(answering("A", score=best("n2")), extenders=(FakeExtender(ignorable=ignorable),))
    cycle = walk.answered(walk.cycle(), error="connection refused")
    assert chosen(cycle) == node_name
    assert (cycle.status and cycle.status.code) == code


# ---- extenders that score -------------------------------------------------------------------

SCORES = frozenset((ExtenderVerb.PRIORITIZE,))
BOTH = SCORES | {ExtenderVerb.FILTER}


def gives(*answers: dict[str, int]) -> dict[str, Any]:
    return {"answers": tuple(ExtenderAnswer(scores=tuple(each.items())) for each in answers)}


def test_scoring_extenders_are_called_after_filtering_ones() -> None:
    walk = Walk(answering("A", score=best("n1")), extenders=(FakeExtender(verbs=BOTH),))
    cycle = walk.answered(walk.cycle(), "n2", "n3")
    assert cycle.question is not None
    assert (cycle.question.verb, set(cycle.question.node_names)) == ("prioritize", {"n2", "n3"})
    walk.answered(cycle, **gives({"n2": 3, "n3": 8}))
    assert chosen(cycle) == "n3"
    assert cycle.node_to_status().get("n1").plugin == EXTENDER_NAME


def test_nodes_that_no_extender_scored_are_not_chosen() -> None:
    walk = Walk(
        answering("A", filter_node=takes(1), score=best("n1")),
        extenders=(FakeExtender(verbs=SCORES),),
    )
    cycle = walk.cycle()
    walk.cluster.add(node("n0"))
    for name in ("n1", "n2"):
        walk.cluster.add(pod(f"on-{name}", node=name))
    walk.answered(cycle, **gives({"n1": 10}))
    assert chosen(cycle) == "n3"


def test_if_all_nodes_filled_up_meanwhile_the_pod_is_rejected() -> None:
    walk = Walk(
        answering("A", filter_node=takes(1), score=best("n1")),
        extenders=(FakeExtender(verbs=SCORES),),
    )
    cycle = walk.cycle()
    walk.cluster.add(node("n0"), *(pod(f"on-{name}", node=name) for name in THREE))
    walk.answered(cycle, **gives({"n1": 10}))
    assert cycle.status == unschedulable()


# ---- extenders and nominated nodes ----------------------------------------------------------


def nominated(**options: Any) -> tuple[Walk, Cycle]:
    """A cycle of a pod that is nominated to n3, while n1 is better."""
    walk = Walk(answering("A", score=best("n1")), extenders=(FakeExtender(**options),))
    return walk, walk.cycle(pod("p", nominated_node="n3"))


def test_extenders_are_called_for_the_nominated_node_alone() -> None:
    walk, cycle = nominated(verbs=BOTH)
    assert cycle.question is not None
    assert cycle.question.node_names == ("n3",)
    assert chosen(walk.answered(cycle, "n3")) == "n3"
    assert cycle.feasible_count == 1


@pytest.mark.parametrize(
    "answer", [{}, {"error": "connection refused"}], ids=["refused", "no answer"]
)
def test_if_an_extender_rejects_the_nominated_node_all_nodes_are_evaluated(
    answer: dict[str, Any],
) -> None:
    walk, cycle = nominated()
    walk.answered(cycle, **answer)
    assert cycle.question is not None
    assert set(cycle.question.node_names) == set(THREE)
    assert chosen(walk.answered(cycle, "n1", "n2")) == "n1"
    assert cycle.node_to_status().get("n3").plugin == EXTENDER_NAME


def test_a_nominated_node_that_filled_up_during_the_call_is_left() -> None:
    walk = Walk(answering("A", filter_node=takes(1), score=best("n1")), extenders=(FakeExtender(),))
    cycle = walk.cycle(pod("p", nominated_node="n3"))
    walk.cluster.add(pod("other", node="n3"))
    walk.answered(cycle, "n3")
    assert cycle.question is not None
    assert set(cycle.question.node_names) == {"n1", "n2"}


# ---- changes during an extender call --------------------------------------------------------


def pending_cycle(**answers: Any) -> tuple[Walk, Cycle]:
    """A cycle that waits for an extender, with three nodes that accept one pod each."""
    plugin = answering("A", filter_node=takes(1), score=best("n1"), **answers)
    walk = Walk(plugin, extenders=(FakeExtender(),))
    return walk, walk.cycle()


def test_a_node_that_filled_up_meanwhile_is_not_chosen() -> None:
    walk, cycle = pending_cycle()
    walk.cluster.add(pod("other", node="n1"))
    walk.answered(cycle, "n1", "n2")
    assert chosen(cycle) == "n2"
    assert cycle.node_to_status().get("n1") == unschedulable("full").with_plugin("A")


def test_the_message_describes_the_nodes_at_the_end_of_the_call() -> None:
    walk, cycle = pending_cycle()
    walk.cluster.add(*(pod(f"on-{name}", node=name) for name in THREE))
    walk.answered(cycle, "n1", "n2")
    assert cycle.fit_error().message == "0/3 nodes are available: 3 full."


def test_a_node_added_during_the_call_is_not_chosen() -> None:
    walk, cycle = pending_cycle()
    walk.cluster.add(node("n0"))
    for name in ("n1", "n2"):
        walk.cluster.add(pod(f"on-{name}", node=name))
    walk.answered(cycle, "n1", "n2", "n3")
    assert chosen(cycle) == "n3"


def test_a_node_that_became_feasible_during_the_call_is_not_chosen() -> None:
    plugin = answering("A", filter_node=takes(1), score=best("n1"))
    walk = Walk(plugin, extenders=(FakeExtender(),))
    walk.cluster.add(pod("other", node="n1"))
    cycle = walk.cycle()
    walk.cluster.take_back()
    walk.cluster.cache.remove_pod("uid-default/other")
    walk.answered(cycle, "n2", "n3")
    assert chosen(cycle) in ("n2", "n3")


def test_a_node_deleted_during_the_call_is_not_chosen() -> None:
    walk, cycle = pending_cycle()
    walk.cluster.take_back()
    walk.cluster.cache.remove_node("n1")
    walk.answered(cycle, "n1", "n2")
    assert chosen(cycle) == "n2"


def test_a_nomination_made_during_the_call_is_respected() -> None:
    """The node itself has not changed."""
    walk, cycle = pending_cycle()
    nominate(walk, "high", "n1")
    walk.answered(cycle, "n1", "n2")
    assert chosen(cycle) == "n2"


def test_if_all_nodes_are_deleted_during_the_call_the_pod_is_rejected() -> None:
    walk, cycle = pending_cycle()
    walk.cluster.take_back()
    for name in THREE:
        walk.cluster.cache.remove_node(name)
    walk.answered(cycle, "n1", "n2")
    assert cycle.status is not None
    assert cycle.status.reasons == ("no nodes available to schedule pods",)
    assert cycle.outcome is None


def test_a_pre_filter_rejection_after_the_call_counts() -> None:
    answers = iter([None, unschedulable("not any more")])
    walk = Walk(answering("A", pre_filter=lambda *_: next(answers)), extenders=(FakeExtender(),))
    cycle = walk.answered(walk.cycle(), "n1", "n2")
    assert cycle.fit_error().message == "0/3 nodes are available: not any more."
    assert cycle.fit_error().diagnosis.unschedulable_plugins == {"A"}


def test_the_node_sample_of_an_attempt_is_drawn_once() -> None:
    walk = Walk(
        answering("A", score_node=0), nodes=many(400), share=50, extenders=(FakeExtender(),)
    )
    cycle = walk.cycle()
    assert cycle.question is not None
    names = cycle.question.node_names
    assert len(names) == 200
    walk.answered(cycle, *names)
    assert cycle.feasible_count == 200


def test_a_profile_without_plugins_accepts_any_node() -> None:
    cycle = Walk().cycle()
    assert chosen(cycle) in THREE
    assert cycle.choice is not None
    assert cycle.choice.tied_count == 3
