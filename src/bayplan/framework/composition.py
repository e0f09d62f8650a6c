"""Plugins inside plugins: what is made with `handle.make` gets its other extension points.

A plugin whose Score or Filter delegates to another one needs that one's notes. Where it does not
implement PreFilter, PreScore or PreFilterExtensions itself, those of its parts run in its place and
under its name: PreScore where it scores, PreFilter where it filters or scores, the extensions where
it filters. It is skipped if all that were asked say Skip. To a plugin that only scores, a part's
PreFilter takes its notes, and what it answers about the pod counts for nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.status import SKIP, Status, is_skip, is_success
from bayplan.framework.types import PreFilterResult
from bayplan.framework.validation import checked
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

_FILTERING = (FilterPlugin, ScalarFilterPlugin)
_SCORING = (ScorePlugin, ScalarScorePlugin)


def parts_of(plugin: Plugin) -> Sequence[Plugin]:
    """What it made, in order."""
    handle: Any = plugin.handle
    return tuple(getattr(handle, "made", ()))


def with_parts(plugins: Iterable[Plugin]) -> Iterator[Plugin]:
    """These, and all that is inside of them."""
    for plugin in plugins:
        yield plugin
        yield from with_parts(parts_of(plugin))


def _inside(plugin: Plugin, base: type[Any]) -> Iterator[Any]:
    """Its parts with an extension point, or, of those without it, their parts."""
    for part in parts_of(plugin):
        if isinstance(part, base):
            yield part
        else:
            yield from _inside(part, base)


# ---- whose points are forwarded ------------------------------------------------------------


def forwarded_pre_filters(plugins: Iterable[Plugin]) -> Iterator[tuple[str, Any]]:
    """(instance, PreFilter) of those that leave it to their parts."""
    for plugin in plugins:
        if isinstance(plugin, PreFilterPlugin) or not isinstance(plugin, _FILTERING + _SCORING):
            continue
        parts: list[PreFilterPlugin] = list(_inside(plugin, PreFilterPlugin))
        if parts:
            is_heard = isinstance(plugin, _FILTERING)
            yield plugin.instance_name, partial(_pre_filter, parts, is_heard)


def forwarded_pre_scores(plugins: Iterable[Plugin]) -> Iterator[tuple[str, Any]]:
    """(instance, PreScore) of those that leave it to their parts."""
    for plugin in plugins:
        if isinstance(plugin, _SCORING) and not isinstance(plugin, PreScorePlugin):
            parts: list[PreScorePlugin] = list(_inside(plugin, PreScorePlugin))
            if parts:
                yield plugin.instance_name, partial(_pre_score, parts)


def forwarded_changes(plugins: Iterable[Plugin], method: str) -> Iterator[tuple[str, Any]]:
    """(instance, add_pod or remove_pod) of those that leave PreFilter to their parts."""
    for plugin in plugins:
        if isinstance(plugin, _FILTERING) and not isinstance(plugin, PreFilterPlugin):
            parts: list[Plugin] = list(_inside(plugin, PreFilterExtensions))
            if parts:
                yield plugin.instance_name, partial(_change_pod, parts, method)


# ---- what they do --------------------------------------------------------------------------


def _pre_filter(
    parts: Sequence[PreFilterPlugin],
    is_heard: bool,
    state: CycleState,
    pod: PodInfo,
    nodes: NodeView,
) -> PreFilterResult | Status | None:
    result, skipped = PreFilterResult(), 0
    for part in parts:
        answer = part.pre_filter(state, pod, nodes)
        if isinstance(answer, PreFilterResult):
            result = result.merge(answer)
            continue
        status = checked(answer)
        if is_skip(status):
            state.skip_filter_plugins.add(part.instance_name)
            skipped += 1
        elif not is_success(status) and is_heard:
            return status
    if not is_heard:
        return None
    return SKIP if skipped == len(parts) else result


def _pre_score(
    parts: Sequence[PreScorePlugin], state: CycleState, pod: PodInfo, nodes: NodeView
) -> Status | None:
    skipped = 0
    for part in parts:
        status = checked(part.pre_score(state, pod, nodes))
        if is_skip(status):
            state.skip_score_plugins.add(part.instance_name)
            skipped += 1
        elif not is_success(status):
            return status
    return SKIP if skipped == len(parts) else None


def _change_pod(
    parts: Sequence[Any],
    method: str,
    state: CycleState,
    pod: PodInfo,
    changed: PodInfo,
    node: NodeInfo,
) -> Status | None:
    for part in parts:
        if part.instance_name not in state.skip_filter_plugins:
            status = checked(getattr(part, method)(state, pod, changed, node))
            if not is_success(status):
                return status
    return None
