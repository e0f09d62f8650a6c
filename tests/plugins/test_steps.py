"""Steps: scores along a line."""

from typing import Any

import pytest

from bayplan.framework.interface import Normalizer
from bayplan.plugins.steps import Steps
from tests.plugins.connector_kit import made_of, refusal


def along(points: list[tuple[int, int]], *scores: int, **options: Any) -> list[int]:
    shape = [{"at": at, "score": score} for at, score in points]
    args = {"scoreFrom": "A", "shape": shape, "stage": options.pop("stage", "normalized")}
    return made_of(Steps, args, {"A": scores}, **options)


@pytest.mark.parametrize(
    ("points", "scores", "wanted"),
    [
        pytest.param([(0, 0), (100, 100)], (0, 37, 100), [0, 37, 100], id="as it is"),
        pytest.param([(0, 100), (100, 0)], (0, 37, 100), [100, 63, 0], id="falling"),
        pytest.param(
            [(0, 0), (50, 100), (100, 0)], (0, 25, 50, 75, 99), [0, 50, 100, 50, 2], id="a peak"
        ),
        pytest.param([(20, 10), (60, 90)], (0, 20, 40, 60, 100), [10, 10, 50, 90, 90], id="ends"),
        pytest.param([(49, 0), (50, 100)], (0, 49, 50, 100), [0, 0, 100, 100], id="a step"),
        pytest.param([(30, 70)], (0, 30, 100), [70, 70, 70], id="one point"),
        pytest.param([(0, 0), (3, 10)], (1, 2, 3), [3, 6, 10], id="rising towards zero"),
        pytest.param([(0, 10), (3, 0)], (1, 2, 3), [7, 4, 0], id="falling by 10 / 3, towards zero"),
    ],
)
def test_scores_follow_the_line(
    points: list[tuple[int, int]], scores: tuple[int, ...], wanted: list[int]
) -> None:
    assert along(points, *scores) == wanted


def test_raw_scores_may_be_any_numbers() -> None:
    scores = (-9_000, 0, 4_000, 70_000)
    points = [(-1_000, 0), (9_000, 100)]
    found = along(points, *scores, stage="raw", normalizer=Normalizer.MIN_MAX)
    assert found == [0, 10, 50, 100]


@pytest.mark.parametrize(
    ("shape", "said"),
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
def test_a_shape_is_points_in_order(shape: list[Any], said: str) -> None:
    assert refusal(Steps, {"scoreFrom": "A", "shape": shape}).startswith(said)
