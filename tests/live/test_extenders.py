"""Failing extenders with a real API server: pods are placed as soon as possible."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.extenders.server import CUT, Answer, closed_port, extender, never
from tests.live.account import Account
from tests.live.kubelet import ready_node
from tests.live.mirror import Object
from tests.live.priorities import add_running, priority
from tests.live.world import World, scenario

pytestmark = pytest.mark.timeout(400)


def silent(_: Any) -> Any:
    """An answer that never comes."""
    return never()


def entry(url: str, **fields: Any) -> Object:
    verbs = {"filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "1s"}
    return {"urlPrefix": url, **verbs, **fields}


#: The extender's answer, and the text in the pod's condition.
FAILURES = [
    pytest.param(silent, "Client.Timeout exceeded while awaiting headers", id="no answer"),
    pytest.param(CUT, "EOF", id="broken connection"),
    pytest.param(b"<html>", "the answer to filter cannot be read", id="no JSON"),
    pytest.param({"NodeNames": ["nowhere"]}, "nowhere", id="unknown node"),
]


def says(world: World, name: str, text: str) -> Callable[[], bool]:
    return lambda: (
        world.condition(name).get("reason") == "SchedulerError"
        and text in world.condition(name).get("message", "")
    )


@scenario()
@pytest.mark.parametrize(("answer", "text"), FAILURES)
async def test_a_pod_waits_until_its_failing_extender_recovers(
    world: World, tmp_path: Path, answer: Answer, text: str
) -> None:
    with extender({"filter": answer}) as server:
        # Only pods that request the managed resource wait for the extender.
        managed = [{"name": "example.com/licence", "ignoredByScheduler": True}]
        entries = [entry(server.url, managedResources=managed)]
        account = Account(world, tmp_path, extenders=entries)
        await account.begin()
        room = {"example.com/licence": "1"}
        await world.add_nodes(ready_node("n1", room=room), ready_node("n2", room=room))
        async with account.scheduler():
            waiting = account.pod("p")
            (container,) = waiting["spec"]["containers"]
            container["resources"]["limits"] = {"example.com/licence": "1"}
            await world.add_pods(waiting)
            await world.until(says(world, "p", text), f"the condition of p says: {text}")
            await world.add_pods(account.pod("other"))
            await world.until_bound("other")
            assert "p" not in world.bound()
            server.answers["filter"] = {"NodeNames": ["n2"]}
            await world.until_bound("p")
            assert world.bound()["p"] == "n2"


@scenario()
@pytest.mark.parametrize(
    "answer", [silent, CUT, b"<html>"], ids=["no answer", "broken connection", "no JSON"]
)
async def test_an_ignorable_extender_delays_no_pod(
    world: World, tmp_path: Path, answer: Answer
) -> None:
    with extender({"filter": answer}) as server:
        account = Account(world, tmp_path, extenders=[entry(server.url, ignorable=True)])
        await account.begin()
        await world.add_nodes(ready_node("n1"))
        async with account.scheduler():
            await world.add_pods(account.pod("p"))
            await world.until_bound("p")
        assert set(server.verbs) == {"filter"}
        assert not await world.events("p", "FailedScheduling")


@scenario()
async def test_an_unreachable_extender_is_named_in_the_condition_of_the_pod(
    world: World, tmp_path: Path
) -> None:
    port = closed_port()
    account = Account(world, tmp_path, extenders=[entry(f"http://127.0.0.1:{port}")])
    await account.begin()
    await world.add_nodes(ready_node("n1"))
    async with account.scheduler():
        await world.add_pods(account.pod("p"))
        text = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
        await world.until(says(world, "p", text), text)
        event = await world.until_event("p", "FailedScheduling")
        assert text in event["note"]


# ---- preempt ---------------------------------------------------------------------------------


def without_n1(question: Any) -> Any:
    victims = question["NodeNameToMetaVictims"]
    return {"NodeNameToMetaVictims": {n: v for n, v in victims.items() if n != "n1"}}


@scenario()
async def test_an_extender_protects_the_node_that_preemption_would_have_chosen(
    world: World, tmp_path: Path
) -> None:
    with extender({"preempt": without_n1}) as server:
        verb = {"preemptVerb": "preempt", "filterVerb": ""}
        account = Account(world, tmp_path, extenders=[entry(server.url, **verb)])
        await account.begin()
        await world.add_nodes(ready_node("n1", cpu=1), ready_node("n2", cpu=1))
        await add_running(world, "n1", "a", 0)
        await add_running(world, "n2", "b", 100)
        high = await priority(world, 1000)
        await world.until_running(2)
        async with account.scheduler():
            waiting = account.pod("p", **high)
            waiting["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
            await world.add_pods(waiting)
            await world.until_bound("p")
        assert world.bound() == {"a": "n1", "p": "n2"}
        (question,) = server.requests_of("preempt")
        victims = question["NodeNameToMetaVictims"]
        assert {name: len(each["Pods"]) for name, each in victims.items()} == {"n1": 1, "n2": 1}
