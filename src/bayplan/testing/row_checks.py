"""Checks of one-row forms: `filter_row` and `score_row` say what `filter` and `score` say.

Where single rows changed since answers were kept, the one-row form is asked in place of the other:
a difference would make a pod's node depend on what was placed before it.
"""

import numpy as np

from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import CycleState, FilterPlugin, RowFilter, RowScore, ScorePlugin
from bayplan.framework.rows import verdicts_of
from bayplan.framework.status import is_success
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing.asking import alone
from bayplan.testing.scenes import Scene, Subject


def same_row_by_row(subject: Subject, scene: Scene) -> None:
    """Every row of the cluster, for every pod."""
    if not isinstance(scene.plugin, RowFilter | RowScore):
        return
    nodes = scene.cluster.lend().nodes
    for _, each in scene.pods:
        state = CycleState()
        _, status, _ = alone(scene.plugin).run_pre_filter(state, each, nodes)
        if is_success(status):
            feasible = _compare_verdicts(subject, scene, state, each, nodes)
            if len(feasible):
                _compare_scores(subject, scene, state, each, feasible)


def _compare_verdicts(
    subject: Subject, scene: Scene, state: CycleState, pod: PodInfo, nodes: NodeView
) -> NodeView:
    """Returns the nodes that are feasible."""
    plugin = scene.plugin
    if not isinstance(plugin, FilterPlugin) or plugin.instance_name in state.skip_filter_plugins:
        return nodes
    outcome = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
    outcome.add(plugin.name, plugin.filter(state, pod, nodes, outcome.feasible.copy()))
    if isinstance(plugin, RowFilter) and outcome.error is None:
        told = verdicts_of(outcome)
        for position, info in enumerate(nodes.infos()):
            whole, one = told.get(position, ()), plugin.filter_row(state, pod, info)
            if whole != one:
                raise subject.failed(
                    f"filter_row says of node {info.name} what filter does not: {one!r} or "
                    f"{whole!r}; it must give the same codes and reasons, in the same order"
                )
    return nodes.take(outcome.feasible)


def _compare_scores(
    subject: Subject, scene: Scene, state: CycleState, pod: PodInfo, nodes: NodeView
) -> None:
    plugin = scene.plugin
    if not isinstance(plugin, ScorePlugin) or not isinstance(plugin, RowScore):
        return
    status = alone(plugin).run_pre_score(state, pod, nodes)
    if not is_success(status) or plugin.instance_name in state.skip_score_plugins:
        return
    for info, score in zip(nodes.infos(), plugin.score(state, pod, nodes).tolist(), strict=True):
        one = plugin.score_row(state, pod, info)
        if type(one) is not int or one != score:
            raise subject.failed(
                f"score_row gives node {info.name} what score does not: {one!r} or {score!r}; it "
                f"must be the same number, and a plain int"
            )
