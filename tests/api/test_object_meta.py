"""The metadata of all kinds decodes and encodes as the API writes it."""

import msgspec
import pytest

from bayplan.api.object_meta import Api, Int64, ObjectMeta, resource_of


class Sample(Api):
    node_name: str = ""
    big: Int64 = 0


def test_fields_are_camel_case_on_the_wire() -> None:
    assert msgspec.json.decode(b'{"nodeName": "n1"}', type=Sample).node_name == "n1"


def test_a_field_with_its_default_value_is_not_written() -> None:
    assert msgspec.json.encode(Sample(node_name="n1")) == b'{"nodeName":"n1"}'


def test_an_integer_that_is_too_large_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"big": 9223372036854775808}', type=Sample)


def test_metadata_has_the_owners_of_an_object() -> None:
    text = b'{"name": "c", "ownerReferences": [{"kind": "Pod", "uid": "u", "controller": true}]}'
    owners = msgspec.json.decode(text, type=ObjectMeta).owner_references
    assert owners is not None
    owner = owners[0]
    assert (owner.kind, owner.uid, owner.controller) == ("Pod", "u", True)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("v1 Pod", "pods"),
        ("scheduling.k8s.io/v1 PriorityClass", "priorityclasses"),
        ("networking.k8s.io/v1 NetworkPolicy", "networkpolicies"),
    ],
)
def test_plurals_are_those_of_the_api(kind: str, plural: str) -> None:
    assert resource_of(kind) == plural
