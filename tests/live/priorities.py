"""Priorities of pods, which a real API server takes only from PriorityClasses."""

import asyncio

from bayplan.ports import ApiError
from tests.live.mirror import Object
from tests.live.world import World, small_pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SERVED_SECONDS = 30.0
POLL_SECONDS = 0.05


async def priority(world: World, value: int, policy: str = "PreemptLowerPriority") -> Object:
    """The fields of a pod's spec that give this priority."""
    name = f"{world.namespace}-{value}-{policy.lower()}"
    content: Object = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
    try:
        await world.client.request("POST", CLASSES, content)
    except ApiError as problem:
        if problem.reason != "AlreadyExists":
            raise
    spec = {"priorityClassName": name}
    # The API server's admission sees a new class after a short delay.
    async with asyncio.timeout(SERVED_SECONDS):
        while not await _is_admitted(world, small_pod("trial", spec=spec)):
            await asyncio.sleep(POLL_SECONDS)
    return spec


async def _is_admitted(world: World, content: Object) -> bool:
    try:
        await world.client.request("POST", f"{world.path('pods')}?dryRun=All", content)
    except ApiError as problem:
        if "no PriorityClass" not in str(problem):
            raise
        return False
    return True


async def add_running(world: World, node_name: str, names: str, lowest: int) -> None:
    """Add running pods of 1 cpu each, in descending order of priority."""
    for place, name in enumerate(names.split()):
        spec = await priority(world, lowest + len(names) - place)
        labels = {"on": node_name}
        await world.add_pods(
            small_pod(name, cpu=1, labels=labels, spec={**spec, "nodeName": node_name})
        )
