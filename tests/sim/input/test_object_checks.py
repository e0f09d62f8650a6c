"""Checks of the objects of an input, and the index of those that exist."""

from typing import Any

import pytest

from bayplan.objects.keys import key_of, object_key
from bayplan.sim.input.errors import InputError, InputErrors
from bayplan.sim.input.object_checks import ObjectChecks, ObjectIndex, priority_class_name
from tests.kit.manifests import Content, node, pod, pod_group, priority_class
from tests.sim.manifests import controller, owned, template

# ---- object checks --------------------------------------------------------------------------


NAMED = {"name": "c", "namespace": "default"}


def lines(value: Any, *classes: str) -> list[str]:
    """The problems of a value, at place "here"."""
    errors = InputErrors()
    accepted = ObjectChecks(errors, classes).accepts(value, "here")
    try:
        errors.raise_if_any()
    except InputError as problem:
        assert not accepted
        return list(problem.lines)
    assert accepted
    return []


@pytest.mark.parametrize("value", [pod(), pod_group(), controller("Deployment"), controller("Job")])
def test_valid_objects_are_accepted(value: Any) -> None:
    assert lines(value) == []


def test_an_invalid_object_is_reported_with_its_place() -> None:
    (line,) = lines(pod(cpu="1x"))
    assert line == (
        "here (Pod default/web): spec.containers[0].resources.requests.cpu: "
        'found "1x", wanted a quantity such as 500m, 2 or 1Gi'
    )


def test_claims_of_volumes_and_devices_are_checked() -> None:
    volumes = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"volumeMode": "X"}}
    devices = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": {"devices": {"requests": [{"name": "r"}]}},
    }
    results = [line for each in (volumes, devices) for line in lines({**each, "metadata": NAMED})]
    assert results == [
        (
            "here (PersistentVolumeClaim default/c): "
            'spec.volumeMode: Unsupported value: "X": supported values: "Block", "Filesystem"'
        ),
        (
            "here (ResourceClaim default/c): "
            "spec.devices.requests[0]: found nothing, wanted one of exactly and firstAvailable"
        ),
    ]


def test_a_value_that_is_not_an_object_is_reported_without_a_name() -> None:
    expected = ["here: found a list, wanted an object with apiVersion, kind and metadata"]
    assert lines([]) == expected


def test_a_scheduler_configuration_is_refused_with_a_hint() -> None:
    (line,) = lines({"apiVersion": "x/v1", "kind": "KubeSchedulerConfiguration"})
    assert "--config" in line


def test_the_template_of_a_controller_is_checked() -> None:
    (line,) = lines(controller("Deployment", template=template(restartPolicy="Alway")))
    assert "(Deployment default/web): spec.template.spec.restartPolicy: " in line


# ---- priority classes -----------------------------------------------------------------------


def test_the_class_of_a_stored_pod_without_a_priority_must_exist() -> None:
    stored: dict[str, Any] = {"nodeName": "n1"}
    assert lines(pod(**stored, priorityClassName="high"), "high") == []
    assert lines(pod(**stored, priorityClassName="system-node-critical")) == []
    assert lines(pod(**stored, priorityClassName="gone", priority=5)) == []
    (line,) = lines(pod(**stored, priorityClassName="hihg"), "high", "low")
    assert 'spec.priorityClassName: found "hihg"' in line
    assert 'did you mean "high"?' in line


def test_the_class_of_a_new_pod_is_left_to_the_server() -> None:
    assert lines(pod(priorityClassName="gone")) == []
    assert lines(controller("Job", template=template(priorityClassName="gone"))) == []


def test_names_of_classes_are_collected() -> None:
    assert priority_class_name(priority_class("high", 1)) == "high"
    unnamed: list[Any] = [pod(), None, [], {"kind": "PriorityClass"}]
    unnamed.append({**priority_class("high", 1), "metadata": []})
    assert [priority_class_name(one) for one in unnamed] == [None] * 5


# ---- annotations of Bayplan -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"bayplan.dev/duration": "30s", "bayplan.dev/when-done": "delete"}, None),
        (
            {"bayplan.dev/duration": "soon"},
            'metadata.annotations.bayplan.dev/duration: found "soon"',
        ),
        (
            {"bayplan.dev/when-done": "delet"},
            'found "delet", wanted one of succeed, delete; did you mean "delete"?',
        ),
    ],
)
def test_durations_of_pods_are_checked(annotations: dict[str, str], words: str | None) -> None:
    for value in (
        pod(annotations=annotations),
        controller("Job", template=template(annotations=annotations)),
    ):
        result = lines(value)
        assert (result == []) if words is None else (words in result[0])


def test_the_durations_of_further_pods_of_a_template_are_checked() -> None:
    errors = InputErrors()
    checks = ObjectChecks(errors, ())
    durations = ("30s", "1h", "soon", "2h")
    accepted = [
        checks.accepts(pod(f"p{number}", annotations={"bayplan.dev/duration": text}), "here")
        for number, text in enumerate(durations)
    ]
    assert accepted == [True, True, False, True]
    with pytest.raises(InputError, match=r"here \(Pod default/p2\): .*soon"):
        errors.raise_if_any()


def test_a_deeply_nested_object_raises_no_exception() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert lines({**pod_group(), "spec": deep}) == []
    assert len(lines(pod(affinity=deep))) <= 1


# ---- object index ---------------------------------------------------------------------------


GROUP_OF_ANOTHER_GROUP = {**pod_group("g"), "apiVersion": "scheduling.ming.io/v1"}


def add(index: ObjectIndex, content: Content) -> None:
    index.put(key_of(content), content)


def test_objects_are_added_replaced_and_removed() -> None:
    index = ObjectIndex()
    add(index, pod("a"))
    add(index, pod("a", priority=1))
    assert index[key_of(pod("a"))]["spec"]["priority"] == 1
    assert [one["metadata"]["name"] for one in index.of_kind("v1 Pod")] == ["a"]
    index.remove(key_of(pod("a")))
    index.remove(key_of(pod("a")))
    assert key_of(pod("a")) not in index
    assert index.named("Pod", "default", "a") == []


def test_an_object_is_found_by_its_kind_without_its_group() -> None:
    index = ObjectIndex()
    for content in (pod("a"), node("a"), pod_group("g"), GROUP_OF_ANOTHER_GROUP):
        add(index, content)
    assert index.named("Pod", "default", "a") == [object_key("v1 Pod", "default", "a")]
    assert index.named("Node", "default", "a") == [object_key("v1 Node", "", "a")]
    assert len(index.named("PodGroup", "default", "g")) == 2
    assert index.named("PodGroup", "other", "g") == []


def test_the_names_of_a_kind_are_those_of_present_objects() -> None:
    index = ObjectIndex()
    for content in (pod("a"), pod("b"), pod("c", namespace="other")):
        add(index, content)
    index.remove(key_of(pod("b")))
    assert index.names("Pod", "default") == ["a"]
    assert index.namespaces() == {"default", "other"}


@pytest.mark.parametrize(
    ("owner_uid", "reference_uid", "is_owned"),
    [("u1", "u1", True), ("u1", "u2", False), (None, "u1", True), ("u1", None, True)],
)
def test_owners_are_matched_by_uid_if_both_sides_have_one(
    owner_uid: str | None, reference_uid: str | None, is_owned: bool
) -> None:
    owner = controller("ReplicaSet", **({"uid": owner_uid} if owner_uid else {}))
    index = ObjectIndex()
    add(index, owned(pod("a"), owner, uid=reference_uid))
    add(index, pod("stranger"))
    names = [one["metadata"]["name"] for one in index.owned_by(owner)]
    assert names == (["a"] if is_owned else [])


def test_owner_names_are_read_from_owned_objects() -> None:
    index = ObjectIndex()
    add(index, owned(pod("a"), controller("ReplicaSet", "rs")))
    assert index.owner_names("ReplicaSet", "default") == ["rs"]
    index.remove(key_of(pod("a")))
    assert index.owner_names("ReplicaSet", "default") == []


def test_an_owner_of_another_kind_or_namespace_is_another_owner() -> None:
    index = ObjectIndex()
    add(index, owned(pod("a"), controller("ReplicaSet")))
    add(index, owned(pod("b", namespace="other"), controller("ReplicaSet")))
    assert index.owned_by(controller("StatefulSet")) == []
    names = [one["metadata"]["name"] for one in index.owned_by(controller("ReplicaSet"))]
    assert names == ["a"]
