"""Seeds as they are written."""

import pytest

from bayplan.comparison.seeds import parse_seeds


@pytest.mark.parametrize(
    ("value", "seeds"),
    [
        ("0..3", (0, 1, 2, 3)),
        ("42", (42,)),
        ("5, 1..2, 5", (5, 1, 2)),
        (7, (7,)),
        ([3, 1], (3, 1)),
        (["0..1", 9], (0, 1, 9)),
    ],
)
def test_ranges_and_lists_are_read_in_their_order_and_each_seed_once(
    value: object, seeds: tuple[int, ...]
) -> None:
    assert parse_seeds(value, "seeds") == (seeds, [])


@pytest.mark.parametrize(
    "value", ["", "a", "3..1", "1...2", "-1", -1, True, None, 1.5, "0..999999"]
)
def test_anything_else_is_refused_with_its_path(value: object) -> None:
    seeds, [problem] = parse_seeds(value, "spec.seeds")
    assert seeds == ()
    assert str(problem).startswith("spec.seeds: found ")
