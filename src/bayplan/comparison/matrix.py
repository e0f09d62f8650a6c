"""Inputs x configurations x seeds: runs what is missing, and returns all runs in order."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool

from bayplan.comparison.job import Job, JobResult, perform
from bayplan.comparison.store import Run, RunStore, run_of

#: Called with (run, whether it was in the store) for each run.
OnRun = Callable[[Run, bool], None]


_POOL_BROKE = (
    "its process ended before the run did. A script that calls bayplan.compare must do so under "
    'if __name__ == "__main__":, because each process reads the script again; code that does not '
    "come from a file (python -, a notebook cell with plugins) needs processes=1. Otherwise a "
    "plugin ended the process, or memory ran out"
)


class RunFailed(Exception):
    """A run ended with an exception; the message names the run and the exception."""


def run_matrix(
    jobs: Sequence[Job],
    executor: Executor,
    in_flight: int,
    store: RunStore | None,
    *,
    on_run: OnRun,
) -> list[Run]:
    """The runs of all jobs, in their order. Runs in the store are not run again.

    ``in_flight``: how many jobs are submitted at a time. Raises RunFailed, RunFolderError.
    """
    done: dict[int, Run] = {}
    for index, run in _stored(jobs, store):
        done[index] = run
        on_run(run, True)
    for index, run in _performed(jobs, set(done), executor, in_flight, store=store):
        done[index] = run
        on_run(run, False)
    return [done[index] for index in range(len(jobs))]


def _stored(jobs: Sequence[Job], store: RunStore | None) -> Iterator[tuple[int, Run]]:
    if store is not None:
        for index, job in enumerate(jobs):
            run = store.find(job)
            if run is not None:
                yield index, run


def _performed(
    jobs: Sequence[Job],
    stored: set[int],
    executor: Executor,
    in_flight: int,
    *,
    store: RunStore | None,
) -> Iterator[tuple[int, Run]]:
    """Submits a few jobs at a time: jobs that have not begun can be cancelled, and take no
    memory."""
    missing = iter([index for index in range(len(jobs)) if index not in stored])
    working: dict[Future[JobResult], int] = {}
    while True:
        while len(working) < in_flight and (index := next(missing, None)) is not None:
            working[executor.submit(perform, jobs[index])] = index
        if not working:
            return
        finished, _ = wait(working, return_when=FIRST_COMPLETED)
        for future in finished:
            index = working.pop(future)
            yield index, _saved(jobs[index], future, store)


def _saved(job: Job, future: "Future[JobResult]", store: RunStore | None) -> Run:
    try:
        done = future.result()
    except BrokenProcessPool as problem:
        raise RunFailed(f"{_which(job)}: {_POOL_BROKE}") from problem
    except Exception as problem:
        raise RunFailed(f"{_which(job)}: {type(problem).__name__}: {problem}") from problem
    if store is not None:
        return store.keep(job, done)
    return run_of(job, done.result)


def _which(job: Job) -> str:
    which = f"{job.configuration.name}, seed {job.seed}"
    return f"{job.input}, {which}" if job.input else which
