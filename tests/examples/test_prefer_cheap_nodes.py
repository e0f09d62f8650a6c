"""examples/prefer_cheap_nodes.py: the lowest price for an hour wins."""

from typing import Any

import pytest

from bayplan import Node
from bayplan.testing import check_plugin, cluster, node, pod
from bayplan.testing.clusters import plugin
from bayplan.testing.evaluation import ask
from tests.examples.policies import chosen, cycle_with, policy

PreferCheapNodes: Any = policy("prefer_cheap_nodes")


def priced(name: str, price: str, **options: Any) -> Node:
    return node(name, labels={"example.com/dollars-per-hour": price}, **options)


def hours(*nodes: Node) -> list[int]:
    sample = cluster(nodes, [])
    answer = ask(plugin(PreferCheapNodes, cluster=sample), pod(), sample.lend().nodes)
    return [answer.scores[each.metadata.name] for each in nodes]


def test_prefer_cheap_nodes_satisfies_check_plugin() -> None:
    check_plugin(PreferCheapNodes, clusters=10)


def test_half_the_price_is_twice_the_score() -> None:
    assert hours(priced("a", "0.80"), priced("b", "0.40")) == [1250, 2500]


@pytest.mark.parametrize("price", ["", "cheap", "0", "-1", "nan", "inf"])
def test_a_node_without_a_valid_price_scores_lowest(price: str) -> None:
    assert hours(priced("a", price)) == [0]


def test_a_price_near_zero_has_a_finite_score() -> None:
    assert hours(priced("a", "1e-300")) == [1_000_000]


def test_the_cheapest_node_is_chosen_despite_other_preferences() -> None:
    nodes = [priced("dear", "0.80", cpu=64), priced("cheap", "0.10", cpu=2), node("unpriced")]
    cycle = cycle_with("prefer_cheap_nodes", nodes, pod(cpu=1))
    assert chosen(cycle) == "cheap"
    assert cycle.table is not None
    [column] = [each for each in cycle.table.columns if each.name == "PreferCheapNodes"]
    assert column.normalized.tolist() == [12, 100, 0]


def test_a_cheap_node_with_an_untolerated_taint_is_not_chosen() -> None:
    nodes = [
        priced("dear", "0.80"),
        priced("medium", "0.40"),
        priced("spot", "0.10", taints=["example.com/spot:NoSchedule"]),
    ]
    assert chosen(cycle_with("prefer_cheap_nodes", nodes, pod(cpu=1))) == "medium"
    tolerant = pod(cpu=1, tolerations=[{"key": "example.com/spot", "operator": "Exists"}])
    assert chosen(cycle_with("prefer_cheap_nodes", nodes, tolerant)) == "spot"
