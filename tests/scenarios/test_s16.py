"""S-16: an HTTP extender; rows F-013, F-017, F-083 to F-087.

Simulations call a real server on loopback, under virtual time.
"""

import asyncio
from typing import Any

import pytest

from bayplan.config import config_from
from bayplan.engine.cycle import Cycle
from bayplan.framework.plugin import BindPlugin, Plugin
from bayplan.framework.status import EXTENDER_NAME
from bayplan.journal import AttemptRecord, MemorySink
from bayplan.plugins.registry import Registry
from bayplan.ports import AskExtender, ExtenderAnswer
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.result import PodResult
from bayplan.sim.simulation import Simulation
from bayplan.testing import api_pod, node
from tests.adapters.extenders.server import Extender as Server
from tests.adapters.extenders.server import closed_port, extender
from tests.scenarios.world import PROFILE, Setup, World, config_dict, manifest, play

USED = {"n1": 0, "n2": 2, "n3": 5}
REFUSES_N1 = {"NodeNames": ["n2", "n3"], "FailedNodes": {"n1": "licence missing"}}
SCORES = [{"Host": "n2", "Score": 3}, {"Host": "n3", "Score": 8}]
PART_A = {"filter": REFUSES_N1, "prioritize": SCORES}
REFUSES_ALL = {"filter": {"FailedNodes": dict.fromkeys(USED, "licence missing")}}
FIT = [("NodeResourcesFit", 1)]


def entry(url: str, **fields: Any) -> dict[str, Any]:
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 2}
    return {"urlPrefix": url, "nodeCacheCapable": True, **verbs, **fields}


class Run:
    """A simulation of the scenario for three seconds, and its results."""

    def __init__(self, url: str, *, binder: type[Plugin] | None = None, **fields: Any) -> None:
        setup = Setup(plugins=FIT, config={"extenders": [entry(url, **fields)]})
        registry = Registry()
        if binder is not None:
            registry.add(binder)
            setup.binders = (binder.name,)
        self.journal = MemorySink()
        self.rows: dict[str, Any] = {}
        simulation = Simulation(
            Workload(initial=tuple(_objects()), until_seconds=3.0),
            config_from(config_dict(setup)),
            registry,
            seed=1,
            on_attempt=self._look,
        )
        simulation.keep_journal(self.journal)
        self.result = simulation.run()
        self.queue = simulation.scheduler.queue
        self.metrics = simulation.scheduler.metrics
        (self.uid,) = {r.uid for r in self.attempts}

    def _look(self, cycle: Cycle) -> None:
        table = cycle.score_table()
        if table is not None:
            self.rows = {name: table.row(name) for name in table.nodes.names()}

    @property
    def attempts(self) -> list[AttemptRecord]:
        return [r for r in self.journal.records if isinstance(r, AttemptRecord)]

    @property
    def pod(self) -> PodResult:
        return self.result.pods["default/p"]

    @property
    def blamed(self) -> frozenset[str]:
        queued = self.queue.find(self.uid)
        assert queued is not None
        return queued.unschedulable_plugins


def _objects() -> list[dict[str, Any]]:
    manifests = [manifest("Node", node(name, cpu=10, memory="10Gi")) for name in USED]
    for name, used in USED.items():
        if used:
            placed = api_pod(f"on-{name}", node=name, cpu=used, memory=f"{used}Gi")
            manifests.append(manifest("Pod", placed))
    waiting = api_pod("p", cpu=1, memory="1Gi", scheduler_name=PROFILE)
    return [*manifests, manifest("Pod", waiting)]


def run(answers: dict[str, Any], **fields: Any) -> tuple[Run, Server]:
    with extender(answers) as server:
        return Run(server.url, **fields), server


def test_part_a_an_extender_filters_and_scores() -> None:
    result, server = run(PART_A)
    assert (result.pod.node, result.pod.bound_at) == ("n3", 0.0)
    fits = {"n2": 70, "n3": 40}
    assert result.rows == {
        name: (
            [("NodeResourcesFit", fits[name]), (server.url, extender_score)],
            fits[name] + extender_score,
        )
        for name, extender_score in (("n2", 60), ("n3", 160))
    }
    (record,) = result.attempts
    assert {s.node: s.total for s in record.scores} == {"n2": 130, "n3": 200}


def test_part_a_the_server_receives_filter_and_prioritize() -> None:
    _, server = run(PART_A)
    assert server.verbs == ["filter", "prioritize"]
    (filtered,), (scored,) = server.requests_of("filter"), server.requests_of("prioritize")
    assert sorted(filtered) == ["NodeNames", "Nodes", "Pod"]
    assert sorted(filtered["NodeNames"]) == ["n1", "n2", "n3"]
    assert sorted(scored["NodeNames"]) == ["n2", "n3"]
    assert filtered["Pod"]["metadata"]["name"] == "p"
    assert filtered["Pod"]["spec"]["containers"][0]["resources"]["requests"]["memory"] == "1Gi"


def test_part_b_an_unreachable_extender_is_an_error() -> None:
    port = closed_port()
    result = Run(f"http://127.0.0.1:{port}/", ignorable=False)
    assert result.pod.node is None
    call = f'Post "http://127.0.0.1:{port}/filter": '
    assert result.pod.message == f"{call}dial tcp 127.0.0.1:{port}: connect: connection refused"
    first, second, *_ = [record.at_seconds for record in result.attempts]
    assert first == 0
    assert 1 <= second <= 2
    assert result.blamed == set()


def test_part_c_an_unreachable_ignorable_extender_is_skipped() -> None:
    result = Run(f"http://127.0.0.1:{closed_port()}/", ignorable=True)
    assert (result.pod.node, result.pod.bound_at) == ("n1", 0.0)


def test_part_c_an_extender_of_other_resources_is_not_called() -> None:
    result, server = run(PART_A, managedResources=[{"name": "example.com/fpga"}])
    assert (result.pod.node, result.pod.bound_at) == ("n1", 0.0)
    assert server.verbs == []


def test_part_d_an_extender_that_rejects_every_node_is_blamed() -> None:
    result, server = run(REFUSES_ALL)
    assert result.pod.message == "0/3 nodes are available: 3 licence missing."
    assert result.blamed == {EXTENDER_NAME}
    assert set(server.verbs) == {"filter"}


class UnusedBinder(BindPlugin):
    """A binder that must not be called."""

    name = "UnusedBinder"

    async def bind(self, state: Any, pod: Any, node_name: str, port: Any) -> None:
        raise AssertionError("the extender binds")


def test_part_e_a_binding_extender_replaces_the_bind_plugins() -> None:
    with extender({**PART_A, "bind": {"Error": ""}}) as server:
        result = Run(server.url, binder=UnusedBinder, bindVerb="bind")
    assert (result.pod.node, result.pod.bound_at, result.pod.attempts) == ("n3", 0.0, 1)
    (question,) = server.requests_of("bind")
    assert question == {
        "PodName": "p",
        "PodNamespace": "default",
        "PodUID": result.uid,
        "Node": "n3",
    }


def test_part_e_a_failed_extender_binding_is_retried() -> None:
    result, server = run({**PART_A, "bind": {"Error": "no licence"}}, bindVerb="bind")
    assert (result.pod.node, result.pod.message) == (None, "no licence")
    assert len(server.requests_of("bind")) == 2


def test_part_f_a_node_that_changed_during_the_call_is_evaluated_again() -> None:
    """The extender takes two seconds of the simulation's time."""
    calls: list[str] = []

    async def ask(question: AskExtender) -> ExtenderAnswer:
        calls.append(question.verb)
        await asyncio.sleep(2)
        left = frozenset(("n2", "n3"))
        return ExtenderAnswer(node_names=left, failed={"n1": "licence missing"})

    url = "http://127.0.0.1:1/"
    config, plugins = {"extenders": [entry(url)]}, [*FIT, "NodeAffinity"]
    world = play(_labelled, plugins=plugins, config=config, asks={url: ask})
    assert world.bound("p") == (2.0, "n2")
    # Only n2 is feasible, so that its score is not computed.
    assert calls == ["filter"]


async def _labelled(world: World) -> None:
    for name, used in USED.items():
        world.add_node(name, cpu=10, memory="10Gi", labels={"tier": "a"})
        if used:
            world.add_pod(f"on-{name}", node=name, cpu=used, memory=f"{used}Gi")
    world.add_pod("p", cpu=1, memory="1Gi", node_selector={"tier": "a"})
    await world.until(1)
    world.change_node("n3", labels={"tier": "b"})
    await world.until(5)


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind"])
def test_extender_calls_are_timed(verb: str) -> None:
    run_result, server = run({**PART_A, "bind": {"Error": "no"}}, bindVerb="bind")
    result = "error" if verb == "bind" else "ok"
    labels = {"extender": server.url, "verb": verb, "result": result}
    assert run_result.metrics.value("bayplan_extender_duration_seconds_count", **labels) >= 1
    working = "prioritizing_extender"
    assert run_result.metrics.value("scheduler_goroutines", operation=working) == 0
