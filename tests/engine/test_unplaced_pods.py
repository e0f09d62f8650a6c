"""Cycles that wait for extenders."""

from dataclasses import dataclass
from typing import Any

import pytest

from bayplan.engine.extenders.results import Question
from bayplan.engine.unplaced_pods import PendingExtenderCalls
from bayplan.ports import ExtenderAnswer, ExtenderVerb
from bayplan.state.pods import PodInfo
from bayplan.testing import pod


@dataclass(frozen=True)
class Far:
    name: str
    ignorable: bool = False
    verbs: frozenset[ExtenderVerb] = frozenset()
    weight: int = 1

    def is_interested(self, pod: PodInfo) -> bool:
        return True


class Waiting:
    """The part of a cycle that is read."""

    pod = pod("p")


def pending_cycles(*names: str) -> tuple[PendingExtenderCalls, Any, list[Any]]:
    cycles, cycle = PendingExtenderCalls(), Waiting()
    question = Question(tuple(map(Far, names)), ("n1",), ExtenderVerb.PRIORITIZE)
    return cycles, cycle, cycles.add(cycle, question)  # pyright: ignore[reportArgumentType]


def test_each_extender_call_has_its_own_token() -> None:
    cycles, cycle, calls = pending_cycles("one", "two")
    assert [(ask.token, ask.extender) for ask in calls] == [(1, "one"), (2, "two")]
    assert {(ask.verb, ask.pod, ask.node_names) for ask in calls} == {
        ("prioritize", cycle.pod, ("n1",))
    }
    assert len(cycles) == 1


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_cycle_continues_after_its_last_answer(order: tuple[int, int]) -> None:
    cycles, cycle, _ = pending_cycles("one", "two")
    answers = {1: ExtenderAnswer(error="a"), 2: ExtenderAnswer(error="b")}
    first, last = order
    assert cycles.answered(first, answers[first]) is None
    assert len(cycles) == 1
    complete = cycles.answered(last, answers[last])
    assert complete is not None
    result, answered = complete
    assert result is cycle
    # In the order of the question, regardless of arrival.
    assert [(e.name, failures) for e, failures in answered.failures()] == [
        ("one", "a"),
        ("two", "b"),
    ]
    assert len(cycles) == 0


def test_a_repeated_answer_counts_once() -> None:
    cycles, _, _ = pending_cycles("one", "two")
    assert cycles.answered(1, ExtenderAnswer()) is None
    assert cycles.answered(1, ExtenderAnswer()) is None
    assert cycles.answered(9, ExtenderAnswer()) is None
    assert cycles.answered(2, ExtenderAnswer()) is not None
