"""Victims on many nodes at once. That they are those of one node at a time: test_dry_run.py."""

import numpy as np

from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.default_preemption.on_many_nodes import Side, victims_on_all
from bayplan.state.nodes import NodeView
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import Scene, scene

HIGH = pod("p", cpu=2, priority=9)


def searched(over: Scene) -> tuple[Side | None, NodeView]:
    state = over.cycle(HIGH).state
    snapshot = over.cluster.lent_snapshot
    assert snapshot is not None
    every = np.arange(len(snapshot.nodes))
    question = (over.plugin.handle.runner, state, HIGH)
    return victims_on_all(snapshot, every, question, Budgets()), snapshot.nodes


def full() -> Scene:
    return scene(
        node("n1", cpu=2), pod("a", cpu=1, node="n1"), pod("b", cpu=1, node="n1"),
        node("n2", cpu=2), pod("c", cpu=1, node="n2", priority=9),
        node("n3", cpu=4), pod("d", cpu=1, node="n3"),
    )  # fmt: skip


def test_nodes_fall_into_candidates_needless_and_hopeless_ones() -> None:
    side, nodes = searched(full())
    assert side is not None
    assert [nodes.name(position) for position in side.batch.positions.tolist()] == ["n1"]
    assert [p.name for p in side.batch.victims(0).pods] == ["a", "b"]
    assert side.needless == ["n3"]
    assert list(side.without_all.statuses()) == ["n2"]


def test_nothing_of_the_cluster_is_touched() -> None:
    over = full()
    over.cycle(HIGH)
    before = over.cluster.cache.table.log.generation
    searched(over)
    assert over.cluster.cache.table.log.generation == before


def test_victims_come_in_their_newest_versions() -> None:
    over = full()
    searched(over)
    over.cluster.take_back()
    newer = pod("a", cpu=1, node="n1", annotations={"told": "since"})
    over.cluster.cache.update_pod(newer)
    side, _ = searched(over)
    assert side is not None and side.batch.victims(0).pods[0] is newer


def test_a_filter_that_looks_closer_is_left_to_the_search_one_by_one() -> None:
    over = full()
    fit = over.framework.plugins.filter[-1]
    original = fit.filter  # type: ignore[union-attr]

    def closer(state: object, p: object, nodes: NodeView, feasible: object) -> object:
        nodes.info(0)
        return original(state, p, nodes, feasible)  # type: ignore[arg-type]

    calls = over.framework.calls(over.cycle(HIGH).state, HIGH)
    calls.filter[-1] = (fit.instance_name, closer)  # type: ignore[index]
    assert searched(over)[0] is None
