"""Objects without a pod to judge, and why."""

from typing import Any

import pytest

from bayplan.api.objects import DEPLOYMENT, JOB
from bayplan.model.unjudged import has_containers, unjudged, why_no_pods
from bayplan.objects.keys import ObjectKey

POD_SPEC = {"containers": [{"name": "c", "image": "x"}]}


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ({"spec": {"template": {"spec": POD_SPEC}}}, True),
        ({"spec": {"tasks": [{"template": {"spec": POD_SPEC}}]}}, True),
        ({"spec": {"containers": "x"}}, False),
        ({"spec": {"containers": ["a"]}}, False),
        ({"spec": {"containers": []}}, False),
        ({}, False),
    ],
)
def test_a_pod_template_is_recognized_by_its_containers(value: Any, answer: bool) -> None:
    assert has_containers(value) is answer


def test_a_value_that_is_nested_without_end_is_searched_to_a_depth() -> None:
    value: Any = POD_SPEC
    for _ in range(10_000):
        value = {"spec": value}
    assert not has_containers(value)


def test_a_controller_that_goes_has_no_pods() -> None:
    key = ObjectKey(DEPLOYMENT, "default", "web")
    content: dict[str, Any] = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert why_no_pods(key, content) == "is being deleted (metadata.deletionTimestamp)"
    assert why_no_pods(key, {"metadata": {}, "spec": {"replicas": 1}}) == ""


def test_a_controller_that_lacks_no_pods_says_where_they_are() -> None:
    key = ObjectKey(JOB, "default", "j")
    present = unjudged(key, {"metadata": {}}, is_present=True, is_read=True)
    done = unjudged(key, {"metadata": {}}, is_present=False, is_read=True)
    assert present is not None
    assert done is not None
    assert (present.message, done.message) == (
        "is in the cluster already and lacks no pods",
        "needs no further pods",
    )
