"""Plots of a comparison: a bar chart per metric, a line chart per curve. Needs matplotlib.

Only `outputs` imports this file, and only if matplotlib is installed.
"""

import io
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from bayplan.comparison.findings import findings
from bayplan.comparison.metrics.run_metric import Curve
from bayplan.comparison.store import Run
from bayplan.comparison.table import Comparison

#: Colours that are distinct for all kinds of colour vision (Okabe and Ito).
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
#: Points at which the curves of several seeds are averaged.
_POINTS = 101
#: Further metrics have no plot, only a row in the table.
_BARS_MAX = 12
_DOTS_PER_INCH = 144


def pictures(comparison: Comparison) -> dict[str, tuple[bytes, bytes]]:
    """File name → (PNG, SVG)."""
    drawn_files: dict[str, tuple[bytes, bytes]] = {}
    several = len(comparison.inputs) > 1
    for input_name in comparison.inputs:
        prefix = f"{input_name} " if several else ""
        # Equal bars add nothing to the table.
        same = findings(comparison, input_name).same if _has_pairs(comparison) else ()
        drawn = [
            metric
            for metric in comparison.metrics
            if not metric.startswith("unschedulable: ") and metric not in same
        ]
        for metric in drawn[:_BARS_MAX]:
            drawn_files[_file(prefix + metric)] = _saved(_bars(comparison, input_name, metric))
        for curve in _curve_names(comparison, input_name):
            drawn_files[_file(prefix + curve)] = _saved(_lines(comparison, input_name, curve))
    return drawn_files


def _has_pairs(comparison: Comparison) -> bool:
    return len(comparison.configurations) > 1


def _file(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()


def _bars(comparison: Comparison, input_name: str, metric: str) -> Figure:
    """Means as bars, one deviation up and down, and each seed as a dot."""
    figure, axes = _figure(f"{metric}" + (f", {input_name}" if input_name else ""))
    names = comparison.configurations
    for place, name in enumerate(names):
        numbers = comparison.summary(input_name, name, metric)
        if numbers is not None:
            colour = _COLOURS[place % len(_COLOURS)]
            axes.bar(place, numbers.mean, color=colour, alpha=0.75, width=0.6)
            axes.errorbar(place, numbers.mean, yerr=numbers.sd or 0.0, color="black", capsize=4)
            axes.plot([place] * len(numbers.values), numbers.values, ".", color="black", alpha=0.4)
    axes.set_xticks(range(len(names)), names, rotation=20 if len(names) > 5 else 0)
    axes.set_ylabel(metric)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    return figure


def _lines(comparison: Comparison, input_name: str, name: str) -> Figure:
    """The mean over seeds of each configuration, within the range of all seeds."""
    what, _, over = name.partition(" over ")
    figure, axes = _figure(name + (f", {input_name}" if input_name else ""))
    for place, configuration in enumerate(comparison.configurations):
        curves = [
            run.result.curves[name]
            for run in comparison.runs
            if (run.input, run.configuration) == (input_name, configuration)
            and len(run.result.curves.get(name, ())) > 1
        ]
        if curves:
            colour = _COLOURS[place % len(_COLOURS)]
            xs, ys = _averaged(curves)
            axes.plot(xs, ys.mean(axis=0), color=colour, label=configuration)
            axes.fill_between(xs, ys.min(axis=0), ys.max(axis=0), color=colour, alpha=0.15)
    axes.set_xlabel(over)
    axes.set_ylabel(what)
    axes.legend()
    return figure


def _averaged(curves: Sequence[Curve]) -> "tuple[np.ndarray, np.ndarray]":
    """(x, [curves, x]): over the range that all curves share."""
    first = max(curve[0][0] for curve in curves)
    last = min(curve[-1][0] for curve in curves)
    xs = np.linspace(first, max(last, first), _POINTS)
    points = [np.array(curve) for curve in curves]
    return xs, np.array([np.interp(xs, curve[:, 0], curve[:, 1]) for curve in points])


def _curve_names(comparison: Comparison, input_name: str) -> list[str]:
    runs = [run for run in comparison.runs if run.input == input_name]
    curves = (curve for run in runs for curve in run.result.curves.items())
    names = list(dict.fromkeys(name for name, points in curves if len(points) > 1))
    if not _has_pairs(comparison):
        return names
    return [name for name in names if _differs(runs, name)]


def _differs(runs: Sequence[Run], curve: str) -> bool:
    """Whether two runs of one seed have different curves."""
    by_seed: dict[int, list[Curve]] = {}
    for run in runs:
        by_seed.setdefault(run.seed, []).append(run.result.curves.get(curve, []))
    return any(one != curves[0] for curves in by_seed.values() for one in curves)


def _figure(title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    return figure, axes


def _saved(figure: Figure) -> tuple[bytes, bytes]:
    """Without the time of day, so that equal results give equal files."""
    png, svg = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
    return png.getvalue(), svg.getvalue()
