"""Edits apply to models and become JSON patches that give the same result."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.explain.fixes.edits import (
    EditNotPossibleError,
    PodEdit,
    edited_spec,
    json_patch,
    patched,
)
from bayplan.explain.fixes.resource_edits import lower_to

VALUES = st.recursive(
    st.integers(0, 3) | st.sampled_from(["a", "b/c", "d~e"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y/z", "~"]), inner, max_size=3)
    ),
    max_leaves=8,
)
CONTENTS = st.dictionaries(st.sampled_from(["spec", "a/b", "c~d"]), VALUES, max_size=3)


@settings(max_examples=200, deadline=None)
@given(old=CONTENTS, new=CONTENTS)
def test_a_patch_turns_one_content_into_the_other(old: Any, new: Any) -> None:
    assert patched(old, json_patch(old, new)) == new


def test_an_addition_to_a_list_does_not_repeat_the_list() -> None:
    patch = json_patch({"tolerations": [1]}, {"tolerations": [1, 2]}, "/spec")
    assert patch == ({"op": "add", "path": "/spec/tolerations/-", "value": 2},)


def test_an_edit_that_does_not_apply_is_refused() -> None:
    def drop(spec: Any) -> None:
        del spec["nodeSelector"]["disk"]

    with pytest.raises(EditNotPossibleError):
        edited_spec({"containers": []}, [PodEdit("drop disk", drop)])


def requests(**amounts: str) -> dict[str, Any]:
    return {"resources": {"requests": dict(amounts)}}


def test_the_largest_container_is_lowered_first() -> None:
    spec = {"containers": [requests(cpu="1"), requests(cpu="3")]}
    lower_to(spec, "cpu", 2500, 4000)
    assert [c["resources"]["requests"]["cpu"] for c in spec["containers"]] == ["1", "1500m"]


def test_an_init_container_that_is_larger_than_the_target_is_lowered() -> None:
    spec = {"containers": [requests(cpu="1")], "initContainers": [requests(cpu="4")]}
    lower_to(spec, "cpu", 2000, 4000)
    assert spec["initContainers"][0]["resources"]["requests"]["cpu"] == "2"
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == "1"


def test_the_limit_of_a_device_follows_its_request() -> None:
    resources = {"requests": {"example.com/gpu": "4"}, "limits": {"example.com/gpu": "4"}}
    spec = {"containers": [{"resources": resources}]}
    lower_to(spec, "example.com/gpu", 2, 4)
    assert resources["limits"] == resources["requests"] == {"example.com/gpu": "2"}
