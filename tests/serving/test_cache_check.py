"""Caches compared with the API server."""

import asyncio
import logging
from typing import Any

import pytest

from bayplan.ports import ApiError
from bayplan.serving.cache_check import CacheCheck
from tests.scenarios.world import World, play


def keys(record: logging.LogRecord) -> dict[str, Any]:
    return vars(record)["bayplan_keys"]


def test_what_differs_is_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="bayplan")

    async def story(world: World) -> None:
        world.add_node("n1")
        world.add_pod("p")
        world.add_pod("gated", gates=["wait"])
        await world.until(1)
        check = CacheCheck(world.scheduler, world.cluster)
        await check.run()
        (same,) = caplog.records
        assert (keys(same)["differences"], keys(same)["nodes"], keys(same)["pods"]) == (0, 1, 1)
        caplog.clear()
        known = world.scheduler.cache.node("n1")
        assert known is not None
        world.scheduler.cache.remove_node("n1")
        await check.run()
        world.scheduler.cache.add_node(known)
        assert caplog.records[0].getMessage() == "Cache differs from the API server"
        assert "n1" in keys(caplog.records[0])["difference"]
        assert keys(caplog.records[-1])["differences"] >= 1

    play(story)


class Busy:
    async def list(self, kind: str) -> Any:
        raise ApiError(503, "ServiceUnavailable", "busy")

    async def sleep(self, seconds: float) -> None: ...


def test_a_server_that_cannot_be_asked_is_said_so(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        busy: Any = Busy()
        await CacheCheck(world.scheduler, busy).run()

    play(story)
    (record,) = caplog.records
    assert (record.getMessage(), keys(record)["err"]) == (
        "The caches could not be compared",
        "busy",
    )


def test_one_check_at_a_time_and_none_after_the_end() -> None:
    calls: list[str] = []

    class Slow:
        async def list(self, kind: str) -> Any:
            calls.append(kind)
            await asyncio.Event().wait()

    async def story(world: World) -> None:
        slow: Any = Slow()
        check = CacheCheck(world.scheduler, slow)
        check.begin()
        await world.until(1)
        check.begin()
        await world.until(2)
        check.stop()
        assert len(calls) == 1

    play(story)
