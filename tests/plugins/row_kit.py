"""A few nodes, a pod, and the results of one plugin for them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bayplan.api.objects import Node
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, QueueingHint
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.handle import Handle
from bayplan.framework.plugin import (
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from bayplan.framework.status import SKIP, Code, Status
from bayplan.framework.types import PreFilterResult
from bayplan.state.cache import Cache
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import handle

#: A handle over an empty cluster.
NO_HANDLE: Handle = handle()


def lent(nodes: Iterable[Node]) -> NodeView:
    """All nodes, on loan to a cycle."""
    cache = Cache()
    for each in nodes:
        cache.add_node(each)
    return cache.lend().nodes


# ---- Filter --------------------------------------------------------------------------------


def pre_filter_result(
    plugin: PreFilterPlugin, pod: PodInfo, nodes: NodeView
) -> frozenset[str] | Status | None:
    """The result of PreFilter: names of nodes, a status, or None for all nodes."""
    answer = plugin.pre_filter(CycleState(), pod, nodes)
    return answer.node_names if isinstance(answer, PreFilterResult) else answer


def rejected(
    plugin: FilterPlugin, pod: PodInfo, nodes: NodeView
) -> dict[str, tuple[Code, tuple[str, ...]]]:
    """Rejected node → code and reasons; empty if PreFilter skipped."""
    if isinstance(plugin, PreFilterPlugin) and pre_filter_result(plugin, pod, nodes) is SKIP:
        return {}
    outcome = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
    outcome.add(plugin.name, plugin.filter(CycleState(), pod, nodes, outcome.feasible))
    assert outcome.error is None
    statuses = outcome.node_to_status(outcome.nodes).for_each_explicit_node()
    return {name: (status.code, status.reasons) for name, status in statuses}


def unresolvable(names: Iterable[str], reason: str) -> dict[str, tuple[Code, tuple[str, ...]]]:
    return dict.fromkeys(names, (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,)))


def filter_is_row_wise(
    plugin: FilterPlugin, pod: PodInfo, nodes: NodeView, positions: Sequence[int]
) -> bool:
    """Whether selected nodes have the same results as among all nodes."""
    some = nodes.take(positions)
    chosen, everywhere = set(some.names()), rejected(plugin, pod, nodes)
    alone = rejected(plugin, pod, some)
    return alone == {name: value for name, value in everywhere.items() if name in chosen}


# ---- Score ---------------------------------------------------------------------------------


def scored(plugin: ScorePlugin, pod: PodInfo, nodes: NodeView) -> dict[str, int] | None:
    """Raw scores; None if PreScore skipped."""
    state = CycleState()
    if isinstance(plugin, PreScorePlugin):
        status = plugin.pre_score(state, pod, nodes)
        if status is SKIP:
            return None
        assert status is None, status
    scores = plugin.score(state, pod, nodes)
    assert scores.dtype == np.int64
    return dict(zip(nodes.names(), scores.tolist(), strict=True))


def score_is_row_wise(
    plugin: ScorePlugin, pod: PodInfo, nodes: NodeView, positions: Sequence[int]
) -> bool:
    some = nodes.take(positions)
    everywhere, alone = scored(plugin, pod, nodes), scored(plugin, pod, some)
    if everywhere is None or alone is None:
        return everywhere is alone
    return alone == {name: everywhere[name] for name in some.names()}


# ---- hints ---------------------------------------------------------------------------------


def registered(plugin: EnqueueExtensions) -> list[tuple[str, str, bool]]:
    """(resource, actions, whether there is a hint) of each event."""
    entries = plugin.events_to_register()
    return [(e.event.resource, str(e.event.action), e.hint is not None) for e in entries]


def hint(
    plugin: EnqueueExtensions, event: tuple[str, ActionType], pod: PodInfo, old: Any, new: Any
) -> QueueingHint | None:
    """The result of the plugin's hint for an event; None if the plugin does not register for it."""
    for entry in plugin.events_to_register():
        if entry.event.match(ClusterEvent(*event)):
            return QueueingHint.QUEUE if entry.hint is None else entry.hint(pod, old, new)
    return None
