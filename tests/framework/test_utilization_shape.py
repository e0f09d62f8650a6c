"""Scores along a broken line."""

import pytest

from bayplan.framework.resource_scorers import UtilizationShapePoint, broken_line, shape_problems


def point(utilization: int, score: int = 0) -> UtilizationShapePoint:
    return UtilizationShapePoint(utilization=utilization, score=score)


@pytest.mark.parametrize(
    ("points", "at", "score"),
    [
        pytest.param([(0, 10), (100, 0)], 25, 75, id="falling"),
        pytest.param([(0, 0), (100, 10)], 25, 25, id="rising"),
        pytest.param([(20, 3), (80, 7)], 0, 30, id="level before the first point"),
        pytest.param([(20, 3), (80, 7)], 100, 70, id="level after the last point"),
        pytest.param([(0, 10), (30, 0)], 10, 67, id="rounded towards zero while falling"),
        pytest.param([(50, 4)], 99, 40, id="one point is a level line"),
    ],
)
def test_between_two_points_the_score_is_on_the_line(
    points: list[tuple[int, int]], at: int, score: int
) -> None:
    assert broken_line(points)[at] == score


def test_there_is_a_score_for_each_percent() -> None:
    assert len(broken_line([(0, 0), (100, 10)])) == 101


def test_utilizations_of_points_must_increase() -> None:
    assert list(shape_problems("shape", [point(0), point(50), point(50)])) == [
        ("shape[2].utilization", "50; wanted more than 50")
    ]


def test_a_shape_needs_a_point() -> None:
    assert list(shape_problems("shape", [])) == [("shape", "missing; wanted at least one point")]


def test_a_shape_with_two_points_is_valid() -> None:
    assert list(shape_problems("shape", [point(0), point(100)])) == []
