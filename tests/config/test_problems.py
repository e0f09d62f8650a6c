"""Problems: one line each, with the name that was probably meant."""

import pytest

from bayplan.config.problems import (
    ConfigError,
    Problem,
    joined,
    listed,
    nearest,
    shown,
    suggestion,
)


def test_a_problem_is_one_line() -> None:
    assert str(Problem("a.b", "3", "wanted 4")) == "a.b: 3; wanted 4"
    assert str(Problem("a.b", "missing")) == "a.b: missing"
    assert str(Problem("", "no documents")) == "no documents"


def test_an_error_has_a_line_per_problem_and_names_its_source() -> None:
    error = ConfigError([Problem("a", "1"), Problem("b", "2")], "config.yaml")
    assert str(error) == "config.yaml: a: 1\nconfig.yaml: b: 2"
    assert [problem.path for problem in error.problems] == ["a", "b"]
    assert str(ConfigError([Problem("a", "1")])) == "a: 1"


@pytest.mark.parametrize(
    ("path", "rest", "whole"),
    [("a", "b", "a.b"), ("a", "[0].b", "a[0].b"), ("", "b", "b"), ("a", "", "a")],
)
def test_paths_are_joined(path: str, rest: str, whole: str) -> None:
    assert joined(path, rest) == whole
    assert Problem(rest, "x").under(path).path == whole


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        (True, "true"),
        (1.5, "1.5"),
        ({"a": 1}, "a mapping"),
        ((1,), "a list"),
        ("ä" * 100, '"' + "ä" * 59 + "…"),
    ],
)
def test_values_are_shown_as_they_are_written(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NodeResourceFit", "NodeResourcesFit"),
        ("noderesourcesfit", "NodeResourcesFit"),
        ("Coscheduling", None),
        ("", None),
    ],
)
def test_only_a_name_that_is_alike_is_suggested(name: str, meant: str | None) -> None:
    assert nearest(name, ["NodeResourcesFit", "SchedulingGates", "NodeName"]) == meant


def test_a_suggestion_lists_a_few_names_but_not_many() -> None:
    assert suggestion("agregate", ["aggregate", "over"]) == 'did you mean "aggregate"?'
    assert suggestion("x", ["b", "a"]) == 'wanted "a" or "b"'
    assert suggestion("x", [f"name{i}" for i in range(20)]) == ""
    assert suggestion("x", []) == ""


def test_names_are_listed_in_order() -> None:
    assert listed(["c", "a", "b"]) == '"a", "b" or "c"'
    assert listed(["a"]) == '"a"'
