"""Computations in copies of the process: results, failures, and isolation."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from bayplan.clock import wall_seconds
from bayplan.ports import RunAborted
from bayplan.problems import BadInputError
from bayplan.ui import copies
from bayplan.ui.copies import Copies, is_orphan

pytestmark = pytest.mark.skipif(not copies.IS_AVAILABLE, reason="copies need Linux")

PARENT = os.getpid()


def with_copies(work: Callable[[Copies], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        worker = Copies()
        async with asyncio.timeout(30):
            try:
                return await work(worker)
            finally:
                worker.shutdown()

    return asyncio.run(main())


def result(call: Callable[[], Any]) -> Any:
    return with_copies(lambda worker: asyncio.wrap_future(worker.submit(call)))


def test_a_copy_computes_with_the_objects_of_its_start() -> None:
    numbers = [1, 2]

    async def work(worker: Copies) -> Any:
        future = worker.submit(lambda: (os.getpid(), sum(numbers)))
        numbers.append(10)
        return await asyncio.wrap_future(future)

    pid, total = with_copies(work)
    assert pid != os.getpid()
    assert total == 3


def test_a_large_result_arrives_completely() -> None:
    assert len(result(lambda: "x" * 5_000_000)) == 5_000_000


def test_calls_run_one_after_the_other_each_in_a_copy_of_its_own() -> None:
    async def work(worker: Copies) -> Any:
        futures = [worker.submit(lambda: (os.getpid(), wall_seconds())) for _ in range(3)]
        return await asyncio.gather(*map(asyncio.wrap_future, futures))

    answers = with_copies(work)
    assert len({pid for pid, _ in answers}) == 3
    assert [moment for _, moment in answers] == sorted(moment for _, moment in answers)


class _Special(BadInputError):
    def __init__(self) -> None:
        super().__init__("wanted another node")


@pytest.mark.parametrize(
    ("problem", "kind", "text"),
    [
        (_Special(), BadInputError, "wanted another node"),
        (RunAborted("too late"), RunAborted, "too late"),
        (KeyError("n7"), RunAborted, "KeyError: 'n7'; this is a bug"),
    ],
)
def test_a_failure_arrives_as_an_exception_that_the_page_can_show(
    problem: BaseException, kind: type[BaseException], text: str
) -> None:
    def fail() -> None:
        raise problem

    async def work(worker: Copies) -> Any:
        future = worker.submit(fail)
        while not future.done():
            await asyncio.sleep(0.01)
        return future.exception()

    failure = with_copies(work)
    assert type(failure) is kind
    assert text in str(failure)


def test_a_copy_that_is_killed_fails_its_call_and_the_next_one_runs() -> None:
    async def work(worker: Copies) -> Any:
        future = worker.submit(lambda: os.kill(os.getpid(), signal.SIGKILL))
        following = worker.submit(lambda: 7)
        value = await asyncio.wrap_future(following)
        return future.exception(), value

    failure, value = with_copies(work)
    assert isinstance(failure, RunAborted)
    assert value == 7


def test_the_end_of_the_page_ends_the_copy() -> None:
    async def work(worker: Copies) -> Any:
        future, waiting = worker.submit(signal.pause), worker.submit(lambda: 1)
        await asyncio.sleep(0.1)
        worker.shutdown()
        return future.exception(), waiting.cancelled()

    failure, is_cancelled = with_copies(work)
    assert isinstance(failure, RunAborted)
    assert is_cancelled


def test_a_copy_has_no_socket_and_the_lowest_priority() -> None:
    def look() -> tuple[list[str], int]:
        names: list[str] = []
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):  # the descriptor of the listed folder
                names.append(os.readlink(f"/proc/self/fd/{name}"))
        return names, os.nice(0)

    async def work(worker: Copies) -> Any:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        async with server:
            return await asyncio.wrap_future(worker.submit(look))

    names, priority = with_copies(work)
    assert not [name for name in names if name.startswith("socket:")]
    assert priority == 19


def test_a_copy_detects_the_end_of_its_scheduler() -> None:
    assert not is_orphan(PARENT)
    assert not result(lambda: is_orphan(PARENT))
    assert result(lambda: is_orphan(1))
