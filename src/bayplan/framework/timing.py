"""Counts and durations of plugins and extension points.

`scheduler_plugin_evaluation_total` counts PreFilter and PreScore once for each pod, and Filter and
Score once for each node that the plugin is called for. Neither a cached result nor a Skip is an
evaluation. Upstream: instrumented_plugins.go.

Every run of an extension point is recorded with its duration, by the clock of the scheduler. The
duration of a single plugin is recorded only in sampled attempts
(`CycleState.record_plugin_metrics`). Each plugin has a bare and a timed call, both made at start:
other attempts pay nothing. Upstream: metrics.FrameworkExtensionPointDuration and
PluginExecutionDuration.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, final

import numpy as np
from msgspec import Struct

from bayplan.framework.cycle_state import CallFilter, CallScore, CycleState
from bayplan.framework.status import SKIP, Code, Rejection, Status, is_skip
from bayplan.framework.validation import iterated
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

# ---- evaluations ----------------------------------------------------------------------------


R = TypeVar("R")


@final
class _Count:
    """One plugin's evaluations at one extension point."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


@final
class Evaluations:
    """Wraps calls of one profile's plugins so that they are counted."""

    def __init__(self) -> None:
        #: By instance and extension point.
        self._counts: dict[tuple[str, str], _Count] = {}

    def counts(self) -> Iterator[tuple[tuple[str, str], int]]:
        """((instance, extension point), evaluations)"""
        for labels, count in list(self._counts.items()):
            yield labels, count.count

    def of_pod(
        self, name: str, point: str, call: Callable[[CycleState, PodInfo, NodeView], R]
    ) -> Callable[[CycleState, PodInfo, NodeView], R]:
        """Count each call once: the call is for the pod as a whole. A call that answers Skip does
        not count."""
        count = self._count(name, point)

        @wraps(call)
        def counted(state: CycleState, pod: PodInfo, nodes: NodeView) -> R:
            count.count += 1
            answer = call(state, pod, nodes)
            if answer is SKIP or (isinstance(answer, Status) and is_skip(answer)):
                count.count -= 1
            return answer

        return counted

    def of_node(
        self, name: str, point: str, call: Callable[[CycleState, PodInfo, NodeInfo], R]
    ) -> Callable[[CycleState, PodInfo, NodeInfo], R]:
        """Count each call once: the call is for one node."""
        count = self._count(name, point)

        def counted(state: CycleState, pod: PodInfo, node: NodeInfo) -> R:
            count.count += 1
            return call(state, pod, node)

        return counted

    def of_filter(self, name: str, call: CallFilter) -> CallFilter:
        """Count each call once per feasible node of the view."""
        count = self._count(name, "Filter")

        def counted(
            state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
        ) -> Iterable[Rejection]:
            count.count += int(np.count_nonzero(feasible))
            return call(state, pod, nodes, feasible)

        return counted

    def of_score(self, name: str, call: CallScore) -> CallScore:
        """Count each call once per node of the view."""
        count = self._count(name, "Score")

        def counted(state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
            count.count += len(nodes)
            return call(state, pod, nodes)

        return counted

    def _count(self, name: str, point: str) -> _Count:
        """The counter that all calls of a plugin at one extension point share."""
        return self._counts.setdefault((name, point), _Count())


# ---- timing ---------------------------------------------------------------------------------


P = ParamSpec("P")
T = TypeVar("T")

#: Takes a duration in seconds.
Observe = Callable[[float], None]


def _ignored(*_: object) -> Observe:
    return _ignore


def _ignore(_: float) -> None: ...


class Watch(Struct, frozen=True):
    """A clock, and the observers of durations."""

    #: Seconds on a monotonic scale.
    now: Callable[[], float]
    #: (plugin instance, extension point, code) → the observer of these durations.
    plugin: Callable[[str, str, Code], Observe] = _ignored
    #: (extension point, code, profile) → the observer of these durations.
    point: Callable[[str, Code, str], Observe] = _ignored


#: No duration is observed.
UNWATCHED: Final = Watch(lambda: 0.0)


@final
class Stopwatch:
    """Observes the durations of runs by the codes of their results."""

    __slots__ = ("_of_code", "now", "took")

    def __init__(self, now: Callable[[], float], of_code: Callable[[Code], Observe]) -> None:
        self.now = now
        self._of_code = of_code
        #: By code. An observer is looked up by its labels on first use, because that is slow.
        self.took: list[Observe] = [partial(self._first, code) for code in Code]

    def observer(self, code: Code) -> Observe:
        """The observer of the runs with this code."""
        observe = self.took[code] = self._of_code(code)
        return observe

    def idle(self, code: Code = Code.SUCCESS) -> None:
        """Record a run without plugins."""
        self.took[code](0.0)

    def _first(self, code: Code, seconds: float) -> None:
        self.observer(code)(seconds)


# ---- extension points ----------------------------------------------------------------------


#: Extension points that a profile runs, by their names in upstream's metrics.
POINTS: Final = (
    "Sign",
    "PreFilter",
    "Filter",
    "PostFilter",
    "PreScore",
    "Score",
    "Reserve",
    "Unreserve",
    "Permit",
    "PreBindPreFlight",
    "PreBind",
    "Bind",
    "PostBind",
    "PlacementGenerate",
    "PlacementScore",
    "PodGroupPostFilter",
)


def stopwatches(watch: Watch, profile_name: str) -> dict[str, Stopwatch]:
    """One for each extension point of a profile."""

    def observer(point: str, code: Code) -> Observe:
        return watch.point(point, code, profile_name)

    return {point: Stopwatch(watch.now, partial(observer, point)) for point in POINTS}


_WITH_CODE = frozenset((Status, Rejection))
_SEVERAL = frozenset((tuple,))


def code_in(answer: Any) -> Code:
    """The code of any extension point's result. A result without a code is a success."""
    if answer is None:
        return Code.SUCCESS
    if type(answer) not in _SEVERAL:
        return getattr(answer, "code", Code.SUCCESS)
    for part in answer:
        if type(part) in _WITH_CODE:
            return part.code
    return Code.SUCCESS


class TimedObject(Protocol):
    """An object whose extension points are timed."""

    @property
    def stopwatches(self) -> Mapping[str, Stopwatch]: ...


W = TypeVar("W", bound=TimedObject)

_Run = Callable[Concatenate[W, P], R]


def timed_point(point: str) -> Callable[[_Run[W, P, R]], _Run[W, P, R]]:
    """For a function that runs an extension point: observes its duration by the code of its
    result."""

    def decorate(run: _Run[W, P, R]) -> _Run[W, P, R]:
        @wraps(run)
        def timed(self: W, *args: P.args, **options: P.kwargs) -> R:
            watch = self.stopwatches[point]
            now = watch.now
            start = now()
            answer = run(self, *args, **options)
            watch.took[0 if answer is None else code_in(answer)](now() - start)
            return answer

        return timed

    return decorate


# ---- plugins -------------------------------------------------------------------------------


@final
class Bare:
    """Leaves calls of plugins as they are."""

    def plain(self, name: str, point: str, call: Callable[P, R]) -> Callable[P, R]:
        return call

    def listed(
        self, name: str, point: str, call: Callable[P, Iterable[T]]
    ) -> Callable[P, Iterable[T]]:
        return call

    def awaited(
        self, name: str, point: str, call: Callable[P, Awaitable[R]]
    ) -> Callable[P, Awaitable[R]]:
        return call


def plugin_stopwatch(watch: Watch, name: str, point: str) -> Stopwatch:
    """For the runs of one plugin at one extension point."""
    return Stopwatch(watch.now, lambda code: watch.plugin(name, point, code))


@final
class PluginTimer:
    """Wraps calls of plugins so that their durations are observed by the codes of their results."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def plain(self, name: str, point: str, call: Callable[P, R]) -> Callable[P, R]:
        watch = plugin_stopwatch(self._watch, name, point)

        @wraps(call)
        def timed(*args: P.args, **options: P.kwargs) -> R:
            start = watch.now()
            try:
                answer = call(*args, **options)
            except BaseException:
                watch.took[Code.ERROR](watch.now() - start)
                raise
            watch.took[code_in(answer)](watch.now() - start)
            return answer

        return timed

    def listed(
        self, name: str, point: str, call: Callable[P, Iterable[T]]
    ) -> Callable[P, Iterable[T]]:
        """For a call that returns an iterable: the time of the iteration counts, too."""

        @wraps(call)
        def all_at_once(*args: P.args, **options: P.kwargs) -> tuple[T, ...]:
            return tuple(iterated(call(*args, **options)))

        return self.plain(name, point, all_at_once)

    def awaited(
        self, name: str, point: str, call: Callable[P, Awaitable[R]]
    ) -> Callable[P, Awaitable[R]]:
        watch = plugin_stopwatch(self._watch, name, point)

        @wraps(call)
        async def timed(*args: P.args, **options: P.kwargs) -> R:
            start = watch.now()
            try:
                answer = await call(*args, **options)
            except BaseException:
                watch.took[Code.ERROR](watch.now() - start)
                raise
            watch.took[code_in(answer)](watch.now() - start)
            return answer

        return timed
