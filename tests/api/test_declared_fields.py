"""A declared field is read by its path. The error for an absent field names the reason."""

import pytest

from bayplan.api.declared_fields import DeclaredFields, MissingField, UndeclaredField

OS_IMAGE = "Node.status.nodeInfo.osImage"
FIELDS = DeclaredFields("Node", "n1", {"status.nodeInfo.osImage": "7", "spec.podCIDR": None})


def test_a_path_is_written_as_it_is_declared_or_without_its_kind() -> None:
    assert FIELDS[OS_IMAGE] == FIELDS["status.nodeInfo.osImage"] == FIELDS.get(OS_IMAGE) == "7"
    assert OS_IMAGE in FIELDS


def test_the_error_for_an_absent_field_names_the_object_and_the_get_method() -> None:
    with pytest.raises(MissingField) as raised:
        FIELDS["Node.spec.podCIDR"]
    assert str(raised.value) == (
        'Node n1 has no Node.spec.podCIDR; node.declared.get("Node.spec.podCIDR") answers None'
    )
    assert FIELDS.get("Node.spec.podCIDR") is None
    assert FIELDS.get("Node.spec.podCIDR", "none") == "none"
    assert "Node.spec.podCIDR" not in FIELDS


def test_a_misspelling_of_a_declared_field_names_that_field() -> None:
    with pytest.raises(UndeclaredField) as raised:
        FIELDS["Node.status.nodeInf.osImage"]
    assert str(raised.value).endswith(f'did you mean "{OS_IMAGE}"?')


def test_the_error_for_an_undeclared_field_names_the_place_to_declare_it() -> None:
    with pytest.raises(UndeclaredField) as raised:
        FIELDS.get("Node.metadata.generation")
    assert str(raised.value) == (
        'no plugin declares "Node.metadata.generation"; write '
        'fields = ("Node.metadata.generation",) in the plugin that reads it'
    )
