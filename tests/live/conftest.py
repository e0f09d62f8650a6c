"""One control plane for all live tests of a process."""

from collections.abc import Iterator

import pytest

from tests.live.binaries import NoBinaries, build, found
from tests.live.control_plane import ControlPlane


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Without the programs no live test is worth beginning."""
    try:
        binaries = found() or build()
    except NoBinaries as problem:
        pytest.exit(str(problem), returncode=1)
    started = ControlPlane(binaries)
    try:
        started.start()
        yield started
    finally:
        started.stop()
