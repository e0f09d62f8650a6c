"""A configured extender called over real HTTP, and the messages of its failures."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObjects
from bayplan.adapters.extenders import client as sending
from bayplan.adapters.extenders.client import (
    ExtenderUnreachable,
    HttpSender,
    Request,
    open_extenders,
    sender_makers,
)
from bayplan.api.objects import Pod
from bayplan.clock import ManualClock
from bayplan.config.decoding import decode
from bayplan.config.schema import Extender, named_extenders
from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb
from bayplan.state.pods import pod_info
from tests.adapters.extenders.server import CUT, closed_port, extender, never
from tests.adapters.extenders.server import Extender as Server
from tests.kit import manifests

# ---- client ---------------------------------------------------------------------------------


VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "bindVerb": "bind", "weight": 2}


def entry(url: str, **fields: Any) -> Extender:
    content = {"urlPrefix": url, "nodeCacheCapable": True, "httpTimeout": "5s", **VERBS, **fields}
    result, problems = decode(content, Extender, "")
    assert result is not None, problems
    return result


def answer(
    url: str, verb: ExtenderVerb = ExtenderVerb.FILTER, *, pod_is_there: bool = True, **fields: Any
) -> ExtenderAnswer:
    cluster = EmbeddedCluster(ManualClock())
    cluster.create(manifests.node("n1"))
    stored = cluster.create(manifests.pod("p"))
    assert isinstance(stored.object, Pod)
    pod = pod_info(stored.object)
    if not pod_is_there:
        cluster = EmbeddedCluster(ManualClock())
    entries = [entry(url, **fields)]
    (name,) = named_extenders(entries)

    async def main() -> ExtenderAnswer:
        async with open_extenders(
            entries, StoredObjects(cluster.get), sender_makers(entries)
        ) as asks:
            return await asks[name](AskExtender(7, name, verb, pod, ("n1",)))

    return asyncio.run(main())


@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_a_call_goes_to_the_verb_below_the_prefix(ending: str) -> None:
    with extender({"filter": {"NodeNames": ["n1"]}}) as server:
        assert answer(f"{server.url}/scheduler{ending}").node_names == {"n1"}
        (question,) = server.requests_of("filter")
        assert question["NodeNames"] == ["n1"]
        assert question["Pod"]["metadata"]["name"] == "p"


def test_complete_nodes_go_to_an_extender_without_a_node_cache() -> None:
    echo: Callable[[Any], Any] = lambda question: {"Nodes": question["Nodes"]}  # noqa: E731
    with extender({"filter": echo}) as server:
        assert answer(server.url, nodeCacheCapable=False).node_names == {"n1"}


def test_a_pod_is_bound() -> None:
    with extender({"bind": {}}) as server:
        assert answer(server.url, ExtenderVerb.BIND).error == ""
        (question,) = server.requests_of("bind")
        assert sorted(question) == ["Node", "PodName", "PodNamespace", "PodUID"]


def status(code: int) -> Callable[[Any], web.Response]:
    return lambda _: web.Response(status=code, text="that went wrong")


@pytest.mark.parametrize(
    ("response", "error"),
    [
        pytest.param(
            status(500), "failed filter with extender at URL {}/filter, code 500", id="status 500"
        ),
        pytest.param(
            status(204),
            "failed filter with extender at URL {}/filter, code 204",
            id="status other than 200",
        ),
        pytest.param(CUT, 'Post "{}/filter": EOF', id="broken connection"),
        pytest.param({"Error": "no licence"}, "no licence", id="error of the extender"),
        pytest.param(
            b"<html>",
            'extender "{}": the answer to filter cannot be read: JSON is malformed: '
            "invalid character (byte 0)",
            id="no JSON",
        ),
        pytest.param(
            {"NodeNames": {"n1": True}},
            'extender "{}": the answer to filter cannot be read: NodeNames: '
            "Expected `array | null`, got `object`",
            id="wrong type",
        ),
    ],
)
def test_failures_have_upstreams_messages(response: Any, error: str) -> None:
    with extender({"filter": response}) as server:
        assert answer(server.url) == ExtenderAnswer(error=error.format(server.url))


def test_a_call_without_an_answer_ends_at_its_timeout() -> None:
    with extender({"filter": lambda _: never()}) as server:
        result = answer(server.url, httpTimeout="50ms")
    assert result.error.endswith("(Client.Timeout exceeded while awaiting headers)")


def test_no_call_is_made_about_a_deleted_pod() -> None:
    with extender({}) as server:
        assert answer(server.url, pod_is_there=False).error == "pod default/p is gone"
        assert server.verbs == []


def test_two_extenders_may_share_an_address() -> None:
    def other(server: Server) -> list[Extender]:
        return [entry(server.url), entry(server.url, filterVerb="other")]

    with extender({"filter": {}, "other": {}}) as server:
        names = list(named_extenders(other(server)))
        assert names == [server.url, f"{server.url} (extenders[1])"]
        assert list(sender_makers(other(server))) == names


# ---- sending --------------------------------------------------------------------------------


def send(url: str, *, timeout_seconds: float = 5.0, repeatable: bool = True) -> tuple[int, bytes]:
    async def main() -> tuple[int, bytes]:
        sender = HttpSender(ssl.create_default_context())
        try:
            return await sender.send(Request(url, b"{}", timeout_seconds, repeatable))
        finally:
            await sender.close()

    return asyncio.run(main())


def refused(url: str, **options: float) -> str:
    with pytest.raises(ExtenderUnreachable) as raised:
        send(url, **options)  # pyright: ignore[reportArgumentType]
    return str(raised.value)


def test_a_call_is_posted_as_json() -> None:
    calls: list[tuple[str, str]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        calls.append((request.method, request.headers["Content-Type"]))
        return web.Response(status=418, body=b"short and stout")

    async def main() -> tuple[int, bytes]:
        runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        sender = HttpSender(ssl.create_default_context())
        try:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/filter"
            return await sender.send(Request(url, b"{}", 5.0))
        finally:
            await sender.close()
            await runner.cleanup()

    assert asyncio.run(main()) == (418, b"short and stout")
    assert calls == [("POST", "application/json")]


def test_a_refused_connection_has_upstreams_message() -> None:
    url = f"http://127.0.0.1:{closed_port()}/filter"
    address = url.removeprefix("http://").removesuffix("/filter")
    assert refused(url) == f'Post "{url}": dial tcp {address}: connect: connection refused'


def test_a_timeout_has_upstreams_message() -> None:
    with extender({"filter": lambda _: never()}) as server:
        url = f"{server.url}/filter"
        cause = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        assert refused(url, timeout_seconds=0.05) == f'Post "{url}": {cause}'


def test_a_broken_connection_is_retried_once() -> None:
    answers = [CUT, {"fine": True}]
    with extender({"filter": lambda _: answers.pop(0)}) as server:
        assert send(f"{server.url}/filter") == (200, b'{"fine":true}')
        assert len(server.requests_of("filter")) == 2


@pytest.mark.parametrize(("repeatable", "count"), [(True, 2), (False, 1)])
def test_a_call_fails_after_the_retry_or_at_once_if_it_is_not_repeatable(
    repeatable: bool, count: int
) -> None:
    with extender({"filter": CUT}) as server:
        url = f"{server.url}/filter"
        assert refused(url, repeatable=repeatable) == f'Post "{url}": EOF'
        # A call that the extender may have performed is not repeated.
        assert len(server.requests_of("filter")) == count


def test_an_unknown_host_has_upstreams_message() -> None:
    url = "http://extender.invalid:80/filter"
    assert refused(url) == f'Post "{url}": dial tcp: lookup extender.invalid: no such host'


def test_proxies_come_from_the_environment_except_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example.com:3128")
    monkeypatch.setenv("no_proxy", "near.example.com")
    assert sending._proxy("http://far.example.com/x") == "http://proxy.example.com:3128"
    assert sending._proxy("http://near.example.com/x") is None
    assert sending._proxy("http://127.0.0.1:8888/x") is None
    assert sending._proxy("http://localhost:8888/x") is None
    assert sending._proxy("https://far.example.com/x") is None
