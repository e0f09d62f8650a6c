"""One thing at a time."""

import pytest

from bayplan.engine.turns import Turns

Failures = list[tuple[str, str]]


def begun(failures: Failures | None = None) -> Turns:
    told: Failures = [] if failures is None else failures
    turns = Turns(lambda subject, problem: told.append((subject, str(problem))))
    turns.begin()
    return turns


def test_outside_of_a_turn_work_is_done_at_once() -> None:
    done: list[int] = []
    begun().take("a", lambda: done.append(1))
    assert done == [1]


def test_inside_of_one_it_comes_after_it_in_order() -> None:
    turns, done = begun(), list[str]()

    def first() -> None:
        turns.take("b", second)
        turns.take("c", lambda: done.append("third"))
        done.append("first")

    def second() -> None:
        turns.take("d", lambda: done.append("fourth"))
        done.append("second")

    turns.take("a", first)
    assert done == ["first", "second", "third", "fourth"]


def test_who_looks_does_so_between_turns() -> None:
    turns, seen = begun(), list[str]()

    def first() -> None:
        turns.take("b", lambda: seen.append("second"))
        seen.append("first")

    turns.observe(lambda: seen.append("look"))
    turns.take("a", first)
    assert seen == ["first", "look", "second", "look"]


def test_before_the_beginning_everything_waits() -> None:
    done: list[int] = []
    turns = Turns(lambda subject, problem: None)
    turns.take("a", lambda: done.append(1))
    assert done == []
    turns.begin()
    assert done == [1]


def test_a_failure_is_told_and_the_rest_goes_on() -> None:
    failures: Failures = []
    turns, done = begun(failures), list[int]()

    def fails() -> None:
        turns.take("later", lambda: done.append(1))
        raise ValueError("boom")

    turns.take("a", fails)
    assert (failures, done) == ([("a", "boom")], [1])


def test_whoever_is_told_may_end_it() -> None:
    def ends(subject: str, problem: Exception) -> None:
        raise problem

    def fails() -> None:
        raise ValueError("boom")

    turns, done = Turns(ends), list[int]()
    turns.begin()
    with pytest.raises(ValueError, match="boom"):
        turns.take("a", fails)
    turns.take("b", lambda: done.append(1))
    assert done == [1]
