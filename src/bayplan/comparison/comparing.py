"""Comparing from Python: `bayplan.compare`."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayplan.comparison.executors import executor_for
from bayplan.comparison.experiment import (
    DEFAULT_TOPOLOGY_KEYS,
    ConfigurationSpec,
    ExperimentSpec,
    InputSpec,
)
from bayplan.comparison.matrix import OnRun, run_matrix
from bayplan.comparison.metrics.scheduling import Arrivals, Demand
from bayplan.comparison.outputs import write_outputs
from bayplan.comparison.planning import Plan, plan
from bayplan.comparison.store import RunStore
from bayplan.comparison.table import Comparison

#: A configuration: a file, the plain values of a document, or None: the default one.
ConfigurationSource = str | Path | Mapping[str, Any] | None


def compare(
    inputs: Sequence[str | Path],
    configurations: Mapping[str, ConfigurationSource],
    seeds: str | Iterable[int] = (0,),
    *,
    until_demand: Mapping[str, float] | None = None,
    out: str | Path | None = None,
    executor: str | None = None,
    processes: int = 0,
) -> Comparison:
    """Run every configuration with every seed over the same input; a table of what came out.

    ``inputs``: files and folders, as for `bayplan simulate`. ``configurations``: by name; the first
    is what the others are held against. ``until_demand``: shuffle the pods by the seed, and draw
    more until so many percent of a resource are asked for: ``{"cpu": 130}``. ``out``: a folder for
    all that is found; runs that are there are not run again. ``executor``: dask://HOST:PORT; left
    out: as many processes as ``processes`` says, or as there are processors where it is 0. With
    more than one, a script needs the usual ``if __name__ == "__main__":``, because it is read again
    in each process; with one, or where one run is missing, no process is started.

    Raises InputError and ConfigError for what is wrong with the arguments, RunFailed for a run.
    """
    demand = [Demand(resource=name, percent=at) for name, at in (until_demand or {}).items()]
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
        planned, None if out is None else Path(out), executor, _ignore_run, processes
    )
    if out is not None:
        write_outputs(comparison, Path(out), "Comparison")
    return comparison


def performed(
    planned: Plan, out: Path | None, executor: str | None, on_run: OnRun, processes: int = 0
) -> Comparison:
    """Run what is missing. ``processes``: 0: as many as there are processors."""
    store = None if out is None else RunStore(out)
    missing_count = sum(store is None or not store.has(job) for job in planned.jobs)
    count = min(processes or os.cpu_count() or 1, missing_count)
    with executor_for(executor, count) as where:
        # One more in hand for each process, so that none waits; a cluster knows itself how many.
        in_flight = len(planned.jobs) if executor is not None else count + (count > 1)
        runs = run_matrix(planned.jobs, where, in_flight, store, on_run)
    return Comparison(runs, planned.baseline, planned.about)


def _spec(name: str, one: ConfigurationSource) -> ConfigurationSpec:
    if isinstance(one, Mapping):
        return ConfigurationSpec(name=name, config=dict(one))
    return ConfigurationSpec(name=name, file=None if one is None else str(one))


def _ignore_run(_run: object, _was_there: bool) -> None:
    return
