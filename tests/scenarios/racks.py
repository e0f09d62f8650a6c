"""S-10: nodes in racks, and the scores of racks."""

from typing import Any

from tests.scenarios.world import World

#: name → (rack, zone, used cpu and Gi)
NODES = {
    "n1": ("r1", "z1", 4),
    "n2": ("r1", "z1", 1),
    "n3": ("r2", "z1", 2),
    "n4": ("r2", "z1", 2),
    "n5": ("r3", "z2", 3),
    "n6": ("", "", 0),
}


def fit(strategy: str = "MostAllocated", **more: Any) -> dict[str, Any]:
    return {"NodeResourcesFit": {"scoringStrategy": {"type": strategy, **more}}}


def scorer(key: str = "rack", aggregate: str = "sum", over: str = "feasible") -> dict[str, Any]:
    args = {"scoreFrom": "NodeResourcesFit", "topologyKey": key}
    return {f"TopologyScorer/{key}": {**args, "aggregate": aggregate, "over": over}}


async def a_pod_among_racks(world: World, **more: tuple[str, str, int]) -> None:
    """``more``: further nodes."""
    for name, (rack, zone, used) in {**NODES, **more}.items():
        labels = {"rack": rack, "zone": zone} if rack else {}
        world.add_node(name, cpu=10, memory="10Gi", labels=labels)
        if used:
            world.add_pod(f"on-{name}", cpu=used, memory=f"{used}Gi", node=name)
    world.add_pod("p", cpu=1, memory="1Gi")
    await world.until(0)


ONLY_RACK = ["NodeResourcesFit", ("TopologyScorer/rack", 1)]
