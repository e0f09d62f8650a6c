"""A configuration that is refused."""

from bayplan.problems import ConfigError, Problem


def test_an_error_has_a_line_per_problem_and_names_its_source() -> None:
    error = ConfigError([Problem("a", "1"), Problem("b", "2")], "config.yaml")
    assert str(error) == "config.yaml: a: 1\nconfig.yaml: b: 2"
    assert [problem.path for problem in error.problems] == ["a", "b"]
    assert str(ConfigError([Problem("a", "1")])) == "a: 1"
