"""S-01: a pod and three nodes, of which each strategy prefers another."""

from tests.scenarios.world import World


async def three_nodes(world: World) -> None:
    for name, cpu, memory in (("a", 4, "8Gi"), ("b", 4, "8Gi"), ("c", 2, "4Gi")):
        world.add_node(name, cpu=cpu, memory=memory)
    world.add_pod("ra", cpu=2, memory="2Gi", node="a")
    world.add_pod("rb", cpu=1, memory="6Gi", node="b")
    await world.until(0)


async def scene(world: World) -> None:
    await three_nodes(world)
    world.add_pod("p", cpu=1, memory="1Gi")
    await world.until(0)
