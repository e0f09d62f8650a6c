"""Changes of the candidates of a preemption by extenders."""

from functools import partial

import pytest

from bayplan.engine.extenders.results import AnsweredQuestion
from bayplan.engine.extenders.round import CandidatesAfterReview
from bayplan.framework.preemption import Victims
from bayplan.framework.status import Code, Status
from bayplan.ports import ExtenderAnswer, ExtenderVerb, NamedVictims
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, node, pod
from tests.kit.extenders import FakeExtender

A, A2, B = pod("a", node="n1"), pod("a2", node="n1"), pod("b", node="n2")


_far = partial(FakeExtender, verbs=frozenset((ExtenderVerb.PREEMPT,)))
FAR, EASY = _far(), _far("easy", ignorable=True)


def nodes() -> NodeView:
    cluster = SampleCluster().add(*(node(name) for name in ("n1", "n2", "n3")), A, A2, B)
    return cluster.lend().nodes


def candidates() -> CandidatesAfterReview:
    return CandidatesAfterReview({"n1": Victims((A,)), "n2": Victims((B,), 1)})


def named(**uids: tuple[PodInfo, ...]) -> ExtenderAnswer:
    victims = {name: NamedVictims(tuple(p.uid for p in pods)) for name, pods in uids.items()}
    return ExtenderAnswer(victims=victims)


def answered(
    candidates: CandidatesAfterReview, answer: ExtenderAnswer, extender: FakeExtender = FAR
) -> AnsweredQuestion:
    return AnsweredQuestion(candidates.question(extender), (answer,))


def test_the_question_has_all_candidates_with_their_victims() -> None:
    result = candidates()
    question = result.question(FAR)
    assert (question.verb, question.node_names) == (ExtenderVerb.PREEMPT, ("n1", "n2"))
    assert (question.victims, question.extender) == (result.left, FAR)


def test_an_answer_drops_nodes_changes_victims_and_replaces_violation_counts() -> None:
    candidate_list = candidates()
    changed = ExtenderAnswer(victims={"n1": NamedVictims((A2.uid, A.uid), 3)})
    assert candidate_list.take(answered(candidate_list, changed), nodes()) is None
    assert candidate_list.left == {"n1": Victims((A2, A), 3)}
    assert not candidate_list.passed_over and not candidate_list.changed


def test_an_answer_may_add_a_candidate_whose_pods_exist() -> None:
    candidates = CandidatesAfterReview({"n1": Victims((A,))})
    assert candidates.take(answered(candidates, named(n2=(B,))), nodes()) is None
    assert candidates.left == {"n2": Victims((B,))}


def test_the_next_extender_reviews_the_remaining_candidates() -> None:
    candidate_list = candidates()
    assert candidate_list.take(answered(candidate_list, named(n2=(B,))), nodes()) is None
    assert candidate_list.question(EASY).node_names == ("n2",)


WRONG = [
    pytest.param(
        named(n9=(A,)),
        'extender "far" claims to preempt pods on node "n9", but there is no such node',
        id="an unknown node",
    ),
    pytest.param(
        named(n1=(A,), n2=(A,)),
        f"extender: far claims to preempt pod (UID: {A.uid}) on node: n2, "
        "but the pod is not found on that node",
        id="a pod of another node",
    ),
    pytest.param(
        named(n1=(A,), n2=()), 'expected at least one victim pod on node "n2"', id="no victims"
    ),
    pytest.param(ExtenderAnswer(error="down"), "down", id="no answer"),
]


@pytest.mark.parametrize(("answer", "message"), WRONG)
def test_an_invalid_answer_is_an_error_that_names_the_place(
    answer: ExtenderAnswer, message: str
) -> None:
    candidate_list = candidates()
    assert candidate_list.take(answered(candidate_list, answer), nodes()) == Status(
        Code.ERROR, (message,)
    )


@pytest.mark.parametrize(("answer", "message"), WRONG)
def test_an_invalid_answer_of_an_ignorable_extender_is_ignored(
    answer: ExtenderAnswer, message: str
) -> None:
    candidate_list = candidates()
    assert (
        candidate_list.take(answered(candidate_list, answer, _far(ignorable=True)), nodes()) is None
    )
    is_for_one_node = "expected" in message
    assert sorted(candidate_list.left) == (["n1"] if is_for_one_node else ["n1", "n2"])
    # A missing answer is reported by the adapter.
    assert candidate_list.passed_over == ([] if answer.error else [f"far: {message}"])


@pytest.mark.parametrize(
    "now",
    [
        pytest.param({"n2": Victims((B,))}, id="a node that is no candidate any more"),
        pytest.param(
            {"n1": Victims((A2,)), "n2": Victims((B,))}, id="a candidate with another victim"
        ),
    ],
)
def test_a_candidate_that_changed_after_the_question_is_left_out(
    now: dict[str, Victims],
) -> None:
    before = candidates()
    answer = answered(before, named(n1=(A,), n2=(B,)))
    result = CandidatesAfterReview(now)
    assert result.take(answer, nodes()) is None
    assert (result.left, result.changed) == ({"n2": Victims((B,))}, {"n1"})


def test_an_answer_about_deleted_pods_is_not_an_error() -> None:
    gone = pod("gone", node="n3")
    before = CandidatesAfterReview(
        {"n3": Victims((gone,)), "n4": Victims((gone,)), "n1": Victims((A,))}
    )
    answer = answered(before, named(n3=(gone,), n4=(gone,), n1=(A,)))
    result = CandidatesAfterReview({"n1": Victims((A,))})
    assert result.take(answer, nodes()) is None
    assert sorted(result.left) == ["n1"]
