"""Objects of an API server: unreadable kinds are named, and only gets and lists are sent."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from bayplan.adapters.live.errors import AccessDeniedError, UnreadableAnswerError
from bayplan.api.objects import NODE, PERSISTENT_VOLUME, POD
from bayplan.config import SchedulerConfig
from bayplan.model.live_reading import model_of_cluster
from bayplan.objects.keys import ObjectKey
from bayplan.plugins.registry import default_registry
from bayplan.ports import ApiError, GoneError, NotFoundError
from bayplan.sim.input.what_if import WhatIf
from bayplan.sim.simulate import configuration_of, registry_of
from bayplan.whatif.over_time import what_if_over_time
from tests.model.declared_fields import CONFIG, VERSION, KubeletVersion

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
POD_CONTENT = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u", "ownerReferences": [OWNER]},
    "spec": {"containers": [{"name": "c"}]},
}
REPLICA_SET = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 1}}
LISTS: dict[str, Any] = {
    "/api/v1/nodes": [{"metadata": {"name": "n1"}}],
    "/api/v1/pods": [POD_CONTENT],
}
OBJECTS: dict[str, Any] = {
    "/api/v1/namespaces/default/pods/p": POD_CONTENT,
    "/apis/apps/v1/namespaces/default/replicasets/web": REPLICA_SET,
}
RESOURCES = {
    "/api/v1": [("pods", "Pod", True), ("nodes", "Node", False), ("namespaces", "Namespace", False),
                ("persistentvolumes", "PersistentVolume", False)],
    "/apis/apps/v1": [("replicasets", "ReplicaSet", True)],
}  # fmt: skip


class Server:
    """An ApiClient of a small cluster; ``forbidden``: paths that the user may not list."""

    server = "https://api.example"

    def __init__(self, *forbidden: str) -> None:
        self._forbidden = forbidden
        self.requests: list[str] = []

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        return msgspec.json.encode(await self.get(path, method))

    async def get(self, path: str, method: str = "GET") -> Any:
        self.requests.append(method)
        path = urlsplit(path).path
        if path in self._forbidden:
            raise AccessDeniedError(403, "Forbidden", f"user cannot list {path}")
        if path in RESOURCES:
            names = [{"name": n, "kind": k, "namespaced": s} for n, k, s in RESOURCES[path]]
            return {"resources": names}
        if path in OBJECTS:
            return OBJECTS[path]
        if any(path.startswith(f"{prefix}/") for prefix in RESOURCES):
            return {"metadata": {}, "items": LISTS.get(path, [])}
        raise NotFoundError(path)


def read(server: Server, subject: str = "") -> Any:
    client: Any = server
    reading = model_of_cluster(client, SchedulerConfig(), default_registry(()), subject)
    model = asyncio.run(reading)
    model.close()
    return model.source


def test_all_kinds_of_the_server_are_listed() -> None:
    server = Server()
    objects = read(server)
    assert [each.metadata.name for each in objects.of(NODE)] == ["n1"]
    assert [each.metadata.name for each in objects.of(POD)] == ["p"]
    assert "storage.k8s.io/v1 StorageClass" in objects.absent
    assert set(server.requests) == {"GET"}


def test_the_controllers_of_the_pod_are_read_completely() -> None:
    objects = read(Server(), "default/p")
    assert set(objects.contents) == {
        ObjectKey(POD, "default", "p"),
        ObjectKey("apps/v1 ReplicaSet", "default", "web"),
    }


def test_a_simulation_runs_on_the_complete_objects_of_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ReplicaSet, which plugins read only in part, replaces the drained pod."""
    server: Any = Server()
    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD_CONTENT["spec"]}
    selector = {"matchLabels": {"app": "web"}}
    replica_set = {
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-rs"},
        "spec": {"replicas": 1, "selector": selector, "template": template},
    }
    web = {
        "metadata": {
            "name": "web-1",
            "namespace": "default",
            "uid": "u",
            "labels": {"app": "web"},
            "ownerReferences": [{**OWNER, "uid": "uid-rs"}],
        },
        "spec": {**POD_CONTENT["spec"], "nodeName": "n1"},
        "status": {"phase": "Running"},
    }
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    nodes = [{"metadata": {"name": n}, "status": {"allocatable": allocatable}} for n in "ab"]
    nodes[0]["metadata"]["name"] = "n1"
    monkeypatch.setitem(LISTS, "/apis/apps/v1/replicasets", [replica_set])
    monkeypatch.setitem(LISTS, "/api/v1/pods", [web])
    monkeypatch.setitem(LISTS, "/api/v1/nodes", nodes)
    config, registry = SchedulerConfig(), default_registry(())
    model = asyncio.run(model_of_cluster(server, config, registry, is_whole=True))
    change = WhatIf(drain=("n1",), until="30s")
    answer = what_if_over_time(model, change, config, registry)
    [move] = answer.moves
    assert (move.pod, move.source, move.target) == ("default/web-1", "n1", "b")
    assert move.replacement.startswith("default/web-")
    assert move.replacement != move.pod


def test_a_kind_that_may_not_be_listed_is_named() -> None:
    objects = read(Server("/api/v1/persistentvolumes"))
    assert objects.unreadable == {PERSISTENT_VOLUME: "user cannot list /api/v1/persistentvolumes"}


class PagedServer(Server):
    """Two pages of pods; ``expires``: the version of the first page expires before the second."""

    def __init__(self, *, expires: bool = False) -> None:
        super().__init__()
        self._expires = expires

    async def get(self, path: str, method: str = "GET") -> Any:
        answer = await super().get(path, method)
        parts = urlsplit(path)
        if parts.path != "/api/v1/pods" or "limit=0" in parts.query:
            return answer
        if "continue=" not in parts.query:
            return {**answer, "metadata": {"continue": "next"}}
        if self._expires:
            raise GoneError("too old")
        later = {**POD_CONTENT, "metadata": {"name": "q", "namespace": "default", "uid": "v"}}
        return {"metadata": {}, "items": [later]}


@pytest.mark.parametrize(("expires", "names"), [(False, ["p", "q"]), (True, ["p"])])
def test_a_model_is_built_page_by_page_or_from_one_list_if_the_version_expires(
    names: list[str], *, expires: bool
) -> None:
    server: Any = PagedServer(expires=expires)
    config, registry = SchedulerConfig(), default_registry(())
    model = asyncio.run(model_of_cluster(server, config, registry, "default/p"))
    assert [each.name for each in model.pending()] == names
    assert [each.metadata.name for each in model.source.of(POD)] == names
    assert ObjectKey(POD, "default", "p") in model.source.contents
    assert model.attempt("default/p").message.startswith("0/1 nodes are available")
    model.close()


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods"])
def test_without_nodes_or_pods_there_is_no_answer(path: str) -> None:
    with pytest.raises(ApiError, match="cannot list"):
        read(Server(path))


@pytest.mark.parametrize(
    ("path", "answer", "problem"),
    [
        ("/api/v1/namespaces/default/pods/p", LISTS["/api/v1/nodes"][0], "GET /api/v1/"),
        (
            "/api/v1/namespaces/default/pods/p",
            {"metadata": {"name": "q", "namespace": "default"}, "spec": {}},
            'found "default/q", which is another object',
        ),
        (
            "/apis/apps/v1/namespaces/default/replicasets/web",
            {**REPLICA_SET, "metadata": {"name": "web", "namespace": "other"}},
            'found "other/web", which is another object',
        ),
        ("/api/v1/namespaces/default/pods/p", {"metadata": None}, "got `null`"),
        ("/api/v1/namespaces/default/pods/p", {"kind": "Status"}, "missing required field"),
        ("/api/v1/namespaces/default/pods/p", [], "got `array`"),
        (
            "/api/v1/namespaces/default/pods/p",
            {**POD_CONTENT, "spec": {"containers": 5}},
            "Expected `array",
        ),
        (
            "/api/v1/namespaces/default/pods/p",
            {**POD_CONTENT, "metadata": {**POD_CONTENT["metadata"], "ownerReferences": [{}]}},
            "missing required field",
        ),
    ],
)
def test_another_object_than_the_one_asked_for_is_refused(
    monkeypatch: pytest.MonkeyPatch, path: str, answer: Any, problem: str
) -> None:
    monkeypatch.setitem(OBJECTS, path, answer)
    with pytest.raises(UnreadableAnswerError) as error:
        read(Server(), "default/p")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_the_fields_that_plugins_declare_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    status = {"allocatable": allocatable, "nodeInfo": {"kubeletVersion": VERSION}}
    monkeypatch.setitem(LISTS, "/api/v1/nodes", [{"metadata": {"name": "n1"}, "status": status}])
    config, registry = configuration_of(CONFIG), registry_of([KubeletVersion])
    server: Any = Server()
    model = asyncio.run(model_of_cluster(server, config, registry))
    assert model.attempt("default/p").node == "n1"
    model.close()
