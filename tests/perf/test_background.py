"""What has a pace keeps it, whatever the work at each tick takes."""

import asyncio
from typing import Any

import pytest

from bayplan.adapters.object_names import object_key
from bayplan.api.objects import POD
from bayplan.clock import ManualClock
from bayplan.perf.background import at_pace, paced
from bayplan.sim.loop import run

KEYS = [object_key(POD, "default", str(n)) for n in range(3)]


def test_items_come_at_their_ticks() -> None:
    clock, seen = ManualClock(), []

    async def main() -> None:
        async for item in paced("abc", 2, clock):
            seen.append((item, clock.now()))
            await asyncio.sleep(0.3)

    run(main(), clock)
    assert seen == [("a", 0.5), ("b", 1.0), ("c", 1.5)]


@pytest.mark.parametrize(("per_second", "moments"), [(0, [0, 0, 0]), (4, [0.25, 0.5, 0.75])])
def test_something_is_done_about_each(per_second: int, moments: list[float]) -> None:
    clock: ManualClock = ManualClock()
    done: list[Any] = []
    work = at_pace(KEYS, per_second, clock, lambda key: done.append((key, clock.now())))
    run(work, clock)
    assert done == list(zip(KEYS, moments, strict=True))
