"""All problems of an input are reported at once, up to a limit."""

import pytest

from bayplan.problems import wrong
from bayplan.sim.input.errors import LINES_MAX, InputError, InputErrors


def test_without_problems_nothing_is_raised() -> None:
    InputErrors().raise_if_any()


def test_each_problem_is_a_line_with_its_place() -> None:
    errors = InputErrors()
    errors.add("a.yaml, document 1", wrong("kind", "Pdo", "a kind", ("Pod",)))
    errors.add_all("b.csv", [wrong("line 2", None, "a name"), wrong("line 3", 1, "a name")])
    with pytest.raises(InputError) as error:
        errors.raise_if_any()
    assert str(error.value).splitlines() == [
        'a.yaml, document 1: kind: found "Pdo", wanted a kind; did you mean "Pod"?',
        "b.csv: line 2: found nothing, wanted a name",
        "b.csv: line 3: found 1, wanted a name",
    ]


def test_the_first_of_many_problems_are_listed_and_the_others_counted() -> None:
    error = InputError(f"a.yaml: problem {number}" for number in range(50))
    lines = str(error).splitlines()
    assert len(lines) == LINES_MAX + 1
    assert lines[-1] == f"and {50 - LINES_MAX} more"
    assert len(error.lines) == 50


def test_a_value_of_the_input_cannot_forge_a_line() -> None:
    problem = InputError(['a.yaml: found "x\nb.yaml: fine"'])
    assert str(problem) == r'a.yaml: found "x\nb.yaml: fine"'
