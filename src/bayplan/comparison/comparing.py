"""Comparing from Python: `bayplan.compare`; and inputs x configurations x seeds: what is missing
is run, and all runs are returned in order."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from bayplan.comparison.executors import executor_for
from bayplan.comparison.experiment import (
    DEFAULT_TOPOLOGY_KEYS,
    ConfigurationSpec,
    ExperimentSpec,
    InputSpec,
)
from bayplan.comparison.job import Job, JobResult, perform_parts
from bayplan.comparison.metrics.scheduling import Arrivals, FillingDemand
from bayplan.comparison.outputs import write_outputs
from bayplan.comparison.planning import Plan, plan
from bayplan.comparison.report import ComparisonAnswer, comparison_answer
from bayplan.comparison.store import Run, RunStore, run_of
from bayplan.comparison.table import Comparison
from bayplan.sim.simulate import ConfigurationSource

#: Of the report, where no experiment names it.
TITLE = "Comparison"
#: Called with (run, whether it was in the store) for each run.
OnRun = Callable[[Run, bool], None]


def compare(
    inputs: Sequence[str | Path],
    configurations: Mapping[str, ConfigurationSource],
    seeds: str | Iterable[int] = (0,),
    *,
    until_demand: Mapping[str, float] | None = None,
    out: str | Path | None = None,
    executor: str | None = None,
    processes: int = 0,
) -> ComparisonAnswer:
    """Run every configuration with every seed over the same input.

    Returns the document that `bayplan compare` prints; its ``table`` has a row for each run.

    ``inputs``: files and folders, as for `bayplan simulate`. ``configurations``: by name; the
    others are compared with the first. ``until_demand``: shuffle the pods by the seed, and draw
    more pods until they request this percentage of a resource: ``{"cpu": 130}``. ``out``: a folder
    for all results; runs in the folder are not run again. ``executor``: dask://HOST:PORT; None:
    local processes. ``processes``: their number; 0: one per processor. With more than one process,
    a script needs the usual ``if __name__ == "__main__":``, because each process reads the script
    again. With one process, or if only one run is missing, no process is started.

    Raises InputError and ConfigError for wrong arguments, RunFailed for a run.
    """
    demand = [FillingDemand(resource=name, percent=at) for name, at in (until_demand or {}).items()]
    assert len(demand) <= 1, "arrivals end when enough of one resource is asked for"
    spec = ExperimentSpec(
        inputs=(InputSpec(paths=tuple(map(str, inputs))),),
        configurations=tuple(_spec(name, one) for name, one in configurations.items()),
        arrivals=Arrivals(shuffled=bool(demand), until_demand=demand[0] if demand else None),
        seeds=seeds if isinstance(seeds, str) else tuple(seeds),
        topology_keys=DEFAULT_TOPOLOGY_KEYS,
    )
    planned = plan(spec, "compare()")
    comparison = performed(
        planned, None if out is None else Path(out), executor, _ignore_run, processes=processes
    )
    if out is not None:
        write_outputs(comparison, Path(out), TITLE)
    return comparison_answer(comparison, TITLE)


def performed(
    planned: Plan, out: Path | None, executor: str | None, on_run: OnRun, *, processes: int = 0
) -> Comparison:
    """Run the jobs whose results are not stored yet. ``processes``: how many run at the same time;
    0: one per processor."""
    store = None if out is None else RunStore(out)
    missing_count = sum(store is None or not store.has(job) for job in planned.jobs)
    count = min(processes or os.cpu_count() or 1, missing_count)
    with executor_for(executor, count) as where:
        # One job more per process, so that no process waits. A Dask cluster queues jobs itself.
        in_flight = len(planned.jobs) if executor is not None else count + (count > 1)
        runs = run_matrix(planned.jobs, where, in_flight, store, on_run=on_run)
    return Comparison(runs, planned.baseline, planned.about)


def _spec(name: str, one: ConfigurationSource) -> ConfigurationSpec:
    if isinstance(one, Mapping):
        return ConfigurationSpec(name=name, config=dict(one))
    return ConfigurationSpec(name=name, file=None if one is None else str(one))


def _ignore_run(_run: object, _was_there: bool) -> None:
    return


# ---- runs -----------------------------------------------------------------------------------


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
            working[executor.submit(perform_parts, *jobs[index].parts)] = index
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
