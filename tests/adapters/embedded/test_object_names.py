"""Names, keys and uids."""

import pytest

from bayplan.adapters.embedded.object_names import (
    ObjectKey,
    key_of,
    object_key,
    stable_suffix,
    stable_uid,
)
from tests.adapters.manifests import node, pod


def test_a_pod_without_namespace_is_in_default() -> None:
    bare = {**pod(), "metadata": {"name": "web"}}
    assert key_of(bare) == ObjectKey("v1 Pod", "default", "web")


def test_a_node_has_no_namespace_whatever_it_says() -> None:
    said = {**node("a"), "metadata": {"name": "a", "namespace": "kube-system"}}
    assert key_of(said) == object_key("v1 Node", "other", "a") == ObjectKey("v1 Node", "", "a")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (ObjectKey("apps/v1 Deployment", "shop", "web"), "Deployment shop/web"),
        (ObjectKey("v1 Node", "", "a"), "Node a"),
    ],
)
def test_a_key_reads_as_people_write_it(key: ObjectKey, text: str) -> None:
    assert str(key) == text


def test_a_uid_follows_from_key_and_ordinal_and_looks_like_one() -> None:
    key = ObjectKey("v1 Pod", "default", "web")
    uid = stable_uid(key, 0)
    assert uid == stable_uid(key, 0)
    assert [len(part) for part in uid.split("-")] == [8, 4, 4, 4, 12]
    others = {stable_uid(key, 1), stable_uid(ObjectKey("v1 Pod", "default", "web2"), 0)}
    assert uid not in others
    assert len(others) == 2


def test_suffixes_have_no_vowels_and_the_asked_length() -> None:
    suffix = stable_suffix("web", length=9)
    assert len(suffix) == 9
    assert not set(suffix) & set("aeiouy013")
    assert suffix == stable_suffix("web", length=9) != stable_suffix("web2", length=9)
