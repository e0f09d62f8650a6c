"""The engine's use of an extender's answer."""

import asyncio
from typing import Any

import numpy as np
import pytest

from bayplan.engine.extenders.results import (
    AnsweredQuestion,
    Extenders,
    Question,
    add_scores,
    applied,
)
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import EXTENDER_NAME, Code, Status
from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb
from bayplan.testing import SampleCluster, node, pod
from tests.kit.extenders import FakeExtender

NAMES = ("a", "b", "c", "d")


def outcome(feasible: str = "abcd") -> FilterOutcome:
    nodes = SampleCluster().add(*map(node, NAMES)).lend().nodes
    return FilterOutcome(nodes, np.array([name in feasible for name in NAMES]))


def after(
    answer: ExtenderAnswer, *, sent: str = "abcd", feasible: str = "abcd", ignorable: bool = False
) -> tuple[str, dict[str, Status], Status | None]:
    """(feasible nodes, statuses, error)"""
    filter_outcome, statuses = outcome(feasible), dict[str, Status]()
    question = Question((FakeExtender(ignorable=ignorable),), tuple(sent))
    error = applied(AnsweredQuestion(question, (answer,)), filter_outcome, statuses)
    left = "".join(
        name for name, is_left in zip(NAMES, filter_outcome.feasible, strict=True) if is_left
    )
    return left, statuses, error


def test_nodes_missing_from_the_answer_are_rejected() -> None:
    answer = ExtenderAnswer(
        node_names=frozenset("d"),
        failed={"a": "full"},
        failed_and_unresolvable={"b": "licence missing"},
    )
    left, statuses, error = after(answer)
    assert (left, error) == ("d", None)
    assert statuses == {
        "a": Status(Code.UNSCHEDULABLE, ("full",), EXTENDER_NAME),
        "b": Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("licence missing",), EXTENDER_NAME),
        "c": Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (), EXTENDER_NAME),
    }


def test_failed_and_unresolvable_overrides_failed() -> None:
    answer = ExtenderAnswer(failed={"a": "full"}, failed_and_unresolvable={"a": "never"})
    _, statuses, _ = after(answer)
    assert statuses["a"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert statuses["a"].reasons == ("never",)


def test_a_node_that_was_not_in_the_question_stays_infeasible_without_a_status() -> None:
    left, statuses, _ = after(ExtenderAnswer(node_names=frozenset("ab")), sent="ab")
    assert (left, statuses) == ("ab", {})


def test_an_answer_with_an_unknown_node_is_an_error_that_names_the_node() -> None:
    _, _, error = after(ExtenderAnswer(node_names=frozenset("abd")), sent="ab")
    claim = 'extender "far" claims a filtered node "d" which is not found in the input node list'
    assert error == Status(Code.ERROR, (claim,))


def test_a_missing_answer_is_an_error() -> None:
    _, _, error = after(ExtenderAnswer(error="connection refused"))
    assert error == Status(Code.ERROR, ("connection refused",))


# ---- scores --------------------------------------------------------------------------------


def scored(*answers: ExtenderAnswer, weight: int = 1) -> ScoreTable:
    """Totals of nodes a to d, for which plugins scored 1 each."""
    table = ScoreTable(outcome().nodes, [], np.ones(4, np.int64))
    calls = tuple(FakeExtender(f"far {number}", weight=weight) for number in range(len(answers)))
    question = Question(calls, NAMES, ExtenderVerb.PRIORITIZE)
    add_scores(table, AnsweredQuestion(question, answers))
    return table


def test_scores_count_ten_times_their_weight() -> None:
    table = scored(ExtenderAnswer(scores=(("a", 3), ("c", 8))), weight=2)
    assert table.totals.tolist() == [61, 1, 161, 1]
    assert table.row("c") == ([("far 0", 160)], 161)


def test_scores_of_several_extenders_add_up_under_their_names() -> None:
    table = scored(ExtenderAnswer(scores=(("a", 1),)), ExtenderAnswer(scores=(("a", 2),)))
    assert table.row("a") == ([("far 0", 10), ("far 1", 20)], 31)


def test_scores_of_a_node_named_twice_add_up_and_scores_of_unknown_nodes_are_dropped() -> None:
    table = scored(ExtenderAnswer(scores=(("a", 1), ("a", 2), ("z", 9))))
    assert table.totals.tolist() == [31, 1, 1, 1]


def test_scores_out_of_range_are_not_clipped() -> None:
    """As in upstream, which checks no range."""
    assert scored(ExtenderAnswer(scores=(("a", -1), ("b", 100)))).totals.tolist() == [
        -9,
        1001,
        1,
        1,
    ]


@pytest.mark.parametrize(
    "answer",
    [ExtenderAnswer(error="refused"), ExtenderAnswer(scores=(("b", 1), ("a", 2**60)))],
    ids=["a failed call", "scores beyond the range of totals"],
)
def test_a_missing_answer_gives_no_scores_and_no_error(answer: ExtenderAnswer) -> None:
    table = scored(answer, ExtenderAnswer(scores=(("a", 1),)))
    assert table.totals.tolist() == [11, 1, 1, 1]
    assert list(table.extender_scores) == ["far 1"]


# ---- order of extenders, and bindings -------------------------------------------------------

BINDS = frozenset((ExtenderVerb.BIND,))


def test_ignorable_extenders_are_called_last() -> None:
    soft, hard, binder = (
        FakeExtender("soft", ignorable=True),
        FakeExtender("hard"),
        FakeExtender("binder", verbs=BINDS),
    )
    result = Extenders((soft, hard, binder))
    assert list(result) == [hard, binder, soft]
    assert result.interested(pod("p"), ExtenderVerb.FILTER) == [hard, soft]
    assert result.interested(pod("p"), ExtenderVerb.PREEMPT) == []
    assert not Extenders()


def bound(
    *extenders: FakeExtender, **answers: ExtenderAnswer | Exception
) -> tuple[Any, list[AskExtender]]:
    """(result of a binding, names of the extenders that were called)."""
    calls: list[AskExtender] = []

    async def ask(question: AskExtender) -> ExtenderAnswer:
        calls.append(question)
        answer = answers[question.extender]
        if isinstance(answer, Exception):
            raise answer
        return answer

    all_extenders = Extenders(extenders)
    binding = all_extenders.binding(pod("p", node="n1"))
    assert binding is not None
    return asyncio.run(binding.bind(pod("p", node="n1"), "n1", ask)), calls


def test_the_first_binder_binds() -> None:
    outcome, (question,) = bound(FakeExtender(verbs=BINDS), far=ExtenderAnswer())
    assert outcome == (True, None)
    assert (question.verb, question.pod.key, question.node_names) == ("bind", "default/p", ("n1",))


def test_a_failure_of_the_binding_extender_is_the_failure_of_the_binding() -> None:
    assert bound(FakeExtender(verbs=BINDS), far=ExtenderAnswer(error="no"))[0] == (
        True,
        Status(Code.ERROR, ("no",)),
    )
    message = "extender far: OSError: gone"
    assert bound(FakeExtender(verbs=BINDS), far=OSError("gone"))[0] == (
        True,
        Status(Code.ERROR, (message,)),
    )


def test_a_failure_of_an_ignorable_binder_is_skipped() -> None:
    extenders = (
        FakeExtender("one", ignorable=True, verbs=BINDS),
        FakeExtender("two", ignorable=True, verbs=BINDS),
    )
    assert bound(*extenders, one=ExtenderAnswer(error="no"), two=ExtenderAnswer())[0] == (
        True,
        None,
    )
    failed = ExtenderAnswer(error="no")
    assert bound(*extenders, one=failed, two=failed)[0] == (False, None)
