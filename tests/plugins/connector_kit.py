"""A few nodes, the scores of sources, and the scores of a connector."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayplan.config import ConfigError
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.queue.nominator import Nominator
from bayplan.state.nodes import NodeView
from bayplan.testing import SampleCluster, handle, node, plugin, pod
from tests.framework.answering import answering

#: Per node: its labels.
Labels = Sequence[Mapping[str, str]]


def made_of(
    connector: type[Plugin],
    args: Mapping[str, Any],
    sources: Mapping[str, Sequence[int]],
    *,
    labels: Labels = (),
    feasible: Sequence[int] | None = None,
    **options: Any,
) -> list[int]:
    """A connector's scores, normalised. ``sources``: name → scores of n0, n1 …

    ``options``: answers and attributes of the sources.
    """
    score_table = table_of(connector, args, sources, labels=labels, feasible=feasible, **options)
    assert isinstance(score_table, ScoreTable), score_table
    return score_table.totals.tolist()


def table_of(
    connector: type[Plugin],
    args: Mapping[str, Any],
    sources: Mapping[str, Sequence[int]],
    *,
    labels: Labels = (),
    feasible: Sequence[int] | None = None,
    **options: Any,
) -> ScoreTable | Status:
    count = len(next(iter(sources.values())))
    each = [dict(labels[n]) if labels else {} for n in range(count)]
    cluster = SampleCluster().add(*(node(f"n{n}", labels=each[n]) for n in range(count)))
    plugins = ProfilePlugins("bayplan", PrioritySort(None, handle()))
    plugins.score = [(plugin(connector, args, cluster=cluster), 1)]  # type: ignore[list-item]
    for name, numbers in sources.items():
        plugins.sources.append(_source(name, numbers, options))
    framework, nodes = Framework(plugins, Nominator()), cluster.lend().nodes
    view = nodes if feasible is None else nodes.take(list(feasible))
    state = CycleState()
    return framework.run_pre_score(state, pod(), view) or framework.run_score(state, pod(), view)


def _source(name: str, numbers: Sequence[int], options: Mapping[str, Any]) -> Any:
    def score(state: Any, pod: Any, nodes: NodeView) -> Any:
        return np.array([numbers[int(each[1:])] for each in nodes.names()], np.int64)

    return answering(name, score=score, **options)(None, handle(), name)


def refusal(connector: type[Plugin], args: Mapping[str, Any]) -> str:
    """The problems of args."""
    try:
        plugin(connector, args)
    except ConfigError as error:
        return "; ".join(map(str, error.problems))
    raise AssertionError("nothing is wrong with them")
