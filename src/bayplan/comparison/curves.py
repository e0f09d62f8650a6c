"""Curves of a comparison: each configuration's mean over the seeds, within the range of all."""

import math
from collections.abc import Sequence

import numpy as np

from bayplan.answers.document import Value
from bayplan.comparison.metrics.run_metric import Curve
from bayplan.comparison.store import Run
from bayplan.comparison.table import Comparison
from bayplan.state.columns import Floats

#: Points at which the curves of several seeds are averaged.
_POINTS = 101


class MeanCurve(Value, frozen=True, kw_only=True):
    """The curves of all seeds of one configuration. Three numbers for each x; null where a run has
    none."""

    configuration: str
    mean: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


class ComparedCurve(Value, frozen=True, kw_only=True):
    """One curve of all configurations that have it."""

    #: "unallocated GPU over arrived GPU"
    name: str
    x: tuple[float, ...]
    configurations: tuple[MeanCurve, ...]

    @property
    def axes(self) -> tuple[str, str]:
        """What is drawn over what: (vertical, horizontal)."""
        vertical, _, horizontal = self.name.partition(" over ")
        return vertical, horizontal


def curves_of(comparison: Comparison, input_name: str) -> list[ComparedCurve]:
    """The curves of an input. With several configurations, only those that differ."""
    runs = [run for run in comparison.runs if run.input == input_name]
    curves = (curve for run in runs for curve in run.result.curves.items())
    names = list(dict.fromkeys(name for name, points in curves if len(points) > 1))
    if len(comparison.configurations) > 1:
        names = [name for name in names if _differs(runs, name)]
    return [_compared(runs, name) for name in names]


def _compared(runs: Sequence[Run], name: str) -> ComparedCurve:
    by_configuration: dict[str, list[Curve]] = {}
    for run in runs:
        points = run.result.curves.get(name, [])
        if len(points) > 1:
            by_configuration.setdefault(run.configuration, []).append(points)
    curves = [curve for own in by_configuration.values() for curve in own]
    first, last = min(curve[0][0] for curve in curves), max(curve[-1][0] for curve in curves)
    x = np.linspace(first, last, _POINTS)
    means = tuple(_mean(configuration, own, x) for configuration, own in by_configuration.items())
    return ComparedCurve(name=name, x=tuple(x.tolist()), configurations=means)


def _mean(configuration: str, curves: Sequence[Curve], x: Floats) -> MeanCurve:
    """``x``: float64[points]. Numbers only where all curves have some."""
    points = [np.array(curve) for curve in curves]
    y = np.array([np.interp(x, one[:, 0], one[:, 1], left=np.nan, right=np.nan) for one in points])
    return MeanCurve(
        configuration=configuration,
        mean=_numbers(y.mean(axis=0)),
        low=_numbers(y.min(axis=0)),
        high=_numbers(y.max(axis=0)),
    )


def _numbers(values: Floats) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(value) else value for value in values.tolist())


def _differs(runs: Sequence[Run], curve: str) -> bool:
    """Whether two runs of one seed have different curves."""
    by_seed: dict[int, list[Curve]] = {}
    for run in runs:
        by_seed.setdefault(run.seed, []).append(run.result.curves.get(curve, []))
    return any(one != curves[0] for curves in by_seed.values() for one in curves)
