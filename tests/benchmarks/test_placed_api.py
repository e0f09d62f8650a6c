"""The API server for the measurement of kube-scheduler's memory."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any

from benchmarks.placed_api import PlacedApi
from benchmarks.shapes import Shape

SHAPE = Shape("memory", 3, "default", 2, init_pods=4)


@contextmanager
def response(api: PlacedApi, method: str, path: str) -> Iterator[HTTPResponse]:
    with closing(HTTPConnection(api.url.removeprefix("http://"))) as connection:
        connection.request(method, path, body=b"{}" if method == "POST" else None)
        with connection.getresponse() as opened:
            yield opened


def status(api: PlacedApi, method: str, path: str) -> int:
    with response(api, method, path) as opened:
        opened.read()
        return opened.status


def answer(api: PlacedApi, path: str) -> Any:
    with response(api, "GET", path) as opened:
        return json.loads(opened.read())


def test_nodes_and_pods_are_the_first_events_of_a_watch() -> None:
    path = "/api/v1/pods?watch=true&sendInitialEvents=true"
    with PlacedApi(SHAPE) as api, response(api, "GET", path) as opened:
        events = [json.loads(opened.readline()) for _ in range(4 + 2 + 1)]
    assert [event["type"] for event in events] == ["ADDED"] * 6 + ["BOOKMARK"]
    placed = [event["object"]["spec"].get("nodeName", "") for event in events[:6]]
    assert placed == ["node-00000", "node-00001", "node-00002", "node-00000", "", ""]


def test_nodes_can_be_listed_and_all_other_kinds_are_empty() -> None:
    with PlacedApi(SHAPE) as api:
        assert len(answer(api, "/api/v1/nodes?resourceVersion=0")["items"]) == 3
        assert answer(api, "/api/v1/services?resourceVersion=0")["items"] == []
        watched = "/api/v1/services?watch=true&sendInitialEvents=true"
        assert status(api, "GET", watched) == 422


def test_the_server_is_done_when_all_pending_pods_are_bound() -> None:
    with PlacedApi(SHAPE) as api:
        for index in range(2):
            assert not api.is_done.is_set()
            path = f"/api/v1/namespaces/sched-1/pods/pod-{index}/binding"
            assert status(api, "POST", path) == 201
        assert api.is_done.wait(60)
        assert status(api, "POST", "/apis/events.k8s.io/v1/events") == 201
