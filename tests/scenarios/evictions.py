"""S-06: three nodes with running pods, and a pod that evicts some."""

from typing import Any

from bayplan.adapters.embedded.versioned_store import StoredObject
from tests.scenarios.world import World

PLUGINS = ["NodeResourcesFit", "DefaultPreemption"]


class Evictions:
    """The pods that the API reports as deleted or as targets of a disruption."""

    def __init__(self, world: World) -> None:
        #: Name → time of the deletion.
        self.deleted: dict[str, float] = {}
        #: Name → reason of the condition DisruptionTarget.
        self.targets: dict[str, str] = {}
        self._world = world
        world.cluster.observe(self._observe)

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if after is None and before is not None and before.key.kind == "v1 Pod":
            self.deleted[before.key.name] = self._world.now
        if after is None or after.key.kind != "v1 Pod":
            return
        for each in after.content.get("status", {}).get("conditions", ()):
            if each["type"] == "DisruptionTarget" and each["status"] == "True":
                self.targets[after.key.name] = each["reason"]


def add_running(world: World, name: str, where: str, cpu: int, priority: int, age: int) -> None:
    """Add a running pod. ``age``: how many seconds the pod has been running."""
    minutes, seconds = divmod(600 - age, 60)
    status = {"phase": "Running", "startTime": f"2025-12-31T23:{50 + minutes}:{seconds:02}Z"}
    labels = {"app": name[0]}
    options: dict[str, Any] = {"node": where, "labels": labels, "status": status}
    world.add_pod(name, cpu=cpu, memory="1Gi", priority=priority, **options)


def three_nodes(world: World) -> Evictions:
    for name in ("n1", "n2", "n3"):
        world.add_node(name, cpu=4, memory="64Gi")
    add_running(world, "p5", "n1", 2, 5, 400)
    add_running(world, "p10", "n1", 2, 10, 400)
    add_running(world, "w7", "n2", 3, 7, 400)
    add_running(world, "w2000", "n2", 1, 2000, 400)
    for number in range(1, 5):
        add_running(world, f"v{number}", "n3", 1, 1, 500 - 100 * number)
    return Evictions(world)


def add_h(world: World, **options: Any) -> None:
    world.add_pod("h", cpu=3, memory="1Gi", priority=1000, **options)


async def h_preempts(world: World) -> None:
    """The events of part A."""
    three_nodes(world)
    add_h(world)
    await world.until(2)
