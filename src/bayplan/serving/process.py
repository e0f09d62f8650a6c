"""What a scheduler asks of its process: signals, and a garbage collector that knows its load."""

import asyncio
import contextlib
import gc
import signal
from collections.abc import Awaitable, Callable, Generator
from typing import Any

#: Young objects before a collection: most of what is decoded lives long.
_GC_THRESHOLDS = (50_000, 50, 1000)


def stop_on_signals() -> asyncio.Event:
    """Set by SIGTERM and SIGINT; a second one ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):

        def stop_once(number: signal.Signals = number) -> None:
            stop.set()
            loop.remove_signal_handler(number)

        loop.add_signal_handler(number, stop_once)
    return stop


@contextlib.contextmanager
def on_signal(name: str, act: Callable[[], None]) -> Generator[None]:
    """``act`` on a signal that only some systems have."""
    number = getattr(signal, name, None)
    loop = asyncio.get_running_loop()
    if number is not None:
        loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        if number is not None:
            loop.remove_signal_handler(number)


async def unless(stop: asyncio.Event, work: Awaitable[Any]) -> bool:
    """Do the work; False: it was asked to stop before that was done."""
    task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        for each in (task, stopping):
            each.cancel()
        await asyncio.wait((task, stopping))


def settle_memory() -> None:
    """Once the cluster is in the caches: it will stay, and need not be looked through again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
