"""Edits: candidates for a fix, applied to a model and written as a patch.

An edit of a pod is a function on a pod's spec. So it applies both to the pod that is tried and to
the template of its controller, whose lists may be in another order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Any, Literal, final

import msgspec

from bayplan.explain.explanation import Change
from bayplan.objects.keys import ObjectKey

Subject = Literal["pod", "object", "workload", "node"]
Spec = dict[str, Any]
Content = dict[str, Any]
Patch = tuple[dict[str, Any], ...]


class EditNotPossibleError(Exception):
    """The spec does not have what the edit changes, or the API server refuses the change."""


class Harm(IntEnum):
    """What a change costs, in the order in which an operator tries changes."""

    #: The owner of the workload corrects what is wrong on every node, or creates what is missing.
    NONE = auto()
    #: A further node of an existing kind is added.
    NODE = auto()
    #: A rule or a request of the workload is relaxed, and the workload loses the purpose of the
    #: rule.
    RULE = auto()
    #: Other objects change, which other workloads may use.
    OBJECT = auto()
    #: A node of a kind that does not exist yet is added.
    NEW_KIND = auto()
    #: Other workloads lose pods.
    WORKLOAD = auto()
    #: It works, but there is a reason not to do it, which the text names.
    RISKY = auto()


@final
@dataclass(frozen=True, slots=True)
class PodEdit:
    """A change of a pod's spec."""

    text: str
    #: Changes the spec in place. Raises EditNotPossibleError.
    apply: Callable[[Spec], None]
    harm: Harm = Harm.RULE
    #: Whether the API server accepts it for a pod that exists.
    is_accepted_for_pods: bool = False
    #: The family of the edit. Edits of one family differ only in how far they go; "": none.
    family: str = ""
    #: What the reader should know before the change; "": nothing.
    note: str = ""
    changes_what: Subject = "pod"


@final
@dataclass(frozen=True, slots=True)
class ObjectEdit:
    """Changes of other objects than the pod."""

    text: str
    changes: tuple[Change, ...]
    commands: tuple[str, ...] = ()
    changes_what: Subject = "object"
    harm: Harm = Harm.OBJECT
    family: str = ""
    #: What the reader should know before the change; "": nothing.
    note: str = ""
    #: Whether its effect depends on controllers, so that a quick trial shows nothing.
    needs_controllers: bool = False
    #: The node of which the edit creates copies; "": none. Edits of one harm that copy the same
    #: node differ only in the number of copies.
    copied_node: str = ""


Edit = PodEdit | ObjectEdit


def plain(value: Any) -> Any:
    """A decoded object, or a part of one, as new plain values. A whole object has a spec."""
    values = msgspec.json.decode(msgspec.json.encode(value))
    if hasattr(value, "metadata"):
        for part in ("spec", "status"):
            if hasattr(value, part):
                values.setdefault(part, {})
    return values


def edited_spec(spec: Spec, edits: Iterable[PodEdit]) -> Spec:
    """A copy of a spec with the edits. Raises EditNotPossibleError."""
    changed = plain(spec)
    for edit in edits:
        try:
            edit.apply(changed)
        except (KeyError, IndexError, TypeError, AttributeError) as problem:
            raise EditNotPossibleError(f"{edit.text}: {problem!r}") from None
    return changed


# ---- JSON patches -------------------------------------------------------------------------------


def patch_of(key: ObjectKey, patch: Patch) -> Change:
    """The patch of an object as a change."""
    return Change(verb="patch", kind=key.kind, name=key.name, namespace=key.namespace, patch=patch)


def json_patch(old: Any, new: Any, path: str = "") -> Patch:
    """The operations of RFC 6902 that turn one value into the other."""
    if old == new:
        return ()
    if isinstance(old, dict) and isinstance(new, dict):
        return _dict_patch(old, new, path)
    if isinstance(old, list) and isinstance(new, list):
        if len(old) == len(new):
            pairs = enumerate(zip(old, new, strict=True))
            return tuple(op for i, (a, b) in pairs for op in json_patch(a, b, f"{path}/{i}"))
        if new[: len(old)] == old:
            return tuple({"op": "add", "path": f"{path}/-", "value": v} for v in new[len(old) :])
    return ({"op": "replace", "path": path, "value": new},)


def _dict_patch(old: dict[str, Any], new: dict[str, Any], path: str) -> Patch:
    operations: list[dict[str, Any]] = []
    for name in sorted(old.keys() | new.keys()):
        below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in new:
            operations.append({"op": "remove", "path": below})
        elif name not in old:
            operations.append({"op": "add", "path": below, "value": new[name]})
        else:
            operations += json_patch(old[name], new[name], below)
    return tuple(operations)


def patched(content: Content, patch: Patch) -> Content:
    """A copy of the content with the operations add, replace and remove. Raises KeyError."""
    changed = plain(content)
    for operation in patch:
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        target: Any = changed
        for part in parents:
            target = target[int(part)] if isinstance(target, list) else target[part]
        if isinstance(target, list):
            if operation["op"] == "remove":
                del target[int(last)]
            elif last == "-":
                target.append(operation["value"])
            else:
                target[int(last)] = operation["value"]
        elif operation["op"] == "remove":
            del target[last]
        else:
            target[last] = operation["value"]
    return changed


def change_of(kind: str, content: Content) -> Change:
    """The creation of an object."""
    meta = content["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    return Change(verb="create", kind=kind, name=name, namespace=namespace, content=content)


def deletion_of(key: ObjectKey) -> Change:
    return Change(verb="delete", kind=key.kind, name=key.name, namespace=key.namespace)
