"""The objects that a capture reads from an API server."""

import json
from typing import Any

import pytest

from bayplan.adapters.live.errors import AccessDeniedError, UnreadableAnswerError
from bayplan.clock import ManualClock
from bayplan.model.capture import capture
from bayplan.sim.loop import run


class Client:
    """Lists pods, nodes and namespaces in pages of one object."""

    server = "https://api.example"

    def __init__(self, forbidden: str = "") -> None:
        self._forbidden = forbidden
        self.paths: list[str] = []

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if path == "/version":
            return b'{"gitVersion": "v1.37.0"}'
        self.paths.append(path)
        if self._forbidden and path.startswith(f"{self._forbidden}?"):
            raise AccessDeniedError(403, "Forbidden", f"cannot list {self._forbidden}")
        if path == "/api/v1":
            kinds = (("Pod", "pods", True), ("Node", "nodes", False))
            kinds = (*kinds, ("Namespace", "namespaces", False))
            resources = [{"kind": k, "name": p, "namespaced": n} for k, p, n in kinds]
            return json.dumps({"resources": resources}).encode()
        if path == "/apis/scheduling.k8s.io/v1" or path.startswith("/apis/example.com"):
            return json.dumps({"resources": []}).encode()
        return json.dumps(self._page(path)).encode()

    def _page(self, path: str) -> Any:
        name = "b" if "continue=more" in path else "a"
        meta: dict[str, Any] = {
            "name": name,
            "managedFields": [{"manager": "kubectl"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "x": "y"},
        }
        more = {} if name == "b" else {"continue": "more"}
        return {"metadata": more, "items": [{"metadata": meta, "spec": {"k": "v"}}]}


def test_every_page_of_every_kind_is_read_and_pods_come_last() -> None:
    client: Any = Client()
    result = run(capture(client, ["example.com/v1 Wish"]), ManualClock())
    names = [(content["kind"], content["metadata"]["name"]) for content in result.objects]
    assert names == [
        ("Namespace", "a"),
        ("Namespace", "b"),
        ("Node", "a"),
        ("Node", "b"),
        ("Pod", "a"),
        ("Pod", "b"),
    ]
    assert result.release == "v1.37.0"
    assert result.absent == [
        "example.com/v1 Wish",
        "node.k8s.io/v1 RuntimeClass",
        "scheduling.k8s.io/v1 PriorityClass",
        "v1 LimitRange",
        "v1 ResourceQuota",
    ]


def test_a_kind_that_may_not_be_listed_is_left_out_and_named() -> None:
    client: Any = Client("/api/v1/namespaces")
    result = run(capture(client, []), ManualClock())
    assert {content["kind"] for content in result.objects} == {"Node", "Pod"}
    assert result.unreadable == {"v1 Namespace": "cannot list /api/v1/namespaces"}


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods"])
def test_there_is_no_capture_without_nodes_or_pods(path: str) -> None:
    client: Any = Client(path)
    with pytest.raises(AccessDeniedError):
        run(capture(client, []), ManualClock())


def test_finished_pods_are_excluded() -> None:
    client: Any = Client()
    run(capture(client, []), ManualClock())
    (first, *_) = [path for path in client.paths if path.startswith("/api/v1/pods")]
    assert "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed" in first


def test_an_object_is_printed_as_by_kubectl_without_managed_fields() -> None:
    client: Any = Client()
    (first, *_) = run(capture(client, []), ManualClock()).objects
    assert first == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "a", "annotations": {"x": "y"}},
        "spec": {"k": "v"},
    }


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"metadata": None}, "Expected `object`, got `null` - at `$.metadata`"),
        ({}, "missing required field `metadata`"),
        ({"metadata": {"name": 7}}, "Expected `str`, got `int` - at `$.metadata.name`"),
        ({"metadata": {"name": "a", "annotations": []}}, "Expected `object"),
        (5, "Expected `object`, got `int`"),
        (None, "Expected `object`, got `null`"),
    ],
)
def test_an_item_that_is_no_object_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, item: Any, problem: str
) -> None:
    client: Any = Client()
    monkeypatch.setattr(client, "_page", lambda path: {"metadata": {}, "items": [item]})
    with pytest.raises(UnreadableAnswerError) as error:
        run(capture(client, []), ManualClock())
    assert problem in str(error.value)
    assert "GET /api/v1/namespaces" in str(error.value)
