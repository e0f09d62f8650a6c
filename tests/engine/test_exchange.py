"""What one cycle asks of extenders; how it goes on then is told in test_cycle."""

from dataclasses import dataclass

import numpy as np
import pytest

from bayplan.engine.exchange import Exchange
from bayplan.engine.extending import Answered, Extenders, Question
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Code, Status
from bayplan.ports import ExtenderAnswer, ExtenderVerb
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


def ask(exchange: Exchange) -> Question:
    found = exchange.filter(EXTENDERS, pod("p"), outcome())
    assert isinstance(found, Question)
    return found


def left(*names: str) -> ExtenderAnswer:
    return ExtenderAnswer(node_names=frozenset(names))


def test_answers_are_taken_in_the_order_of_the_questions_each_time_anew() -> None:
    exchange = Exchange()
    assert not exchange.has_answers
    for names in (("a", "b"), ("b",)):
        exchange.take(Answered(ask(exchange), (left(*names),)))
    assert exchange.has_answers
    for _ in range(2):
        exchange.begin_anew()
        found = outcome()
        assert exchange.filter(EXTENDERS, pod("p"), found) is None
        assert found.feasible.tolist() == [False, True, False]
        assert sorted(exchange.statuses) == ["a", "c"]


def test_an_error_ends_it_before_anybody_else_is_asked() -> None:
    exchange = Exchange()
    exchange.take(Answered(ask(exchange), (ExtenderAnswer(error="no"),)))
    assert exchange.filter(EXTENDERS, pod("p"), outcome()) == Status(Code.ERROR, ("no",))


def test_so_does_an_answer_that_leaves_nothing() -> None:
    exchange = Exchange()
    exchange.take(Answered(ask(exchange), (left(),)))
    status = exchange.filter(EXTENDERS, pod("p"), outcome())
    assert isinstance(status, Status)
    assert status.code is Code.UNSCHEDULABLE


def test_what_was_answered_about_the_nominated_node_is_forgotten_with_it() -> None:
    exchange = Exchange()
    exchange.take(Answered(ask(exchange), (left(),)))
    exchange.filter(EXTENDERS, pod("p"), outcome())
    exchange.give_up_nominated_node()
    assert (exchange.has_answers, exchange.statuses) == (False, {})
    assert ask(exchange).extender.name == "one"


@pytest.mark.parametrize(("feasible", "is_asked"), [((1, 1, 0), True), ((0, 1, 0), False)])
def test_scores_are_wanted_where_there_is_a_choice(
    feasible: tuple[int, ...], is_asked: bool
) -> None:
    found = outcome()
    found.feasible = np.array(feasible, np.bool_)
    question = Exchange().prioritize(EXTENDERS, pod("p"), found)
    assert isinstance(question, Question) is is_asked
    if isinstance(question, Question):
        assert [each.name for each in question.extenders] == ["one", "two"]
        assert question.node_names == ("a", "b")
