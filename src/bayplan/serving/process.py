"""The process of a scheduler: signals and the settings of the garbage collector."""

import asyncio
import contextlib
import gc
import signal
from collections.abc import Awaitable, Callable, Generator
from typing import Any

#: Thresholds of the collector: most decoded objects live long.
_GC_THRESHOLDS = (50_000, 50, 1000)


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set. A second signal ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):

        def stop_once(number: signal.Signals = number) -> None:
            stop.set()
            loop.remove_signal_handler(number)

        loop.add_signal_handler(number, stop_once)
    return stop


@contextlib.contextmanager
def on_signal(name: str, act: Callable[[], None]) -> Generator[None]:
    """Call ``act`` on a signal, if the system has the signal."""
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
    """Await ``work``. False if ``stop`` was set before the work was done."""
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
    """Exclude the current objects from collection. Call it when the caches are filled.

    The garbage of the start, a few thousand objects, is not collected: a collection would delay the
    first pod.
    """
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
