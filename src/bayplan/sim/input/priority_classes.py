"""Priority classes that an input lacks and its pods tell.

A dump of one namespace, or of workloads alone, has no PriorityClass. Its pods have the priority
that their class gave them, so the class is known: the pods that a controller creates get it, too.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, cast

from bayplan.adapters.embedded.api_validation import SYSTEM_PRIORITY_CLASSES
from bayplan.objects.keys import Content
from bayplan.sim.input.controller_kinds import CONTROLLERS

_WITH_TEMPLATES = frozenset(kind.rpartition(" ")[2] for kind in CONTROLLERS)


def implied_classes(values: Iterable[Any], present: Collection[str]) -> list[Content]:
    """The classes that templates name, that the input lacks, and whose values pods have.

    ``values``: the unchecked values of the input. ``present``: the names of its classes.
    """
    known = {*present, *SYSTEM_PRIORITY_CLASSES}
    seen: dict[str, Counter[tuple[int, str]]] = {}
    named: set[str] = set()
    for value in values:
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "Pod":
            _note_pod(members(value, "spec"), seen)
        elif isinstance(kind, str) and kind in _WITH_TEMPLATES:
            spec = members(members(members(value, "spec"), "template"), "spec")
            named.add(str(spec.get("priorityClassName") or ""))
    return [_class(name, seen[name]) for name in sorted(named & seen.keys() - known)]


def notes_of(classes: Iterable[Content]) -> Iterator[str]:
    """Notes for the reader."""
    for one in classes:
        name = one["metadata"]["name"]
        yield (
            f"the input has no PriorityClass {name}: it was added with the priority of its pods,"
            f" {one['value']}"
        )


def _note_pod(spec: Mapping[str, Any], seen: dict[str, Counter[tuple[int, str]]]) -> None:
    name, priority = spec.get("priorityClassName"), spec.get("priority")
    if isinstance(name, str) and isinstance(priority, int):
        policy = str(spec.get("preemptionPolicy") or "PreemptLowerPriority")
        seen.setdefault(name, Counter())[priority, policy] += 1


def _class(name: str, seen: Counter[tuple[int, str]]) -> Content:
    [((value, policy), _)] = seen.most_common(1)
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


def members(value: Any, name: str) -> Mapping[str, Any]:
    """A part of an unchecked object; empty: it has none, or none with members."""
    part = value.get(name) if isinstance(value, Mapping) else None
    return cast("Mapping[str, Any]", part) if isinstance(part, dict) else {}
