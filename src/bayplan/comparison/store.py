"""Runs on disk, each in a folder named by its key. A run in the store is not run again.

    runs/KEY/run.json        the run and its result
    runs/KEY/decisions.csv   pod, attempt, result, node

A folder is complete or does not exist: it is written under another name and then renamed.
"""

import os
import shutil
from pathlib import Path
from typing import final

import msgspec
from msgspec import Struct

from bayplan.comparison.decisions import Decisions, from_csv
from bayplan.comparison.job import Job, JobResult, RunResult
from bayplan.sim.output.run_folder import RunFolderError

_RUNS = "runs"
_RUN = "run.json"
_DECISIONS = "decisions.csv"


class Run(Struct, frozen=True, kw_only=True):
    """One run of a comparison and its result."""

    key: str
    input: str
    configuration: str
    seed: int
    result: RunResult


@final
class RunStore:
    """The runs in one folder."""

    def __init__(self, path: Path) -> None:
        self._path = path / _RUNS

    def has(self, job: Job) -> bool:
        """Whether the store contains the run of a job."""
        return self._file(job).is_file()

    def _file(self, job: Job) -> Path:
        return self._path / job.key / _RUN

    def find(self, job: Job) -> Run | None:
        """The run of a job; None: the store does not contain it. Raises RunFolderError."""
        file = self._file(job)
        if not file.is_file():
            return None
        try:
            run = msgspec.json.decode(file.read_bytes(), type=Run)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise RunFolderError(
                f"{file}: cannot be read ({problem}); remove its folder, and it is run again"
            ) from None
        # Names may have changed since; the run is the same.
        return run_of(job, run.result)

    def keep(self, job: Job, done: JobResult) -> Run:
        """Store a run. Raises RunFolderError."""
        run = run_of(job, done.result)
        folder = self._path / run.key
        unfinished = self._path / f".{run.key}.{os.getpid()}"
        try:
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            (unfinished / _DECISIONS).write_bytes(done.decisions)
            encoded = msgspec.json.format(msgspec.json.encode(run), indent=1)
            (unfinished / _RUN).write_bytes(encoded + b"\n")
            shutil.rmtree(folder, ignore_errors=True)
            unfinished.rename(folder)
        except OSError as problem:
            raise RunFolderError(f"{folder}: cannot be written: {problem.strerror}") from None
        return run


def run_of(job: Job, result: RunResult) -> Run:
    """A run with its current names."""
    return Run(
        key=job.key,
        input=job.input,
        configuration=job.configuration.name,
        seed=job.seed,
        result=result,
    )


def is_compared_run(path: Path) -> bool:
    """Whether a folder contains one run of a comparison."""
    return (path / _RUN).is_file() and (path / _DECISIONS).is_file()


def decisions_of(path: Path) -> Decisions:
    """The decisions of a run of a comparison. Raises RunFolderError."""
    file = path / _DECISIONS
    try:
        return from_csv(file.read_bytes())
    except (OSError, ValueError) as problem:
        raise RunFolderError(f"{file}: cannot be read: {problem}") from None
