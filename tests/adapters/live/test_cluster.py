"""The port over HTTP: requests, answers, and the log of failures."""

import asyncio
import logging
from typing import Any

import msgspec
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from bayplan import ports
from bayplan.adapters.live.cluster import (
    EMPTY_WATCHES_MAX,
    ClusterOptions,
    FailureLog,
    LiveCluster,
    open_cluster,
    status_patch,
)
from bayplan.api.objects import NODE, POD, Condition
from bayplan.serving.component_metrics import register_cluster
from bayplan.testing import pod
from tests.adapters.live.clients import result_of, talking_to
from tests.kit.api_server import CORE, FakeApiServer, fine, status

# ---- cluster --------------------------------------------------------------------------------


WEB = pod("web", namespace="ns", uid="uid-web")


def test_a_binding_names_the_node_and_the_uid_of_the_pod() -> None:
    server = FakeApiServer(fine)
    result_of(server, lambda cluster: cluster.bind(WEB, "n1"))
    assert server.calls == [
        (
            "POST",
            "/api/v1/namespaces/ns/pods/web/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"namespace": "ns", "name": "web", "uid": "uid-web"},
                "target": {"kind": "Node", "name": "n1"},
            },
        )
    ]


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        ((409, "Conflict", "pod web is already assigned to node n2"), ports.ConflictError),
        ((404, "NotFound", "pods web not found"), ports.NotFoundError),
        ((403, "Forbidden", "namespace ns is being terminated"), ports.ApiError),
        ((500, "InternalError", "etcdserver: request timed out"), ports.OutcomeUnknownError),
        ((503, "ServiceUnavailable", "going down"), ports.OutcomeUnknownError),
        ((504, "Timeout", "timeout"), ports.OutcomeUnknownError),
    ],
)
def test_a_binding_answered_with_a_server_error_has_an_unknown_outcome(
    answer: tuple[int, str, str], raised: type[Exception]
) -> None:
    with pytest.raises(raised) as error:
        result_of(FakeApiServer(status(*answer)), lambda cluster: cluster.bind(WEB, "n1"))
    assert type(error.value) is raised
    assert str(error.value) == answer[2]


def test_a_status_patch_is_merged_by_the_server_and_names_the_uid() -> None:
    condition = Condition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        message="no",
        observed_generation=2,
    )
    patch = ports.PatchPodStatus("ns", "web", "uid-web", condition, "n1")
    server = FakeApiServer(fine)
    result_of(server, lambda cluster: cluster.patch_pod_status(patch))
    [(method, path, content)] = server.calls
    assert (method, path) == ("PATCH", "/api/v1/namespaces/ns/pods/web/status")
    assert server.received[-1].headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert content == {
        "metadata": {"uid": "uid-web"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "no",
                    "observedGeneration": 2,
                }
            ],
            "nominatedNodeName": "n1",
        },
    }


@pytest.mark.parametrize(("nominated", "status"), [("", {"nominatedNodeName": None}), (None, {})])
def test_a_nomination_is_cleared_or_left_unchanged(
    nominated: str | None, status: dict[str, Any]
) -> None:
    patch = ports.PatchPodStatus("ns", "web", "uid-web", None, nominated)
    assert status_patch(patch)["status"] == status


@pytest.mark.parametrize(
    "answer",
    [
        (422, "Invalid", 'Pod "web" is invalid: metadata.uid: Invalid value: "u": immutable'),
        (409, "Conflict", "the UID in the precondition (u) does not match the UID in record (v)"),
    ],
)
def test_another_pod_under_the_name_counts_as_not_found(answer: tuple[int, str, str]) -> None:
    patch = ports.PatchPodStatus("ns", "web", "u", None, "")
    with pytest.raises(ports.NotFoundError):
        result_of(FakeApiServer(status(*answer)), lambda cluster: cluster.patch_pod_status(patch))
    with pytest.raises(ports.NotFoundError):
        result_of(
            FakeApiServer(status(*answer)), lambda cluster: cluster.delete_pod("ns", "web", "u")
        )


def test_a_version_conflict_raises_a_conflict() -> None:
    patch = ports.PatchPodStatus("ns", "web", "u", None, "")
    answer = status(409, "Conflict", "the object has been modified")
    with pytest.raises(ports.ConflictError):
        result_of(FakeApiServer(answer), lambda cluster: cluster.patch_pod_status(patch))


@pytest.mark.parametrize(("uid", "preconditions"), [("u", {"uid": "u"}), ("", None)])
def test_a_deletion_names_the_uid(uid: str, preconditions: Any) -> None:
    server = FakeApiServer(fine)
    result_of(server, lambda cluster: cluster.delete_pod("ns", "web", uid))
    [(method, path, content)] = server.calls
    assert (method, path) == ("DELETE", "/api/v1/namespaces/ns/pods/web")
    assert content.get("preconditions") == preconditions


def test_an_object_is_patched_with_a_json_merge_patch() -> None:
    server = FakeApiServer(fine)
    result_of(
        server, lambda cluster: cluster.patch(NODE, "", "n1", {"spec": {"unschedulable": None}})
    )
    assert server.calls == [("PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": None}})]
    assert server.received[-1].headers["Content-Type"] == "application/merge-patch+json"


def test_a_pod_is_decoded() -> None:
    server = FakeApiServer(
        web.json_response({"metadata": {"name": "web"}, "spec": {"nodeName": "n1"}})
    )
    result = result_of(server, lambda cluster: cluster.get_pod("ns", "web"))
    assert result.spec.node_name == "n1"


# ---- kinds -----------------------------------------------------------------------------------


def test_a_kind_is_offered_if_the_server_lists_it() -> None:
    async def ask(cluster: LiveCluster) -> list[bool]:
        kinds = [POD, NODE, "resource.k8s.io/v1 ResourceClaim"]
        await cluster.discover(kinds)
        return [cluster.offers(kind) for kind in kinds]

    assert result_of(FakeApiServer(fine), ask) == [True, True, False]


def test_an_unreadable_kind_is_reported_once_until_it_is_readable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Another test may have set the level to INFO, at which the program logs lines of its own.
    caplog.set_level(logging.WARNING)
    message = 'nodes is forbidden: User "x" cannot list resource "nodes" in API group ""'
    page = web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
    server = FakeApiServer(*(status(403, "Forbidden", message) for _ in range(2)), page)

    async def ask(cluster: LiveCluster) -> None:
        for _ in range(2):
            with pytest.raises(ports.ApiError):
                await cluster.list(NODE)
        assert cluster.problems == {"list v1 Node": message}
        await cluster.list(NODE)
        assert not cluster.problems

    result_of(server, ask)
    assert caplog.messages == [f"cannot list v1 Node: {message}"]


def test_an_expired_watch_is_no_failure_and_a_refused_watch_is_one() -> None:
    server = FakeApiServer(
        status(410, "Expired", "too old"), status(403, "Forbidden", "cannot watch")
    )

    async def ask(cluster: LiveCluster) -> None:
        with pytest.raises(ports.GoneError):
            await anext(cluster.watch(NODE, "1"))
        assert not cluster.problems
        with pytest.raises(ports.ApiError):
            await anext(cluster.watch(NODE, "1"))
        assert cluster.problems == {"watch v1 Node": "cannot watch"}

    result_of(server, ask)


def test_watches_that_each_end_without_an_event_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="bayplan")
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}
    ends = [status(410, "Expired", "too old") for _ in range(EMPTY_WATCHES_MAX)]
    server = FakeApiServer(*ends, web.Response(), web.json_response(bookmark, dumps=with_newline))

    async def ask(cluster: LiveCluster) -> None:
        for _ in ends:
            assert not cluster.problems
            with pytest.raises(ports.GoneError):
                await anext(cluster.watch(NODE, "1"))
        for _ in range(2):
            assert cluster.problems
            assert not [event async for event in cluster.watch(NODE, "1") if event.object]

    result_of(server, ask)
    why = "each watch ends without an event: "
    advice = "; is a proxy or a load balancer in between?"
    assert [record.getMessage() for record in caplog.records] == [
        f"cannot watch v1 Node: {why}too old{advice}",
        f"cannot watch v1 Node: {why}the server ends it{advice}",
        "can watch v1 Node again",
    ]


def with_newline(content: Any) -> str:
    return msgspec.json.encode(content).decode() + "\n"


def test_a_silent_watch_is_reported_counted_and_shown_in_health(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The problem ends when the watch delivers something."""
    caplog.set_level(logging.INFO, logger="bayplan")
    is_mute = True

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/api/v1":
            return web.json_response({"resources": CORE})
        if is_mute:
            await asyncio.Event().wait()
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}
        return web.Response(body=msgspec.json.encode(bookmark) + b"\n")

    async def watch(cluster: LiveCluster) -> None:
        async for _ in cluster.watch(NODE, "5"):
            pass

    async def main() -> None:
        nonlocal is_mute
        options = ClusterOptions(silence_seconds_max=0.05)
        async with talking_to(handler) as client, open_cluster(client, options) as cluster:
            registry = CollectorRegistry()
            register_cluster(registry, cluster)
            assert cluster.is_hearing
            for _ in range(2):
                with pytest.raises(ports.WatchDroppedError):
                    await watch(cluster)
                assert not cluster.is_hearing
            labels = {"kind": NODE}
            assert registry.get_sample_value("bayplan_watch_stalls_total", labels) == 2
            is_mute = False
            await watch(cluster)
            assert cluster.is_hearing

    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == [
        "cannot watch v1 Node: GET /api/v1/nodes: nothing came for 0.05 s",
        "can watch v1 Node again",
    ]


# ---- failures -------------------------------------------------------------------------------


def test_a_failure_is_logged_when_it_begins_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    failures = FailureLog()
    for problem in ("no", "no", "still no", "still no"):
        failures.begin("list v1 Node", RuntimeError(problem))
    assert failures.problems == {"list v1 Node": "still no"}
    failures.end("list v1 Node")
    failures.end("list v1 Node")
    assert not failures.problems
    assert caplog.messages == [
        "cannot list v1 Node: no",
        "cannot list v1 Node: still no",
        "can list v1 Node again",
    ]
