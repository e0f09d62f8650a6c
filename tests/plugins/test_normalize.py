"""Normalize: scores stretched over 0 to 100."""

import pytest

from bayplan.framework.interface import Normalizer
from bayplan.plugins.normalize import Normalize
from tests.plugins.connector_kit import made_of, refusal


@pytest.mark.parametrize(
    ("to", "scores", "wanted"),
    [
        pytest.param("max", (3, 6, 12), [25, 50, 100], id="the highest becomes 100"),
        pytest.param("max", (3, 0, 7), [42, 0, 100], id="towards zero: 300 / 7 = 42"),
        pytest.param("max", (0, 0, 0), [0, 0, 0], id="all zero stays zero"),
        pytest.param("max", (5, 5, 5), [100, 100, 100], id="all equal"),
        pytest.param("minMax", (3, 6, 12), [0, 33, 100], id="the lowest becomes 0"),
        pytest.param("minMax", (5, 5, 5), [0, 0, 0], id="all equal, from lowest to highest"),
    ],
)
def test_scores_are_stretched(to: str, scores: tuple[int, ...], wanted: list[int]) -> None:
    assert made_of(Normalize, {"scoreFrom": "A", "to": to}, {"A": scores}) == wanted


def test_to_the_highest_is_the_default() -> None:
    assert made_of(Normalize, {"scoreFrom": "A"}, {"A": (3, 6, 12)}) == [25, 50, 100]


def test_only_feasible_nodes_count() -> None:
    found = made_of(Normalize, {"scoreFrom": "A"}, {"A": (3, 6, 12)}, feasible=[0, 1])
    assert found == [50, 100]


def test_raw_scores_may_be_normalised_in_another_way() -> None:
    """The source's own way makes 75, 50, 0 of them."""
    args = {"scoreFrom": "A", "stage": "raw", "to": "minMax"}
    found = made_of(Normalize, args, {"A": (3, 6, 12)}, normalizer=Normalizer.MAX_REVERSED)
    assert found == [0, 33, 100]


def test_there_are_two_ways() -> None:
    said = 'to: "minmax"; wanted "max" or "minMax"; did you mean "minMax"?'
    assert refusal(Normalize, {"scoreFrom": "A", "to": "minmax"}) == said
