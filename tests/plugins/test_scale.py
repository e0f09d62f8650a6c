"""Scale: times a factor, from 0 to 100."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.interface import Normalizer
from bayplan.plugins.scale import Scale
from tests.plugins.connector_kit import made_of, refusal


def scaled(factor: float, *scores: int) -> list[int]:
    return made_of(Scale, {"scoreFrom": "A", "factor": factor}, {"A": scores})


@pytest.mark.parametrize(
    ("factor", "scores", "wanted"),
    [
        pytest.param(2, (70, 45, 0), [100, 90, 0], id="cut off at 100"),
        pytest.param(1, (10, 45, 90), [10, 45, 90], id="nothing changes"),
        pytest.param(0, (10, 45, 90), [0, 0, 0], id="nothing is left"),
        pytest.param(0.5, (45, 1, 100), [22, 0, 50], id="towards zero"),
        pytest.param(0.29, (100, 50, 7), [29, 14, 2], id="float64 would make 28 of 29"),
        pytest.param(1_000_000, (1, 0, 100), [100, 0, 100], id="a large one"),
        pytest.param(1e-6, (1, 50, 100), [0, 0, 0], id="a small one"),
    ],
)
def test_scores_are_multiplied(factor: float, scores: tuple[int, ...], wanted: list[int]) -> None:
    assert scaled(factor, *scores) == wanted


@given(st.integers(0, 5000), st.lists(st.integers(0, 100), min_size=3, max_size=3))
def test_hundredths_are_exact(hundredths: int, scores: list[int]) -> None:
    exact = [min(100, int(Fraction(hundredths, 100) * score)) for score in scores]
    assert scaled(hundredths / 100, *scores) == exact


def test_raw_scores_are_cut_off_on_both_sides() -> None:
    args = {"scoreFrom": "A", "factor": 0.01, "stage": "raw"}
    scores = (-(2**40), -5, 250, 9_999, 2**40)
    found = made_of(Scale, args, {"A": scores}, normalizer=Normalizer.MIN_MAX)
    assert found == [0, 0, 2, 99, 100]


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (-1, "factor: -1; wanted a number from 0 to 1000000"),
        (2_000_000, "factor: 2000000; wanted a number from 0 to 1000000"),
        ("2", 'factor: "2"; wanted a number'),
        (float("nan"), "factor: NaN; wanted"),
    ],
)
def test_a_factor_is_a_number_from_0(factor: object, said: str) -> None:
    assert refusal(Scale, {"scoreFrom": "A", "factor": factor}).startswith(said)
