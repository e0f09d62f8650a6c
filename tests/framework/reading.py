"""Readers and sources for tests of the score graph."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PluginArgs
from bayplan.framework.runtime import Framework
from bayplan.framework.score_sources import Over, Source, Stage
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status
from bayplan.queue.nominator import Nominator
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.testing import handle, node, pod
from tests.framework.answering import answering, cluster_of, plugins_of

NODE_COUNT = 4


class ReaderArgs(PluginArgs, frozen=True):
    score_from: tuple[Source, ...] = ()
    over: Over = "feasible"
    stage: Stage = "normalized"


def reader(
    name: str, *sources: str, score: Callable[..., Any] | None = None, **options: Any
) -> Any:
    """A reader instance. It scores half of the sum of its sources, or ``score`` of their arrays.

    ``options``: ``over``, ``stage``, and answers and attributes of the class.
    """
    args = ReaderArgs(
        score_from=sources,
        over=options.pop("over", "feasible"),
        stage=options.pop("stage", "normalized"),
    )

    def score_nodes(state: CycleState, pod: Any, nodes: NodeView) -> NodeScores:
        values = [state.scores(source, args.stage) for source in sources]
        return score(*values) if score is not None else np.sum(values, axis=0) // 2

    return answering(name, score=score_nodes, **options)(args, handle(), name)


def source(name: str, *numbers: int, **options: Any) -> Any:
    """A plugin instance that scores n0, n1 … with ``numbers``, through any view."""

    def score_nodes(state: Any, pod: Any, nodes: NodeView) -> NodeScores:
        return np.array([numbers[int(each[1:])] for each in nodes.names()], np.int64)

    return answering(name, score=score_nodes, **options)(None, handle(), name)


def framework_of(
    enabled: Sequence[Any], sources: Sequence[Any] = (), weights: Any = None, keys: Any = ()
) -> Framework:
    """``sources``: plugins that are read and not enabled."""
    plugins = plugins_of(*enabled, weights=weights)
    plugins.sources = list(sources)
    plugins.tie_break = list(keys)
    return Framework(plugins, Nominator())


def table_of(
    enabled: Sequence[Any],
    sources: Sequence[Any] = (),
    *,
    weights: Any = None,
    feasible: Sequence[int] = range(NODE_COUNT),
) -> ScoreTable:
    score_table = scored(framework_of(enabled, sources, weights), feasible)
    assert isinstance(score_table, ScoreTable), score_table
    return score_table


def scored(
    framework: Framework, feasible: Sequence[int] = range(NODE_COUNT)
) -> ScoreTable | Status:
    """PreScore and Score of one cycle over these nodes of n0, n1 …"""
    nodes = cluster_of(*(node(f"n{number}") for number in range(NODE_COUNT))).lend().nodes
    state, view = CycleState(), nodes.take(list(feasible))
    failed = framework.run_pre_score(state, pod(), view)
    return failed or framework.run_score(state, pod(), view)


def normalized(table: ScoreTable) -> dict[str, list[int]]:
    """Instance → normalized scores (0..100), also of instances that are only read."""
    return {c.name: c.normalized.tolist() for c in (*table.columns, *table.read)}
