"""Pods and nodes of one template are recognized by their equal parts."""

from typing import Any, cast

import pytest

from bayplan.adapters.embedded.api_server import ApiServer
from bayplan.adapters.embedded.object_templates import TEMPLATES_MAX, ObjectTemplates, template_key
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.objects import HOSTNAME_LABEL
from bayplan.clock import ManualClock
from bayplan.ports import ApiError
from tests.kit.manifests import Content, node, pod


@pytest.mark.parametrize(
    "content",
    [
        "no object",
        {**pod(), "kind": "Service"},
        {**pod(), "metadata": None},
        pod("Not-A-Name"),
        pod(cast(str, 7)),
        pod(uid=7),
        pod(uid=""),
        pod(annotations=True),
        pod(annotations={"runs": 5}),
        pod(annotations={5: "runs"}),
        {**pod(), "spec": {"big": 2**70}},
    ],
)
def test_an_invalid_pod_has_no_template(content: Any) -> None:
    assert template_key(content) is None


def test_wrong_annotations_of_a_further_pod_are_refused() -> None:
    server = ApiServer(ManualClock(), VersionedStore(), lambda seconds, call: None)
    server.create(pod("a", annotations={"runs": "5s"}))
    with pytest.raises(ApiError, match="annotations"):
        server.create(pod("b", annotations={"runs": 5}))


def test_the_number_of_templates_is_bounded() -> None:
    templates, store = ObjectTemplates(), VersionedStore()
    server = ApiServer(ManualClock(), store, lambda seconds, call: None)
    for number in range(TEMPLATES_MAX + 1):
        content = pod(f"p{number}", cpu=f"{number + 1}m")
        assert templates.find(content) is None
        templates.learn(server.create(content))
    assert templates.find(pod("first", cpu="1m")) is None
    assert templates.find(pod("last", cpu=f"{TEMPLATES_MAX + 1}m")) is not None


# ---- nodes ----------------------------------------------------------------------------------


def host(name: str, **labels: Any) -> Content:
    return node(name, labels={HOSTNAME_LABEL: name, "zone": "z"} | labels)


def created(contents: list[Content]) -> list[Any]:
    server = ApiServer(ManualClock(), VersionedStore(), lambda seconds, call: None)
    stored = [server.create(content) for content in contents]
    return [(one.key, one.content, one.object, one.version) for one in stored]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pod(uid="u-2"), pod(uid="u-1"), id="uid"),
        pytest.param(pod(uid="u-2"), pod(creationTimestamp="2026-01-01T00:00:00Z"), id="creation"),
        pytest.param(pod(uid="u-2"), pod(resourceVersion="7"), id="version"),
        pytest.param(
            pod(annotations={"runs": "5s"}), pod("b", annotations={"x": "7s"}), id="annotations"
        ),
        pytest.param(node("a"), node("b"), id="names of nodes"),
        pytest.param(host("a"), host("b"), id="the label with the name of a node"),
    ],
)
def test_objects_of_one_template_may_differ_in_what_is_their_own(
    one: Content, other: Content
) -> None:
    assert template_key(one) == template_key(other) is not None


PODS = [
    pod("a"),
    pod("b", cpu="2"),
    pod("c", namespace="x"),
    pod("d", labels={"app": "a"}),
    pod("e", finalizers=["example.com/f"]),
    pod("f", annotations={"runs": "5s"}),
    pod("g", annotations={"runs": "7s"}),
    pod("h", annotations={}),
    pod("i", annotations=None),
    pod("j", uid="u-1"),
    pod("k", uid="u-2"),
    pod("l"),
]
NODES = [
    host("a"),
    host("b"),
    host("c", zone="y"),
    host("d", **{HOSTNAME_LABEL: "a"}),
    node("e", labels={"zone": "z"}),
    node("f", cpu="7", labels={HOSTNAME_LABEL: "f", "zone": "z"}),
    {**host("g"), "spec": {"unschedulable": True}},
    {**host("h"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
    {**node("i"), "metadata": {"name": "i", "annotations": {"a": "b"}, "uid": "u-1"}},
    node("j"),
    node("k"),
    host("l"),
]


@pytest.mark.parametrize("contents", [PODS, NODES], ids=["pods", "nodes"])
def test_objects_of_a_template_are_stored_as_without_it(
    contents: list[Content], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = created(contents)
    monkeypatch.setattr(ObjectTemplates, "find", lambda *_: None)
    assert together == created(contents)
