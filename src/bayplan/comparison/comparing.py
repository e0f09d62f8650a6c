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
    """Run every configuration with every seed over the same input. Returns a table of the results.

    ``inputs``: files and folders, as for `bayplan simulate`. ``configurations``: by name; the
    others are compared with the first. ``until_demand``: shuffle the pods by the seed, and draw
    more pods until they request this percentage of a resource: ``{"cpu": 130}``. ``out``: a folder
    for all results; runs in the folder are not run again. ``executor``: dask://HOST:PORT; None:
    local processes. ``processes``: their number; 0: one per processor. With more than one process,
    a script needs the usual ``if __name__ == "__main__":``, because each process reads the script
    again. With one process, or if only one run is missing, no process is started.

    Raises InputError and ConfigError for wrong arguments, RunFailed for a run.
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
        planned, None if out is None else Path(out), executor, _ignore_run, processes=processes
    )
    if out is not None:
        write_outputs(comparison, Path(out), "Comparison")
    return comparison


def performed(
    planned: Plan, out: Path | None, executor: str | None, on_run: OnRun, *, processes: int = 0
) -> Comparison:
    """Run what is missing. ``processes``: 0: one per processor."""
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
