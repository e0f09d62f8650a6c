"""The process of a scheduler: signals and the settings of the garbage collector."""

import asyncio
import contextlib
import gc
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

#: Thresholds of the collector: most decoded objects live long.
_GC_THRESHOLDS = (50_000, 50, 1000)


_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set. A second signal ends the process at once: the system
    does it, because a KeyboardInterrupt in a callback would be an error of that callback only."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop_once() -> None:
        stop.set()
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop_once)
    return stop


@contextlib.asynccontextmanager
async def until_started(stop: asyncio.Event) -> AsyncGenerator[Callable[[], None]]:
    """A block that begins with the start of a server. If ``stop`` is set during the start, the
    block is cancelled and ends without an exception.

    Yields what is called at the end of the start. From then on, the block looks at ``stop`` itself.
    """
    loop = asyncio.get_running_loop()
    stopping, limit = loop.create_task(stop.wait()), asyncio.timeout(None)
    try:
        async with limit:

            def end(_: asyncio.Task[Any]) -> None:
                limit.reschedule(loop.time())

            def start_is_over() -> None:
                stopping.remove_done_callback(end)
                limit.reschedule(None)

            stopping.add_done_callback(end)
            try:
                yield start_is_over
            finally:
                stopping.remove_done_callback(end)
    except TimeoutError:
        if not limit.expired():
            raise
    finally:
        stopping.cancel()


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
