"""What is called at each extension point: bound methods with their instances' names, in order.

The methods are bound once at start. A cycle neither looks up methods nor asks for the kind of a
plugin: a plugin that is written node by node is stored here with the interface of a vectorised one.

A plugin may delegate to parts that it made with `handle.make`. The parts' state is computed at
their own extension points. Where the plugin does not implement PreFilter, PreScore or
PreFilterExtensions, the parts' methods run in its place and under its name: PreScore if the plugin
scores, PreFilter if it filters or scores, the extensions if it filters. The plugin is skipped if
every part returns Skip. If the plugin only scores, a part's PreFilter runs for its state, and its
verdict about the pod is ignored.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, update_wrapper
from types import TracebackType
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar, final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bayplan.framework import filtering as scalar
from bayplan.framework.cycle_state import CallFilter, CallScore, CycleState
from bayplan.framework.filtering import AskRowFilter, AskRowScore, row_filter_of, row_score_of
from bayplan.framework.plugin import (
    FilterPlugin,
    NormalizeScorePlugin,
    Plugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    RowFilter,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.profile import ProfilePlugins, TieBreaker
from bayplan.framework.scoring import ScoreCall, normalize_of, score_of
from bayplan.framework.status import SKIP, NodeToStatus, Rejection, Status, is_skip, is_success
from bayplan.framework.tie_break import TieBreakCall, TieBreakPlugin, by_number, by_score
from bayplan.framework.timing import Evaluations
from bayplan.framework.types import Nomination, PreFilterResult
from bayplan.framework.validation import WrongAnswer, checked, described
from bayplan.ports import BindPort, raise_interruption
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape, ShapeMemo

# ---- composition ----------------------------------------------------------------------------


_FILTERING = (FilterPlugin, ScalarFilterPlugin)
_SCORING = (ScorePlugin, ScalarScorePlugin)


def parts_of(plugin: Plugin) -> Sequence[Plugin]:
    """The plugins that ``plugin`` made with `handle.make`, in order."""
    handle: Any = plugin.handle
    return tuple(getattr(handle, "made", ()))


def with_parts(plugins: Iterable[Plugin]) -> Iterator[Plugin]:
    """The plugins and all their parts."""
    for plugin in plugins:
        yield plugin
        yield from with_parts(parts_of(plugin))


def fields_of(plugins: Iterable[Plugin]) -> dict[str, tuple[str, ...]]:
    """Kind → further field paths of pods and nodes that the plugins and their parts read."""
    paths: dict[str, set[str]] = {}
    for plugin in with_parts(plugins):
        for declared in plugin.fields:
            kind, _, path = declared.partition(".")
            paths.setdefault(f"v1 {kind}", set()).add(path)
    return {kind: tuple(sorted(kind_paths)) for kind, kind_paths in paths.items()}


def _inside(plugin: Plugin, base: type[Any]) -> Iterator[Any]:
    """The parts of a plugin that implement an extension point. A part that does not implement it is
    replaced by its own parts."""
    for part in parts_of(plugin):
        if isinstance(part, base):
            yield part
        else:
            yield from _inside(part, base)


# ---- forwarded extension points ------------------------------------------------------------


def forwarded_pre_filters(plugins: Iterable[Plugin]) -> Iterator[tuple[str, Any]]:
    """(instance, PreFilter) of plugins whose parts implement it for them."""
    for plugin in plugins:
        if isinstance(plugin, PreFilterPlugin) or not isinstance(plugin, _FILTERING + _SCORING):
            continue
        parts: list[PreFilterPlugin] = list(_inside(plugin, PreFilterPlugin))
        if parts:
            is_heard = isinstance(plugin, _FILTERING)
            yield plugin.instance_name, partial(_pre_filter, parts, is_heard)


def forwarded_pre_scores(plugins: Iterable[Plugin]) -> Iterator[tuple[str, Any]]:
    """(instance, PreScore) of plugins whose parts implement it for them."""
    for plugin in plugins:
        if isinstance(plugin, _SCORING) and not isinstance(plugin, PreScorePlugin):
            parts: list[PreScorePlugin] = list(_inside(plugin, PreScorePlugin))
            if parts:
                yield plugin.instance_name, partial(_pre_score, parts)


def forwarded_changes(plugins: Iterable[Plugin], method: str) -> Iterator[tuple[str, Any]]:
    """(instance, add_pod or remove_pod) of plugins whose parts implement PreFilter for them."""
    for plugin in plugins:
        if isinstance(plugin, _FILTERING) and not isinstance(plugin, PreFilterPlugin):
            parts: list[Plugin] = list(_inside(plugin, PreFilterExtensions))
            if parts:
                yield plugin.instance_name, partial(_change_pod, parts, method)


# ---- forwarded calls -----------------------------------------------------------------------


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


# ---- calls ----------------------------------------------------------------------------------


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Plugin)
E = TypeVar("E")

PreFilter = Callable[[CycleState, PodInfo, NodeView], PreFilterResult | Status | None]
ChangePod = Callable[[CycleState, PodInfo, PodInfo, NodeInfo], Status | None]
PostFilter = Callable[[CycleState, PodInfo, NodeToStatus], tuple[Nomination | None, Status | None]]
PreScore = Callable[[CycleState, PodInfo, NodeView], Status | None]
#: Reserve and the preflight of PreBind.
OnNode = Callable[[CycleState, PodInfo, str], Status | None]
Unreserve = Callable[[CycleState, PodInfo, str], None]
Permit = Callable[[CycleState, PodInfo, str], tuple[Status | None, float]]
#: PreBind and Bind.
Bind = Callable[[CycleState, PodInfo, str, BindPort], Awaitable[Status | None]]
PostBind = Callable[[CycleState, PodInfo, str, BindPort], Awaitable[None]]

#: (instance name, call)
NamedCalls = Sequence[tuple[str, E]]


class Wrap(Protocol):
    """Wraps a call: (instance, extension point, call) → the call itself, or a call around it."""

    def plain(self, name: str, point: str, call: Callable[P, R]) -> Callable[P, R]: ...
    def listed(
        self, name: str, point: str, call: Callable[P, Iterable[E]]
    ) -> Callable[P, Iterable[E]]: ...
    def awaited(
        self, name: str, point: str, call: Callable[P, Awaitable[R]]
    ) -> Callable[P, Awaitable[R]]: ...


class Calls(Struct, frozen=True):
    """(instance name, call) pairs per extension point, in the order in which they run. Unreserve
    has the reverse order."""

    pre_filter: Sequence[tuple[str, PreFilter]]
    add_pod: Sequence[tuple[str, ChangePod]]
    remove_pod: Sequence[tuple[str, ChangePod]]
    filter: Sequence[tuple[str, CallFilter]]
    #: Instance → its Filter.
    filter_of: Mapping[str, CallFilter]
    post_filter: Sequence[tuple[str, PostFilter]]
    pre_score: Sequence[tuple[str, PreScore]]
    score: Sequence[ScoreCall]
    #: Instance → its Filter and Score of one node; row-wise plugins only.
    filter_row: Mapping[str, AskRowFilter]
    score_row: Mapping[str, AskRowScore]
    #: Instances that implement RowFilter.
    own_rows: frozenset[str]
    #: Instance → its Score, including sources that do not count in the total.
    scoring: Mapping[str, ScoreCall]
    reserve: Sequence[tuple[str, OnNode]]
    unreserve: Sequence[tuple[str, Unreserve]]
    permit: Sequence[tuple[str, Permit]]
    pre_bind_pre_flight: Sequence[tuple[str, OnNode]]
    pre_bind: Sequence[tuple[str, Bind]]
    #: Instance → its group, ascending: PreBind plugins of one group run at the same time.
    pre_bind_groups: Mapping[str, int]
    bind: Sequence[tuple[str, Bind]]
    post_bind: Sequence[tuple[str, PostBind]]
    tie_break: Sequence[TieBreakCall]
    #: Instances that have nothing to do with pods of a shape; and Filter plugins that are left out
    #: for this reason, or because they ignore the resize of such a pod.
    unconcerned: frozenset[str] = frozenset()
    filters_left_out: frozenset[str] = frozenset()
    #: Whether one call of PreFilter and PreScore serves all pods of a template.
    #: See Caching.pre_state_per_template.
    pre_state_per_template: bool = False


@final
class CallsByShape:
    """The calls of a profile, each wrapped, without the calls that do not concern a shape."""

    def __init__(
        self, plugins: ProfilePlugins, wrap: Wrap, evaluations: Evaluations | None = None
    ) -> None:
        """``evaluations``: counts the evaluations; None: they are not counted."""
        self._plugins = plugins
        self._calls = calls_of(plugins, wrap, evaluations)
        #: Plugins with a `concerns` of their own.
        self._selective = [
            plugin
            for plugin in with_parts(plugins.instances())
            if type(plugin).concerns is not Plugin.concerns
        ]
        #: Ids of the plugins that are not concerned → the calls. Many shapes share few such sets.
        #: Shapes for which a plugin raises, or ignores a resize, have calls of their own.
        self._by_unconcerned: dict[tuple[int, ...], Calls] = {}
        #: What `compute` returned; only this class writes.
        self.memo = ShapeMemo[Calls]()

    def renew(self) -> None:
        """Ask the plugins again which shapes concern them."""
        self.memo.forget()

    def compute(self, shape: PodShape) -> Calls:
        """The calls for pods of this shape."""
        without_part, failures = _unconcerned(self._selective, shape)
        if failures or (self._plugins.tries_resizes and self._plugins.ignoring(shape)):
            return calls_for(self._calls, self._plugins, shape)
        key = tuple(map(id, without_part))
        calls = self._by_unconcerned.get(key)
        if calls is None:
            calls = calls_for(self._calls, self._plugins, shape)
            self._by_unconcerned[key] = calls
        return calls


def calls_of(plugins: ProfilePlugins, wrap: Wrap, evaluations: Evaluations | None = None) -> Calls:
    """The calls of a profile, each wrapped; evaluations are counted."""
    counts = evaluations or Evaluations()
    extended = [p for p in plugins.pre_filter if isinstance(p, PreFilterExtensions)]
    add, remove = "PreFilterExtensionAddPod", "PreFilterExtensionRemovePod"
    flight, backwards = "PreBindPreFlight", plugins.reserve[::-1]
    scoring = {
        plugin.instance_name: _score_call(plugin, weight, wrap, counts)
        for plugin, weight in plugins.scoring()
    }
    every = plugins.instances()
    filters = [(p.instance_name, _filter_of(p, wrap, counts)) for p in plugins.filter]
    return Calls(
        pre_filter=_counted(
            counts,
            "PreFilter",
            [
                *_each(plugins.pre_filter, lambda p: p.pre_filter, "PreFilter", wrap),
                *_wrapped(forwarded_pre_filters(every), "PreFilter", wrap),
            ],
        ),
        add_pod=[
            *_each(extended, lambda p: p.add_pod, add, wrap),
            *_wrapped(forwarded_changes(every, "add_pod"), add, wrap),
        ],
        remove_pod=[
            *_each(extended, lambda p: p.remove_pod, remove, wrap),
            *_wrapped(forwarded_changes(every, "remove_pod"), remove, wrap),
        ],
        filter=filters,
        filter_of=dict(filters),
        post_filter=_each(plugins.post_filter, lambda p: p.post_filter, "PostFilter", wrap),
        pre_score=_counted(
            counts,
            "PreScore",
            [
                *_each(plugins.pre_scoring(), lambda p: p.pre_score, "PreScore", wrap),
                *_wrapped(forwarded_pre_scores(every), "PreScore", wrap),
            ],
        ),
        score=[scoring[plugin.instance_name] for plugin, _ in plugins.score],
        scoring=scoring,
        filter_row={
            p.instance_name: counts.of_node(
                p.instance_name, "Filter", wrap.plain(p.instance_name, "Filter", row_filter_of(p))
            )
            for p in plugins.filter
        },
        score_row={
            p.instance_name: counts.of_node(
                p.instance_name, "Score", wrap.plain(p.instance_name, "Score", row_score_of(p))
            )
            for p, _ in plugins.scoring()
        },
        own_rows=frozenset(p.instance_name for p in plugins.filter if isinstance(p, RowFilter)),
        reserve=_each(plugins.reserve, lambda p: p.reserve, "Reserve", wrap),
        unreserve=_each(backwards, lambda p: p.unreserve, "Unreserve", wrap),
        permit=_each(plugins.permit, lambda p: p.permit, "Permit", wrap),
        pre_bind_pre_flight=_each(plugins.pre_bind, lambda p: p.pre_bind_preflight, flight, wrap),
        pre_bind=_each_awaited(plugins.pre_bind, lambda p: p.pre_bind, "PreBind", wrap),
        pre_bind_groups=_pre_bind_groups(plugins),
        bind=_each_awaited(plugins.bind, lambda p: p.bind, "Bind", wrap),
        post_bind=_each_awaited(plugins.post_bind, lambda p: p.post_bind, "PostBind", wrap),
        tie_break=[_tie_break_of(p, wrap) for p in plugins.tie_break],
    )


def calls_for(calls: Calls, plugins: ProfilePlugins, shape: PodShape) -> Calls:
    """The calls for pods of this shape; see `Plugin.concerns`.

    A plugin whose `concerns` raises fails the attempts at such pods, at PreFilter.
    """
    ignoring = plugins.ignoring(shape) if plugins.tries_resizes else set[str]()
    instances = plugins.instances()
    every = list(with_parts(instances))
    without_part, failures = _unconcerned(every, shape)
    calls = replace(
        calls,
        unconcerned=frozenset(p.instance_name for p in instances if p in without_part),
        pre_state_per_template=all(
            plugin.promises.pre_state_per_template
            for plugin in every
            if isinstance(plugin, PreFilterPlugin | PreScorePlugin) and plugin not in without_part
        ),
    )
    raising = [
        (name, partial(_raise, failure, failure.__traceback__))
        for name, failure in failures.items()
        if name not in ignoring
    ]
    if raising:
        return replace(
            calls, pre_filter=[*raising, *calls.pre_filter], pre_state_per_template=False
        )
    left_out = ignoring | calls.unconcerned
    if not left_out:
        return calls
    post_filter = [(name, call) for name, call in calls.post_filter if name not in ignoring]
    # A plugin's PostFilter may read data that its PreFilter stored, so both are called.
    not_called = left_out - {name for name, _ in post_filter}

    def called(named: Sequence[tuple[str, E]]) -> Sequence[tuple[str, E]]:
        return [(name, call) for name, call in named if name not in left_out]

    return replace(
        calls,
        pre_filter=[(name, call) for name, call in calls.pre_filter if name not in not_called],
        add_pod=called(calls.add_pod),
        remove_pod=called(calls.remove_pod),
        filter=called(calls.filter),
        post_filter=post_filter,
        reserve=called(calls.reserve),
        unreserve=called(calls.unreserve),
        permit=called(calls.permit),
        pre_bind_pre_flight=called(calls.pre_bind_pre_flight),
        pre_bind=called(calls.pre_bind),
        post_bind=called(calls.post_bind),
        filters_left_out=frozenset(name for name, _ in calls.filter if name in left_out),
    )


def concerned(plugins: Iterable[T], shape: PodShape) -> list[T]:
    """The plugins that are concerned with pods of this shape, in order. A plugin whose `concerns`
    raises is included."""
    plugins = list(plugins)
    without_part, _ = _unconcerned(plugins, shape)
    return [plugin for plugin in plugins if plugin not in without_part]


def _unconcerned(
    plugins: Iterable[Plugin], shape: PodShape
) -> tuple[list[Plugin], dict[str, BaseException]]:
    """(plugins that are not concerned with pods of this shape; instance → the exception of its
    `concerns`)."""
    unconcerned: list[Plugin] = []
    failures: dict[str, BaseException] = {}
    for plugin in plugins:
        if type(plugin).concerns is Plugin.concerns:
            continue
        try:
            answer: Any = plugin.concerns(shape)
            if not isinstance(answer, bool | np.bool_):
                raise WrongAnswer(described(answer), "True or False", plugin.concerns)
            if not answer:
                unconcerned.append(plugin)
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
            raise_interruption(problem)
            failures[plugin.instance_name] = problem
    return unconcerned, failures


def _raise(problem: BaseException, place: TracebackType | None, *_: object) -> NoReturn:
    raise problem.with_traceback(place)


def _counted(
    counts: Evaluations,
    point: str,
    calls: Iterable[tuple[str, Callable[[CycleState, PodInfo, NodeView], R]]],
) -> Sequence[tuple[str, Callable[[CycleState, PodInfo, NodeView], R]]]:
    return [(name, counts.of_pod(name, point, call)) for name, call in calls]


def _each(
    plugins: Iterable[T], call_of: Callable[[T], Callable[P, R]], point: str, wrap: Wrap
) -> Sequence[tuple[str, Callable[P, R]]]:
    names = ((plugin.instance_name, plugin) for plugin in plugins)
    return [(name, wrap.plain(name, point, call_of(plugin))) for name, plugin in names]


def _wrapped(
    calls: Iterable[tuple[str, Callable[P, R]]], point: str, wrap: Wrap
) -> Sequence[tuple[str, Callable[P, R]]]:
    return [(name, wrap.plain(name, point, call)) for name, call in calls]


def _each_awaited(
    plugins: Iterable[T],
    call_of: Callable[[T], Callable[P, Awaitable[R]]],
    point: str,
    wrap: Wrap,
) -> Sequence[tuple[str, Callable[P, Awaitable[R]]]]:
    names = ((plugin.instance_name, plugin) for plugin in plugins)
    return [(name, wrap.awaited(name, point, call_of(plugin))) for name, plugin in names]


def _pre_bind_groups(plugins: ProfilePlugins) -> dict[str, int]:
    """Instance → group. Neighbours that all allow parallel runs share a group."""
    numbers: dict[str, int] = {}
    number, was_parallel = 0, False
    for plugin in plugins.pre_bind:
        is_parallel = plugins.has_parallel_pre_bind and plugin.allows_parallel_pre_bind
        number += not (was_parallel and is_parallel)
        was_parallel = is_parallel
        numbers[plugin.instance_name] = number
    return numbers


def _filter_of(
    plugin: FilterPlugin | ScalarFilterPlugin, wrap: Wrap, counts: Evaluations
) -> CallFilter:
    """The plugin's Filter, for many nodes at once; cached results come first."""
    name = plugin.instance_name
    if isinstance(plugin, FilterPlugin):
        ask = wrap.listed(name, "Filter", plugin.filter)
    else:
        ask = wrap.listed(name, "Filter", partial(scalar.filter_nodes, plugin))
    call = counts.of_filter(name, ask)

    def filter_nodes(
        state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        if state.cached_results is None:
            return call(state, pod, nodes, feasible)
        return state.cached_results.filter(name, call, state, pod, nodes=nodes, feasible=feasible)

    return update_wrapper(filter_nodes, _filter_method(plugin))


def _filter_method(plugin: FilterPlugin | ScalarFilterPlugin) -> Callable[..., Any]:
    """The method that messages about the plugin's results name."""
    return plugin.filter if isinstance(plugin, FilterPlugin) else plugin.filter_node


def _score_call(
    plugin: ScorePlugin | ScalarScorePlugin, weight: int, wrap: Wrap, counts: Evaluations
) -> ScoreCall:
    name, normalize = plugin.instance_name, normalize_of(plugin)
    if normalize is not None:
        normalize = wrap.plain(name, "ScoreExtensionNormalize", normalize)
        if isinstance(plugin, NormalizeScorePlugin):
            normalize = update_wrapper(partial(normalize), plugin.normalize)
    call = counts.of_score(name, wrap.plain(name, "Score", score_of(plugin)))
    method: Callable[..., Any] = (
        plugin.score if isinstance(plugin, ScorePlugin) else plugin.score_node
    )
    return ScoreCall(name, weight, update_wrapper(_cached_score(name, call), method), normalize)


def _tie_break_of(plugin: TieBreaker, wrap: Wrap) -> TieBreakCall:
    if isinstance(plugin, TieBreakPlugin):
        return by_number(
            plugin.instance_name, wrap.plain(plugin.instance_name, "TieBreak", plugin.tie_break)
        )
    return by_score(plugin.instance_name)


def _cached_score(name: str, call: CallScore) -> CallScore:
    """Cached results come first."""

    def score_nodes(state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        if state.cached_results is None:
            return call(state, pod, nodes)
        return state.cached_results.score(name, call, state, pod, nodes=nodes)

    return score_nodes
