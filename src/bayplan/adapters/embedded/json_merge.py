"""JSON merge patch (RFC 7386) on values that never change in place."""

from collections.abc import Mapping
from typing import Any, cast


def merge_patch(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` applied: mappings merge, null removes, other values replace.

    Neither argument is changed. The result shares parts with both.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes ``new`` of ``old``; {} if they are equal."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(cast(dict[str, Any], before), cast(dict[str, Any], value))
            if inner:
                patch[name] = inner
        elif value != before or name not in old:
            patch[name] = value
    return patch


def without_nulls(value: Any) -> Any:
    """The value without null members, which the API machinery treats as absent."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value
