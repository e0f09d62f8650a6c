"""Pods and nodes of one template are recognized by their equal parts."""

from typing import Any, cast

import pytest

from bayplan.adapters.embedded.api_server import ApiServer
from bayplan.adapters.embedded.object_templates import TEMPLATES_MAX, ObjectTemplates, template_key
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.objects import HOSTNAME_LABEL
from bayplan.clock import ManualClock
from bayplan.ports import ApiError
from tests.kit.manifests import Content, container, node, pod


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod(uid="u-1"), id="uid"),
        pytest.param(pod(creationTimestamp="2026-01-01T00:00:00Z"), id="creation"),
        pytest.param(pod(resourceVersion="7"), id="version"),
    ],
)
def test_pods_that_a_server_stored_may_differ_in_uid_creation_and_version(
    other: dict[str, Any],
) -> None:
    assert template_key(pod(uid="u-2")) == template_key(other) is not None


def test_a_pod_that_a_server_stored_has_another_template_than_a_new_one() -> None:
    assert template_key(pod(uid="u-1")) != template_key(pod())


def test_pods_of_one_template_may_differ_in_the_values_of_annotations() -> None:
    one, other = pod(annotations={"runs": "5s"}), pod("b", annotations={"lasts": "7s"})
    assert template_key(one) == template_key(other) is not None


@pytest.mark.parametrize(
    "other",
    [
        pod(containers=[container("2")]),
        pod(namespace="x"),
        pod(labels={"app": "a"}),
        pod(finalizers=["f"]),
        pod(annotations={"runs": "5s"}),
        pod(annotations={}),
        pod(annotations=None),
    ],
)
def test_every_other_difference_makes_another_template(other: dict[str, Any]) -> None:
    assert template_key(other) not in (None, template_key(pod()))


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


def test_each_pod_of_a_template_has_its_own_annotations() -> None:
    server = ApiServer(ManualClock(), VersionedStore(), lambda seconds, call: None)
    for name, annotations in (("a", {"runs": "5s"}), ("b", {"runs": "7s"}), ("c", {"x": "y"})):
        stored = server.create(pod(name, annotations=annotations))
        assert stored.content["metadata"]["annotations"] == annotations
        assert stored.object.metadata.annotations == annotations
        assert stored.object.metadata.name == name


def test_wrong_annotations_of_a_further_pod_are_refused() -> None:
    server = ApiServer(ManualClock(), VersionedStore(), lambda seconds, call: None)
    server.create(pod("a", annotations={"runs": "5s"}))
    with pytest.raises(ApiError, match="annotations"):
        server.create(pod("b", annotations={"runs": 5}))


def test_the_number_of_templates_is_bounded() -> None:
    templates, store = ObjectTemplates(), VersionedStore()
    server = ApiServer(ManualClock(), store, lambda seconds, call: None)
    for number in range(TEMPLATES_MAX + 1):
        content = pod(f"p{number}", containers=[container(f"{number + 1}m")])
        assert templates.find(content) is None
        templates.learn(server.create(content))
    assert templates.find(pod("first", containers=[container("1m")])) is None
    assert templates.find(pod("last", containers=[container(f"{TEMPLATES_MAX + 1}m")])) is not None


# ---- nodes ----------------------------------------------------------------------------------


def host(name: str, **labels: Any) -> Content:
    return node(name, labels={HOSTNAME_LABEL: name, "zone": "z"} | labels)


def created(contents: list[Content]) -> list[Any]:
    server = ApiServer(ManualClock(), VersionedStore(), lambda seconds, call: None)
    stored = [server.create(content) for content in contents]
    return [(one.key, one.content, one.object, one.version) for one in stored]


def test_nodes_of_one_template_may_differ_in_the_label_with_their_name() -> None:
    assert template_key(host("a")) == template_key(host("b")) is not None
    assert template_key(node("a")) == template_key(node("b")) is not None


@pytest.mark.parametrize(
    "other",
    [
        host("b", zone="y"),
        host("b", **{HOSTNAME_LABEL: "a"}),
        host("b", **{HOSTNAME_LABEL: None}),
        node("b", labels={"zone": "z"}),
        node("b", cpu="7", labels={HOSTNAME_LABEL: "b", "zone": "z"}),
        {**host("b"), "spec": {"unschedulable": True}},
        {**host("b"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
    ],
)
def test_any_other_difference_between_nodes_makes_another_template(other: Content) -> None:
    assert template_key(other) != template_key(host("a"))


def test_a_node_whose_name_is_no_label_has_a_template_of_its_own() -> None:
    long = "a" * 64
    assert template_key(host(long)) != template_key(host("b"))


def test_nodes_of_a_template_are_stored_as_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cordoned, noted = {**host("c"), "spec": {"unschedulable": True}}, host("g")
    noted["metadata"] |= {"annotations": {"a": "b"}, "uid": "u-1"}
    contents = [host("a"), host("b"), cordoned, node("d"), node("e"), host("f"), noted]
    together = created(contents)
    monkeypatch.setattr(ObjectTemplates, "find", lambda *_: None)
    assert together == created(contents)
