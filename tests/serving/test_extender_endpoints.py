"""The protocol of an extender, from the side of a kube-scheduler."""

import asyncio
from typing import Any

import aiohttp
import msgspec
import pytest

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.clock import RealClock
from bayplan.config import config_from
from bayplan.engine.scheduler import Scheduler
from bayplan.plugins.registry import Registry
from bayplan.runner import Runner
from bayplan.serving.extender_endpoints import Advice, ExtenderEndpoints
from tests.adapters import manifests
from tests.scenarios.world import PROFILE, Setup, config_dict

POD = {**manifests.pod("p"), "metadata": {"name": "p", "namespace": "default", "uid": "u"}}


def node(name: str, cpu: str) -> Any:
    return manifests.node(name, status={"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}})


NODES = {"big": node("big", "8"), "small": node("small", "500m")}


def asked(
    path: str, body: Any = None, *, is_synced: bool = True, score_max: int = 10
) -> tuple[int, Any]:
    """(status, answer) of an extender whose profile has NodeResourcesFit."""
    clock = RealClock()
    setup = Setup(plugins=[("NodeResourcesFit", 1)])
    scheduler = Scheduler(config_from(config_dict(setup)), Registry(), clock)
    cluster = EmbeddedCluster(clock)
    for each in NODES.values():
        cluster.create(each)

    async def main() -> tuple[int, Any]:
        runner = Runner(scheduler, cluster)
        runner.pause()
        listening = asyncio.create_task(runner.run())
        while is_synced and not runner.is_synced:
            await asyncio.sleep(0)
        advice = Advice(
            advisor=scheduler.advisor,
            profile=PROFILE,
            is_ready=lambda: runner.is_synced and is_synced,
            score_max=score_max,
        )
        endpoints = ExtenderEndpoints(advice)
        port = await endpoints.start("127.0.0.1", 0)
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        method = "GET" if body is None else "POST"
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.request(method, f"http://127.0.0.1:{port}{path}", data=content) as answer,
            ):
                read = await answer.read()
                is_json = answer.content_type == "application/json"
                return answer.status, msgspec.json.decode(read) if is_json else read.decode()
        finally:
            await endpoints.stop()
            listening.cancel()
            await asyncio.wait([listening])
            scheduler.close()

    return asyncio.run(main())


def test_names_are_answered_with_names() -> None:
    status, answer = asked("/filter", {"Pod": POD, "Nodes": None, "NodeNames": ["small", "big"]})
    assert status == 200
    assert answer == {
        "Nodes": None,
        "NodeNames": ["big"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"small": "Insufficient cpu"},
        "Error": "",
    }


def test_whole_nodes_are_answered_with_whole_nodes() -> None:
    items = [NODES["small"], NODES["big"]]
    _, answer = asked("/filter", {"Pod": POD, "Nodes": {"items": items}, "NodeNames": None})
    assert answer["NodeNames"] is None
    assert answer["Nodes"] == {"metadata": {}, "items": [NODES["big"]]}


def test_members_are_read_in_any_case() -> None:
    _, answer = asked("/filter", {"pod": POD, "nodenames": ["big"]})
    assert answer["NodeNames"] == ["big"]


def test_scores_are_a_list_of_hosts() -> None:
    """LeastAllocated: 1 of 8 cpu, and memory as far as it counts."""
    status, answer = asked("/prioritize", {"Pod": POD, "NodeNames": ["big"]}, score_max=100)
    assert status == 200
    assert [each["Host"] for each in answer] == ["big"]
    assert 80 < answer[0]["Score"] <= 100
    _, coarse = asked("/prioritize", {"Pod": POD, "NodeNames": ["big"]})
    assert 8 <= coarse[0]["Score"] <= 10


WHOLE = {
    "Pods": [{**manifests.pod("v"), "metadata": {"name": "v", "uid": "v"}}],
    "NumPDBViolations": 2,
}
NAMED = {"Pods": [{"UID": "v"}], "NumPDBViolations": 2}


@pytest.mark.parametrize(
    "victims",
    [
        {"NodeNameToVictims": None, "NodeNameToMetaVictims": {"big": NAMED, "small": NAMED}},
        {"NodeNameToVictims": {"big": WHOLE, "small": WHOLE}, "NodeNameToMetaVictims": None},
    ],
)
def test_nodes_that_would_not_do_are_spared(victims: Any) -> None:
    assert asked("/preempt", {"Pod": POD, **victims}) == (
        200,
        {"NodeNameToMetaVictims": {"big": NAMED}},
    )


def test_without_victims_there_is_nothing_to_answer() -> None:
    said = "found no victims in the question, wanted ExtenderPreemptionArgs"
    assert asked("/preempt", {"Pod": POD}) == (500, f"bayplan: {said}\n")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"nonsense", "bayplan: "),
        ({"NodeNames": ["big"]}, "bayplan: found no Pod in the question, wanted ExtenderArgs"),
        (
            {"Pod": manifests.pod("p"), "NodeNames": ["big"]},
            "bayplan: found a pod without uid, wanted one as the API server has it",
        ),
        ({"Pod": {**POD, "spec": 7}, "NodeNames": ["big"]}, "bayplan: v1 Pod: "),
    ],
)
def test_what_cannot_be_answered_says_why(body: Any, said: str) -> None:
    status, answer = asked("/filter", body)
    assert (status, answer["Error"][: len(said)]) == (200, said)
    for path in ("/prioritize", "/preempt"):
        status, text = asked(path, body)
        assert (status, text[: len(said)]) == (500, said)


def test_before_the_cluster_is_known_nothing_is_answered() -> None:
    said = "the cluster has not been listed yet"
    _, answer = asked("/filter", {"Pod": POD, "NodeNames": ["big"]}, is_synced=False)
    assert answer == {"Error": f"bayplan: {said}"}
    assert asked("/readyz", is_synced=False) == (500, f"{said}\n")
    assert asked("/healthz", is_synced=False) == (200, "ok")
    assert asked("/readyz") == (200, "ok")
