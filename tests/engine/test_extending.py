"""What follows from an extender's answer."""

from dataclasses import dataclass

import numpy as np
import pytest

from bayplan.engine.extending import Answered, ExtenderAnswer, Question, applied
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import EXTENDER_NAME, Code, Status
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, node

NAMES = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Far:
    """An extender."""

    name: str = "far"
    ignorable: bool = False

    def is_interested(self, pod: PodInfo) -> bool:
        return True


def outcome(feasible: str = "abcd") -> FilterOutcome:
    nodes = SampleCluster().add(*map(node, NAMES)).lend().nodes
    return FilterOutcome(nodes, np.array([name in feasible for name in NAMES]))


def after(
    answer: ExtenderAnswer, *, asked: str = "abcd", feasible: str = "abcd", ignorable: bool = False
) -> tuple[str, dict[str, Status], Status | None]:
    """(nodes left, statuses, error)"""
    found, statuses = outcome(feasible), dict[str, Status]()
    question = Question(Far(ignorable=ignorable), tuple(asked))
    error = applied(Answered(question, answer), found, statuses)
    left = "".join(name for name, is_left in zip(NAMES, found.feasible, strict=True) if is_left)
    return left, statuses, error


def test_what_the_answer_leaves_out_is_out() -> None:
    answer = ExtenderAnswer(
        frozenset("d"), failed={"a": "full"}, failed_and_unresolvable={"b": "licence missing"}
    )
    left, statuses, error = after(answer)
    assert (left, error) == ("d", None)
    assert statuses == {
        "a": Status(Code.UNSCHEDULABLE, ("full",), EXTENDER_NAME),
        "b": Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("licence missing",), EXTENDER_NAME),
        "c": Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (), EXTENDER_NAME),
    }


def test_failed_for_good_is_stronger_than_failed() -> None:
    answer = ExtenderAnswer(failed={"a": "full"}, failed_and_unresolvable={"a": "never"})
    _, statuses, _ = after(answer)
    assert statuses["a"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert statuses["a"].reasons == ("never",)


def test_a_node_that_plugins_rejected_meanwhile_stays_out() -> None:
    left, statuses, _ = after(ExtenderAnswer(frozenset("abcd")), feasible="bc")
    assert (left, statuses) == ("bc", {})


def test_a_node_nobody_asked_about_stays_out_without_a_status() -> None:
    left, statuses, _ = after(ExtenderAnswer(frozenset("ab")), asked="ab")
    assert (left, statuses) == ("ab", {})


def test_a_node_it_was_not_asked_about_is_an_error_that_names_it() -> None:
    _, _, error = after(ExtenderAnswer(frozenset("abd")), asked="ab")
    assert error == Status(Code.ERROR, ("extender far: returned d, about which it was not asked",))


def test_no_answer_is_an_error() -> None:
    _, _, error = after(ExtenderAnswer(error="connection refused"))
    assert error == Status(Code.ERROR, ("extender far: connection refused",))


@pytest.mark.parametrize(("asked", "left"), [("abcd", "abcd"), ("ab", "ab")])
def test_an_ignorable_one_without_an_answer_changes_nothing(asked: str, left: str) -> None:
    found = after(ExtenderAnswer(error="connection refused"), asked=asked, ignorable=True)
    assert found == (left, {}, None)
