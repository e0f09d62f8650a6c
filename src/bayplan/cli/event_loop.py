"""The event loop of commands that use an API server: uvloop if it is installed."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:
    uvloop = None

T = TypeVar("T")


def run_event_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end and return its result."""
    new_loop = asyncio.new_event_loop if uvloop is None else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)
