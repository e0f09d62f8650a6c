"""What a group asks for in sum, held against what all nodes have free together.

A floor, no more: enough in sum says nothing of a single member's fitting anywhere.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bayplan.api.objects import Pod
from bayplan.api.pod_groups import PodGroup
from bayplan.api.pod_requests import CPU, PODS, amounts
from bayplan.state.columns import Int64s
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, pod_info


def missing(group: PodGroup, members: Sequence[Pod | PodInfo], nodes: NodeView) -> dict[str, int]:
    """Resource → how much of it all nodes together lack; empty: nothing is missing.

    What ``members``, those that hold a node, use is counted as free. Raises QuantityError.
    """
    if not group.min_resources:
        return {}
    used = _used_by(members, nodes)
    found: dict[str, int] = {}
    for resource, wanted in {**amounts(group.min_resources), PODS: group.min_member}.items():
        lack = wanted - _free(resource, used, nodes)
        if lack > 0:
            found[resource] = lack
    return found


def told(gap: Mapping[str, int]) -> str:
    """The gap in words, in order of the resources' names."""
    parts = [f"{name} {gap[name]}{'m' if name == CPU else ''}" for name in sorted(gap)]
    return f"resource gap: {', '.join(parts)}"


def _used_by(
    members: Sequence[Pod | PodInfo], nodes: NodeView
) -> list[tuple[int, Mapping[str, int]]]:
    """(the node's position, what the member requests there), of each that is on a node."""
    infos = [each if isinstance(each, PodInfo) else pod_info(each) for each in members]
    placed = [(nodes.position(each.node_name), each.requests) for each in infos]
    return [(at, {**requests, PODS: 1}) for at, requests in placed if at is not None]


def _free(resource: str, used: Sequence[tuple[int, Mapping[str, int]]], nodes: NodeView) -> int:
    """A node that is overcommitted has nothing, and takes nothing from the others."""
    taken = nodes.pod_counts() if resource == PODS else nodes.requested(resource)
    free: Int64s = nodes.allocatable(resource) - taken
    for at, requests in used:
        free[at] += requests.get(resource, 0)
    return int(np.maximum(free, 0).sum())
