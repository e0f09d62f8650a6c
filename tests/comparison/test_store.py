"""Runs on disk."""

from pathlib import Path

import pytest

from bayplan.comparison.decisions import DecisionKey, DecisionOutcome
from bayplan.comparison.job import Job, perform
from bayplan.comparison.planning import plan
from bayplan.comparison.store import RunStore, decisions_of, is_compared_run
from bayplan.sim.output.run_folder import RunFolderError
from tests.comparison.kit import spec


def job(folder: Path) -> Job:
    return plan(spec(folder), "test").jobs[0]


def test_a_stored_run_is_found(tmp_path: Path) -> None:
    store, one = RunStore(tmp_path), job(tmp_path)
    assert store.find(one) is None
    stored = store.keep(one, perform(one))
    assert store.find(one) == stored
    assert (stored.configuration, stored.seed) == ("packed", 0)


def test_the_decisions_of_a_run_are_stored(tmp_path: Path) -> None:
    one = job(tmp_path)
    RunStore(tmp_path).keep(one, perform(one))
    folder = tmp_path / "runs" / one.key
    assert is_compared_run(folder)
    assert decisions_of(folder)[DecisionKey("default/p0", 1)].result == "scheduled"
    assert len(decisions_of(folder)) == 4
    assert DecisionOutcome("scheduled", "n9") not in decisions_of(folder).values()


def test_an_unfinished_run_is_not_found(tmp_path: Path) -> None:
    one = job(tmp_path)
    unfinished = tmp_path / "runs" / f".{one.key}.1"
    unfinished.mkdir(parents=True)
    (unfinished / "decisions.csv").write_text("")
    assert RunStore(tmp_path).find(one) is None


def test_a_foreign_file_is_named(tmp_path: Path) -> None:
    one = job(tmp_path)
    folder = tmp_path / "runs" / one.key
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    with pytest.raises(RunFolderError, match=r"run\.json: cannot be read .* run again"):
        RunStore(tmp_path).find(one)


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    one = job(tmp_path)
    with pytest.raises(RunFolderError, match="cannot be written: Not a directory"):
        RunStore(tmp_path).keep(one, perform(one))
