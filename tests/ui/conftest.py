"""One run and one cluster for all tests of the page."""

from pathlib import Path

import pytest

from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import default_registry
from bayplan.sim.output.run_folder import RunFolder
from bayplan.ui.shown import ShownCluster, ShownRun
from tests.ui.example_cluster import CLUSTER
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


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> ShownCluster:
    path = tmp_path_factory.mktemp("cluster") / "cluster.yaml"
    path.write_text(CLUSTER)
    shown = ShownCluster([str(path)], config_from(DEFAULT_CONFIG), default_registry())
    shown.load()
    assert shown.answer().phase == "ready", shown.answer().problem
    return shown
