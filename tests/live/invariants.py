"""Invariants of the server's state, which hold regardless of all faults.

They are checked with the API's objects and the audit log alone.
"""

import collections
from collections.abc import Iterable, Mapping

from bayplan.api.quantity import parse
from tests.live.mirror import Object


def broken(
    nodes: Iterable[Object],
    pods: Iterable[Object],
    bindings: Mapping[tuple[str, int], int],
    placed_on: Mapping[str, set[str]],
) -> list[str]:
    """One sentence per broken invariant. ``bindings``: (pod, HTTP code) → number of requests;
    ``placed_on``: uid → all nodes that the pod has ever had."""
    pods = list(pods)
    return [
        *_overfull(nodes, pods),
        *(
            f"pod {name} was bound {count} times"
            for (name, code), count in sorted(bindings.items())
            if code == 201 and count != 1
        ),
        *(
            f"pod {_name(pod)} moved: {sorted(placed_on[pod['metadata']['uid']])}"
            for pod in pods
            if len(placed_on.get(pod["metadata"]["uid"], ())) > 1
        ),
    ]


def _overfull(nodes: Iterable[Object], pods: Iterable[Object]) -> list[str]:
    requested: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for pod in pods:
        if node_name := pod["spec"].get("nodeName"):
            requested[node_name].update(_requests(pod))
    return [
        f"node {name} has {has} {resource} and {used} taken"
        for node in nodes
        for name in [node["metadata"]["name"]]
        for resource, used in sorted(requested[name].items())
        if used > (has := _amount(resource, node["status"]["allocatable"].get(resource, 0)))
    ]


def _requests(pod: Object) -> collections.Counter[str]:
    amounts = collections.Counter({"pods": 1})
    for container in pod["spec"]["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            amounts[resource] += _amount(resource, amount)
    return amounts


def _amount(resource: str, quantity: str | int) -> int:
    return int(parse(str(quantity)) * (1000 if resource == "cpu" else 1))


def _name(pod: Object) -> str:
    return pod["metadata"]["name"]
