"""What goes on at its own pace: churn, and objects that are deleted or updated one by one."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import count
from typing import TypeVar

from bayplan.adapters.object_names import Content, ObjectKey
from bayplan.clock import Clock
from bayplan.perf.schema import Churn
from bayplan.perf.world import World
from bayplan.ports import ApiError

T = TypeVar("T")


async def paced(items: Iterable[T], per_second: float, clock: Clock) -> AsyncIterator[T]:
    """Each item at its tick; a tick that is late does not make the next one late."""
    begin = clock.now()
    for number, item in enumerate(items, start=1):
        await asyncio.sleep(max(begin + number / per_second - clock.now(), 0.0))
        yield item


async def at_pace(
    keys: Iterable[ObjectKey], per_second: int, clock: Clock, do: Callable[[ObjectKey], None]
) -> None:
    """Do something about each object; ``per_second`` 0: at once."""
    if not per_second:
        for key in keys:
            do(key)
        return
    async for key in paced(keys, per_second, clock):
        do(key)


async def churn(operation: Churn, contents: Sequence[Content], world: World) -> None:
    """Create objects at every tick, up to a number; or create and delete them in turn, for ever."""
    per_second = 1000 / (operation.interval_milliseconds or 500)
    if operation.mode == "create":
        ticks = range(operation.number) if operation.number else count()
        async for _ in paced(ticks, per_second, world.clock):
            for content in contents:
                _created(world, content)
        return
    slots: dict[tuple[int, int], ObjectKey | None] = {}
    async for tick in paced(count(), per_second, world.clock):
        for index, content in enumerate(contents):
            slot = (index, tick % operation.number)
            key = slots.get(slot)
            slots[slot] = _created(world, content) if key is None else _deleted(world, key)


def _created(world: World, content: Content) -> ObjectKey | None:
    """As upstream, one that cannot be created is tried again at its next turn."""
    try:
        return world.cluster.create(content).key
    except ApiError:
        return None


def _deleted(world: World, key: ObjectKey) -> None:
    try:
        world.cluster.delete(key)
    except ApiError:
        return  # somebody was faster: a pod may have been preempted
