"""Objects of an API server: unreadable kinds are named, and only gets and lists are sent."""

import asyncio
from typing import Any

import pytest

from bayplan.adapters.live.errors import UnreadableAnswerError
from bayplan.api.objects import NODE, PERSISTENT_VOLUME, POD
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.live_reading import model_of_cluster
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import ObjectKey
from bayplan.plugins.registry import Registry, default_registry
from bayplan.ports import ApiError
from bayplan.sim.input.what_if import WhatIf
from bayplan.sim.simulate import configuration_of, registry_of
from bayplan.whatif.over_time import what_if_over_time
from tests.adapters.live.clients import talking_to
from tests.kit.api_server import FakeApiServer, resource
from tests.kit.manifests import Content
from tests.model.declared_fields import CONFIG, VERSION, KubeletVersion

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
POD_CONTENT = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u", "ownerReferences": [OWNER]},
    "spec": {"containers": [{"name": "c"}]},
}
REPLICA_SET = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 1}}
POD_PATH = "/api/v1/namespaces/default/pods/p"
REPLICA_SET_PATH = "/apis/apps/v1/namespaces/default/replicasets/web"
NODE_CONTENT = {"metadata": {"name": "n1"}}
RESOURCES = {
    "v1": [
        resource("Pod", "pods"),
        resource("Node", "nodes", is_namespaced=False),
        resource("Namespace", "namespaces", is_namespaced=False),
        resource("PersistentVolume", "persistentvolumes", is_namespaced=False),
    ],
    "apps/v1": [resource("ReplicaSet", "replicasets")],
}


def server_of(*, node: Content = NODE_CONTENT, **options: Any) -> FakeApiServer:
    """A server with a node, a pod and its ReplicaSet."""
    server = FakeApiServer(resources=RESOURCES, **options)
    server.objects = {
        "/api/v1/nodes/n1": node,
        POD_PATH: POD_CONTENT,
        REPLICA_SET_PATH: REPLICA_SET,
    }
    return server


def model_from(
    server: FakeApiServer,
    subject: str = "",
    config: SchedulerConfig | None = None,
    registry: Registry | None = None,
    *,
    is_whole: bool = False,
) -> ClusterModel:
    async def main() -> ClusterModel:
        async with talking_to(server) as client:
            return await model_of_cluster(
                client,
                config or SchedulerConfig(),
                registry or default_registry(()),
                subject,
                is_whole=is_whole,
            )

    return asyncio.run(main())


def read(server: FakeApiServer, subject: str = "") -> ClusterPicture:
    model = model_from(server, subject)
    model.close()
    return model.source


def test_all_kinds_of_the_server_are_listed() -> None:
    server = server_of()
    objects = read(server)
    assert [each.metadata.name for each in objects.of(NODE)] == ["n1"]
    assert [each.metadata.name for each in objects.of(POD)] == ["p"]
    assert "storage.k8s.io/v1 StorageClass" in objects.absent
    assert {each.method for each in server.received} == {"GET"}


def test_the_controllers_of_the_pod_are_read_completely() -> None:
    objects = read(server_of(), "default/p")
    assert set(objects.contents) == {
        ObjectKey(POD, "default", "p"),
        ObjectKey("apps/v1 ReplicaSet", "default", "web"),
    }


def test_a_simulation_runs_on_the_complete_objects_of_a_server() -> None:
    """The ReplicaSet, which plugins read only in part, replaces the drained pod."""
    server = server_of()
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
    for name in ("n1", "b"):
        node = {"metadata": {"name": name}, "status": {"allocatable": allocatable}}
        server.objects[f"/api/v1/nodes/{name}"] = node
    server.objects |= {POD_PATH: web, REPLICA_SET_PATH: replica_set}
    config, registry = SchedulerConfig(), default_registry(())
    model = model_from(server, config=config, registry=registry, is_whole=True)
    change = WhatIf(drain=("n1",), until="30s")
    answer = what_if_over_time(model, change, config, registry)
    [move] = answer.moves
    assert (move.pod, move.source, move.target) == ("default/web-1", "n1", "b")
    assert move.replacement.startswith("default/web-")
    assert move.replacement != move.pod


@pytest.mark.parametrize(
    ("path", "content", "left_out", "consequence"),
    [
        (
            "/api/v1/namespaces/shop/pods/odd",
            {"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"containers": 5}},
            ObjectKey(POD, "shop", "odd"),
            "no answer counts it",
        ),
        (
            "/api/v1/nodes/odd",
            {"metadata": {"name": "odd"}, "spec": {"taints": "none"}},
            ObjectKey(NODE, "", "odd"),
            "no pod is placed on it, and its pods are on a node that the input lacks",
        ),
    ],
    ids=["pod", "node"],
)
def test_an_object_that_cannot_be_decoded_is_left_out_and_named(
    path: str, content: Content, left_out: ObjectKey, consequence: str
) -> None:
    server = server_of()
    server.objects[path] = content
    picture = read(server)
    assert [each.metadata.name for each in (*picture.of(NODE), *picture.of(POD))] == ["n1", "p"]
    assert [key for key, _ in picture.left_out] == [left_out]
    [note] = picture.notes
    assert note.startswith(f"{left_out} is left out, for it cannot be read (")
    assert note.endswith(f"): {consequence}")


def test_a_list_of_what_has_no_name_is_no_answer_of_an_api_server() -> None:
    server = server_of()
    server.objects[POD_PATH] = {"metadata": {"namespace": "default"}, "spec": {"containers": 5}}
    with pytest.raises(UnreadableAnswerError):
        read(server)


def test_a_kind_that_may_not_be_listed_is_named() -> None:
    objects = read(server_of(forbidden=["list persistentvolumes"]))
    assert objects.unreadable == {PERSISTENT_VOLUME: "user cannot list /api/v1/persistentvolumes"}
    (remark,) = objects.remarks
    assert remark == "left out: v1 PersistentVolume: user cannot list /api/v1/persistentvolumes"


@pytest.mark.parametrize("pages_expire", [False, True])
def test_a_model_is_built_page_by_page_or_from_one_list_if_the_version_expires(
    *, pages_expire: bool
) -> None:
    server = server_of(page_length=1, pages_expire=pages_expire)
    later = {**POD_CONTENT, "metadata": {"name": "q", "namespace": "default", "uid": "v"}}
    server.objects["/api/v1/namespaces/default/pods/q"] = later
    model = model_from(server, "default/p")
    assert [each.name for each in model.pending()] == ["p", "q"]
    assert [each.metadata.name for each in model.source.of(POD)] == ["p", "q"]
    assert ObjectKey(POD, "default", "p") in model.source.contents
    assert model.attempt("default/p").message.startswith("0/1 nodes are available")
    model.close()
    assert any("limit=0" in each.target for each in server.received) is pages_expire


@pytest.mark.parametrize("plural", ["nodes", "pods"])
def test_without_nodes_or_pods_there_is_no_answer(plural: str) -> None:
    with pytest.raises(ApiError, match="cannot list"):
        read(server_of(forbidden=[f"list {plural}"]))


@pytest.mark.parametrize(
    ("path", "answer", "problem"),
    [
        (POD_PATH, NODE_CONTENT, "GET /api/v1/"),
        (
            POD_PATH,
            {"metadata": {"name": "q", "namespace": "default"}, "spec": {}},
            'found "default/q", which is another object',
        ),
        (
            REPLICA_SET_PATH,
            {**REPLICA_SET, "metadata": {"name": "web", "namespace": "other"}},
            'found "other/web", which is another object',
        ),
        (POD_PATH, {"metadata": None}, "got `null`"),
        (POD_PATH, {"kind": "Status"}, "missing required field"),
        (POD_PATH, [], "got `array`"),
        (
            POD_PATH,
            {**POD_CONTENT, "spec": {"containers": 5}},
            "Expected `array",
        ),
        (
            POD_PATH,
            {**POD_CONTENT, "metadata": {**POD_CONTENT["metadata"], "ownerReferences": [{}]}},
            "missing required field",
        ),
    ],
)
def test_another_object_than_the_one_asked_for_is_refused(
    path: str, answer: Any, problem: str
) -> None:
    server = server_of()
    server.objects |= {path: answer, "/api/v1/pods": {"metadata": {}, "items": [POD_CONTENT]}}
    server.objects["/apis/apps/v1/replicasets"] = {"metadata": {}, "items": []}
    with pytest.raises(UnreadableAnswerError) as error:
        read(server, "default/p")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_the_fields_that_plugins_declare_are_read() -> None:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    status = {"allocatable": allocatable, "nodeInfo": {"kubeletVersion": VERSION}}
    server = server_of(node={"metadata": {"name": "n1"}, "status": status})
    model = model_from(server, "", configuration_of(CONFIG), registry_of([KubeletVersion]))
    assert model.attempt("default/p").node == "n1"
    model.close()
