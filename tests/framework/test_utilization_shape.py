"""Scores along a broken line."""

from bayplan.framework.resource_scorers import UtilizationShapePoint, shape_problems


def point(utilization: int, score: int = 0) -> UtilizationShapePoint:
    return UtilizationShapePoint(utilization=utilization, score=score)


def test_utilizations_of_points_must_increase() -> None:
    assert list(shape_problems("shape", [point(0), point(50), point(50)])) == [
        ("shape[2].utilization", "50; wanted more than 50")
    ]


def test_a_shape_needs_a_point() -> None:
    assert list(shape_problems("shape", [])) == [("shape", "missing; wanted at least one point")]
