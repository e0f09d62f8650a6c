"""TopologyScorer: a node has the score of its domain. All numbers are computed by hand."""

from typing import Any

import pytest

from bayplan.framework.types import Normalizer
from bayplan.plugins.topology_scorer import TopologyScorer
from tests.plugins.connector_kit import made_of, refusal

RACKS = [{"rack": rack} if rack else {} for rack in ("r1", "r1", "r2", "r2", "r3", "")]
SOURCE = (50, 20, 30, 30, 40, 10)


def racks(
    *scores: int, racks: Any = RACKS, feasible: Any = None, options: Any = None, **args: Any
) -> list[int]:
    fields = {"scoreFrom": "A", "topologyKey": "rack", **args}
    numbers = {"A": scores or SOURCE}
    return made_of(
        TopologyScorer, fields, numbers, labels=racks, feasible=feasible, **(options or {})
    )


def test_the_best_rack_scores_100_and_the_worst_0_and_racks_between_in_proportion() -> None:
    """Sums: r1 70, r2 60, r3 40; (60 - 40) * 100 / 30 = 66."""
    assert racks() == [100, 100, 66, 66, 0, 0]
    assert racks(aggregate="sum") == racks()


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        pytest.param("mean", [50, 50, 0, 0, 100, 0], id="mean: 35, 30, 40"),
        pytest.param("max", [100, 100, 0, 0, 50, 0], id="max: 50, 30, 40"),
        pytest.param("min", [0, 0, 50, 50, 100, 0], id="min: 20, 30, 40"),
    ],
)
def test_the_score_of_a_rack_is_the_aggregate_of_its_nodes(
    aggregate: str, expected: list[int]
) -> None:
    assert racks(aggregate=aggregate) == expected


def test_a_mean_is_a_whole_number() -> None:
    """r1 (0 + 1 + 1) / 3 = 0, r2 1, r3 3."""
    names = [{"rack": r} for r in ("r1", "r1", "r1", "r2", "r3")]
    assert racks(0, 1, 1, 1, 3, racks=names, aggregate="mean") == [0, 0, 0, 33, 100]


def test_nodes_without_the_label_score_0_and_are_not_aggregated() -> None:
    assert racks(90, 20, racks=[{}, {"rack": "r1"}]) == [0, 100]
    assert racks(90, 20, racks=[{}, {}]) == [0, 0]


def test_with_all_nodes_racks_without_a_feasible_node_count_as_best_and_worst() -> None:
    """r1 70 is best and r3 40 worst, though only r2 (60) can take the pod."""
    assert racks(feasible=[2, 3], over="all") == [66, 66]
    assert racks(feasible=[2, 3]) == [100, 100]


def test_raw_scores_may_be_any_numbers() -> None:
    raw = {"normalizer": Normalizer.MIN_MAX}
    scores = (-500, -100, 9000, 0, 4200, 7)  # r1 -600, r2 9000, r3 4200
    assert racks(*scores, stage="raw", options=raw) == [0, 0, 100, 100, 50, 0]


def test_an_invalid_label_key_is_refused() -> None:
    args = {"scoreFrom": "A", "topologyKey": "not a label"}
    assert refusal(TopologyScorer, args).startswith('topologyKey: "not a label"; wanted a label')


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"topologyKey": "rack"}, "scoreFrom: missing; wanted a string"),
        ({"scoreFrom": "A"}, "topologyKey: missing; wanted a string"),
        (
            {"scoreFrom": "A", "topologyKey": "r", "agregate": "sum"},
            'agregate: unknown field; did you mean "aggregate"?',
        ),
        (
            {"scoreFrom": "A", "topologyKey": "r", "over": "al"},
            'over: "al"; wanted "all" or "feasible"; did you mean "all"?',
        ),
    ],
)
def test_wrong_args_are_reported(args: dict[str, Any], message: str) -> None:
    assert refusal(TopologyScorer, args) == message
