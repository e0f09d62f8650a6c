"""Upstream's functions reckon as Go does."""

from typing import Any

import pytest

from bayplan.perf.template_functions import FUNCTIONS, FunctionError


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("AddInt", (1, 2.9, "3"), 6),
        ("AddFloat", (0.5, 1), 1.5),
        ("SubtractInt", (2, 5), -3),
        ("SubtractFloat", (2, 0.5), 1.5),
        ("MultiplyInt", (2, 3, 4), 24),
        ("MultiplyFloat", (2, 0.25), 0.5),
        ("DivideInt", (30000, 7), 4285),
        ("DivideInt", (-7, 2), -3),
        ("DivideFloat", (1, 4), 0.25),
        ("Mod", (14, 12), 2),
        ("Mod", (-7, 3), -1),
        ("Int", (7.9,), 7),
        ("Int", ("12",), 12),
        ("JSON", ([1.0, "a<b", None],), '[1,"a<b",null]'),
        ("JSON", ({"b": 1.5, "a": True},), '{"a":true,"b":1.5}'),
        ("or", (None, 0, 5), 5),
        ("or", (None, 0), 0),
        ("and", (1, 0, 5), 0),
        ("and", (1, 2), 2),
        ("not", ("",), True),
        ("eq", ("a", "b", "a"), True),
        ("ne", ("a", "a"), False),
        ("lt", (1, 2.0), True),
        ("le", (2, 2), True),
        ("gt", ("b", "a"), True),
        ("ge", (1, 2), False),
    ],
)
def test_functions_answer_as_upstreams(name: str, arguments: Any, result: Any) -> None:
    found = FUNCTIONS[name](*arguments)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("AddInt", (None,), "found nothing, wanted a number"),
        ("AddInt", ("x",), 'found "x", wanted a number'),
        ("Int", ("1.5",), 'found "1.5", wanted a whole number'),
        ("DivideInt", (1, 0), "division by zero"),
        ("Mod", (1, 0.5), "division by zero"),
        ("lt", (True, 1), "found true, wanted a number"),
    ],
)
def test_questions_without_an_answer_are_refused(name: str, arguments: Any, said: str) -> None:
    with pytest.raises(FunctionError, match=said):
        FUNCTIONS[name](*arguments)
