"""Pods of one template are recognized by their equal parts."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_server import ApiServer
from bayplan.adapters.embedded.object_store import ObjectStore
from bayplan.adapters.embedded.pod_templates import TEMPLATES_MAX, PodTemplates, template_key
from bayplan.clock import ManualClock


def pod(name: Any = "a", cpu: str = "1", **meta: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "default", **meta}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
    }


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("b"), id="name"),
        pytest.param(pod(uid="u-1"), id="uid"),
        pytest.param(pod(creationTimestamp="2026-01-01T00:00:00Z"), id="creation"),
        pytest.param(pod(resourceVersion="7"), id="version"),
    ],
)
def test_pods_of_one_template_may_differ_in_name_uid_creation_and_version(
    other: dict[str, Any],
) -> None:
    assert template_key(pod()) == template_key(other) is not None


@pytest.mark.parametrize(
    "other", [pod(cpu="2"), pod(namespace="x"), pod(labels={"app": "a"}), pod(finalizers=["f"])]
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
        pod(7),
        pod(uid=7),
        pod(uid=""),
        {**pod(), "spec": {"big": 2**70}},
    ],
)
def test_an_invalid_pod_has_no_template(content: Any) -> None:
    assert template_key(content) is None


def test_the_number_of_templates_is_bounded() -> None:
    templates, store = PodTemplates(), ObjectStore()
    server = ApiServer(ManualClock(), store, lambda seconds, call: None)
    for number in range(TEMPLATES_MAX + 1):
        content = pod(f"p{number}", cpu=f"{number + 1}m")
        assert templates.find(content) is None
        templates.learn(server.create(content))
    assert templates.find(pod("first", cpu="1m")) is None
    assert templates.find(pod("last", cpu=f"{TEMPLATES_MAX + 1}m")) is not None
