"""The files that the tests of `bayplan fit` and `bayplan headroom` share."""

from pathlib import Path

import pytest

from tests.cli.command_line import write_objects
from tests.kit.manifests import node, pod
from tests.whatif.clusters import deployment


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    running = pod("db-0", cpu="3", nodeName="n1")
    return write_objects(tmp_path / "cluster.yaml", node("n1"), node("n2"), running)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    return write_objects(tmp_path / "web.yaml", deployment("web", 4, "1500m"))
