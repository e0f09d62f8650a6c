"""The event loop of commands that use an API server: uvloop if it is installed.

Warnings of the code below a command become remarks. `bayplan run` has log lines of its own.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from bayplan.cli.streams import remark

try:
    import uvloop
except ImportError:
    uvloop = None

T = TypeVar("T")


class _Remarks(logging.Handler):
    """Prints each record as a remark."""

    def emit(self, record: logging.LogRecord) -> None:
        remark(record.getMessage())


def run_event_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end and return its result."""
    # Does nothing if the command has set up its log.
    logging.basicConfig(handlers=[_Remarks()], level=logging.WARNING)
    new_loop = asyncio.new_event_loop if uvloop is None else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)
