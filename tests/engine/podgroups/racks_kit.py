"""Racks of nodes, and members of the group g on them."""

from typing import Any

from tests.scenarios.gangs import X_K8S, add_members
from tests.scenarios.world import World

UPSTREAM = "scheduling.k8s.io/v1beta1 PodGroup"


def racks(world: World, **racks: tuple[int, ...]) -> None:
    """Rack → cpus of its nodes, r1-0, r1-1 …"""
    for rack, cpus in racks.items():
        for index, cpu in enumerate(cpus):
            world.add_node(f"{rack}-{index}", cpu=cpu, labels={"rack": rack})


def members(world: World, *names: str, kind: str = X_K8S, cpu: int = 3, **options: Any) -> None:
    add_members(world, names, "g", kind, cpu=cpu, **options)


def racks_of(world: World, *names: str) -> list[str]:
    """The racks of the members, sorted; "" for a member without a node."""
    places = [world.bound(name) for name in names]
    return sorted("" if place is None else place[1].rpartition("-")[0] for place in places)
