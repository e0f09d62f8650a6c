"""One run and one cluster for all tests of the page."""

import pytest

from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import default_registry
from bayplan.sim.output.run_folder import RunFolder
from bayplan.ui.subjects import ClusterSubject, RunSubject, subject_of_files
from tests.history.stored_runs import write_run
from tests.ui.example_cluster import CLUSTER
from tests.ui.example_run import example_workload


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return write_run(tmp_path_factory.mktemp("ui") / "example", example_workload())


@pytest.fixture(scope="session")
def subject(run_folder: RunFolder) -> RunSubject:
    run = RunSubject(run_folder)
    run.load()
    assert run.answer().phase == "ready", run.answer().problem
    return run


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> ClusterSubject:
    path = tmp_path_factory.mktemp("cluster") / "cluster.yaml"
    path.write_text(CLUSTER)
    subject = subject_of_files([str(path)], config_from(DEFAULT_CONFIG), default_registry())
    subject.load()
    assert subject.answer().phase == "ready", subject.answer().problem
    return subject
