"""Plugins with answers from a test, and frameworks made of them.

    sulky = answering("Sulky", filter_node=unschedulable("no"), reserve=RuntimeError("boom"))
    framework_of(sulky).run_reserve(CycleState(), pod(), "n1")

An answer is returned unchanged; an exception is raised; a function is called with the point's
arguments. Every call is noted in the class's ``calls``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from bayplan.framework.handle import PodNominator
from bayplan.framework.plugin import (
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.profile import EXTENSION_POINTS, ProfilePlugins
from bayplan.framework.runtime import Framework
from bayplan.framework.tie_break import TieBreakPlugin
from bayplan.framework.timing import UNWATCHED, Watch
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.profile.plugin_sets import WEIGHTED
from bayplan.queue.nominator import Nominator
from bayplan.testing import SampleCluster, handle

BASES: Mapping[str, type] = {
    "pre_enqueue": PreEnqueuePlugin,
    "key": QueueSortPlugin,
    "pre_filter": PreFilterPlugin,
    "add_pod": PreFilterExtensions,
    "remove_pod": PreFilterExtensions,
    "filter": FilterPlugin,
    "filter_node": ScalarFilterPlugin,
    "post_filter": PostFilterPlugin,
    "pre_score": PreScorePlugin,
    "score": ScorePlugin,
    "score_node": ScalarScorePlugin,
    "normalize": NormalizeScorePlugin,
    "reserve": ReservePlugin,
    "unreserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind_preflight": PreBindPlugin,
    "pre_bind": PreBindPlugin,
    "bind": BindPlugin,
    "post_bind": PostBindPlugin,
    "tie_break": TieBreakPlugin,
    "events_to_register": EnqueueExtensions,
    "sign_pod": SignPlugin,
}
AWAITED = frozenset(("pre_bind", "bind", "post_bind"))
#: Method → a second method that a class must implement with it.
ALSO = {
    "reserve": "unreserve",
    "unreserve": "reserve",
    "add_pod": "remove_pod",
    "remove_pod": "add_pod",
}

Calls = list[tuple[str, str]]


def answering(plugin_name: str, calls: Calls | None = None, **answers: Any) -> type[Any]:
    """A plugin class that appends (plugin, method) to ``calls`` at each call."""
    noted: Calls = [] if calls is None else calls
    answers = {other: None for each, other in ALSO.items() if each in answers} | answers
    members: dict[str, Any] = {"name": plugin_name, "calls": noted}
    for method, answer in answers.items():
        if method in BASES or method == "close":
            members[method] = _method(method, answer)
        else:
            members[method] = answer
    bases = tuple(dict.fromkeys(BASES[method] for method in answers if method in BASES))
    if not any(issubclass(base, Plugin) for base in bases):
        bases = (*bases, Plugin)
    return type(plugin_name, bases, members)


def _method(method: str, answer: Any) -> Callable[..., Any]:
    def call(self: Any, *args: Any) -> Any:
        self.calls.append((self.instance_name, method))
        if isinstance(answer, BaseException):
            raise answer
        return answer(*args) if callable(answer) else answer

    async def awaited_call(self: Any, *args: Any) -> Any:
        return call(self, *args)

    result = awaited_call if method in AWAITED else call
    result.__name__ = method
    return result


def made(plugin_class: type[Any], instance_name: str | None = None) -> Any:
    """An instance over an empty cluster."""
    return plugin_class(None, handle(), instance_name)


def plugins_of(*plugins: Any, weights: Mapping[str, int] | None = None) -> ProfilePlugins:
    """A profile of classes or instances, each at every extension point it implements."""
    profile_plugins = ProfilePlugins("bayplan", queue_sort=made(PrioritySort))
    for each in plugins:
        plugin = made(each) if isinstance(each, type) else each
        for point, bases in EXTENSION_POINTS.items():
            if not isinstance(plugin, bases) or point == "queueSort":
                continue
            attribute = "".join(f"_{c.lower()}" if c.isupper() else c for c in point)
            weight = (weights or {}).get(plugin.instance_name, 1)
            getattr(profile_plugins, attribute).append(
                (plugin, weight) if point in WEIGHTED else plugin
            )
    return profile_plugins


def framework_of(
    *plugins: Any,
    weights: Mapping[str, int] | None = None,
    nominator: PodNominator | None = None,
    watch: Watch = UNWATCHED,
    tie_break: Iterable[Any] = (),
) -> Framework:
    """``tie_break``: plugins that are tie-break keys only."""
    plugin_list = plugins_of(*plugins, weights=weights)
    for each in tie_break:
        key = made(each) if isinstance(each, type) else each
        plugin_list.tie_break.append(key)
        if isinstance(key, PreScorePlugin) and key not in plugin_list.pre_score:
            plugin_list.pre_score.append(key)
    return Framework(plugin_list, nominator or Nominator(), watch)


def scores(*numbers: int) -> Callable[..., Any]:
    """A Score method that returns ``numbers``, one per node."""
    return lambda state, pod, nodes: np.array(numbers, np.int64)


def cluster_of(*nodes: Any) -> SampleCluster:
    return SampleCluster().add(*nodes)
