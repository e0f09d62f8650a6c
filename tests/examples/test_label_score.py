"""examples/label_score.py: the label of a node is its score."""

from typing import Any

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.testing import check_plugin, cluster, node, plugin, pod
from tests.examples.policies import chosen, cycle_with, policy

LabelScore: Any = policy("label_score")


def scores(values: dict[str, str | None], args: Any = None) -> list[int]:
    """``values``: node → value of the label s, or None for no label."""
    nodes = [node(name, labels={"s": v} if v is not None else {}) for name, v in values.items()]
    sample = cluster(nodes, [])
    instance = plugin(LabelScore, args, cluster=sample)
    return instance.score(CycleState(), pod(), sample.lend().nodes).tolist()


@pytest.mark.parametrize("args", [None, {"label": "rank"}])
def test_label_score_satisfies_check_plugin(args: Any) -> None:
    check_plugin(LabelScore, args, clusters=10)


def test_the_value_of_the_label_is_the_score() -> None:
    assert scores({"n1": "10", "n2": "45", "n3": "90"}) == [10, 45, 90]


@pytest.mark.parametrize("value", [None, "", "high", "2.5", "-3", "1_0", "٣"])
def test_an_absent_or_invalid_value_scores_0(value: str | None) -> None:
    assert scores({"a": value, "b": "7"}) == [0, 7]


def test_a_value_above_the_highest_score_is_capped() -> None:
    assert scores({"a": "100", "b": "101", "c": "99999999999999999999"}) == [100, 100, 100]


def test_the_label_is_configurable() -> None:
    assert scores({"a": "10"}, {"label": "u"}) == [0]


def test_the_best_ranked_node_is_chosen() -> None:
    nodes = [
        node("a", labels={"example.com/rank": "60"}),
        node("b", labels={"example.com/rank": "90"}),
        node("c"),
    ]
    assert chosen(cycle_with("label_score", nodes, pod(cpu=1))) == "b"


def test_a_full_node_is_not_chosen() -> None:
    nodes = [
        node("a", labels={"example.com/rank": "60"}),
        node("b", cpu=1, labels={"example.com/rank": "90"}),
        node("c"),
    ]
    assert chosen(cycle_with("label_score", nodes, pod(cpu=2))) == "a"
