"""How long plugins and extension points take.

Evaluations of plugins are counted as upstream counts them: by pod, and by node.
"""

import asyncio
from typing import Any

import numpy as np
import pytest

from bayplan.clock import ManualClock
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import SKIP, Code, Rejection, Status, unschedulable
from bayplan.framework.timing import Evaluations, PluginTimer, Stopwatch, Watch
from bayplan.testing import node, pod
from tests.framework.answering import answering, cluster_of, framework_of, scores

# ---- timing ---------------------------------------------------------------------------------


Observed = list[tuple[Any, ...]]


class Timed:
    """A clock, and the durations that are observed."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.points: Observed = []
        self.plugins: Observed = []
        self.watch = Watch(self.clock.now, self._plugin, self._point)

    def passes(self, seconds: float, answer: Any = None) -> Any:
        """A plugin's method that takes ``seconds``."""

        def method(*_: Any) -> Any:
            self.clock.advance_to(self.clock.now() + seconds)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return method

    def _plugin(self, name: str, point: str, code: Code) -> Any:
        return lambda seconds: self.plugins.append((name, point, code, seconds))

    def _point(self, point: str, code: Code, profile: str) -> Any:
        return lambda seconds: self.points.append((point, code, profile, seconds))


def recording() -> CycleState:
    state = CycleState()
    state.record_plugin_metrics = True
    return state


def test_an_extension_point_is_timed_by_code_and_profile() -> None:
    timed = Timed()
    plugins = [
        answering("A", reserve=timed.passes(1.0)),
        answering("B", reserve=timed.passes(0.5, unschedulable("no"))),
    ]
    framework_of(*plugins, watch=timed.watch).run_reserve(CycleState(), pod(), "n1")
    assert timed.points == [("Reserve", Code.UNSCHEDULABLE, "bayplan", 1.5)]
    assert timed.plugins == []


def test_plugins_are_timed_in_sampled_attempts() -> None:
    timed = Timed()
    plugins = [
        answering("A", reserve=timed.passes(1.0)),
        answering("B", reserve=timed.passes(0.5, unschedulable("no"))),
    ]
    framework_of(*plugins, watch=timed.watch).run_reserve(recording(), pod(), "n1")
    assert timed.plugins == [
        ("A", "Reserve", Code.SUCCESS, 1.0),
        ("B", "Reserve", Code.UNSCHEDULABLE, 0.5),
    ]


def test_a_plugin_that_raises_is_reported_as_an_error() -> None:
    timed = Timed()
    plugin = answering("A", reserve=timed.passes(1.0, ValueError("boom")))
    framework_of(plugin, watch=timed.watch).run_reserve(recording(), pod(), "n1")
    assert timed.plugins == [("A", "Reserve", Code.ERROR, 1.0)]


def test_the_time_of_a_filter_includes_the_time_of_its_iterator() -> None:
    timed = Timed()

    def piece_by_piece(state: Any, pod: Any, nodes: Any, feasible: Any) -> Any:
        for position in range(len(nodes)):
            timed.passes(1.0)()
            yield Rejection(nodes.positions([nodes.name(position)]), Code.UNSCHEDULABLE, ("no",))

    nodes = cluster_of(node("n1"), node("n2")).lend().nodes
    plugin = answering("A", filter=piece_by_piece)
    outcome = framework_of(plugin, watch=timed.watch).run_filter(recording(), pod(), nodes)
    assert not outcome.feasible.any()
    assert timed.plugins == [("A", "Filter", Code.UNSCHEDULABLE, 2.0)]
    assert timed.points == [("Filter", Code.SUCCESS, "bayplan", 2.0)]


@pytest.mark.parametrize("state", [CycleState(), recording()])
def test_answers_are_the_same_whether_they_are_timed_or_not(state: CycleState) -> None:
    nodes = cluster_of(node("n1"), node("n2")).lend().nodes
    plugin = answering(
        "A",
        pre_filter=SKIP,
        filter_node=lambda *_: unschedulable("no"),
        score=scores(3, 6),
        normalize=lambda state, pod, raw: raw * 10,
    )
    framework = framework_of(plugin, watch=Timed().watch)
    assert not framework.run_filter(state, pod(), nodes).feasible.any()
    table: Any = framework.run_score(state, pod(), nodes)
    assert table.totals.tolist() == [30, 60]


def test_asynchronous_points_are_timed_to_their_end() -> None:
    timed = Timed()
    answers = iter([None, OSError("gone")])

    async def bind() -> None:
        timed.passes(2.0)()
        answer = next(answers)
        if answer is not None:
            raise answer

    call = PluginTimer(timed.watch).awaited("A", "Bind", bind)

    async def main() -> None:
        await call()
        with pytest.raises(OSError, match="gone"):
            await call()

    asyncio.run(main())
    assert timed.plugins == [("A", "Bind", Code.SUCCESS, 2.0), ("A", "Bind", Code.ERROR, 2.0)]


def test_observers_are_looked_up_once() -> None:
    looked_up: list[Code] = []
    reports: list[float] = []

    def of_code(code: Code) -> Any:
        looked_up.append(code)
        return reports.append

    watch = Stopwatch(lambda: 0.0, of_code)
    for seconds in (1.0, 2.0):
        watch.took[Code.SKIP](seconds)
    assert (looked_up, reports) == ([Code.SKIP], [1.0, 2.0])


# ---- evaluations ----------------------------------------------------------------------------


NOTHING: Any = object()


def test_evaluations_are_counted_once_per_pod_and_once_per_node() -> None:
    counts = Evaluations()
    pre_filter = counts.of_pod("A", "PreFilter", lambda state, pod, nodes: "answer")
    ask_filter = counts.of_filter("A", lambda state, pod, nodes, feasible: ())
    filter_row = counts.of_node("A", "Filter", lambda state, pod, node: ())
    score = counts.of_score("A", lambda state, pod, nodes: np.zeros(len(nodes), np.int64))
    nodes: Any = range(4)
    assert pre_filter(NOTHING, NOTHING, nodes) == "answer"
    ask_filter(NOTHING, NOTHING, nodes, np.array([True, False, True, True]))
    filter_row(NOTHING, NOTHING, NOTHING)
    assert len(score(NOTHING, NOTHING, nodes)) == 4
    assert dict(counts.counts()) == {("A", "PreFilter"): 1, ("A", "Filter"): 4, ("A", "Score"): 4}


def test_a_skip_is_no_evaluation() -> None:
    counts = Evaluations()
    answers = iter((SKIP, Status(Code.SKIP, ("nothing to do",)), None))
    ask = counts.of_pod("A", "PreFilter", lambda state, pod, nodes: next(answers))
    for _ in range(3):
        ask(NOTHING, NOTHING, NOTHING)
    assert dict(counts.counts()) == {("A", "PreFilter"): 1}


def test_a_failed_evaluation_is_counted() -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    counts = Evaluations()
    ask = counts.of_pod("C", "PreScore", fail)
    for _ in range(2):
        try:
            ask(NOTHING, NOTHING, NOTHING)
        except RuntimeError:
            continue
    assert dict(counts.counts()) == {("C", "PreScore"): 2}
