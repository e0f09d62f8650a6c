"""The extender protocol as kube-scheduler uses it."""

import asyncio
import io
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

import aiohttp
import msgspec
import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.clock import RealClock
from bayplan.config import config_from
from bayplan.engine.scheduler import Scheduler
from bayplan.plugins.registry import Registry
from bayplan.runner import Runner
from bayplan.serving import extender_endpoints
from bayplan.serving.extender_endpoints import (
    NODES_MAX,
    POD_BYTES_MAX,
    QUESTION_BYTES_MAX,
    Advice,
    ExtenderEndpoints,
)
from tests.kit import manifests
from tests.scenarios.world import PROFILE, Setup, config_dict

T = TypeVar("T")

POD = {**manifests.pod("p"), "metadata": {"name": "p", "namespace": "default", "uid": "u"}}


def node_with_cpu(name: str, cpu: str) -> Any:
    return manifests.node(name, status={"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}})


NODES = {"big": node_with_cpu("big", "8"), "small": node_with_cpu("small", "500m")}


def response(
    path: str,
    body: Any = None,
    *,
    is_synced: bool = True,
    score_max: int = 10,
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """(status, answer) of an extender whose profile has NodeResourcesFit."""

    async def ask(session: aiohttp.ClientSession, url: str) -> tuple[int, Any]:
        is_written = body is None or isinstance(body, bytes | io.BytesIO)
        content = body if is_written else msgspec.json.encode(body)
        method = "GET" if body is None else "POST"
        async with session.request(method, f"{url}{path}", data=content, headers=headers) as answer:
            read = await answer.read()
            is_json = answer.content_type == "application/json"
            return answer.status, msgspec.json.decode(read) if is_json else read.decode()

    return served(ask, is_synced=is_synced, score_max=score_max)


def served(
    ask: Callable[[aiohttp.ClientSession, str], Awaitable[T]],
    *,
    is_synced: bool = True,
    score_max: int = 10,
) -> T:
    """The result of ``ask`` with the URL of an extender whose profile has NodeResourcesFit."""
    clock = RealClock()
    setup = Setup(plugins=[("NodeResourcesFit", 1)])
    scheduler = Scheduler(config_from(config_dict(setup)), Registry(), clock)
    cluster = EmbeddedCluster(clock)
    for each in NODES.values():
        cluster.create(each)

    async def main() -> T:
        runner = Runner(scheduler, cluster)
        runner.pause()
        listening = asyncio.create_task(runner.run())
        while is_synced and not runner.is_synced:
            await asyncio.sleep(0)
        advice = Advice(
            advisor=scheduler.one_shot,
            profile=PROFILE,
            is_ready=lambda: runner.is_synced and is_synced,
            score_max=score_max,
        )
        endpoints = ExtenderEndpoints(advice)
        port = await endpoints.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                return await ask(session, f"http://127.0.0.1:{port}")
        finally:
            await endpoints.stop()
            listening.cancel()
            await asyncio.wait([listening])
            scheduler.close()

    return asyncio.run(main())


def test_node_names_are_answered_with_node_names() -> None:
    status, answer = response("/filter", {"Pod": POD, "Nodes": None, "NodeNames": ["small", "big"]})
    assert status == 200
    assert answer == {
        "Nodes": None,
        "NodeNames": ["big"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"small": "Insufficient cpu"},
        "Error": "",
    }


def test_complete_nodes_are_answered_with_complete_nodes() -> None:
    items = [NODES["small"], NODES["big"]]
    _, answer = response("/filter", {"Pod": POD, "Nodes": {"items": items}, "NodeNames": None})
    assert answer["NodeNames"] is None
    assert answer["Nodes"] == {"metadata": {}, "items": [NODES["big"]]}


def test_field_names_are_case_insensitive() -> None:
    _, answer = response("/filter", {"pod": POD, "nodenames": ["big"]})
    assert answer["NodeNames"] == ["big"]


def test_scores_are_a_list_of_hosts() -> None:
    """LeastAllocated: the pod requests 1 of 8 cpu, and the default memory."""
    status, answer = response("/prioritize", {"Pod": POD, "NodeNames": ["big"]}, score_max=100)
    assert status == 200
    assert [each["Host"] for each in answer] == ["big"]
    assert 80 < answer[0]["Score"] <= 100
    _, coarse = response("/prioritize", {"Pod": POD, "NodeNames": ["big"]})
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
def test_nodes_where_preemption_does_not_help_are_removed(victims: Any) -> None:
    assert response("/preempt", {"Pod": POD, **victims}) == (
        200,
        {"NodeNameToMetaVictims": {"big": NAMED}},
    )


def test_without_victims_the_answer_is_empty() -> None:
    message = "found no victims in the question, wanted ExtenderPreemptionArgs"
    assert response("/preempt", {"Pod": POD}) == (500, f"bayplan: {message}\n")


@pytest.mark.parametrize(
    ("body", "message"),
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
def test_an_unanswerable_request_gets_the_reason(body: Any, message: str) -> None:
    status, answer = response("/filter", body)
    assert (status, answer["Error"][: len(message)]) == (200, message)
    for path in ("/prioritize", "/preempt"):
        status, text = response(path, body)
        assert (status, text[: len(message)]) == (500, message)


def test_before_the_cache_is_synced_requests_are_refused() -> None:
    message = "the cluster has not been listed yet"
    _, answer = response("/filter", {"Pod": POD, "NodeNames": ["big"]}, is_synced=False)
    assert answer == {"Error": f"bayplan: {message}"}
    assert response("/readyz", is_synced=False) == (500, f"{message}\n")
    assert response("/healthz", is_synced=False) == (200, "ok")
    assert response("/readyz") == (200, "ok")


# ---- limits ---------------------------------------------------------------------------------

VERBS = ["/filter", "/prioritize", "/preempt"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("part", ["Anything", "Pod", "Nodes"])
def test_deep_nesting_is_answered_with_bad_request(verb: str, part: str) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    status, answer = response(verb, b'{"' + part.encode() + b'":' + deep + b"}")
    assert (status, answer) == (400, "bayplan: found a question that is nested too deeply\n")


def test_a_request_that_is_too_long_is_refused_before_it_is_read() -> None:
    async def ask(session: aiohttp.ClientSession, url: str) -> int:
        headers = {"Content-Length": str(QUESTION_BYTES_MAX + 1)}
        async with session.post(f"{url}/filter", data=Endless(), headers=headers) as answer:
            return answer.status

    assert served(ask) == 413


class Endless(aiohttp.BytesPayload):
    """A body that never arrives."""

    def __init__(self) -> None:
        super().__init__(b"")

    async def write(self, writer: Any) -> None:
        await asyncio.Event().wait()


def test_a_request_without_a_length_is_refused() -> None:
    async def chunks() -> AsyncGenerator[bytes]:
        yield b"{}"

    async def ask(session: aiohttp.ClientSession, url: str) -> int:
        async with session.post(f"{url}/filter", data=chunks()) as answer:
            return answer.status

    assert served(ask) == 411


def test_a_compressed_request_is_refused() -> None:
    assert response("/filter", b"{}", headers={"Content-Encoding": "gzip"})[0] == 415


def test_requests_beyond_the_memory_limit_are_refused_while_health_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extender_endpoints, "QUESTIONS_BYTES_MAX", 10_000)

    async def ask(session: aiohttp.ClientSession, url: str) -> list[int]:
        statuses: list[int] = []
        headers = {"Content-Length": "10000"}
        slow = asyncio.ensure_future(session.post(f"{url}/filter", data=Endless(), headers=headers))
        question = msgspec.json.encode({"Pod": POD, "NodeNames": ["big"]})
        while not statuses or statuses[-1] == 200:
            async with session.post(f"{url}/filter", data=question) as answer:
                statuses.append(answer.status)
        async with session.get(f"{url}/healthz") as answer:
            statuses.append(answer.status)
        slow.cancel()
        await asyncio.wait([slow])
        while statuses[-1] != 200 or len(statuses) < 4:
            async with session.post(f"{url}/filter", data=question) as answer:
                statuses.append(answer.status)
        return statuses

    statuses = served(ask)
    first = statuses.index(503)
    assert statuses[first + 1] == 200
    assert statuses[-1] == 200


def test_health_answers_while_requests_wait() -> None:
    names = [f"n{number}" for number in range(20_000)]
    question = msgspec.json.encode({"Pod": POD, "NodeNames": names})
    order: list[str] = []

    async def ask(session: aiohttp.ClientSession, url: str) -> None:
        async def one(method: str, path: str, data: bytes | None = None) -> None:
            async with session.request(method, f"{url}{path}", data=data) as answer:
                assert answer.status == 200
                order.append(path)

        questions = [one("POST", "/filter", question) for _ in range(20)]
        await asyncio.gather(*questions, one("GET", "/healthz"))

    served(ask)
    assert order.index("/healthz") < len(order) - 1


def test_too_many_nodes_are_refused() -> None:
    names = [f"n{number}" for number in range(NODES_MAX + 1)]
    message = f"bayplan: found {NODES_MAX + 1} nodes in the question, wanted {NODES_MAX} at most"
    assert response("/filter", {"Pod": POD, "NodeNames": names}) == (200, {"Error": message})
    named = {"Pod": POD, "NodeNameToMetaVictims": {name: {} for name in names}}
    assert response("/preempt", named) == (500, f"{message}\n")


def test_a_pod_larger_than_the_api_allows_is_refused() -> None:
    meta = {"name": "p", "uid": "u", "annotations": {"a": "x" * POD_BYTES_MAX}}
    question = msgspec.json.encode({"Pod": {**POD, "metadata": meta}, "NodeNames": ["big"]})
    _, answer = response("/filter", io.BytesIO(question))
    assert answer["Error"].endswith(f"bytes, wanted {POD_BYTES_MAX} at most")


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
def test_a_request_from_a_browser_page_is_refused(headers: dict[str, str]) -> None:
    assert response("/filter", {"Pod": POD, "NodeNames": ["big"]}, headers=headers)[0] == 403
