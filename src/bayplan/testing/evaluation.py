"""Evaluation of one plugin: its results for a pod on some nodes.

The plugin runs alone in the real framework. So the framework refuses here what it refuses anywhere
(a wrong code, a wrong shape, a score out of range). Results are keyed by the names of the nodes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NoReturn

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.runtime import Framework
from bayplan.framework.score_sources import reads_of
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status, is_rejected, is_success
from bayplan.framework.tie_break import TieBreakPlugin, break_ties, by_number
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.queue.nominator import Nominator
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import PROFILE

#: In place of PreScore's result if no node is feasible.
NO_NODE: Final = "no node"


class CheckFailed(AssertionError):
    """A plugin breaks the contract; the message says what to do."""


@dataclass(frozen=True, slots=True)
class PluginAnswer:
    """The results of a plugin. Codes and reasons as texts; scores before normalization."""

    pre_filter: str = ""
    rejections: Mapping[str, str] = field(default_factory=dict[str, str])
    pre_score: str = ""
    scores: Mapping[str, int] = field(default_factory=dict[str, int])
    #: Numbers of a tie-break key; comparable only among the nodes of one call.
    keys: Mapping[str, int] = field(default_factory=dict[str, int])

    def about(self, names: Iterable[str]) -> "PluginAnswer":
        """The results for some of the nodes."""
        selected = set(names)
        return PluginAnswer(
            self.pre_filter,
            {name: text for name, text in self.rejections.items() if name in selected},
            self.pre_score,
            {name: score for name, score in self.scores.items() if name in selected},
        )

    def of(self, name: str) -> tuple[str, int | None]:
        """(why a node is rejected, its score)"""
        return self.rejections.get(name, ""), self.scores.get(name)

    def without_scores(self) -> "PluginAnswer":
        return replace(self, pre_score="", scores={}, keys={})

    def difference(self, other: "PluginAnswer") -> str:
        """The first difference between two results; "" if they are equal."""
        if self.pre_filter != other.pre_filter:
            return f"pre_filter {_skip_text(self.pre_filter)} or {_skip_text(other.pre_filter)}"
        if self.rejections != other.rejections:
            return f"rejections of {_first_difference(self.rejections, other.rejections)}"
        if self.pre_score != other.pre_score:
            return f"pre_score {_skip_text(self.pre_score)} or {_skip_text(other.pre_score)}"
        if self.scores != other.scores:
            return f"scores of {_first_difference(self.scores, other.scores)}"
        if self.keys != other.keys:
            return f"tie-break keys of {_first_difference(self.keys, other.keys)}"
        return ""


def _skip_text(text: str) -> str:
    return repr(text or "Success")


def _first_difference(one: Mapping[str, object], other: Mapping[str, object]) -> str:
    name = min(n for n in {*one, *other} if one.get(n) != other.get(n))
    return f"node {name}: {one.get(name, 'none')!r} or {other.get(name, 'none')!r}"


@lru_cache(maxsize=8)
def alone(plugin: Plugin) -> Framework:
    """A framework of one plugin. It is made once, because a check evaluates thousands of pods."""
    plugins = ProfilePlugins(PROFILE, PrioritySort(None, plugin.handle))
    if isinstance(plugin, PreFilterPlugin):
        plugins.pre_filter = [plugin]
    if isinstance(plugin, FilterPlugin | ScalarFilterPlugin):
        plugins.filter = [plugin]
    if isinstance(plugin, PreScorePlugin):
        plugins.pre_score = [plugin]
    if isinstance(plugin, ScorePlugin | ScalarScorePlugin):
        plugins.score = [(plugin, 1)]
        plugins.sources = _sources_of(plugin)
    return Framework(plugins, Nominator())


def _sources_of(plugin: Plugin) -> list[ScorePlugin | ScalarScorePlugin]:
    """The sources of a reader, direct and indirect: plugins of these names, with default args.

    A label in a name only distinguishes instances.
    """
    sources: list[ScorePlugin | ScalarScorePlugin] = []
    for name in reads_of(plugin.args).names:
        source: Plugin = plugin.handle.make(name)
        assert isinstance(source, ScorePlugin | ScalarScorePlugin), f"{name} has no Score"
        source.instance_name = name
        sources += [*_sources_of(source), source]
    return sources


def ask(
    plugin: Plugin, pod: PodInfo, nodes: NodeView, positions: Sequence[int] | None = None
) -> PluginAnswer:
    """The results of PreFilter, Filter, PreScore and Score. Raises CheckFailed.

    ``positions``: Filter, PreScore and Score get only these nodes. As in a cycle, PreFilter always
    gets all nodes.
    """
    framework, state = alone(plugin), CycleState()
    result, status, _ = framework.run_pre_filter(state, pod, nodes)
    if not is_success(status):
        assert status is not None
        if not is_rejected(status):
            _accept(plugin, status, lambda: _pre_filter(plugin, pod, nodes))
        return PluginAnswer(_text(status))
    names = result.node_names
    pre_filter = _skip(state.skip_filter_plugins)
    pre_filter = f"only {sorted(names)}" if names is not None else pre_filter
    view = nodes if positions is None else nodes.take(list(positions))
    rejections, feasible = _filtered(framework, plugin, state, pod, nodes=view)
    answer = PluginAnswer(
        pre_filter, rejections, *_scored(framework, plugin, state, pod, nodes=feasible)
    )
    if isinstance(plugin, TieBreakPlugin) and len(feasible) > 1:
        return replace(answer, keys=_keys(plugin, state, pod, feasible))
    return answer


@dataclass(frozen=True, slots=True)
class PreparedPod:
    """Results and state of PreFilter and PreScore for a pod with feasible nodes."""

    pre_filter: str
    pre_score: str
    state: CycleState

    @property
    def is_skipped(self) -> bool:
        """Whether neither Filter nor Score runs."""
        return "Skip" in self.pre_filter and self.pre_score == "Skip"


def prepared(plugin: Plugin, pod: PodInfo, nodes: NodeView) -> PreparedPod | None:
    """PreFilter and PreScore for a pod. None: the pod is rejected as a whole, fits on no node, or a
    call fails."""
    framework, state = alone(plugin), CycleState()
    result, status, _ = framework.run_pre_filter(state, pod, nodes)
    if not is_success(status) or result.node_names is not None:
        return None
    _, feasible = _filtered(framework, plugin, state, pod, nodes=nodes)
    if not len(feasible) or not is_success(framework.run_pre_score(state, pod, feasible)):
        return None
    return PreparedPod(_skip(state.skip_filter_plugins), _skip(state.skip_score_plugins), state)


def ask_prepared(
    plugin: Plugin, pod: PodInfo, nodes: NodeView, before: PreparedPod
) -> PluginAnswer:
    """The results of Filter and Score with the state of ``before``. Raises CheckFailed."""
    framework, state = alone(plugin), before.state.clone()
    rejections, feasible = _filtered(framework, plugin, state, pod, nodes=nodes)
    if not len(feasible):
        return PluginAnswer(before.pre_filter, rejections, NO_NODE)
    table = framework.run_score(state, pod, feasible)
    if not isinstance(table, ScoreTable):
        _refuse(plugin, table, lambda: _score(plugin, state, pod, feasible))
    return PluginAnswer(
        before.pre_filter, rejections, *_score_parts(table, before.pre_score, feasible)
    )


def _skip(skipped: Set[str]) -> str:
    """The result Skip if the only plugin was skipped, otherwise ""."""
    return "Skip" if skipped else ""


def _score_parts(
    table: ScoreTable, pre_score: str, nodes: NodeView
) -> tuple[str, Mapping[str, int]]:
    if not table.columns:
        return pre_score, {}
    return "", dict(zip(nodes.names(), table.columns[0].raw.tolist(), strict=True))


def _filtered(
    framework: Framework, plugin: Plugin, state: CycleState, pod: PodInfo, *, nodes: NodeView
) -> tuple[Mapping[str, str], NodeView]:
    outcome = framework.run_filter(state, pod, nodes)
    if outcome.error is not None:
        _accept(plugin, outcome.error, lambda: _filter(plugin, state, pod, nodes))
        return {name: _text(outcome.error) for name in nodes.names()}, nodes.take([])
    statuses = outcome.node_to_status(outcome.nodes).for_each_explicit_node()
    rejections = {name: _text(status) for name, status in statuses}
    # As in a cycle: the view itself if every node is feasible, so that columns are not copied.
    return rejections, nodes if outcome.feasible.all() else nodes.take(outcome.feasible)


def _scored(
    framework: Framework, plugin: Plugin, state: CycleState, pod: PodInfo, *, nodes: NodeView
) -> tuple[str, Mapping[str, int]]:
    """(PreScore's result, the scores)."""
    if not len(nodes):
        return NO_NODE, {}
    status = framework.run_pre_score(state, pod, nodes)
    if not is_success(status):
        assert status is not None
        _accept(plugin, status, lambda: _pre_score(plugin, state, pod, nodes))
        return _text(status), {}
    table = framework.run_score(state, pod, nodes)
    if not isinstance(table, ScoreTable):
        _refuse(plugin, table, lambda: _score(plugin, state, pod, nodes))
    return _score_parts(table, _skip(state.skip_score_plugins), nodes)


def _keys(
    plugin: TieBreakPlugin, state: CycleState, pod: PodInfo, nodes: NodeView
) -> Mapping[str, int]:
    table = ScoreTable(nodes, [], np.zeros(len(nodes), np.int64))
    key = by_number(plugin.instance_name, plugin.tie_break)
    failed = break_ties([key], state, pod, table)
    if failed is not None:
        _refuse(plugin, failed, lambda: plugin.tie_break(state, pod, nodes))
    numbers = plugin.tie_break(state, pod, nodes)
    return dict(zip(nodes.names(), numbers.tolist(), strict=True))


def _text(status: Status) -> str:
    return f"{status.code}: {status.message}"


# ---- repeating a failed evaluation ----------------------------------------------------------


def _accept(plugin: Plugin, error: Status, again: Callable[[], Any]) -> None:
    """Accept an Error status that the plugin returned. Raises CheckFailed for an exception and for
    a result that the framework refused: its message says what was wanted."""
    if _problem(again) is not None or "; wanted " in error.message:
        _refuse(plugin, error, again)


def _refuse(plugin: Plugin, status: Status, again: Callable[[], Any]) -> NoReturn:
    """A result that the framework refused, as a failed check, caused by the plugin's exception if
    any."""
    cause = _problem(again)
    message = status.message
    if isinstance(cause, ValueError) and "read-only" in str(cause):
        message = f"writes to a column of the nodes: {cause}; columns are lent, make a copy first"
    raise CheckFailed(f"{plugin.instance_name}: {message}") from cause


def _problem(again: Callable[[], Any]) -> Exception | None:
    """Calls the plugin again without the framework, for the exception and its place."""
    try:
        again()
    except Exception as problem:  # noqa: BLE001 - becomes the cause of the failed check
        return problem
    return None


def _pre_filter(plugin: Plugin, pod: PodInfo, nodes: NodeView) -> None:
    assert isinstance(plugin, PreFilterPlugin)
    plugin.pre_filter(CycleState(), pod, nodes)


def _filter(plugin: Plugin, state: CycleState, pod: PodInfo, nodes: NodeView) -> None:
    if isinstance(plugin, FilterPlugin):
        list(plugin.filter(state, pod, nodes, nodes.table.mask(nodes.table.rows)))
    elif isinstance(plugin, ScalarFilterPlugin):
        for node in nodes.infos():
            plugin.filter_node(state, pod, node)


def _pre_score(plugin: Plugin, state: CycleState, pod: PodInfo, nodes: NodeView) -> None:
    assert isinstance(plugin, PreScorePlugin)
    plugin.pre_score(state, pod, nodes)


def _score(plugin: Plugin, state: CycleState, pod: PodInfo, nodes: NodeView) -> None:
    if reads_of(plugin.args).names:
        return  # such a plugin cannot be called without the framework
    if isinstance(plugin, ScorePlugin):
        plugin.score(state, pod, nodes)
    elif isinstance(plugin, ScalarScorePlugin):
        for node in nodes.infos():
            plugin.score_node(state, pod, node)
