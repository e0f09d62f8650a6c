"""Any object over HTTP: what is sent, and what comes back."""

from typing import Any

from aiohttp import web

from bayplan.api.objects import POD, Pod
from tests.adapters.live.talking import Server, done

ANSWER: dict[str, Any] = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}}


def test_a_complete_object_is_read() -> None:
    server = Server(web.json_response(ANSWER))
    pod = done(server, lambda cluster: cluster.read(POD, "ns", "p"))
    assert isinstance(pod, Pod)
    assert pod.metadata.uid == "u"
    assert server.asked == [("GET", "/api/v1/namespaces/ns/pods/p", None)]


def test_a_patch_goes_to_its_subresource_and_returns_the_object() -> None:
    server = Server(web.json_response(ANSWER), web.json_response(ANSWER))
    patch = {"status": {"phase": "Running"}}
    result = done(server, lambda cluster: cluster.patch(POD, "ns", "p", patch, "status"))
    assert result.metadata.name == "p"
    done(server, lambda cluster: cluster.patch(POD, "ns", "p", patch))
    assert server.asked == [
        ("PATCH", "/api/v1/namespaces/ns/pods/p/status", patch),
        ("PATCH", "/api/v1/namespaces/ns/pods/p", patch),
    ]
    assert server.media_types == ["application/merge-patch+json"] * 2


def test_an_object_is_created_with_its_kind() -> None:
    server = Server(web.json_response(ANSWER))
    content = {"metadata": {"namespace": "ns", "generateName": "p-"}}
    done(server, lambda cluster: cluster.create_object(POD, content))
    sent = {"apiVersion": "v1", "kind": "Pod", **content}
    assert server.asked == [("POST", "/api/v1/namespaces/ns/pods", sent)]


def test_a_deletion_names_its_uid() -> None:
    server = Server(web.json_response({}))
    done(server, lambda cluster: cluster.delete_object(POD, "ns", "p", "u"))
    sent = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}}
    assert server.asked == [("DELETE", "/api/v1/namespaces/ns/pods/p", sent)]
