"""Any object over HTTP: the requests and their results."""

from typing import Any

from aiohttp import web

from bayplan.api.objects import POD, Pod
from tests.adapters.live.talking import Server, result_of

ANSWER: dict[str, Any] = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}}


def test_a_complete_object_is_read() -> None:
    server = Server(web.json_response(ANSWER))
    pod = result_of(server, lambda cluster: cluster.read(POD, "ns", "p"))
    assert isinstance(pod, Pod)
    assert pod.metadata.uid == "u"
    assert server.requests == [("GET", "/api/v1/namespaces/ns/pods/p", None)]


def test_a_patch_goes_to_its_subresource_and_returns_the_object() -> None:
    server = Server(web.json_response(ANSWER), web.json_response(ANSWER))
    patch = {"status": {"phase": "Running"}}
    result = result_of(server, lambda cluster: cluster.patch(POD, "ns", "p", patch, "status"))
    assert result.metadata.name == "p"
    result_of(server, lambda cluster: cluster.patch(POD, "ns", "p", patch))
    assert server.requests == [
        ("PATCH", "/api/v1/namespaces/ns/pods/p/status", patch),
        ("PATCH", "/api/v1/namespaces/ns/pods/p", patch),
    ]
    assert server.media_types == ["application/merge-patch+json"] * 2


def test_an_object_is_created_with_its_kind() -> None:
    server = Server(web.json_response(ANSWER))
    content = {"metadata": {"namespace": "ns", "generateName": "p-"}}
    result_of(server, lambda cluster: cluster.create_object(POD, content))
    complete = {"apiVersion": "v1", "kind": "Pod", **content}
    assert server.requests == [("POST", "/api/v1/namespaces/ns/pods", complete)]


def test_a_deletion_names_its_uid() -> None:
    server = Server(web.json_response({}))
    result_of(server, lambda cluster: cluster.delete_object(POD, "ns", "p", "u"))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}}
    assert server.requests == [("DELETE", "/api/v1/namespaces/ns/pods/p", options)]
