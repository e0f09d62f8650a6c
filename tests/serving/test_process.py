"""Signals and the garbage collector."""

import asyncio
import gc
import os
import signal

import pytest

from bayplan.serving.process import on_signal, settle_memory, stop_on_signals, unless


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_requests_a_stop(number: signal.Signals) -> None:
    async def script() -> None:
        stop = stop_on_signals()
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 10)
        # No handler is left: the next signal ends the process.
        assert not asyncio.get_running_loop().remove_signal_handler(number)

    before = signal.getsignal(number)
    try:
        asyncio.run(script())
    finally:
        signal.signal(number, before)


async def test_a_signal_handler_is_active_inside_the_block() -> None:
    requested = asyncio.Event()
    with on_signal("SIGUSR2", requested.set):
        os.kill(os.getpid(), signal.SIGUSR2)
        await asyncio.wait_for(requested.wait(), 10)
    assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGUSR2)


async def test_an_unavailable_signal_is_ignored() -> None:
    with on_signal("SIGNONE", lambda: None):
        pass


async def test_work_continues_until_a_stop_is_requested() -> None:
    stop, ended = asyncio.Event(), list[str]()

    async def quick() -> None:
        ended.append("quick")

    async def endless() -> None:
        try:
            stop.set()
            await asyncio.Event().wait()
        finally:
            ended.append("endless")

    async def broken() -> None:
        raise ZeroDivisionError

    assert await unless(stop, quick())
    with pytest.raises(ZeroDivisionError):
        await unless(stop, broken())
    assert not await unless(stop, endless())
    assert ended == ["quick", "endless"]


def test_objects_of_the_start_are_excluded_from_garbage_collection() -> None:
    before = gc.get_threshold()
    try:
        settle_memory()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
