"""What is index to be there."""

import pytest

from bayplan.adapters.embedded.object_names import key_of, object_key
from bayplan.sim.input.object_index import ObjectIndex
from tests.adapters.manifests import Content, node, pod, pod_group
from tests.sim.manifests import controller, owned

GROUP_OF_ANOTHER_GROUP = {**pod_group("g"), "apiVersion": "scheduling.ming.io/v1"}


def put(index: ObjectIndex, content: Content) -> None:
    index.put(key_of(content), content)


def test_objects_come_are_replaced_and_go() -> None:
    index = ObjectIndex()
    put(index, pod("a"))
    put(index, pod("a", priority=1))
    assert index[key_of(pod("a"))]["spec"]["priority"] == 1
    assert [one["metadata"]["name"] for one in index.of_kind("v1 Pod")] == ["a"]
    index.remove(key_of(pod("a")))
    index.remove(key_of(pod("a")))
    assert key_of(pod("a")) not in index
    assert index.named("Pod", "default", "a") == []


def test_an_object_is_found_by_its_kind_without_its_group() -> None:
    index = ObjectIndex()
    for content in (pod("a"), node("a"), pod_group("g"), GROUP_OF_ANOTHER_GROUP):
        put(index, content)
    assert index.named("Pod", "default", "a") == [object_key("v1 Pod", "default", "a")]
    assert index.named("Node", "default", "a") == [object_key("v1 Node", "", "a")]
    assert len(index.named("PodGroup", "default", "g")) == 2
    assert index.named("PodGroup", "other", "g") == []


def test_names_of_a_kind_are_those_that_are_there() -> None:
    index = ObjectIndex()
    for content in (pod("a"), pod("b"), pod("c", namespace="other")):
        put(index, content)
    index.remove(key_of(pod("b")))
    assert index.names("Pod", "default") == ["a"]
    assert index.namespaces() == {"default", "other"}


@pytest.mark.parametrize(
    ("owner_uid", "said_uid", "is_owned"),
    [("u1", "u1", True), ("u1", "u2", False), (None, "u1", True), ("u1", None, True)],
)
def test_ownership_goes_by_uid_where_both_sides_have_one(
    owner_uid: str | None, said_uid: str | None, is_owned: bool
) -> None:
    owner = controller("ReplicaSet", **({"uid": owner_uid} if owner_uid else {}))
    index = ObjectIndex()
    put(index, owned(pod("a"), owner, uid=said_uid))
    put(index, pod("stranger"))
    names = [one["metadata"]["name"] for one in index.owned_by(owner)]
    assert names == (["a"] if is_owned else [])


def test_owners_are_known_by_what_they_own() -> None:
    index = ObjectIndex()
    put(index, owned(pod("a"), controller("ReplicaSet", "rs")))
    assert index.owner_names("ReplicaSet", "default") == ["rs"]
    index.remove(key_of(pod("a")))
    assert index.owner_names("ReplicaSet", "default") == []


def test_an_owner_of_another_kind_or_namespace_is_another_owner() -> None:
    index = ObjectIndex()
    put(index, owned(pod("a"), controller("ReplicaSet")))
    put(index, owned(pod("b", namespace="other"), controller("ReplicaSet")))
    assert index.owned_by(controller("StatefulSet")) == []
    names = [one["metadata"]["name"] for one in index.owned_by(controller("ReplicaSet"))]
    assert names == ["a"]
