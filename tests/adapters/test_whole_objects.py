"""Objects as they are sent on."""

import json

import pytest

from bayplan.adapters.whole_objects import trimmed


@pytest.mark.parametrize("type_", [{}, {"apiVersion": "v1", "kind": "Pod"}])
def test_what_nobody_needs_is_left_out(type_: dict[str, str]) -> None:
    meta = {"name": "p", "managedFields": [{"manager": "kubectl"}], "labels": {"kind": "web"}}
    content = {**type_, "metadata": meta, "spec": {"kind": "of its own"}}
    assert json.loads(trimmed(content)) == {
        "metadata": {"name": "p", "labels": {"kind": "web"}},
        "spec": {"kind": "of its own"},
    }
    assert "managedFields" in meta  # what is shared stays as it is


def test_an_object_without_metadata_is_sent_as_it_is() -> None:
    assert json.loads(trimmed({"spec": {}})) == {"spec": {}}
