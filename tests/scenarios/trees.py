"""Trees of groups in the scenarios' world."""

from typing import Any

from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP
from tests.scenarios.gangs import UPSTREAM, add_members, put_group
from tests.scenarios.world import World

GATES = {
    "GenericWorkload": True,
    "TopologyAwareWorkloadScheduling": True,
    "CompositePodGroup": True,
}
PLUGINS = [
    "GangScheduling",
    "NodeResourcesFit",
    "PodGroupPodsCount",
    "TopologyPlacementGenerator",
]


def put_tree(world: World, name: str, minimum: int | None, parent: str = "", **spec: Any) -> None:
    """A CompositePodGroup. ``minimum``: of its groups; None: the basic policy."""
    policy = {"basic": {}} if minimum is None else {"gang": {"minGroupCount": minimum}}
    spec = {"schedulingPolicy": policy, **spec}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    api_version, _, kind = COMPOSITE_POD_GROUP.partition(" ")
    meta = {"name": name, "namespace": "default"}
    world.cluster.create({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})


def put_part(world: World, name: str, minimum: int, parent: str, **spec: Any) -> None:
    """A PodGroup of a tree."""
    put_group(world, name, minimum, UPSTREAM, parentCompositePodGroupName=parent, **spec)


def add_pods(
    world: World, group: str, count: int, cpu: int = 1, first: int = 0, **options: Any
) -> list[str]:
    """Pods GROUP-0, GROUP-1 … of a group."""
    names = [f"{group}-{index}" for index in range(first, first + count)]
    add_members(world, names, group, UPSTREAM, cpu=cpu, **options)
    return names
