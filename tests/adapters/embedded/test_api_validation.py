"""Which objects are refused, kind by kind; no object raises another exception."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.adapters.embedded.api_validation import (
    identity_problems,
    problems,
    problems_of_kind,
    update_problems,
)
from tests.kit.manifests import Content, node, pod, pod_group, priority_class


def paths(content: Content) -> list[str]:
    return [problem.path for problem in problems(content)]


def test_a_validated_spec_is_not_validated_again() -> None:
    """A part that both versions share is still valid."""
    before = pod(containers=[])
    assert paths(before) == ["spec.containers"]
    patched = {**before, "metadata": {**before["metadata"], "annotations": {"a b": ""}}}
    assert [problem.path for problem in problems_of_kind("v1 Pod", patched, before)] == [
        "metadata.annotations"
    ]
    replaced = {**patched, "spec": dict(before["spec"])}
    assert [problem.path for problem in problems_of_kind("v1 Pod", replaced, before)] == [
        "metadata.annotations",
        "spec.containers",
    ]


def test_a_node_after_an_equal_valid_node_is_validated_if_one_part_differs() -> None:
    amounts = {"cpu": "4"}
    assert paths(node(status={"capacity": amounts, "allocatable": amounts})) == []
    assert paths(node(status={"capacity": amounts, "allocatable": {"cpu": "-4"}})) == [
        "status.allocatable[cpu]"
    ]
    # The invalid node is not remembered as valid.
    assert paths(node(status={"capacity": amounts, "allocatable": {"cpu": "-4"}})) == [
        "status.allocatable[cpu]"
    ]


def named(content: Content, name: str) -> Content:
    return {**content, "metadata": {**content["metadata"], "name": name}}


@pytest.mark.parametrize("content", [pod(), node(), pod_group(), priority_class("high", 10)])
def test_valid_objects_are_accepted(content: Content) -> None:
    assert paths(content) == []


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (named(pod(), "Web"), "metadata.name"),
        (named(node(), "a_b"), "metadata.name"),
        (named(pod_group(), "a/b"), "metadata.name"),
        (pod(namespace="a.b"), "metadata.namespace"),
        (pod(labels={"a b": ""}), "metadata.labels"),
        (pod(annotations={"a b": "anything goes: {}"}), "metadata.annotations"),
        (priority_class("high", 1_000_000_001), "value"),
        (priority_class("high", 1, preemptionPolicy="Neve"), "preemptionPolicy"),
        (node(status={"allocatable": {"cpu": "4 cores"}}), "status.allocatable.cpu"),
        (node(status={"capacity": {"memory": "-1"}}), "status.capacity[memory]"),
        (node(spec={"taints": [{"key": "a", "effect": "NoSchedul"}]}), "spec.taints[0].effect"),
        (node(spec={"taints": [{"key": "a"}]}), "spec.taints[0].effect"),
        (node(spec={"taints": [{"key": "a b", "effect": "NoExecute"}]}), "spec.taints[0].key"),
        (
            node(spec={"taints": [{"key": "a", "value": "b c", "effect": "NoExecute"}]}),
            "spec.taints[0].value",
        ),
        (
            node(spec={"taints": [{"key": "a", "effect": "NoExecute"}] * 2}),
            "spec.taints[1]",
        ),
        (pod(priority="high"), "spec.priority"),
    ],
)
def test_invalid_objects_are_refused_with_the_path(content: Content, path: str) -> None:
    assert paths(content) == [path]


def test_names_of_kinds_that_nobody_reads_are_not_restricted() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {}}
    assert paths(named(role, "system:Upper_Case")) == []
    assert paths(named(pod_group(), "Upper_Case")) == ["metadata.name"]


def test_annotation_keys_may_contain_upper_case() -> None:
    assert paths(pod(annotations={"Example.com/Note": "x"})) == []


def test_only_system_classes_have_system_priorities() -> None:
    assert paths(priority_class("system-node-critical", 2_000_001_000)) == []


def test_all_problems_are_reported_at_once() -> None:
    content = named(pod(nodeName="N", restartPolicy="No"), "Web")
    assert paths(content) == ["metadata.name", "spec.restartPolicy", "spec.nodeName"]


@pytest.mark.parametrize(
    ("content", "expected_paths"),
    [
        ("pod", [""]),
        ({}, ["apiVersion", "kind", "metadata"]),
        ({"apiVersion": 1, "kind": "", "metadata": {}}, ["apiVersion", "kind", "metadata.name"]),
        (
            {**pod(), "metadata": {"name": 5, "namespace": 7}},
            ["metadata.name", "metadata.namespace"],
        ),
        ({**pod(), "metadata": {"generateName": "web-"}}, []),
    ],
)
def test_an_object_needs_kind_and_name(content: Any, expected_paths: list[str]) -> None:
    assert [problem.path for problem in identity_problems(content)] == expected_paths


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELDS = ["affinity", "containers", "tolerations", "resources", "nodeName", "priority"]


@given(st.sampled_from(FIELDS), VALUES)
def test_an_invalid_field_is_a_problem_and_not_an_exception(field: str, value: Any) -> None:
    for problem in problems(pod(**{field: value})):
        assert problem.actual


# ---- updates --------------------------------------------------------------------------------


def changed(old: Content, new: Content) -> list[str]:
    return [problem.path for problem in update_problems("v1 Pod", old, new)]


def test_gates_can_only_be_removed() -> None:
    both = pod(schedulingGates=[{"name": "a"}, {"name": "b"}])
    assert changed(both, pod(schedulingGates=[{"name": "b"}])) == []
    assert changed(both, pod()) == []
    assert changed(pod(), both) == ["spec.schedulingGates[0].name", "spec.schedulingGates[1].name"]
