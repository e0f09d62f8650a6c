"""Plots of a comparison: a bar chart per metric, a line chart per curve. Needs matplotlib.

Only `outputs` imports this file, and only if matplotlib is installed.
"""

import io
import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from bayplan.comparison.curves import ComparedCurve, curves_of
from bayplan.comparison.findings import findings
from bayplan.comparison.table import Comparison

#: Colours that are distinct for all kinds of colour vision (Okabe and Ito).
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
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
        for curve in curves_of(comparison, input_name):
            drawn_files[_file(prefix + curve.name)] = _saved(_lines(comparison, input_name, curve))
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


def _lines(comparison: Comparison, input_name: str, curve: ComparedCurve) -> Figure:
    """The mean over seeds of each configuration, within the range of all seeds."""
    figure, axes = _figure(curve.name + (f", {input_name}" if input_name else ""))
    vertical, horizontal = curve.axes
    places = {name: place for place, name in enumerate(comparison.configurations)}
    for one in curve.configurations:
        colour = _COLOURS[places[one.configuration] % len(_COLOURS)]
        # None is not a number: the line has a gap there.
        mean, low, high = (np.array(each, np.float64) for each in (one.mean, one.low, one.high))
        axes.plot(curve.x, mean, color=colour, label=one.configuration)
        axes.fill_between(curve.x, low, high, color=colour, alpha=0.15)
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    axes.legend()
    return figure


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
