"""Where the runs of a comparison execute."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.comparison import executors
from bayplan.comparison.comparing import run_matrix
from bayplan.comparison.executors import ExecutorError, executor_for
from bayplan.comparison.outputs import results_csv
from bayplan.comparison.planning import plan
from bayplan.comparison.store import Run
from bayplan.comparison.table import Comparison
from tests.comparison.kit import spec


def own_pid() -> int:
    return os.getpid()


def fails() -> None:
    raise ValueError("no")


def test_one_process_means_the_current_process() -> None:
    with executor_for(None, 1) as executor:
        assert executor.submit(own_pid).result() == os.getpid()
        with pytest.raises(ValueError, match="no"):
            executor.submit(fails).result()


def test_several_processes_are_started_and_end_with_the_executor() -> None:
    with executor_for(None, 2) as executor:
        pid = executor.submit(own_pid).result()
        assert pid != os.getpid()
    assert not Path(f"/proc/{pid}").exists()


def test_processes_end_when_the_comparison_is_interrupted() -> None:
    pids: list[int] = []

    def interrupted() -> None:
        with executor_for(None, 2) as executor:
            pids.append(executor.submit(own_pid).result())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    executors.multiprocessing.active_children()  # joins the processes that have ended
    assert pids
    for child in executors.multiprocessing.active_children():
        child.join()
    assert not Path(f"/proc/{pids[0]}").exists()


@pytest.mark.parametrize("where", ["dask://", "ray://host:1", "host:8786"])
def test_an_invalid_executor_is_refused(where: str) -> None:
    with pytest.raises(ExecutorError, match=r"wanted dask://HOST:PORT"), executor_for(where, 1):
        pass


def test_a_missing_dask_is_reported_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(executors, "load", missing)
    refusal = pytest.raises(ExecutorError, match=r"pip install 'bayplan\[dask\]'")
    with refusal, executor_for("dask://localhost:1", 1):
        pass


@pytest.fixture
def dask_address() -> Iterator[str]:
    """A scheduler with two workers, each a process."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address.removeprefix("tcp://")


@pytest.mark.filterwarnings("default")  # warnings that Dask causes itself
def test_a_dask_cluster_gives_the_results_of_one_process(tmp_path: Path, dask_address: str) -> None:
    jobs = plan(spec(tmp_path, seeds="0..1"), "test").jobs
    results = []
    for where in (f"dask://{dask_address}", None):
        with executor_for(where, 1) as executor:
            runs = run_matrix(jobs, executor, len(jobs), None, on_run=lambda _run, _there: None)
        results.append(results_csv(Comparison(runs, "packed")))
    assert results[0] == results[1]


@pytest.mark.filterwarnings("default")
def test_a_lost_worker_loses_no_run(tmp_path: Path, dask_address: str) -> None:
    distributed = pytest.importorskip("distributed")
    jobs = plan(spec(tmp_path, seeds="0..2"), "test").jobs
    where, lost = f"dask://{dask_address}", list[int]()
    seen: list[tuple[str, int]] = []

    def lose_a_worker(run: Run, _: bool) -> None:
        """After the first run, end the worker that makes another one."""
        seen.append((run.configuration, run.seed))
        if not lost:
            with distributed.Client(f"tcp://{dask_address}", set_as_default=False) as client:
                lost.append(max(client.run(os.getpid).values()))
            os.kill(lost[0], signal.SIGKILL)

    with executor_for(where, 1) as executor:
        runs = run_matrix(jobs, executor, len(jobs), None, on_run=lose_a_worker)
    assert len(lost) == 1
    assert sorted(seen) == sorted((job.configuration.name, job.seed) for job in jobs)
    with executor_for(None, 1) as executor:
        here = run_matrix(jobs, executor, 1, None, on_run=lambda _run, _there: None)
    expected = results_csv(Comparison(here, "packed"))
    assert results_csv(Comparison(runs, "packed")) == expected


class _Clients:
    """A Dask client that records what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def submit(self, _fn: Any, *args: Any, **_: Any) -> Any:
        self.sent.append(args)
        return f"call {len(self.sent)}"

    def get_executor(self, **_: Any) -> "_Clients":
        return self


def test_an_input_is_sent_once_to_a_dask_cluster() -> None:
    client = _Clients()
    executor = executors._Dask(client)
    for seed in range(3):
        executor.submit(own_pid, seed, b"a large input")
    assert client.sent == [(b"a large input",), (0, "call 1"), (1, "call 1"), (2, "call 1")]


@pytest.mark.filterwarnings("default")
def test_an_unreachable_dask_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    monkeypatch.setattr(executors, "DASK_TIMEOUT", "0.1s")
    named = pytest.raises(ExecutorError, match="no scheduler answers")
    with named, executor_for("dask://127.0.0.1:1", 1):
        pass
