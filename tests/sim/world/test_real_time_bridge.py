"""Calls to the real world under virtual time."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bayplan.adapters.extenders.client import Request
from bayplan.clock import ManualClock
from bayplan.sim.loop import run
from bayplan.sim.world.real_time_bridge import RealTimeBridge
from tests.kit.scenes import scene_of


def played(scene: Callable[[RealTimeBridge, ManualClock], Coroutine[Any, Any, Any]]) -> Any:
    clock = ManualClock()
    with RealTimeBridge() as bridge:
        return run(scene(bridge, clock), clock)


def test_virtual_time_stands_still_until_the_answer_arrives() -> None:
    async def scene(bridge: RealTimeBridge, clock: ManualClock) -> tuple[str, float]:
        later = asyncio.get_running_loop().call_later(1.0, lambda: None)
        answer = await bridge.call(asyncio.sleep(0.02, "fine"))
        later.cancel()
        return answer, clock.now()

    assert played(scene) == ("fine", 0.0)


def test_answers_are_returned_in_the_order_of_the_calls() -> None:
    """The first call waits until the second has an answer."""
    has_second_come = threading.Event()

    async def first() -> str:
        await asyncio.to_thread(has_second_come.wait)
        return "first"

    async def second() -> str:
        has_second_come.set()
        return "second"

    async def scene(bridge: RealTimeBridge, clock: ManualClock) -> list[str]:
        answers: list[str] = []

        async def ask(work: Coroutine[Any, Any, str]) -> None:
            answers.append(await bridge.call(work))

        await asyncio.gather(ask(first()), ask(second()))
        return answers

    assert played(scene) == ["first", "second"]


@scene_of(played, 2)
async def test_a_failure_is_raised_in_the_caller(
    bridge: RealTimeBridge, clock: ManualClock
) -> None:
    async def fails() -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await bridge.call(fails())


def test_a_cancelled_call_is_cancelled_in_real_time() -> None:
    was_cancelled = threading.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    async def scene(bridge: RealTimeBridge, clock: ManualClock) -> None:
        asking = asyncio.get_running_loop().create_task(bridge.call(never()))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])

    played(scene)
    assert was_cancelled.wait(10)


def test_a_sender_lives_in_real_time_and_is_closed() -> None:
    threads: list[threading.Thread] = []
    closed: list[bool] = []

    class Sender:
        def __init__(self) -> None:
            threads.append(threading.current_thread())

        async def send(self, request: Request) -> tuple[int, bytes]:
            return 200, request.body

        async def close(self) -> None:
            closed.append(True)

    async def scene(bridge: RealTimeBridge, clock: ManualClock) -> list[tuple[int, bytes]]:
        sender, unused = bridge.sender(Sender), bridge.sender(Sender)
        answers = [await sender.send(Request("http://a/", body, 1.0)) for body in (b"a", b"b")]
        await sender.close()
        await unused.close()
        assert not closed
        return answers

    assert played(scene) == [(200, b"a"), (200, b"b")]
    assert [thread.name for thread in threads] == ["outside"]
    assert closed == [True]
