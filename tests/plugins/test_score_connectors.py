"""Invert: 100 minus the score.

Normalize: scores stretched over 0 to 100.

Scale: times a factor, from 0 to 100.

Steps: scores along a line.

Combine: several scores combined into one.
"""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.status import SKIP, Status
from bayplan.framework.types import Normalizer
from bayplan.plugins.score_connectors import Combine, Invert, Normalize, Scale, Steps
from tests.plugins.connector_kit import made_of, refusal, table_of

# ---- invert ---------------------------------------------------------------------------------


def test_a_score_is_subtracted_from_100() -> None:
    assert made_of(Invert, {"scoreFrom": "A"}, {"A": (0, 10, 45, 100)}) == [100, 90, 55, 0]


def test_normalised_scores_are_inverted_unless_the_stage_is_raw() -> None:
    scores, by_max = {"A": (3, 6, 12)}, Normalizer.MAX
    assert made_of(Invert, {"scoreFrom": "A"}, scores, normalizer=by_max) == [75, 50, 0]
    raw = {"scoreFrom": "A", "stage": "raw"}
    assert made_of(Invert, raw, scores, normalizer=by_max) == [97, 94, 88]


def test_raw_scores_above_100_cannot_be_inverted() -> None:
    raw = {"scoreFrom": "A", "stage": "raw"}
    status = table_of(Invert, raw, {"A": (0, 300)}, normalizer=Normalizer.MAX)
    assert isinstance(status, Status)
    assert 'plugin "Invert" returns an invalid score -200' in status.message


# ---- normalize ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "scores", "expected"),
    [
        pytest.param("max", (3, 6, 12), [25, 50, 100], id="the highest becomes 100"),
        pytest.param("max", (3, 0, 7), [42, 0, 100], id="rounded towards zero: 300 / 7 = 42"),
        pytest.param("max", (0, 0, 0), [0, 0, 0], id="all zero stays zero"),
        pytest.param("max", (5, 5, 5), [100, 100, 100], id="all equal"),
        pytest.param("minMax", (3, 6, 12), [0, 33, 100], id="the lowest becomes 0"),
        pytest.param("minMax", (5, 5, 5), [0, 0, 0], id="all equal, from lowest to highest"),
    ],
)
def test_scores_are_normalised(to: str, scores: tuple[int, ...], expected: list[int]) -> None:
    assert made_of(Normalize, {"scoreFrom": "A", "to": to}, {"A": scores}) == expected


def test_scaling_to_the_highest_is_the_default() -> None:
    assert made_of(Normalize, {"scoreFrom": "A"}, {"A": (3, 6, 12)}) == [25, 50, 100]


def test_raw_scores_may_be_normalised_with_another_method() -> None:
    """The source's own normalisation gives 75, 50, 0."""
    args = {"scoreFrom": "A", "stage": "raw", "to": "minMax"}
    result = made_of(Normalize, args, {"A": (3, 6, 12)}, normalizer=Normalizer.MAX_REVERSED)
    assert result == [0, 33, 100]


# ---- scale ----------------------------------------------------------------------------------


def scaled(factor: float, *scores: int) -> list[int]:
    return made_of(Scale, {"scoreFrom": "A", "factor": factor}, {"A": scores})


@pytest.mark.parametrize(
    ("factor", "scores", "expected"),
    [
        pytest.param(2, (70, 45, 0), [100, 90, 0], id="cut off at 100"),
        pytest.param(1, (10, 45, 90), [10, 45, 90], id="a factor of 1"),
        pytest.param(0, (10, 45, 90), [0, 0, 0], id="a factor of 0"),
        pytest.param(0.5, (45, 1, 100), [22, 0, 50], id="rounded towards zero"),
        pytest.param(0.29, (100, 50, 7), [29, 14, 2], id="float64 would make 28 of 29"),
        pytest.param(1_000_000, (1, 0, 100), [100, 0, 100], id="a large factor"),
        pytest.param(1e-6, (1, 50, 100), [0, 0, 0], id="a small factor"),
    ],
)
def test_scores_are_multiplied(factor: float, scores: tuple[int, ...], expected: list[int]) -> None:
    assert scaled(factor, *scores) == expected


@given(st.integers(0, 5000), st.lists(st.integers(0, 100), min_size=3, max_size=3))
def test_hundredths_are_exact(hundredths: int, scores: list[int]) -> None:
    exact = [min(100, int(Fraction(hundredths, 100) * score)) for score in scores]
    assert scaled(hundredths / 100, *scores) == exact


def test_raw_scores_are_limited_to_0_and_100() -> None:
    args = {"scoreFrom": "A", "factor": 0.01, "stage": "raw"}
    scores = (-(2**40), -5, 250, 9_999, 2**40)
    result = made_of(Scale, args, {"A": scores}, normalizer=Normalizer.MIN_MAX)
    assert result == [0, 0, 2, 99, 100]


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (-1, "factor: -1; wanted a number from 0 to 1000000"),
        (2_000_000, "factor: 2000000; wanted a number from 0 to 1000000"),
        ("2", 'factor: "2"; wanted a number'),
        (float("nan"), "factor: NaN; wanted"),
    ],
)
def test_a_factor_is_a_number_from_0(factor: object, message: str) -> None:
    assert refusal(Scale, {"scoreFrom": "A", "factor": factor}).startswith(message)


# ---- steps ----------------------------------------------------------------------------------


def along(points: list[tuple[int, int]], *scores: int, **options: Any) -> list[int]:
    shape = [{"at": at, "score": score} for at, score in points]
    args = {"scoreFrom": "A", "shape": shape, "stage": options.pop("stage", "normalized")}
    return made_of(Steps, args, {"A": scores}, **options)


@pytest.mark.parametrize(
    ("points", "scores", "expected"),
    [
        pytest.param([(0, 0), (100, 100)], (0, 37, 100), [0, 37, 100], id="the identity"),
        pytest.param([(0, 100), (100, 0)], (0, 37, 100), [100, 63, 0], id="falling"),
        pytest.param(
            [(0, 0), (50, 100), (100, 0)], (0, 25, 50, 75, 99), [0, 50, 100, 50, 2], id="a peak"
        ),
        pytest.param(
            [(20, 10), (60, 90)], (0, 20, 40, 60, 100), [10, 10, 50, 90, 90], id="level ends"
        ),
        pytest.param([(49, 0), (50, 100)], (0, 49, 50, 100), [0, 0, 100, 100], id="a step"),
        pytest.param([(30, 70)], (0, 30, 100), [70, 70, 70], id="one point"),
        pytest.param([(0, 0), (3, 10)], (1, 2, 3), [3, 6, 10], id="rising, rounded towards zero"),
        pytest.param(
            [(0, 10), (3, 0)], (1, 2, 3), [7, 4, 0], id="falling by 10 / 3, rounded towards zero"
        ),
    ],
)
def test_scores_follow_the_line(
    points: list[tuple[int, int]], scores: tuple[int, ...], expected: list[int]
) -> None:
    assert along(points, *scores) == expected


def test_raw_scores_may_be_any_numbers() -> None:
    scores = (-9_000, 0, 4_000, 70_000)
    points = [(-1_000, 0), (9_000, 100)]
    result = along(points, *scores, stage="raw", normalizer=Normalizer.MIN_MAX)
    assert result == [0, 10, 50, 100]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([], "shape: no points; wanted one at least"),
        (
            [{"at": 5, "score": 1}, {"at": 5, "score": 2}],
            "shape[1].at: 5; wanted more than 5, as before it",
        ),
        ([{"at": 5, "score": 101}], "shape[0].score: 101; wanted an integer from 0 to 100"),
        ([{"at": 5, "scor": 1}], 'shape[0].scor: unknown field; did you mean "score"?'),
    ],
)
def test_a_shape_is_points_in_order(shape: list[Any], message: str) -> None:
    assert refusal(Steps, {"scoreFrom": "A", "shape": shape}).startswith(message)


# ---- combine --------------------------------------------------------------------------------


A, B = (10, 45, 90, 0), (50, 60, 5, 100)


def combined(how: str | None = None, weights: Any = None, **options: Any) -> list[int]:
    args = {"scoreFrom": ["A", "B"], "with": how, "weights": weights}
    fields = {name: value for name, value in args.items() if value is not None}
    return made_of(Combine, fields, {"A": A, "B": B}, **options)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        pytest.param("min", [10, 45, 5, 0], id="the minimum"),
        pytest.param("max", [50, 60, 90, 100], id="the maximum"),
        pytest.param("mean", [30, 52, 47, 50], id="the mean, rounded towards zero"),
        pytest.param("product", [5, 27, 4, 0], id="the product in hundredths: 45 x 60 / 100 = 27"),
        pytest.param("weightedSum", [30, 52, 47, 50], id="equal weights"),
        pytest.param(None, [30, 52, 47, 50], id="a weighted sum by default"),
    ],
)
def test_scores_are_combined(how: str | None, expected: list[int]) -> None:
    assert combined(how) == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        pytest.param([1, 3], [40, 56, 26, 75], id="(10 + 3 x 50) / 4 = 40"),
        pytest.param({"B": 3}, [40, 56, 26, 75], id="weights by name, 1 by default"),
        pytest.param([1, 0], [10, 45, 90, 0], id="a weight of zero"),
        pytest.param({"A": 0, "B": 7}, [50, 60, 5, 100], id="a named weight of zero"),
        pytest.param([1_000_000, 1_000_000], [30, 52, 47, 50], id="large weights"),
    ],
)
def test_weights_count(weights: Any, expected: list[int]) -> None:
    assert combined("weightedSum", weights) == expected


def test_a_connector_is_skipped_if_all_its_sources_are_skipped() -> None:
    assert combined("max", pre_score=SKIP) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"scoreFrom": []}, "scoreFrom: no sources; wanted one at least"),
        ({"scoreFrom": ["A", "A"]}, "scoreFrom: the same source twice; wanted each once"),
        ({"scoreFrom": ["A", "B"], "with": "mim"}, 'with: "mim"; wanted "max", "mean", "min", '),
        (
            {"scoreFrom": ["A", "B"], "with": "min", "weights": [1, 2]},
            "weights: with min; wanted none: they are for weightedSum",
        ),
        (
            {"scoreFrom": ["A", "B"], "weights": [1]},
            "weights: 1 for 2 sources; wanted one for each",
        ),
        (
            {"scoreFrom": ["A", "B"], "weights": {"C": 1}},
            "weights.C: not in scoreFrom; wanted one of its sources",
        ),
        ({"scoreFrom": ["A", "B"], "weights": [0, 0]}, "weights: all 0; wanted one that is not"),
    ],
)
def test_wrong_args_are_reported(args: dict[str, Any], message: str) -> None:
    assert refusal(Combine, args).startswith(message)
