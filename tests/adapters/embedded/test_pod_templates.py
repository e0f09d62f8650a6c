"""Pods of one template are recognized by their equal parts."""

from typing import Any, cast

import pytest

from bayplan.adapters.embedded.api_server import ApiServer
from bayplan.adapters.embedded.pod_templates import TEMPLATES_MAX, PodTemplates, template_key
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.clock import ManualClock
from bayplan.ports import ApiError
from tests.kit.manifests import container, pod


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
        {**pod(), "kind": "Node"},
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
    templates, store = PodTemplates(), VersionedStore()
    server = ApiServer(ManualClock(), store, lambda seconds, call: None)
    for number in range(TEMPLATES_MAX + 1):
        content = pod(f"p{number}", containers=[container(f"{number + 1}m")])
        assert templates.find(content) is None
        templates.learn(server.create(content))
    assert templates.find(pod("first", containers=[container("1m")])) is None
    assert templates.find(pod("last", containers=[container(f"{TEMPLATES_MAX + 1}m")])) is not None
