"""The scored resources of a pod, and the limits of the three strategies.

That they score as upstream's is tested with the plugin that uses them, against a plain rule.
"""

import msgspec
import numpy as np
import pytest

from bayplan.framework.resource_scorers import (
    Demand,
    Demands,
    ResourceSpec,
    Scorer,
    demands,
    least_allocated,
    most_allocated,
    requested_to_capacity_ratio,
)
from tests.plugins.resource_kit import GPU, NIC, Place, lent


def scores(scorer: Scorer, demanded: tuple[Demand, ...], *places: Place) -> list[int]:
    nodes = lent(places)
    result = scorer.of_nodes(Demands(demanded), nodes)
    assert result.dtype == np.int64
    assert result.tolist() == [scorer.of_node(Demands(demanded), node) for node in nodes.infos()]
    return result.tolist()


def test_a_scalar_resource_is_scored_only_if_the_pod_requests_it() -> None:
    specs = [ResourceSpec(name=name, weight=2) for name in ("cpu", "ephemeral-storage", GPU, NIC)]
    assert demands(specs, {"cpu": 5, NIC: 1, GPU: 0}).each == (
        Demand("cpu", 2, 5),
        Demand("ephemeral-storage", 2, 0),
        Demand(NIC, 2, 1),
    )


def test_a_weight_of_0_means_1() -> None:
    assert msgspec.convert({"name": "cpu", "weight": 0}, ResourceSpec).weight == 1
    with pytest.raises(msgspec.ValidationError, match="weight"):
        msgspec.convert({"name": "cpu", "weight": 101}, ResourceSpec)


def test_a_resource_that_a_node_does_not_offer_has_no_weight_on_that_node() -> None:
    demanded = (Demand("cpu", 1, 500), Demand("memory", 3, 100))
    places = Place({"cpu": 1000, "memory": 1000}), Place({"cpu": 1000}), Place({})
    assert scores(least_allocated(), demanded, *places) == [(50 + 3 * 90) // 4, 50, 0]
    assert scores(most_allocated(), demanded, *places) == [(50 + 3 * 10) // 4, 50, 0]


@pytest.mark.parametrize(
    ("resource", "offered"), [("cpu", 1000), ("memory", 2000 * 2**20), ("ephemeral-storage", 10)]
)
def test_placed_pods_without_requests_count_in_scores(resource: str, offered: int) -> None:
    """One pod without requests uses a tenth of the cpu or of the memory."""
    running = [[{}], [{"cpu": 0, "memory": 0}]]
    used = 0 if resource == "ephemeral-storage" else 10
    place = Place({resource: offered}, running=running)
    assert scores(most_allocated(), (Demand(resource, 1, 0),), place) == [used]


def test_amounts_that_float64_cannot_represent_are_divided_exactly() -> None:
    """100 x (2^55 - 1) / 2^55 lies just below 100."""
    demanded = (Demand("ephemeral-storage", 1, 2**55 - 1),)
    assert scores(most_allocated(), demanded, Place({"ephemeral-storage": 2**55})) == [99]


# ---- the broken line -----------------------------------------------------------------------


def line(points: list[tuple[int, int]], utilization: int) -> int:
    """The score of one node at a utilization in percent."""
    place = Place({"ephemeral-storage": 100})
    demanded = (Demand("ephemeral-storage", 1, utilization),)
    return scores(requested_to_capacity_ratio(points), demanded, place)[0]


@pytest.mark.parametrize(
    ("utilization", "score"),
    [(0, 20), (20, 20), (35, 55), (50, 90), (65, 70), (80, 50), (100, 50)],
)
def test_the_line_is_straight_between_points_and_level_outside_of_them(
    utilization: int, score: int
) -> None:
    assert line([(20, 2), (50, 9), (80, 5)], utilization) == score


def test_a_falling_line_is_rounded_towards_its_start() -> None:
    """10 x (1 - 2) x 1 / 3 is -3.33…, in Go -3."""
    assert line([(0, 2), (3, 1)], 1) == 17


def test_a_resource_that_scores_nothing_has_no_weight() -> None:
    ratio = requested_to_capacity_ratio([(0, 0), (100, 10)])
    demanded = (Demand("ephemeral-storage", 1, 50), Demand(GPU, 9, 0))
    assert scores(ratio, demanded, Place({"ephemeral-storage": 100, GPU: 4})) == [50]


def test_the_mean_is_rounded_half_up() -> None:
    ratio = requested_to_capacity_ratio([(0, 0), (100, 10)])
    demanded = (Demand("ephemeral-storage", 1, 50), Demand(GPU, 1, 51))
    assert scores(ratio, demanded, Place({"ephemeral-storage": 100, GPU: 100})) == [51]
