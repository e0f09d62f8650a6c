"""The causes of a new answer: which changes give it, alone, each a part, together, or either."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.whatif.upgrade.causes import Cause, Changes, causes_of
from bayplan.whatif.upgrade.decisions import Decision

COUNT = 40
OLD, NEW = Decision(("n0",)), Decision(("n1",))

Answer = Callable[[set[int]], Decision]


def cause_of(answer: Answer) -> tuple[Cause, list[Changes]]:
    """The cause of a pod's answer, and the sets that were tried."""
    tried: list[Changes] = []

    def decide(changes: Changes, keys: Sequence[str]) -> Mapping[str, Decision]:
        tried.append(changes)
        return {key: answer(set(changes)) for key in keys}

    pair = answer(set()), answer(set(range(COUNT)))
    return causes_of({"default/a": pair}, COUNT, decide)["default/a"], tried


def needs(*changes: int) -> Answer:
    return lambda applied: NEW if applied >= set(changes) else OLD


def test_one_change_is_the_cause_alone() -> None:
    cause, tried = cause_of(needs(17))
    assert cause == Cause("alone", (17,))
    assert len(tried) < 16, "halves, and not each of 40 changes"


def test_changes_that_alter_nothing_without_one_another_are_the_cause_together() -> None:
    assert cause_of(needs(3, 31))[0] == Cause("together", (3, 31))
    assert cause_of(needs(8, 9, 10))[0] == Cause("together", (8, 9, 10))


def test_changes_that_alter_parts_of_a_sentence_are_a_cause_each() -> None:
    def sentence(applied: set[int]) -> Decision:
        return Decision((), f"{2 in applied} {25 in applied}")

    assert cause_of(sentence)[0] == Cause("each", (2, 25))


def test_either_of_two_changes_is_enough() -> None:
    def either(applied: set[int]) -> Decision:
        return NEW if applied & {5, 30} else OLD

    assert cause_of(either)[0] == Cause("either", (5,), ((30,),))


def test_a_change_with_one_of_two_others_has_an_alternative() -> None:
    def answer(applied: set[int]) -> Decision:
        return NEW if 1 in applied and applied & {7, 33} else OLD

    assert cause_of(answer)[0] == Cause("either", (1, 7), ((1, 33),))


def test_changes_that_do_not_go_together_are_passed_over() -> None:
    def decide(changes: Changes, keys: Sequence[str]) -> Mapping[str, Decision]:
        if len(changes) == COUNT // 2:
            return {}
        return {key: needs(4)(set(changes)) for key in keys}

    causes = causes_of({"default/a": (OLD, NEW)}, COUNT, decide)
    assert causes == {"default/a": Cause("alone", (4,))}


@given(st.lists(st.sets(st.integers(0, COUNT - 1), min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_cause_gives_the_answer_and_no_part_of_it_does(enough: list[set[int]]) -> None:
    def answer(applied: set[int]) -> Decision:
        return NEW if any(applied >= each for each in enough) else OLD

    cause, _ = cause_of(answer)
    for changes in (cause.changes, *cause.alternatives):
        assert answer(set(changes)) == NEW
        assert all(answer(set(changes) - {each}) == OLD for each in changes)
    everything = set(range(COUNT))
    is_needed = all(answer(everything - {each}) == OLD for each in cause.changes)
    assert (cause.how != "either") is is_needed


def test_pods_with_one_cause_share_the_models_of_the_cluster() -> None:
    calls: list[int] = []

    def decide(changes: Changes, keys: Sequence[str]) -> Mapping[str, Decision]:
        calls.append(len(keys))
        return {key: needs(20)(set(changes)) for key in keys}

    pods = {f"default/{number}": (OLD, NEW) for number in range(50)}
    assert set(causes_of(pods, COUNT, decide).values()) == {Cause("alone", (20,))}
    assert set(calls) == {50}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_changes_are_enough_for_a_search(count: int) -> None:
    def decide(changes: Changes, keys: Sequence[str]) -> Mapping[str, Decision]:
        return {key: needs(count - 1)(set(changes)) for key in keys}

    causes = causes_of({"default/a": (OLD, NEW)}, count, decide)
    assert causes == {"default/a": Cause("alone", (count - 1,))}
