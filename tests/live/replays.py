"""Scenes that run twice: on the embedded cluster, and with the same objects on a real API server.

The objects that users create in the embedded world are recorded in order. On the real server, nodes
and running pods are created first, then the scheduler starts, then the pods are created in order.
"""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field

from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.adapters.live.client import MERGE_PATCH
from bayplan.api.objects import NODE, POD
from tests.live.mirror import Object
from tests.live.priorities import priority
from tests.live.world import Running, SchedulerOptions, World
from tests.scenarios.world import Setup
from tests.scenarios.world import World as EmbeddedWorld
from tests.scenarios.world import play as play_embedded

Scene = Callable[[EmbeddedWorld], Awaitable[None]]


@dataclass
class Recorded:
    """The created objects in order, and their outcome."""

    nodes: list[Object] = field(default_factory=list[Object])
    running: list[Object] = field(default_factory=list[Object])
    waiting: list[Object] = field(default_factory=list[Object])
    #: Pod → node, for pods that the scheduler placed.
    places: dict[str, str] = field(default_factory=dict[str, str])
    deleted: set[str] = field(default_factory=set[str])

    def note(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if after is None and before is not None and before.key.kind == POD:
            self.deleted.add(before.key.name)
        if before is not None or after is None:
            return
        if after.key.kind == NODE:
            self.nodes.append(deepcopy(after.content))
        elif after.key.kind == POD:
            is_running = after.content["spec"].get("nodeName")
            (self.running if is_running else self.waiting).append(deepcopy(after.content))


def embedded(scene: Scene, setup: Setup) -> Recorded:
    recorded = Recorded()

    async def observed(world: EmbeddedWorld) -> None:
        world.cluster.observe(recorded.note)
        await scene(world)

    world = play_embedded(observed, setup)
    names = [content["metadata"]["name"] for content in recorded.waiting]
    places = {name: world.bound(name) for name in names}
    recorded.places = {name: place[1] for name, place in places.items() if place is not None}
    return recorded


async def replay(world: World, recorded: Recorded, setup: Setup) -> Running:
    """Returns the scheduler after it has placed all pods that were placed before."""
    await world.add_nodes(*map(_as_written, recorded.nodes))
    for content in recorded.running:
        await _add(world, content)
    await world.until_running(len(recorded.running))
    for content in recorded.running:
        await _start_earlier(world, content)
    async with world.scheduler(SchedulerOptions(setup=setup)) as running:
        for content in recorded.waiting:
            await _add(world, content)
        await world.until_bound(*recorded.places)
    return running


def _as_written(content: Object) -> Object:
    """The object without the fields that an API server adds."""
    metadata = content["metadata"]
    own_fields = {
        name: metadata[name] for name in ("name", "labels", "annotations") if name in metadata
    }
    return {**content, "metadata": own_fields}


async def _add(world: World, content: Object) -> None:
    written = _as_written(content)
    spec = dict(written["spec"])
    if spec.get("priority"):
        spec |= await priority(world, spec.pop("priority"))
    written.pop("status", None)
    await world.add_pods({**written, "spec": spec})


async def _start_earlier(world: World, content: Object) -> None:
    """Set the start time of the scene."""
    start = content.get("status", {}).get("startTime")
    if start is not None:
        path = world.path("pods", content["metadata"]["name"])
        status = {"status": {"startTime": start}}
        await world.client.request("PATCH", f"{path}/status", status, media_type=MERGE_PATCH)
