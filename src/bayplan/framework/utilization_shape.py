"""A score as a function of utilization: a broken line through configured points."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated

import msgspec

from bayplan.framework.types import MAX_NODE_SCORE

#: A shape's scores are 0..10, a node's 0..100.
MAX_SHAPE_SCORE = 10
MAX_UTILIZATION = 100


class UtilizationShapePoint(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """One point of the line."""

    utilization: Annotated[int, msgspec.Meta(ge=0, le=MAX_UTILIZATION)] = 0
    score: Annotated[int, msgspec.Meta(ge=0, le=MAX_SHAPE_SCORE)] = 0


def shape_problems(path: str, shape: Sequence[UtilizationShapePoint]) -> Iterable[tuple[str, str]]:
    """(path, the value and what to write instead) of each fault of a shape."""
    if not shape:
        yield path, "missing; wanted at least one point"
    for index, (before, point) in enumerate(pairwise(shape), start=1):
        if point.utilization <= before.utilization:
            expected = f"wanted more than {before.utilization}"
            yield f"{path}[{index}].utilization", f"{point.utilization}; {expected}"


def broken_line(points: Sequence[tuple[int, int]]) -> list[int]:
    """The score 0..100 at each utilization 0..100, of (utilization, score 0..10) points."""
    return [_on_line(points, at) for at in range(MAX_UTILIZATION + 1)]


def _on_line(points: Sequence[tuple[int, int]], utilization: int) -> int:
    """Upstream: helper.BuildBrokenLinearFunction. Go's division cuts towards zero."""
    scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    before, before_score = points[0]
    for at, score in points:
        if utilization <= at:
            rise = (score - before_score) * scale * (utilization - before)
            run = max(at - before, 1)
            return before_score * scale + (rise // run if rise >= 0 else -(-rise // run))
        before, before_score = at, score
    return before_score * scale
