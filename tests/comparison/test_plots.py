"""Plots of a comparison."""

import xml.etree.ElementTree as ET

import msgspec

from bayplan.comparison.plots import pictures
from bayplan.comparison.store import Run
from bayplan.comparison.table import Comparison
from tests.comparison.kit import run


def curved(configuration: str, seed: int, more: int, *points: tuple[float, float]) -> Run:
    one = run(configuration, seed, placed=1.0 + seed + more)
    result = msgspec.structs.replace(one.result, curves={"y % over x %": list(points)})
    return msgspec.structs.replace(one, result=result)


RUNS = [
    curved(name, seed, more, (0.0, 1.0), (10.0 + seed, 2.0), (20.0, 3.0 + seed + more))
    for name, more in (("a", 0), ("b", 1))
    for seed in (0, 1)
]


def texts(svg: bytes) -> str:
    return " ".join(node.text or "" for node in ET.fromstring(svg).iter())


def test_each_metric_and_each_curve_has_a_plot() -> None:
    result = pictures(Comparison(RUNS, "a"))
    assert result.keys() == {"placed", "y-over-x"}
    for png, svg in result.values():
        assert png.startswith(b"\x89PNG")
        assert ET.fromstring(svg).tag.endswith("svg")


def test_several_inputs_have_separate_plots() -> None:
    other = [msgspec.structs.replace(one, input="other") for one in RUNS]
    first = [msgspec.structs.replace(one, input="first") for one in RUNS]
    result = pictures(Comparison([*first, *other], "a"))
    assert result.keys() == {
        f"{name}-{what}" for name in ("first", "other") for what in ("placed", "y-over-x")
    }


def test_reasons_are_listed_only_in_the_table() -> None:
    runs = [run("a", 0, **{"placed": 1.0, "unschedulable: Insufficient cpu": 2.0})]
    assert pictures(Comparison(runs, "a")).keys() == {"placed"}


def test_a_curve_with_one_point_has_no_plot() -> None:
    assert pictures(Comparison([curved("a", 0, 0, (0.0, 1.0))], "a")).keys() == {"placed"}


def test_metrics_that_never_differ_have_no_plot() -> None:
    runs = [curved(name, 0, 0, (0.0, 1.0), (1.0, 2.0)) for name in "ab"]
    assert pictures(Comparison(runs, "a")) == {}
    assert pictures(Comparison(runs[:1], "a")).keys() == {"placed", "y-over-x"}
