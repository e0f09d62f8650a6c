"""Executors for runs: in this process, in processes of their own, or on a Dask cluster.

All of them are `concurrent.futures` executors, so that callers do not depend on the kind.
"""

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import Any, final

from bayplan.lazy_loader import load

DASK = "dask://"
#: The longest time for a Dask scheduler to answer.
DASK_TIMEOUT = "10s"


class ExecutorError(Exception):
    """An executor cannot be used; the message says which one and why."""


@contextmanager
def executor_for(where: str | None, processes: int) -> Iterator[Executor]:
    """An executor, shut down at the end. After an exception it is shut down at once, and runs in
    progress are cancelled. Raises ExecutorError."""
    if where is not None:
        with _dask(where) as executor:
            yield executor
    elif processes <= 1:
        yield _Here()
    else:
        with _processes(processes) as executor:
            yield executor


@contextmanager
def _processes(count: int) -> Iterator[Executor]:
    # Forking a process with threads, such as that of the progress bar, may deadlock.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    executor.shutdown()


def _begin_worker() -> None:
    """A worker ends with its parent process, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@final
class _Here(Executor):
    """Runs each job when it is submitted."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as problem:  # noqa: BLE001 - the future hands it to its reader
            future.set_exception(problem)
        return future


def _same(content: bytes) -> bytes:
    return content


@final
class _Dask(Executor):
    """Calls on the workers of a Dask cluster. Bytes that several calls have are sent once.

    The scheduler keeps the bytes as the result of a call of its own, which it makes again on
    another worker if the workers that have them are lost. Workers pass them to one another. The
    runs of a lost worker are made again, too.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        # Runs are pure, but a run that failed on a broken worker may succeed elsewhere.
        self._executor: Executor = client.get_executor(pure=False)
        #: Bytes → the call whose result they are.
        self._sent: dict[bytes, Any] = {}

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        sent = [self._once(each) if isinstance(each, bytes) else each for each in args]
        return self._executor.submit(fn, *sent, **kwargs)

    def _once(self, content: bytes) -> Any:
        call = self._sent.get(content)
        if call is None:
            with warnings.catch_warnings():
                # Dask advises to scatter large values. What is scattered is lost with its workers.
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                call = self._client.submit(_same, content, pure=False)
            self._sent[content] = call
        return call


@contextmanager
def _dask(where: str) -> Iterator[Executor]:
    """The executor interface of dask.distributed over an existing cluster."""
    if not where.startswith(DASK) or not where.removeprefix(DASK):
        raise ExecutorError(f"--executor: found {where!r}, wanted {DASK}HOST:PORT")
    try:
        distributed = load("distributed")
    except ImportError:
        raise ExecutorError(
            f"--executor {where}: wants the Dask extra: pip install 'bayplan[dask]'"
        ) from None
    address = f"tcp://{where.removeprefix(DASK)}"
    try:
        client = distributed.Client(address, timeout=DASK_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as problem:
        raise ExecutorError(f"--executor {where}: no scheduler answers: {problem}") from None
    try:
        yield _Dask(client)
    finally:
        with suppress(OSError, TimeoutError):
            client.close()
