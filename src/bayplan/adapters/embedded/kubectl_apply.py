"""What `kubectl apply` makes of an object that exists: a merge of three objects.

The manifest counts for the fields that it has. A field that the last applied manifest has and the
new one lacks is removed. All other fields stay as the server has them: defaults, and the number of
replicas that an autoscaler writes.

Lists of parts with a key of their own merge by that key; other lists are replaced. Amounts are
compared as amounts: a server stores 0.5 as 500m. Upstream: apimachinery
pkg/util/strategicpatch (CreateThreeWayMergePatch), and the tags patchMergeKey of
k8s.io/api/core/v1.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from bayplan.api.objects import LAST_APPLIED_ANNOTATION
from bayplan.api.quantity import QuantityError, nanos
from bayplan.objects.keys import Content

#: List → the member that tells its parts apart.
_MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "conditions": "type",
}
_AMOUNTS = ("requests", "limits", "capacity", "allocatable")
#: The server owns the other metadata.
_APPLIED_METADATA = ("labels", "annotations")


def applied(live: Content, manifest: Content) -> Content:
    """The object after `kubectl apply`. Shares parts with both, and changes neither."""
    return _merged(live, manifest, _last_applied(live))


def _last_applied(live: Content) -> Content:
    """The manifest that was applied last, without metadata that names the object."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED_ANNOTATION)
    try:
        last = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(last, dict):
        return {}
    whole = cast(Content, last)
    meta = _members(whole.get("metadata"))
    return {**whole, "metadata": {name: meta[name] for name in _APPLIED_METADATA if name in meta}}


def _merged(live: Content, new: Content, last: Content, *, are_amounts: bool = False) -> Content:
    merged = {name: value for name, value in live.items() if name in new or name not in last}
    for name, value in new.items():
        if value is None:
            merged.pop(name, None)
        elif not (are_amounts and _are_equal(live.get(name), value)):
            merged[name] = _value(name, live.get(name), value, last.get(name))
    return merged


def _value(name: str, live: Any, new: Any, last: Any) -> Any:
    if isinstance(live, dict) and isinstance(new, dict):
        live_part, new_part = cast(Content, live), cast(Content, new)
        return _merged(live_part, new_part, _members(last), are_amounts=name in _AMOUNTS)
    key = _MERGE_KEYS.get(name)
    parts = [_by_key(each, key) for each in (live, new, last or [])]
    if key is None or None in parts:
        return new
    live_parts, new_parts, last_parts = cast("list[dict[Any, Content]]", parts)
    merged = {
        each: _merged(live_parts.get(each, {}), part, last_parts.get(each, {}))
        for each, part in new_parts.items()
    }
    others = {
        each: part
        for each, part in live_parts.items()
        if each not in new_parts and each not in last_parts
    }
    in_order = [each for each in live_parts if each in merged or each in others]
    in_order += [each for each in merged if each not in live_parts]
    both = {**others, **merged}
    return [both[each] for each in in_order]


def _by_key(parts: Any, key: str | None) -> dict[Any, Content] | None:
    """The parts of a list by their key; None: it is no list of parts that have one each."""
    if key is None or not isinstance(parts, list):
        return None
    listed = cast("list[Any]", parts)
    if not all(isinstance(each, dict) and isinstance(each.get(key), str | int) for each in listed):
        return None
    by_key: dict[Any, Content] = {each[key]: each for each in listed}
    return by_key if len(by_key) == len(listed) else None


def _members(value: Any) -> Content:
    return cast(Content, value) if isinstance(value, dict) else {}


def _are_equal(live: Any, new: Any) -> bool:
    try:
        return nanos(live) == nanos(new)
    except (QuantityError, TypeError, ValueError, AttributeError):
        return False
