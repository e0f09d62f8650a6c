"""The inputs, configurations and versions of a comparison."""

from bayplan.comparison.table import About, ComparedConfiguration

ABOUT = About(
    configurations=(
        ComparedConfiguration("default", "", None),
        ComparedConfiguration("one", "one.yaml", "a: 1\nb: 2\n"),
        ComparedConfiguration("two", "two.yaml", "a: 1\nb: 3\n"),
    )
)


def test_configurations_are_compared_line_by_line() -> None:
    assert ABOUT.difference("one", "two")[-3:] == [" a: 1", "-b: 2", "+b: 3"]
    assert ABOUT.difference("default", "one")[-2:] == ["+a: 1", "+b: 2"]
    assert ABOUT.difference("one", "one") == []
    assert ABOUT.difference("one", "unknown") == []


def test_versions_name_both_programs() -> None:
    assert ABOUT.versions.startswith("Bayplan ")
