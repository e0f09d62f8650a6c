"""One control plane for all live tests of a process, and one with pod groups."""

from collections.abc import Iterator

import pytest

from tests.go_programs import NoBinaries
from tests.live.binaries import PROGRAMS
from tests.live.control_plane import ControlPlane

#: Where the API server has pod groups of its own: in this version.
UPSTREAM_GROUPS = "scheduling.k8s.io/v1beta1"


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    yield from _started()


@pytest.fixture(scope="module")
def group_plane() -> Iterator[ControlPlane]:
    """Another one, that has Kubernetes' own pod groups."""
    yield from _started(
        "--feature-gates=GenericWorkload=true", f"--runtime-config={UPSTREAM_GROUPS}=true"
    )


def _started(*flags: str) -> Iterator[ControlPlane]:
    """Without the programs no live test is worth beginning."""
    try:
        binaries = PROGRAMS.get()
    except NoBinaries as problem:
        pytest.exit(str(problem), returncode=1)
    started = ControlPlane(binaries, *flags)
    try:
        started.start()
        yield started
    finally:
        started.stop()
