"""JSON merge patch: the examples of the RFC and its properties."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.adapters.embedded.json_merge import difference, merge_patch, without_nulls

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_rfc_7386_hold(target: Any, patch: Any, merged: Any) -> None:
    assert merge_patch(target, patch) == merged


@given(PLAIN, PLAIN)
def test_merging_changes_no_argument_and_is_idempotent(target: Any, patch: Any) -> None:
    before = repr((target, patch))
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert repr((target, patch)) == before


@given(PLAIN)
def test_without_nulls_no_member_is_null(value: Any) -> None:
    def members(json: Any) -> list[Any]:
        inside = list(json.values()) if isinstance(json, dict) else []
        parts = inside + (json if isinstance(json, list) else [])
        return inside + [member for part in parts for member in members(part)]

    assert None not in members(without_nulls(value))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"a": 1}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}),
        ({"a": [1, 2]}, {"a": [2]}),
        ({"a": {"b": 1}}, {"a": 5}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}),
    ],
)
def test_a_difference_is_the_merge_patch(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merge_patch(old, difference(old, new)) == new
    assert not difference(new, new)
