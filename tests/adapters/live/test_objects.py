"""Any object over HTTP: the requests and their results."""

from typing import Any

from aiohttp import web

from bayplan.api.objects import POD, Pod
from tests.adapters.live.clients import result_of
from tests.kit.api_server import FakeApiServer

ANSWER: dict[str, Any] = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}}


def test_a_complete_object_is_read() -> None:
    server = FakeApiServer(web.json_response(ANSWER))
    pod = result_of(server, lambda cluster: cluster.read(POD, "ns", "p"))
    assert isinstance(pod, Pod)
    assert pod.metadata.uid == "u"
    assert server.calls == [("GET", "/api/v1/namespaces/ns/pods/p", None)]


def test_a_patch_goes_to_its_subresource_and_returns_the_object() -> None:
    server = FakeApiServer(web.json_response(ANSWER), web.json_response(ANSWER))
    patch = {"status": {"phase": "Running"}}
    result = result_of(server, lambda cluster: cluster.patch(POD, "ns", "p", patch, "status"))
    assert result.metadata.name == "p"
    result_of(server, lambda cluster: cluster.patch(POD, "ns", "p", patch))
    assert server.calls == [
        ("PATCH", "/api/v1/namespaces/ns/pods/p/status", patch),
        ("PATCH", "/api/v1/namespaces/ns/pods/p", patch),
    ]
    assert [each.headers["Content-Type"] for each in server.received if each.body] == [
        "application/merge-patch+json"
    ] * 2


def test_an_object_is_created_with_its_kind() -> None:
    server = FakeApiServer(web.json_response(ANSWER))
    content = {"metadata": {"namespace": "ns", "generateName": "p-"}}
    result_of(server, lambda cluster: cluster.create_object(POD, content))
    complete = {"apiVersion": "v1", "kind": "Pod", **content}
    assert server.calls == [("POST", "/api/v1/namespaces/ns/pods", complete)]


def test_a_deletion_names_its_uid() -> None:
    server = FakeApiServer(web.json_response({}))
    result_of(server, lambda cluster: cluster.delete_object(POD, "ns", "p", "u"))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}}
    assert server.calls == [("DELETE", "/api/v1/namespaces/ns/pods/p", options)]
