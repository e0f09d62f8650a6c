"""The calls of extenders in one cycle and in one preemption."""

from dataclasses import dataclass

import numpy as np
import pytest

from bayplan.engine.extenders.results import AnsweredQuestion, Extenders, Question
from bayplan.engine.extenders.round import CandidatesAfterReview, ExtenderRound, ExtendersReview
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.preemption import Candidates, Victims
from bayplan.framework.status import Code, Status
from bayplan.ports import ExtenderAnswer, ExtenderVerb, NamedVictims
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, node, pod

NAMES = ("a", "b", "c")


@dataclass(frozen=True)
class Far:
    name: str = "far"
    ignorable: bool = False
    verbs: frozenset[ExtenderVerb] = frozenset((ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE))
    weight: int = 1

    def is_interested(self, pod: PodInfo) -> bool:
        return True


EXTENDERS = Extenders((Far("one"), Far("two")))


def outcome() -> FilterOutcome:
    nodes = SampleCluster().add(*map(node, NAMES)).lend().nodes
    return FilterOutcome(nodes, np.ones(3, np.bool_))


def ask(exchange: ExtenderRound) -> Question:
    question = exchange.filter(EXTENDERS, pod("p"), outcome())
    assert isinstance(question, Question)
    return question


def left(*names: str) -> ExtenderAnswer:
    return ExtenderAnswer(node_names=frozenset(names))


def test_answers_are_replayed_in_the_order_of_the_questions() -> None:
    exchange = ExtenderRound()
    assert not exchange.has_answers
    for names in (("a", "b"), ("b",)):
        exchange.take(AnsweredQuestion(ask(exchange), (left(*names),)))
    assert exchange.has_answers
    for _ in range(2):
        exchange.begin_anew()
        filter_outcome = outcome()
        assert exchange.filter(EXTENDERS, pod("p"), filter_outcome) is None
        assert filter_outcome.feasible.tolist() == [False, True, False]
        assert sorted(exchange.statuses) == ["a", "c"]


def test_an_error_of_an_extender_ends_the_filter_round() -> None:
    exchange = ExtenderRound()
    exchange.take(AnsweredQuestion(ask(exchange), (ExtenderAnswer(error="no"),)))
    assert exchange.filter(EXTENDERS, pod("p"), outcome()) == Status(Code.ERROR, ("no",))


def test_an_answer_without_nodes_ends_the_filter_round() -> None:
    exchange = ExtenderRound()
    exchange.take(AnsweredQuestion(ask(exchange), (left(),)))
    status = exchange.filter(EXTENDERS, pod("p"), outcome())
    assert isinstance(status, Status)
    assert status.code is Code.UNSCHEDULABLE


def test_leaving_the_nominated_node_drops_the_answers_about_it() -> None:
    exchange = ExtenderRound()
    exchange.take(AnsweredQuestion(ask(exchange), (left(),)))
    exchange.filter(EXTENDERS, pod("p"), outcome())
    exchange.give_up_nominated_node()
    assert (exchange.has_answers, exchange.statuses) == (False, {})
    assert ask(exchange).extender.name == "one"


@pytest.mark.parametrize(("feasible", "is_called"), [((1, 1, 0), True), ((0, 1, 0), False)])
def test_scores_are_requested_only_if_several_nodes_are_feasible(
    feasible: tuple[int, ...], is_called: bool
) -> None:
    filter_outcome = outcome()
    filter_outcome.feasible = np.array(feasible, np.bool_)
    question = ExtenderRound().prioritize(EXTENDERS, pod("p"), filter_outcome)
    assert isinstance(question, Question) is is_called
    if isinstance(question, Question):
        assert [each.name for each in question.extenders] == ["one", "two"]
        assert question.node_names == ("a", "b")


# ---- candidates of a preemption --------------------------------------------------------------

PREEMPTS = frozenset((ExtenderVerb.PREEMPT,))
REVIEWERS = Extenders((Far("one", verbs=PREEMPTS), Far("filters"), Far("two", verbs=PREEMPTS)))
SAMPLE = [*map(node, NAMES), *(pod(f"on-{name}", node=name) for name in NAMES)]
CLUSTER = SampleCluster().add(*SAMPLE)


def candidates(*names: str) -> dict[str, Victims]:
    nodes = CLUSTER.lend().nodes
    return {name: Victims(tuple(nodes.info(nodes.names().index(name)).pods)) for name in names}


def review(
    exchange: ExtenderRound, victims: dict[str, Victims]
) -> CandidatesAfterReview | Question | Status:
    return exchange.review(REVIEWERS, pod("p"), CLUSTER.lend().nodes, victims)


def answer_with(
    exchange: ExtenderRound, victims_by_node: dict[str, Victims], *names: str
) -> Question:
    """Review candidates, and answer that these nodes remain with their victims."""
    question = review(exchange, victims_by_node)
    assert isinstance(question, Question)
    uids = {name: tuple(p.uid for p in question.victims[name].pods) for name in names}
    victims = {name: NamedVictims(each) for name, each in uids.items()}
    exchange.take(AnsweredQuestion(question, (ExtenderAnswer(victims=victims),)))
    return question


def test_extenders_review_candidates_one_after_another() -> None:
    exchange, every = ExtenderRound(), candidates(*NAMES)
    first = answer_with(exchange, every, "a", "b")
    second = answer_with(exchange, every, "b")
    assert [each.extender.name for each in (first, second)] == ["one", "two"]
    assert (first.node_names, second.node_names) == (NAMES, ("a", "b"))
    candidates_after_review = review(exchange, every)
    assert isinstance(candidates_after_review, CandidatesAfterReview)
    assert list(candidates_after_review.left) == ["b"]
    assert not exchange.has_answers


def test_an_empty_answer_ends_the_review() -> None:
    exchange, every = ExtenderRound(), candidates(*NAMES)
    answer_with(exchange, every)
    assert review(exchange, every) == CandidatesAfterReview({})


def test_a_review_is_repeated_a_limited_number_of_times_if_all_candidates_changed() -> None:
    exchange, rounds = ExtenderRound(), 0
    here, there = candidates("a"), candidates("b")
    while isinstance(review(exchange, here), Question):
        answer_with(exchange, here, *here)
        here, there = there, here
        rounds += 1
    assert rounds == 11


def test_a_review_waits_for_answers_and_reports_ignored_extenders() -> None:
    exchange, every = ExtenderRound(), candidates("a")
    extenders = Extenders((Far("easy", verbs=PREEMPTS, ignorable=True),))
    nodes = CLUSTER.lend().nodes
    waiting_review = ExtendersReview(exchange, extenders, pod("p"), nodes)
    assert waiting_review(every) == Status(Code.WAIT)
    assert waiting_review.question is not None
    nonsense = ExtenderAnswer(victims={"nowhere": NamedVictims(("u",))})
    exchange.take(AnsweredQuestion(waiting_review.question, (nonsense,)))
    answered_review = ExtendersReview(exchange, extenders, pod("p"), nodes)
    assert answered_review(every) == every
    assert answered_review.question is None
    assert len(answered_review.passed_over) == 1


def test_plugins_review_candidates_before_extenders() -> None:
    nodes, every = CLUSTER.lend().nodes, candidates(*NAMES)

    def left_by(left: Candidates | Status) -> tuple[Candidates | Status, Question | None]:
        def before(candidates: Candidates) -> Candidates | Status:
            assert candidates == every
            return left

        review = ExtendersReview(ExtenderRound(), REVIEWERS, pod("p"), nodes, before=before)
        return review(every), review.question

    _, question = left_by(candidates("c"))
    assert question is not None
    assert question.node_names == ("c",)
    error = Status(Code.ERROR, ("no",))
    assert left_by({}) == ({}, None)
    assert left_by(error) == (error, None)
