"""Combine: several scores made into one."""

from typing import Any

import pytest

from bayplan.framework.status import SKIP
from bayplan.plugins.combine import Combine
from tests.plugins.connector_kit import made_of, refusal

A, B = (10, 45, 90, 0), (50, 60, 5, 100)


def combined(how: str | None = None, weights: Any = None, **options: Any) -> list[int]:
    args = {"scoreFrom": ["A", "B"], "with": how, "weights": weights}
    given = {name: value for name, value in args.items() if value is not None}
    return made_of(Combine, given, {"A": A, "B": B}, **options)


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        pytest.param("min", [10, 45, 5, 0], id="the lower"),
        pytest.param("max", [50, 60, 90, 100], id="the higher"),
        pytest.param("mean", [30, 52, 47, 50], id="the mean, towards zero"),
        pytest.param("product", [5, 27, 4, 0], id="as hundredths: 45 x 60 / 100 = 27"),
        pytest.param("weightedSum", [30, 52, 47, 50], id="equal weights"),
        pytest.param(None, [30, 52, 47, 50], id="a weighted sum if nothing is said"),
    ],
)
def test_scores_are_combined(how: str | None, wanted: list[int]) -> None:
    assert combined(how) == wanted


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        pytest.param([1, 3], [40, 56, 26, 75], id="(10 + 3 x 50) / 4 = 40"),
        pytest.param({"B": 3}, [40, 56, 26, 75], id="by name; 1 where none is given"),
        pytest.param([1, 0], [10, 45, 90, 0], id="a weight of zero"),
        pytest.param({"A": 0, "B": 7}, [50, 60, 5, 100], id="zero by name"),
        pytest.param([1_000_000, 1_000_000], [30, 52, 47, 50], id="large ones"),
    ],
)
def test_weights_count(weights: Any, wanted: list[int]) -> None:
    assert combined("weightedSum", weights) == wanted


def test_one_source_stays_what_it_is() -> None:
    for name in ("A", ["A"]):
        assert made_of(Combine, {"scoreFrom": name, "with": "product"}, {"A": A}) == list(A)


def test_three_are_multiplied_two_after_two() -> None:
    """55 x 55 / 100 = 30, 30 x 55 / 100 = 16."""
    args = {"scoreFrom": ["A", "B", "C"], "with": "product"}
    assert made_of(Combine, args, {"A": (55,), "B": (55,), "C": (55,)}) == [16]


def test_if_all_are_skipped_so_is_this() -> None:
    assert combined("max", pre_score=SKIP) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("args", "said"),
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
def test_wrong_args_are_told(args: dict[str, Any], said: str) -> None:
    assert refusal(Combine, args).startswith(said)
