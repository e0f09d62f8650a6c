"""Missing runs are executed; finished runs stay."""

from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from bayplan.comparison.comparing import RunFailed, run_matrix
from bayplan.comparison.executors import executor_for
from bayplan.comparison.job import Job
from bayplan.comparison.outputs import results_csv
from bayplan.comparison.planning import plan
from bayplan.comparison.store import Run, RunStore
from bayplan.comparison.table import Comparison
from tests.comparison.kit import spec


def jobs(folder: Path, **fields: Any) -> tuple[Job, ...]:
    return plan(spec(folder, **{"seeds": "0..2", **fields}), "test").jobs


class RunRecorder:
    """Records the calls of `on_run`."""

    def __init__(self, interrupt_after: int = 0) -> None:
        self.runs: list[tuple[str, int, bool]] = []
        self._interrupt_after = interrupt_after

    def __call__(self, run: Run, was_there: bool) -> None:
        self.runs.append((run.configuration, run.seed, was_there))
        if len(self.runs) == self._interrupt_after:
            raise KeyboardInterrupt


def run(all_jobs: tuple[Job, ...], store: RunStore | None, recorder: RunRecorder) -> list[Run]:
    with executor_for(None, 1) as executor:
        return run_matrix(all_jobs, executor, 1, store, on_run=recorder)


def csv_of(runs: list[Run]) -> bytes:
    return results_csv(Comparison(runs, "packed"))


def test_runs_have_the_order_of_their_jobs(tmp_path: Path) -> None:
    all_jobs = jobs(tmp_path)
    runs = run(all_jobs, None, RunRecorder())
    assert [one.key for one in runs] == [job.key for job in all_jobs]


def test_an_interrupted_comparison_continues_and_has_the_same_result(
    tmp_path: Path,
) -> None:
    all_jobs, store = jobs(tmp_path), RunStore(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        run(all_jobs, store, RunRecorder(interrupt_after=4))
    again = RunRecorder()
    mended = run(all_jobs, store, again)
    assert [was_there for _, _, was_there in again.runs] == [True] * 4 + [False] * 2
    at_once = run(all_jobs, RunStore(tmp_path / "other"), RunRecorder())
    assert csv_of(mended) == csv_of(at_once)


def test_a_third_comparison_runs_nothing(tmp_path: Path) -> None:
    all_jobs, store = jobs(tmp_path), RunStore(tmp_path / "out")
    first, again = run(all_jobs, store, RunRecorder()), RunRecorder()
    assert run(all_jobs, store, again) == first
    assert all(was_there for _, _, was_there in again.runs)


def test_several_processes_give_the_results_of_one(tmp_path: Path) -> None:
    all_jobs = jobs(tmp_path, seeds="0..1")
    with executor_for(None, 2) as executor:
        runs = run_matrix(all_jobs, executor, 3, None, on_run=RunRecorder())
    assert csv_of(runs) == csv_of(run(all_jobs, None, RunRecorder()))


class Broken(Executor):
    """Runs every job except that of seed 1, which fails."""

    def submit(self, fn: Any, /, *args: Any, **_: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        if args[0].seed == 1:
            future.set_exception(ValueError("a plugin's bug"))
        else:
            future.set_result(fn(*args))
        return future


def test_a_failing_run_is_named_and_finished_runs_stay(tmp_path: Path) -> None:
    all_jobs, store = jobs(tmp_path), RunStore(tmp_path / "out")
    with pytest.raises(RunFailed, match=r"^packed, seed 1: ValueError: a plugin's bug$"):
        run_matrix(all_jobs, Broken(), 1, store, on_run=RunRecorder())
    assert store.find(all_jobs[0]) is not None
    assert store.find(all_jobs[1]) is None


class EndsAtOnce(Executor):
    """Every process ends before its job runs."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("A process in the process pool was terminated"))
        return future


def test_a_process_that_dies_names_the_guard_that_a_script_needs(tmp_path: Path) -> None:
    with pytest.raises(RunFailed) as raised:
        run_matrix(jobs(tmp_path), EndsAtOnce(), 1, None, on_run=RunRecorder())
    assert str(raised.value).startswith("packed, seed 0: its process ended before the run did. ")
    assert 'if __name__ == "__main__":' in str(raised.value)
