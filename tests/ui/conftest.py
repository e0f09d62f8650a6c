"""One run for all tests of the page."""

from pathlib import Path

import pytest

from bayplan.sim.output.run_folder import RunFolder
from bayplan.ui.shown import ShownRun
from tests.ui.example_run import example_workload, write_run


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return write_run(tmp_path_factory.mktemp("ui") / "example", example_workload())


@pytest.fixture(scope="session")
def shown(run_folder: RunFolder) -> ShownRun:
    run = ShownRun(Path(run_folder.path))
    run.load()
    assert run.answer().phase == "ready", run.answer().problem
    return run
