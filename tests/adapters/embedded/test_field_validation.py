"""Keys, names and uids of objects."""

import pytest

from bayplan.adapters.embedded.field_validation import (
    is_dns_label,
    is_dns_subdomain,
    stable_suffix,
    stable_uid,
)
from bayplan.objects.keys import ObjectKey

# ---- object names ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (ObjectKey("apps/v1 Deployment", "shop", "web"), "Deployment shop/web"),
        (ObjectKey("v1 Node", "", "a"), "Node a"),
    ],
)
def test_a_key_has_a_readable_form(key: ObjectKey, text: str) -> None:
    assert str(key) == text


def test_a_uid_is_derived_from_key_and_ordinal_and_has_the_form_of_a_uid() -> None:
    key = ObjectKey("v1 Pod", "default", "web")
    uid = stable_uid(key, 0)
    assert uid == stable_uid(key, 0)
    assert [len(part) for part in uid.split("-")] == [8, 4, 4, 4, 12]
    different = {stable_uid(key, 1), stable_uid(ObjectKey("v1 Pod", "default", "web2"), 0)}
    assert uid not in different
    assert len(different) == 2


def test_suffixes_have_no_vowels_and_the_requested_length() -> None:
    suffix = stable_suffix("web", length=9)
    assert len(suffix) == 9
    assert not set(suffix) & set("aeiouy013")
    assert suffix == stable_suffix("web", length=9) != stable_suffix("web2", length=9)


def test_names_are_dns_names() -> None:
    assert is_dns_subdomain("a.b-c.0")
    assert not any(map(is_dns_subdomain, ("", "A", "a..b", "a_b", "-a", "a" * 254, "a\n")))
    assert is_dns_label("kube-system")
    assert not any(map(is_dns_label, ("a.b", "a" * 64)))
