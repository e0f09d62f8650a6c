"""The event loop of commands that talk to an API server: uvloop where it is installed."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:
    uvloop = None

T = TypeVar("T")


def run_event_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end and return the result."""
    new_loop = asyncio.new_event_loop if uvloop is None else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)
