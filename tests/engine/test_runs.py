"""Runs of equal pods: what a run leaves is what one attempt after another leaves."""

import sys
from collections import Counter
from collections.abc import Callable
from math import inf
from types import FrameType
from typing import Any

import pytest
from prometheus_client import generate_latest

from bayplan.api.objects import HOSTNAME_LABEL, SERVICE, ZONE_LABEL, Node
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PostFilterPlugin, Repetition
from bayplan.framework.status import NodeToStatus, Status, unschedulable
from bayplan.framework.types import Nomination
from bayplan.journal import AttemptRecord, Record
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.ports import BindPod, Effect, EmitEvent
from bayplan.state.columns import INITIAL_CAPACITY
from bayplan.state.pods import PodInfo
from bayplan.testing import node
from tests.engine.kit import Engine, waiting_pod
from tests.engine.reuse_kinds import KINDS

#: The plugins of the default profile.
DEFAULT_PROFILE: dict[str, Any] = {"plugins": {}}

#: How many calls of Python functions an attempt may take, deep in a run and alone; and one without
#: a node, and one that cells answer, deep in a run.
CALLS_IN_RUN, CALLS_ALONE, CALLS_OF_FAILURE, CALLS_BY_CELLS = 11, 29, 23, 150


def one_by_one(scheduler: Scheduler) -> None:
    while scheduler.schedule_one():
        pass


def in_runs(scheduler: Scheduler) -> None:
    while scheduler.schedule_run(64, inf):
        pass


def uneven_nodes() -> list[Node]:
    """Nodes of two sizes, which are full after a few pods."""
    return [
        *(node(f"small{n}", cpu=2, memory="4Gi", zone=f"z{n % 2}") for n in range(6)),
        *(node(f"large{n}", cpu=9, memory="20Gi", zone=f"z{n % 2}", pods=12) for n in range(3)),
    ]


def comparable(effect: Effect) -> Any:
    """An effect without the values that belong to one scheduler."""
    if not isinstance(effect, BindPod):
        return effect
    run: Any = effect.run
    return effect.pod.key, effect.node_name, run.state.record_plugin_metrics


def outcome(attempt: Callable[[Scheduler], None], **options: Any) -> Any:
    """Three waves of pods of two templates; nodes are full before the last pods have come.

    ``options``: of most pods.
    """
    engine = Engine(profile=DEFAULT_PROFILE)
    scheduler = engine.scheduler
    engine.add(*uneven_nodes())
    left: list[Any] = []
    for wave in range(3):
        for number in range(30):
            usual = options if number % 15 else {"cpu": "250m", "priority": wave}
            engine.add(waiting_pod(f"p{wave}-{number:02}", **usual))
        attempt(scheduler)
        left += map(comparable, scheduler.take_effects())
        left.append(scheduler.queue.counts())
    reuse = scheduler.reuse(scheduler.profile_names[0])
    metrics = generate_latest(scheduler.metrics.registry).decode()
    return engine.journal.records, left, reuse.row_counts(), metrics.splitlines()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"cpu": "300m"}, id="several on a node"),
        pytest.param({"cpu": "300m", "host_ports": [80]}, id="one host port a node"),
        pytest.param({"cpu": "1700m"}, id="one fills a small node"),
        pytest.param({"cpu": "10"}, id="too large for every node"),
        *(
            pytest.param(KINDS[kind], id=kind)
            for kind in ("spread hard", "spread soft", "apart", "together", "likes company")
        ),
        pytest.param(
            {**KINDS["spread hard"], **KINDS["likes company"]}, id="counts of two plugins"
        ),
    ],
)
@pytest.mark.parametrize("attempt", [in_runs, one_by_one])
def test_a_run_leaves_records_effects_and_metrics_of_one_attempt_after_another(
    attempt: Callable[[Scheduler], None], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the expected attempts PostFilter is called for each pod that fits no node."""
    records, effects, rows, metrics = outcome(attempt, **options)
    monkeypatch.setattr(DefaultPreemption, "repetition", lambda _: Repetition.NONE)
    expected = outcome(one_by_one, **options)
    assert list(records) == list(expected[0])
    assert effects == expected[1]
    assert rows == expected[2]
    assert metrics == expected[3]
    results = [each.result for each in records if isinstance(each, AttemptRecord)]
    assert {"scheduled", "unschedulable"} == set(results)


def test_a_pod_between_equal_ones_is_tried_in_its_turn() -> None:
    engine = Engine(profile=DEFAULT_PROFILE)
    engine.add(*uneven_nodes())
    for number in range(4):
        engine.add(waiting_pod(f"first{number}", cpu="100m"))
    in_runs(engine.scheduler)
    engine.journal.records.clear()
    names = [*(f"a{n}" for n in range(6)), "other", *(f"b{n}" for n in range(6))]
    for name in names:
        engine.add(waiting_pod(name, cpu="200m" if name == "other" else "100m"))
    assert engine.scheduler.schedule_run(64, inf) == 6, "the other pod has no run"
    in_runs(engine.scheduler)
    records = [each for each in engine.journal.records if isinstance(each, AttemptRecord)]
    assert [record.pod for record in records] == [f"default/{name}" for name in names]


def test_a_run_stays_out_of_the_domain_that_a_group_has_got_alone() -> None:
    """No object changes between the pods of the run: only the group is placed."""
    engine = Engine(profile=DEFAULT_PROFILE)
    rack, alone = "bayplan.dev/required-topology", "bayplan.dev/exclusive-topology"
    for number in range(2):
        engine.add(node(f"large{number}", cpu=200, memory="400Gi", pods=10, labels={"rack": "a"}))
        engine.add(node(f"small{number}", cpu=8, memory="16Gi", labels={"rack": "b"}))
    meta = {"name": "g", "namespace": "default", "annotations": {rack: "rack", alone: "rack"}}
    group = {"metadata": meta, "spec": {"minMember": 2}}
    engine.put("scheduling.x-k8s.io/v1alpha1 PodGroup", group)

    def place(*names: str, **options: Any) -> set[str]:
        engine.add(*(waiting_pod(name, cpu="1", **options) for name in names))
        in_runs(engine.scheduler)
        placed = {pod.name: pod.node_name for pod in engine.scheduler.cache.pods()}
        return {placed[name] for name in names if name in placed}

    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    assert place("member0", labels=labels) == set()
    assert place(*(f"early{n}" for n in range(6))) == {"large0", "large1"}
    assert place("member1", labels=labels) <= {"small0", "small1"}
    assert engine.scheduler.cache.pod("uid-default/member0") is not None
    assert place(*(f"late{n}" for n in range(20))) == {"large0", "large1"}


class Answers(PostFilterPlugin):
    """Says which call of PostFilter it is."""

    name = "Answers"
    longest = Repetition.NONE

    def setup(self) -> None:
        self._call_count = 0

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        self._call_count += 1
        return None, unschedulable(f"call {self._call_count}")

    def repetition(self) -> Repetition:
        return self.longest


@pytest.mark.parametrize(
    ("longest", "calls"),
    [
        (Repetition.NONE, [1, 2, 3, 4, 5, 6, 7]),
        (Repetition.UNTIL_CHANGE, [1, 1, 1, 2, 3, 4, 4]),
        (Repetition.UNTIL_OTHER_STATUSES, [1, 1, 1, 1, 1, 2, 2]),
    ],
)
def test_equal_pods_share_an_answer_of_post_filter_as_long_as_the_plugin_promises(
    longest: Repetition, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods are placed in between; after the last one a node lacks memory, too."""
    monkeypatch.setattr(Answers, "longest", longest)
    # No call is made for an attempt that records durations of plugins.
    monkeypatch.setattr("bayplan.engine.runs.METRICS_SAMPLE", 0.0)
    plugins = {"postFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "Answers"}]}}
    engine = Engine(profile={"plugins": plugins}, classes=[Answers])
    engine.add(*(node(f"n{number}", cpu=2, memory="4Gi") for number in range(3)))
    messages: list[str] = []

    def attempt(*names: str, **options: Any) -> None:
        engine.journal.records.clear()
        engine.add(*(waiting_pod(name, **options) for name in names))
        in_runs(engine.scheduler)
        records = [each for each in engine.journal.records if isinstance(each, AttemptRecord)]
        assert [record.pod for record in records] == [f"default/{name}" for name in names]
        messages.extend(record.message for record in records if record.message)

    large: dict[str, Any] = {"cpu": "2", "memory": "3Gi"}
    attempt("p0", "p1", "p2", cpu="500m", memory="100Mi", host_ports=[80])
    for number in range(4):
        attempt(f"start{number}", **large)
    messages.clear()
    attempt("a", "b", "c", **large)
    attempt("p3", cpu="100m", memory="100Mi")
    attempt("d", **large)
    attempt("e", **large)
    attempt("p4", cpu="100m", memory="2Gi")
    attempt("f", "g", **large)
    numbers = [int(message.rpartition(" call ")[2].rstrip(".")) for message in messages]
    assert [number - numbers[0] + 1 for number in numbers] == calls
    assert [message.count("1 Insufficient memory") for message in messages] == [0] * 5 + [1] * 2


def test_no_pod_of_a_run_that_fits_no_node_is_lost_if_its_journal_cannot_be_written() -> None:
    """Those that failed before stay as they are."""
    engine = Engine(profile=DEFAULT_PROFILE, raise_bugs=False)
    engine.add(*uneven_nodes())
    tries = Counter[str]()

    class FullDisk:
        def write(self, record: Record) -> None:
            if isinstance(record, AttemptRecord):
                tries[record.pod] += 1
                if record.pod == "default/p5" and tries[record.pod] == 1:
                    raise OSError("no space left on device")

    engine.scheduler.journal.add(FullDisk())
    engine.add(*(waiting_pod(f"p{number}", cpu="10") for number in range(10)))
    in_runs(engine.scheduler)
    effects = engine.scheduler.take_effects()
    events = Counter(each.regarding.name for each in effects if isinstance(each, EmitEvent))
    assert set(events) == {f"p{number}" for number in range(10)}
    assert events["p0"] == events["p1"] == 1
    counts = engine.scheduler.queue.counts()
    assert (counts["unschedulable"], counts["backoff"]) == (9, 1)
    assert not engine.scheduler.queue.in_flight


@pytest.mark.parametrize("failing", [3, 5])
def test_no_pod_of_a_run_is_lost_if_its_journal_cannot_be_written(failing: int) -> None:
    """The pods that the run has placed and that have no effect return to the queue, too."""
    engine = Engine(profile=DEFAULT_PROFILE, raise_bugs=False)
    engine.add(*uneven_nodes())

    class FullDisk:
        def write(self, record: Record) -> None:
            if isinstance(record, AttemptRecord) and record.pod == f"default/p{failing}":
                raise OSError("no space left on device")

    engine.scheduler.journal.add(FullDisk())
    for number in range(10):
        engine.add(waiting_pod(f"p{number}", cpu="100m"))
    in_runs(engine.scheduler)
    effects = engine.scheduler.take_effects()
    bound = {effect.pod.name for effect in effects if isinstance(effect, BindPod)}
    waiting = engine.scheduler.queue.counts()["backoff"]
    assert len(bound) + waiting == 10
    assert f"p{failing}" not in bound
    assert {pod.name for pod in engine.scheduler.cache.pods()} == bound


def calls_per_attempt(
    attempt: Callable[[Scheduler], int],
    count: int,
    cpu: str = "100m",
    zones: int = 0,
    **options: Any,
) -> float:
    """The calls of Python functions of an attempt, after a few others. ``options``: of the pods,
    which a Service selects."""
    engine = Engine(profile=DEFAULT_PROFILE)
    selector = {"spec": {"selector": {"app": "web"}}}
    engine.put(SERVICE, {"metadata": {"name": "s", "namespace": "default"}, **selector})
    for number in range(50):
        labels = {HOSTNAME_LABEL: f"n{number}", "pool": f"p{number % 2}"}
        if zones:
            labels[ZONE_LABEL] = f"z{number % zones}"
        engine.add(node(f"n{number}", cpu=64, memory="256Gi", labels=labels))
    for number in range(2 * count):
        engine.add(waiting_pod(f"p{number}", cpu=cpu, **options))
    while len(engine.journal.records) < count:
        attempt(engine.scheduler)
    calls = before = 0

    def see(_frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = len(engine.journal.records)
    sys.setprofile(see)
    try:
        while attempt(engine.scheduler):
            engine.scheduler.take_effects()
    finally:
        sys.setprofile(None)
    return calls / (len(engine.journal.records) - before)


def test_an_attempt_of_a_run_makes_few_calls() -> None:
    assert calls_per_attempt(lambda s: s.schedule_run(64, inf), 256) <= CALLS_IN_RUN


WEB = {"app": "web"}
IN_POOL = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["p1"]}]}
PREFERRED = {"weight": 1, "preference": IN_POOL}
NEAR = {"topologyKey": HOSTNAME_LABEL, "labelSelector": {"matchLabels": WEB}}


@pytest.mark.parametrize(
    ("zones", "options"),
    [
        pytest.param(3, {"labels": WEB}, id="default constraints"),
        pytest.param(0, {"labels": WEB}, id="default constraints without zones"),
        pytest.param(3, {"labels": WEB, "node_selector": {"pool": "p1"}}, id="node selector"),
        pytest.param(
            3,
            {
                "labels": WEB,
                "affinity": {
                    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}
                },
            },
            id="preferred nodes",
        ),
        pytest.param(
            0,
            {
                "labels": {"app": "other"},
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}
                },
            },
            id="pod affinity alone",
        ),
    ],
)
def test_an_attempt_of_a_run_makes_few_calls_where_cells_answer(
    zones: int, options: dict[str, Any]
) -> None:
    calls = calls_per_attempt(lambda s: s.schedule_run(64, inf), 256, zones=zones, **options)
    assert calls <= CALLS_BY_CELLS


def test_an_attempt_of_a_run_that_fits_no_node_makes_few_calls() -> None:
    calls = calls_per_attempt(lambda s: s.schedule_run(64, inf), 256, cpu="100")
    assert calls <= CALLS_OF_FAILURE


def test_an_attempt_alone_makes_few_calls() -> None:
    assert calls_per_attempt(Scheduler.schedule_one, 256) <= CALLS_ALONE


def test_a_run_of_a_daemon_set_goes_on_where_many_nodes_come() -> None:
    """More nodes come than the columns have rows. All of them are evaluated at once."""

    def placed(attempt: Callable[[Scheduler], None]) -> Any:
        engine = Engine(profile=DEFAULT_PROFILE)
        scheduler = engine.scheduler
        node_count = pod_count = 0
        for nodes, pods in ((INITIAL_CAPACITY, 4), (2 * INITIAL_CAPACITY, 2 * INITIAL_CAPACITY)):
            engine.add(*(node(f"n{n:03}", cpu=n % 2) for n in range(node_count, nodes)))
            numbers = range(pod_count, pods)
            engine.add(*(waiting_pod(f"d{n:03}", cpu="1", affinity=on_node(n)) for n in numbers))
            attempt(scheduler)
            node_count, pod_count = nodes, pods
        return engine.journal.records, [*map(comparable, scheduler.take_effects())]

    assert placed(in_runs) == placed(one_by_one)


def on_node(number: int) -> Any:
    """As the controller of a DaemonSet writes it."""
    field = {"key": "metadata.name", "operator": "In", "values": [f"n{number:03}"]}
    terms = [{"matchFields": [field]}]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
