"""Invalid controllers are reported before their pods are created."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.sim.input.controller_kinds import PODS_MAX, controller_problems, is_controller
from tests.kit.manifests import container, node, pod
from tests.sim.manifests import controller, template

KINDS = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"]


def paths(kind: str, **spec: Any) -> list[str]:
    return [problem.path for problem in controller_problems(controller(kind, **spec))]


@pytest.mark.parametrize("kind", KINDS)
def test_valid_controllers_are_accepted(kind: str) -> None:
    assert is_controller(controller(kind))
    assert paths(kind, replicas=3, parallelism=2, completions=5) == []


def test_other_kinds_are_not_controllers() -> None:
    assert not any(map(is_controller, (pod(), node(), controller("CronJob"))))


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("Deployment", {"replicas": -1}, "spec.replicas"),
        ("Deployment", {"replicas": PODS_MAX + 1}, "spec.replicas"),
        ("Deployment", {"replicas": "3"}, "spec.replicas"),
        ("Deployment", {"template": None}, "spec.template.spec"),
        ("Deployment", {"template": {"metadata": {}}}, "spec.template.spec"),
        ("Deployment", {"template": "x"}, "spec.template"),
        ("Deployment", {"selector": ["app"]}, "spec.selector"),
        (
            "Deployment",
            {"selector": {"matchExpressions": [{"key": "app", "operator": "in"}]}},
            "spec.selector.matchExpressions[0].operator",
        ),
        (
            "StatefulSet",
            {"selector": {"matchLabels": {"app": "other"}}},
            "spec.template.metadata.labels",
        ),
        ("StatefulSet", {"ordinals": {"start": -1}}, "spec.ordinals.start"),
        (
            "StatefulSet",
            {"volumeClaimTemplates": [{"metadata": 5}]},
            "spec.volumeClaimTemplates[0].metadata",
        ),
        ("Job", {"parallelism": -1}, "spec.parallelism"),
        ("Job", {"completions": -1}, "spec.completions"),
        ("Job", {"completionMode": "indexed"}, "spec.completionMode"),
        (
            "DaemonSet",
            {"template": template(containers=[container("1x")])},
            "spec.template.spec.containers[0].resources.requests.cpu",
        ),
        (
            "ReplicaSet",
            {"template": template(labels={"app": "a b"})},
            "spec.template.metadata.labels",
        ),
    ],
)
def test_invalid_controllers_are_refused_with_the_path(
    kind: str, spec: dict[str, Any], path: str
) -> None:
    assert paths(kind, **spec) == [path]


def test_selectors_of_other_shapes_are_ignored() -> None:
    assert paths("ReplicationController", selector={"app": "whatever"}) == []
    assert paths("Job", selector={"matchLabels": {"controller-uid": "u1"}}) == []


VALUES = (
    st.none()
    | st.integers()
    | st.text()
    | st.lists(st.none())
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
)


@given(
    st.sampled_from(KINDS),
    st.dictionaries(
        st.sampled_from(["replicas", "template", "selector", "ordinals", "completions"]), VALUES
    ),
)
def test_an_invalid_controller_is_a_problem_and_not_an_exception(
    kind: str, spec: dict[str, Any]
) -> None:
    for problem in controller_problems(controller(kind, **spec)):
        assert problem.actual
