"""JSON merge patch (RFC 7386) on values that never change in place."""

from collections.abc import Mapping
from typing import Any


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
    """The merge patch that makes ``new`` of ``old``; {} if they are equal.

    Parts that both share cost nothing.
    """
    patch: dict[str, Any] = {}
    for name, value in new.items():
        before = old.get(name)
        if before is value:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            # Not `cast`, which is a call: each change that a run logs passes here.
            old_part: dict[str, Any] = before
            new_part: dict[str, Any] = value
            inner = difference(old_part, new_part)
            if inner:
                patch[name] = inner
        elif value != before:
            patch[name] = value
    if not old.keys() <= new.keys():
        patch |= {name: None for name in old if name not in new}
    return patch


def without_nulls(value: Any) -> Any:
    """The value without null members, which the API machinery treats as absent."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value
