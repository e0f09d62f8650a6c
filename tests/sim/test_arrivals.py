"""Pods that arrive one after another are handled as in turns of the runner, to the letter."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest

from bayplan.api.objects import POD
from bayplan.durations import DURATION_ANNOTATION
from bayplan.engine.arrivals import Arrivals
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Plugin, PostBindPlugin, PreEnqueuePlugin
from bayplan.framework.status import Status, unschedulable
from bayplan.history.entries import Entry
from bayplan.journal import MemorySink
from bayplan.ports import BindPort, ImmediateCluster
from bayplan.runner import Runner
from bayplan.sim.input.workload import Workload
from bayplan.state.pods import PodInfo
from tests.kit.manifests import Content, api_object, node, pod
from tests.sim.runs import simulation, workload

NODES = [node(f"n{number}", cpu="8", zone=f"z{number % 2}", pods="20") for number in range(5)]


def equal(count: int, prefix: str = "p", **parts: Any) -> list[Content]:
    return [pod(f"{prefix}{number}", **parts) for number in range(count)]


class HoldsSomeBack(PreEnqueuePlugin):
    """Holds every third pod back, until another pod gets its node."""

    name = "HoldsSomeBack"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return unschedulable("not yet") if pod.name.endswith(("2", "5", "8")) else None


class WakesNeighbours(PostBindPlugin):
    """Tries a pod again when another one was bound: a binding that is more than one request."""

    name = "WakesNeighbours"

    async def post_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> None:
        self.handle.activate([pod])


def spread() -> list[Content]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "s"}},
    }
    return equal(20, labels={"app": "s"}, cpu="500m", topologySpreadConstraints=[constraint])


def budget() -> Content:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    return api_object("policy/v1 PodDisruptionBudget", "b", "default", spec=spec)


def quota() -> Content:
    return api_object("v1 ResourceQuota", "q", "default", spec={"hard": {"pods": "9"}})


def deployment() -> Content:
    template = pod(cpu="100m", labels={"app": "d"})
    spec = {
        "replicas": 8,
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": template["spec"]},
    }
    return api_object("apps/v1 Deployment", "d", "default", spec=spec)


def durations(*seconds: int) -> list[Content]:
    return [
        pod(f"t{number}", cpu="4", annotations={DURATION_ANNOTATION: f"{each}s"})
        for number, each in enumerate(seconds)
    ]


WORKLOADS: dict[str, Callable[[], list[Content]]] = {
    "equal pods": lambda: equal(60, cpu="100m"),
    "more than fit": lambda: equal(60, cpu="1"),
    "two templates in turn": lambda: [
        each
        for number in range(20)
        for each in (pod(f"a{number}", cpu="100m"), pod(f"b{number}", cpu="200m"))
    ],
    "pods that fit nowhere": lambda: [
        *equal(20, cpu="100"),
        *equal(20, "s", nodeSelector={"disk": "none"}),
    ],
    "pods that fit nowhere between others": lambda: [
        pod(f"p{number}", cpu="100" if number % 4 == 3 else "100m") for number in range(40)
    ],
    "pods that end": lambda: durations(*(number % 7 for number in range(40))),
    "spreading": spread,
    "a budget": lambda: [budget(), *equal(20, labels={"app": "a"}, cpu="100m")],
    "a quota": lambda: [quota(), *equal(20, cpu="100m")],
    "a Deployment": lambda: [deployment(), *equal(10, cpu="100m")],
    "gates": lambda: [
        pod(f"p{number}", cpu="100m", schedulingGates=[{"name": "g"}] if number % 5 == 2 else [])
        for number in range(20)
    ],
    "preemption": lambda: [
        *equal(40, cpu="1"),
        *equal(6, "c", cpu="4", priorityClassName="system-cluster-critical"),
    ],
    "names that are taken": lambda: [*equal(10, cpu="100m"), *equal(12, cpu="100m")],
}


class Run:
    """A run, and all that it left."""

    def __init__(self, feed: Workload, *plugins: type[Plugin], has_log: bool) -> None:
        journal, entries = MemorySink(), list[Entry]()
        put_entry = entries.append if has_log else None
        simulated = simulation(feed, *plugins, put_entry=put_entry, sinks=(journal,))
        self.digest = simulated.run().digest
        self.records = list(journal.records)
        self.entries = [msgspec.to_builtins(each, enc_hook=repr) for each in entries]
        self.pods = [one.content for one in simulated.cluster.objects(POD)]
        self.version = simulated.cluster.version
        self.metrics = generate_latest(simulated.scheduler.metrics.registry)


def compare(patch: pytest.MonkeyPatch, feed: Workload, *plugins: type[Plugin], log: bool) -> int:
    """Compare a run in which pods arrive together with one in turns. Returns how many steps were
    taken together."""
    taken: list[object] = []
    arrive = Runner.arrive

    def counted(runner: Runner, steps: Iterator[object]) -> bool:
        def each() -> Iterator[object]:
            for step in steps:
                taken.append(step)
                yield step

        return arrive(runner, each())

    patch.setattr(Runner, "arrive", counted)
    together = Run(feed, *plugins, has_log=log)
    patch.setattr(Runner, "arrive", lambda runner, steps: False)
    assert vars(together) == vars(Run(feed, *plugins, has_log=log))
    return len(taken)


@pytest.mark.parametrize("log", [False, True], ids=["without a log of states", "with one"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_arrivals_leave_what_turns_leave(
    name: str, log: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = workload(*NODES, *WORKLOADS[name]())
    assert compare(monkeypatch, feed, log=log) >= 5, "no pods arrive together"


def test_pods_that_fit_nowhere_arrive_without_a_turn_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[int] = []
    place = Arrivals.place

    def counted(arrivals: Arrivals, source: Any, cluster: ImmediateCluster) -> bool:
        try:
            return place(arrivals, source, cluster)
        finally:
            counts.append(source.count)

    monkeypatch.setattr(Arrivals, "place", counted)
    feed = workload(*NODES, *WORKLOADS["pods that fit nowhere"]())
    simulation(feed).run()
    # A cycle for each of the two signatures, and then all equal pods together.
    assert max(counts) >= 19, counts


def test_pods_that_a_plugin_holds_back_come_in_the_order_of_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = workload(*NODES, *equal(30, cpu="100m"))
    assert compare(monkeypatch, feed, HoldsSomeBack, log=True)


def test_bindings_of_more_than_one_request_come_in_the_order_of_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = workload(*NODES, *equal(30, cpu="100m"))
    assert compare(monkeypatch, feed, WakesNeighbours, log=True)
