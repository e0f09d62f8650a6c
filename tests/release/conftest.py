"""The packages are built, and the wheel installed, once for all tests of a process."""

from pathlib import Path

import pytest

from tests.release import environments
from tests.release.packages import ROOT, Packages, build


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def python(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and what the wheel requires."""
    interpreter = environments.create(tmp_path_factory.mktemp("environment"))
    environments.install(interpreter, "--no-deps", "--no-index", packages.wheel)
    environments.link_dependencies(interpreter, "bayplan")
    return interpreter
