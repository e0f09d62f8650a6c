"""S-04: the consequence of each result of a plugin."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.plugin import (
    EnqueueExtensions,
    FilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScalarFilterPlugin,
    ScorePlugin,
)
from bayplan.framework.status import Code, Rejection, Status, unschedulable
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from tests.scenarios.world import World, play, scenario

FIT = "NodeResourcesFit"


def on(action: ActionType, hint: Any = None) -> list[ClusterEventWithHint]:
    return [ClusterEventWithHint(ClusterEvent(EventResource.NODE, action), hint)]


# ---- parts A and B: codes of Reserve --------------------------------------------------------


class Gatekeeper(ReservePlugin, EnqueueExtensions):
    """Returns the code of the pod's annotation at the first attempt, and success afterwards."""

    name = "Gatekeeper"

    def setup(self) -> None:
        self.reserved: Counter[str] = Counter()
        self.unreserved: Counter[str] = Counter()

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.reserved[pod.name] += 1
        code = Code[pod.annotations["code"]]
        return Status(code, ("not yet",)) if self.reserved[pod.name] == 1 else None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.unreserved[pod.name] += 1

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return on(ActionType.UPDATE_NODE_ANNOTATION)


CODES = {"pe": "PENDING", "un": "UNSCHEDULABLE", "er": "ERROR"}


async def three_answers(world: World) -> None:
    world.add_node("n1", cpu=16, memory="16Gi")
    for name, code in CODES.items():
        world.add_pod(name, cpu=1, memory="1Gi", annotations={"code": code})
    await world.until(0.1)


@scenario(plugins=[FIT, "Gatekeeper"], classes=[Gatekeeper])
async def test_a_pending_plugin_skips_the_backoff_and_an_error_needs_no_event(world: World) -> None:
    await three_answers(world)
    gauge = {"plugin": "Gatekeeper", "profile": "bayplan"}
    assert world.metric("scheduler_unschedulable_pods", **gauge) == 2
    assert world.metric("scheduler_pending_pods", queue="unschedulable") == 2
    assert world.metric("scheduler_pending_pods", queue="backoff") == 1
    assert world.unschedulable_plugins("er") == set()
    assert world.requested("n1") == 0
    await world.until(0.2)
    world.change_node("n1", annotations={"a": "b"})
    await world.until(3)
    assert world.bound("pe") == (0.2, "n1")
    for name in ("un", "er"):
        bound = world.bound(name)
        assert bound is not None
        assert 1.0 <= bound[0] <= 2.0
    assert world.plugin("Gatekeeper").unreserved == dict.fromkeys(CODES, 1)
    gauge = {"plugin": "Gatekeeper", "profile": "bayplan"}
    assert world.metric("scheduler_unschedulable_pods", **gauge) == 0


@scenario(plugins=[FIT, "Gatekeeper"], classes=[Gatekeeper])
async def test_without_an_event_only_an_error_is_retried(world: World) -> None:
    await three_answers(world)
    await world.until(250)
    bound = world.bound("er")
    assert bound is not None
    assert 1.0 <= bound[0] <= 2.0
    assert [len(world.attempts(name)) for name in ("pe", "un")] == [1, 1]


def test_the_condition_distinguishes_rejection_and_error() -> None:
    world = play(three_answers, plugins=[FIT, "Gatekeeper"], classes=[Gatekeeper])
    assert {name: world.reason(name) for name in CODES} == {
        "pe": "Unschedulable",
        "un": "Unschedulable",
        "er": "SchedulerError",
    }
    assert world.message("un") == "0/1 nodes are available: 1 not yet."
    assert world.message("er") == 'running Reserve plugin "Gatekeeper": not yet'


# ---- part C: invalid results of plugins -----------------------------------------------------


class Bad(FilterPlugin, ScorePlugin, EnqueueExtensions):
    """Misbehaves as the pod's label says; without the label, accepts all nodes and scores 0."""

    name = "Bad"

    def setup(self) -> None:
        self.tried: Counter[str] = Counter()

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterator[Rejection]:
        self.tried[pod.name] += 1
        deed = pod.labels.get("bad")
        if deed == "raises":
            raise ValueError("boom")
        if deed == "writes":
            nodes.requested("cpu")[:] = 0
        elif deed == "refuses-once" and self.tried[pod.name] == 1:
            yield Rejection(feasible, Code.UNSCHEDULABLE, ("once",))

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        scores = np.zeros(len(nodes), np.int64)
        if pod.labels.get("bad") == "scores-101":
            scores[nodes.position("n1")] = 101
        return scores

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return on(ActionType.UPDATE_NODE_LABEL, self._hint)

    def _hint(self, pod: Any, old: Any, new: Any) -> QueueingHint:
        raise RuntimeError("no idea")


class BadNodeByNode(ScalarFilterPlugin):
    """Returns a code that only a plugin written node by node can return."""

    name = "BadNodeByNode"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Status(Code.WAIT) if pod.labels.get("bad") == "waits" else None


DEEDS = {
    "fa": "raises",
    "sc": "scores-101",
    "wr": "writes",
    "wt": "waits",
    "hi": "refuses-once",
    "ok": "",
}


OUT_OF_RANGE = (
    'plugin "Bad" returns an invalid score 101, '
    "it should in the range of [0, 100] after normalizing"
)


@pytest.fixture(scope="module")
def bad_world() -> World:
    async def scene(world: World) -> None:
        for name in ("n1", "n2"):
            world.add_node(name, cpu=8, memory="8Gi")
        for name, deed in DEEDS.items():
            labels = {"bad": deed} if deed else {}
            world.add_pod(name, cpu=1, memory="1Gi", labels=labels)
        await world.until(0)
        # Only ok is counted: the write to a column had no effect.
        assert sorted(world.requested(name) for name in ("n1", "n2")) == [0, 1000]
        assert world.unschedulable_plugins("fa") == set()
        await world.until(5)
        world.change_node("n1", labels={"colour": "blue"})
        await world.until(60)
        world.add_pod("late", cpu=1, memory="1Gi")
        await world.until(60)

    plugins = [("Bad", 1), "BadNodeByNode", (FIT, 1)]
    return play(scene, plugins=plugins, classes=[Bad, BadNodeByNode])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("fa", ['"Bad"', "boom"], id="exception"),
        pytest.param(
            "sc",
            [OUT_OF_RANGE],
            id="score 101",
        ),
        pytest.param("wr", ['"Bad"', "read-only"], id="write to a column"),
        pytest.param("wt", ['"BadNodeByNode"', "Wait"], id="WAIT in Filter"),
    ],
)
def test_an_invalid_result_fails_its_pod_and_is_retried(
    bad_world: World, name: str, words: list[str]
) -> None:
    assert bad_world.bound(name) is None
    assert bad_world.reason(name) == "SchedulerError"
    for word in words:
        assert word in bad_world.message(name)
    first, second, third, *_ = bad_world.attempt_times(name)
    assert first == 0
    assert 1 <= second <= 2
    assert 3 <= third <= 5


def test_a_hint_that_raises_counts_as_queue(bad_world: World) -> None:
    assert bad_world.bound("hi") is not None
    assert bad_world.attempt_times("hi") == [0.0, 5.0]
    assert bad_world.metric("bayplan_queueing_hint_failures_total", plugin="Bad") == 1
    assert any("no idea" in note for note in bad_world.notes("Bad"))


def test_the_other_pods_are_scheduled(bad_world: World) -> None:
    assert bad_world.attempt_times("ok") == [0.0]
    assert bad_world.bound("late") == (60.0, bad_world.attempts("late")[0].node)


def test_plugin_failures_are_counted(bad_world: World) -> None:
    attempts = sum(len(bad_world.attempts(name)) for name in ("fa", "sc", "wr"))
    assert bad_world.metric("bayplan_plugin_failures_total", plugin="Bad") == attempts


# ---- PreScore -------------------------------------------------------------------------------


class Reluctant(PreScorePlugin, ScorePlugin):
    """PreScore returns the status that the pod's label names."""

    name = "Reluctant"

    def setup(self) -> None:
        self.scored: Counter[str] = Counter()

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        answers = {"skips": Status(Code.SKIP), "refuses": unschedulable("no taste")}
        return answers.get(pod.labels.get("does", ""))

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        self.scored[pod.name] += 1
        return np.zeros(len(nodes), np.int64)


@scenario(plugins=[("Reluctant", 1)], classes=[Reluctant])
async def test_pre_score_may_pass_skip_or_fail(world: World) -> None:
    for name in ("n1", "n2"):
        world.add_node(name, cpu=8, memory="8Gi")
    for does in ("skips", "refuses", "passes"):
        world.add_pod(does, labels={"does": does})
    await world.until(0)
    assert world.unschedulable_plugins("refuses") == set()
    assert world.plugin("Reluctant").scored == {"passes": 1}
    assert world.bound("skips") is not None
    assert world.bound("refuses") is None
    assert world.reason("refuses") == "SchedulerError"
    assert world.message("refuses") == 'running PreScore plugin "Reluctant": no taste'
