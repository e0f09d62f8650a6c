"""Places of paths in a text."""

import pytest

from bayplan.yaml_places import Place, place_in

TEXT = """\
featureGates:
  A: true
profiles:
- schedulerName: a
  pluginConfig:
  - name: X
    args: {example.com/a.b: 3, list: [1,
       2]}
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ("featureGates.A", 2, 3),
        ("profiles[0].schedulerName", 4, 3),
        ("profiles[0].pluginConfig[0].args.example.com/a.b", 7, 12),
        ("profiles[0].pluginConfig[0].args.list[1]", 8, 8),
    ],
)
def test_a_path_has_the_place_of_its_key_or_entry(path: str, line: int, column: int) -> None:
    assert place_in(TEXT, path) == Place(line, column)


def test_a_path_that_is_not_there_has_the_place_of_its_nearest_part() -> None:
    assert place_in(TEXT, "profiles[0].pluginConfig[0].args.missing") == Place(7, 5)
    assert place_in(TEXT, "profiles[4].schedulerName") == Place(3, 1)
    assert place_in(TEXT, "missing") is None


def test_json_with_tabs_has_places_too() -> None:
    assert place_in('{\n\t"a": {"b": 1}\n}', "a.b") == Place(2, 8)


def test_a_text_that_cannot_be_read_has_no_places() -> None:
    assert place_in("a: [", "a") is None
    assert place_in("", "a") is None
