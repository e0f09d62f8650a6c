"""S-06, part D: extenders that take part in preemption; row F-088.

A simulation calls the extenders over HTTP; other tests call functions in the process.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from bayplan.config import config_from
from bayplan.plugins.registry import Registry
from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb, NamedVictims, Victims
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.result import PodResult
from bayplan.sim.simulation import Simulation
from bayplan.testing import PodOptions, api_pod, node
from tests.adapters.extenders.server import Answer, closed_port, extender
from tests.adapters.extenders.server import Extender as Server
from tests.kit.extenders import FakeExtender
from tests.scenarios.world import PROFILE, Setup, World, config_dict, manifest, play

FIT = ["NodeResourcesFit", "DefaultPreemption"]
REFUSED = "0/3 nodes are available: 3 Insufficient cpu. preemption: "
#: name → (node, cpu, priority, minute of its start)
RUNNING = {
    "p5": ("n1", 2, 5, 1), "p10": ("n1", 2, 10, 1),
    "w7": ("n2", 3, 7, 1), "w2000": ("n2", 1, 2000, 1),
    "v1": ("n3", 1, 1, 1), "v2": ("n3", 1, 1, 2), "v3": ("n3", 1, 1, 3), "v4": ("n3", 1, 1, 4),
}  # fmt: skip


def running(name: str) -> PodOptions:
    where, cpu, priority, minute = RUNNING[name]
    status = {"phase": "Running", "startTime": f"2026-01-01T00:0{minute}:00Z"}
    return {"node": where, "cpu": cpu, "memory": "1Gi", "priority": priority, "status": status}


# ---- over HTTP, from a simulation ------------------------------------------------------------


def objects() -> Iterator[dict[str, Any]]:
    for name in ("n1", "n2", "n3"):
        yield manifest("Node", node(name, cpu=4, memory="64Gi"))
    for name in RUNNING:
        content = manifest("Pod", api_pod(name, **running(name)))
        content["spec"]["terminationGracePeriodSeconds"] = 0
        yield content
    high = api_pod("h", cpu=3, memory="1Gi", priority=1000, scheduler_name=PROFILE)
    yield manifest("Pod", high)


class Run:
    """A simulation of the scenario for three seconds."""

    def __init__(self, *urls: str, **fields: Any) -> None:
        entries = [
            {"urlPrefix": url, "preemptVerb": "preempt", "nodeCacheCapable": True, **fields}
            for url in urls
        ]
        setup = Setup(plugins=FIT, config={"extenders": entries})
        workload = Workload(initial=tuple(objects()), until_seconds=3.0)
        config = config_from(config_dict(setup))
        self.result = Simulation(workload, config, Registry(), seed=1).run()

    @property
    def pod(self) -> PodResult:
        return self.result.pods["default/h"]

    @property
    def evicted(self) -> set[str]:
        pods = self.result.pods.items()
        return {key.partition("/")[2] for key, result in pods if result.deleted_at is not None}


def run(answer: Answer, **fields: Any) -> tuple[Run, Server]:
    with extender({"preempt": answer}) as server:
        return Run(server.url, **fields), server


def without(name: str) -> Answer:
    def answer(question: Any) -> Any:
        victims = question["NodeNameToMetaVictims"]
        return {"NodeNameToMetaVictims": {n: v for n, v in victims.items() if n != name}}

    return answer


def test_an_extender_that_drops_the_best_node_nominates_the_next_one() -> None:
    result, server = run(without("n3"))
    assert (result.pod.node, result.evicted) == ("n2", {"w7"})
    (question,) = server.requests_of("preempt")
    victims = question["NodeNameToMetaVictims"]
    assert {name: len(each["Pods"]) for name, each in victims.items()} == {
        "n1": 2,
        "n2": 1,
        "n3": 3,
    }
    assert question["Pod"]["metadata"]["name"] == "h"
    assert question["NodeNameToVictims"] is None


def test_without_the_extender_the_best_node_is_nominated() -> None:
    result, _ = run(lambda question: question)
    assert (result.pod.node, result.evicted) == ("n3", {"v2", "v3", "v4"})


@pytest.mark.parametrize("answer", [{}, {"NodeNameToMetaVictims": None}])
def test_an_empty_answer_ends_the_preemption(answer: Any) -> None:
    result, _ = run(answer)
    assert (result.pod.node, result.pod.nominated_node, result.evicted) == (None, None, set())
    assert result.pod.message == f"{REFUSED}no candidate node for preemption"


def test_an_extender_without_a_node_cache_gets_complete_pods() -> None:
    def whole(question: Any) -> Any:
        assert question["NodeNameToMetaVictims"] is None
        victims = question["NodeNameToVictims"]["n1"]["Pods"]
        pods = [{"UID": each["metadata"]["uid"]} for each in victims]
        return {"nodenametometavictims": {"n1": {"pods": pods}}}

    result, _ = run(whole, nodeCacheCapable=False)
    assert (result.pod.node, result.evicted) == ("n1", {"p5", "p10"})


def test_the_second_extender_gets_the_candidates_that_the_first_returned() -> None:
    with extender({"preempt": without("n3")}) as one, extender({"preempt": without("n2")}) as two:
        result = Run(one.url, two.url)
        (question,) = two.requests_of("preempt")
    assert sorted(question["NodeNameToMetaVictims"]) == ["n1", "n2"]
    assert (result.pod.node, result.evicted) == ("n1", {"p5", "p10"})


def test_an_unreachable_extender_ends_the_preemption_with_its_message() -> None:
    """As upstream, the message has PostFilter's error, and the attempt does not become an error."""
    port = closed_port()
    result = Run(f"http://127.0.0.1:{port}/")
    cause = f'Post "http://127.0.0.1:{port}/preempt": dial tcp 127.0.0.1:{port}: '
    assert result.pod.message == f"{REFUSED}{cause}connect: connection refused"
    assert (result.pod.node, result.evicted) == (None, set())


def test_an_unreachable_ignorable_extender_is_skipped() -> None:
    result = Run(f"http://127.0.0.1:{closed_port()}/", ignorable=True)
    assert (result.pod.node, result.evicted) == ("n3", {"v2", "v3", "v4"})


def test_an_invalid_answer_is_reported_at_the_pod() -> None:
    result, server = run({"NodeNameToMetaVictims": {"n9": {"Pods": [{"UID": "u"}]}}})
    cause = f'extender "{server.url}" claims to preempt pods on node "n9"'
    assert result.pod.message == f"{REFUSED}{cause}, but there is no such node"
    assert result.evicted == set()


# ---- in one process -------------------------------------------------------------------------


near = partial(
    FakeExtender,
    "near",
    verbs=frozenset((ExtenderVerb.PREEMPT,)),
    selects=lambda pod: pod.name == "h",
)


class SlowExtender:
    """Answers after two seconds; ``uids``: node → victims; None: the victims of the request."""

    def __init__(self, uids: dict[str, list[str]] | None = None) -> None:
        self.uids = uids
        self.questions: list[AskExtender] = []

    async def __call__(self, question: AskExtender) -> ExtenderAnswer:
        self.questions.append(question)
        await asyncio.sleep(2)
        uids = self.uids
        if uids is None:
            uids = {name: _uids(victims) for name, victims in question.victims.items()}
        return ExtenderAnswer(victims={n: NamedVictims(tuple(each)) for n, each in uids.items()})


def _uids(victims: Victims) -> list[str]:
    return [pod.uid for pod in victims.pods]


def played_with_extender(scene: Any, ask: SlowExtender, **options: Any) -> World:
    async def main(world: World) -> None:
        for name in ("n1", "n2", "n3"):
            world.add_node(name, cpu=4, memory="64Gi")
        for name in RUNNING:
            world.add_pod(name, **running(name))
        await scene(world)

    options = {"plugins": FIT, "extenders": [near()], **options}
    return play(main, asks={"near": ask}, **options)


def add_h(world: World) -> None:
    world.add_pod("h", cpu=3, memory="1Gi", priority=1000)


async def h_comes(world: World) -> None:
    """Create pod h and wait one second, in the middle of the extender's call."""
    add_h(world)
    await world.until(1)


def is_gone(world: World, name: str) -> bool:
    return all(stored.object.metadata.name != name for stored in world.cluster.objects("v1 Pod"))


def test_exactly_the_victims_named_by_the_extender_are_evicted() -> None:
    ask = SlowExtender()

    async def scene(world: World) -> None:
        ask.uids = {"n3": [world.uid(name) for name in ("v1", "v3", "v4")]}
        await h_comes(world)
        assert world.events("h", "FailedScheduling") == []
        await world.until(5)

    world = played_with_extender(scene, ask)
    assert [name for name in RUNNING if is_gone(world, name)] == ["v1", "v3", "v4"]
    bound = world.bound("h")
    assert bound is not None
    assert bound[1] == "n3"
    (note,) = world.events("h", "FailedScheduling")
    assert note == f"{REFUSED}found a potential placement for pod on node n3, preempting 3 victims"


def test_other_pods_are_placed_during_the_call() -> None:
    async def scene(world: World) -> None:
        await h_comes(world)
        world.add_node("n4", cpu=1)
        world.add_pod("small", cpu=1)
        await world.until(5)

    ask = SlowExtender()
    world = played_with_extender(scene, ask)
    assert world.bound("small") == (1.0, "n4")
    assert world.bound("h") == (4.0, "n3")
    assert len(ask.questions) == 1


def test_if_room_appears_during_the_call_nothing_is_evicted() -> None:
    async def scene(world: World) -> None:
        await h_comes(world)
        world.add_node("n4", cpu=4, memory="64Gi")
        await world.until(5)

    world = played_with_extender(scene, SlowExtender())
    assert world.bound("h") == (2.0, "n4")
    assert not any(is_gone(world, name) for name in RUNNING)


def test_a_node_whose_victims_changed_during_the_call_is_left_out() -> None:
    """After the deletion of v1, two victims suffice on n3, which the extender has not approved."""

    async def scene(world: World) -> None:
        await h_comes(world)
        world.delete_pod("v1")
        await world.until(5)

    ask = SlowExtender()
    world = played_with_extender(scene, ask)
    bound = world.bound("h")
    assert bound is not None
    assert bound[1] == "n2"
    assert [name for name in RUNNING if is_gone(world, name)] == ["w7", "v1"]


def test_if_all_candidates_changed_the_extender_is_called_again() -> None:
    async def scene(world: World) -> None:
        for name in ("n1", "n2"):
            world.delete_node(name)
        await h_comes(world)
        world.delete_pod("v1")
        await world.until(9)

    ask = SlowExtender()
    world = played_with_extender(scene, ask)
    counts = [len(question.victims["n3"].pods) for question in ask.questions]
    assert counts == [3, 2]
    assert world.bound("h") == (6.0, "n3")


def test_a_preemptor_deleted_during_the_call_evicts_nothing() -> None:
    async def scene(world: World) -> None:
        await h_comes(world)
        world.delete_pod("h")
        await world.until(5)

    world = played_with_extender(scene, SlowExtender())
    assert not any(is_gone(world, name) for name in RUNNING)
    assert world.scheduler.only_retries_wait


def test_an_ignored_extender_failure_is_in_the_journal() -> None:
    async def scene(world: World) -> None:
        add_h(world)
        await world.until(5)

    ask = SlowExtender({"n2": []})
    world = played_with_extender(scene, ask, extenders=[near(ignorable=True)])
    text = 'went on without near: expected at least one victim pod on node "n2"'
    assert text in world.notes("default/h")
    assert world.message("h") == f"{REFUSED}no candidate node for preemption"


def test_an_extender_is_not_called_for_an_uninteresting_pod() -> None:
    async def scene(world: World) -> None:
        world.add_pod("other", cpu=3, memory="1Gi", priority=1000)
        await world.until(3)

    ask = SlowExtender()
    world = played_with_extender(scene, ask)
    bound = world.bound("other")
    assert bound is not None
    assert bound[1] == "n3"
    assert ask.questions == []
