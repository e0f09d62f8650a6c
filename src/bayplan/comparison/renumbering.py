"""Renames nodes so that an order by name is drawn by the seed.

Neighbours in a list of machines are often equal. A scheduler that takes the smallest name among
equal nodes then fills one kind of machine after the other. A number before each name, drawn by the
seed, removes that effect and leaves everything else unchanged.

Renaming is possible only if no object refers to a node by its name.
"""

from collections.abc import Iterable, Iterator, Set
from typing import Any

import msgspec

from bayplan.api.objects import HOSTNAME_LABEL, NODE
from bayplan.objects.keys import Content, key_of
from bayplan.rng import stream
from bayplan.sim.input.workload import Workload


def renumbered(workload: Workload, seed: int) -> Workload:
    """The same workload with "0042-n1" in place of "n1"; see `name_users`."""
    names = sorted(_node_names(workload.initial))
    numbers = list(range(len(names)))
    stream(seed, "node numbers").shuffle(numbers)
    width = len(str(max(len(names) - 1, 0)))
    new_names = {
        name: f"{number:0{width}}-{name}" for name, number in zip(names, numbers, strict=True)
    }
    initial = tuple(_renamed(one, new_names) if _is_node(one) else one for one in workload.initial)
    return msgspec.structs.replace(workload, initial=initial)


def name_users(workload: Workload) -> Iterator[str]:
    """The objects and steps that refer to a node by its name, as "Pod default/a"."""
    names = set(_node_names(workload.initial))
    for one in _all_but_nodes(workload):
        if _mentions(one, names):
            key = key_of(one)
            yield f"{one['kind']} {key.namespace}/{key.name}".replace(" /", " ")
    for step in workload.steps:
        if step.key.kind == NODE or _mentions(step.content, names):
            yield f"{step.verb} {step.key}"


def _all_but_nodes(workload: Workload) -> Iterator[Content]:
    yield from (one for one in workload.initial if not _is_node(one))
    for pods in workload.followers.values():
        yield from pods


def _renamed(node: Content, new_names: dict[str, str]) -> Content:
    meta = node["metadata"]
    name = new_names[meta["name"]]
    labels = dict(meta.get("labels") or {})
    if labels.get(HOSTNAME_LABEL) == meta["name"]:
        labels[HOSTNAME_LABEL] = name
    return {**node, "metadata": {**meta, "name": name, "labels": labels}}


def _is_node(content: Content) -> bool:
    return key_of(content).kind == NODE


def _node_names(contents: Iterable[Content]) -> Iterator[str]:
    return (one["metadata"]["name"] for one in contents if _is_node(one))


def _mentions(content: Content, names: Set[str]) -> bool:
    """Whether the content contains one of the names, except as the object's own name."""
    meta = {key: value for key, value in content.get("metadata", {}).items() if key != "name"}
    return any(text in names for text in _texts({**content, "metadata": meta}))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _texts(member)
