"""One control plane for all live tests of a process, and one with pod groups.

kube-controller-manager is taken from $E2E_ASSETS or from where `make test-e2e` builds it.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.binaries import PROGRAMS as E2E_PROGRAMS
from tests.go_programs import NoBinaries
from tests.live.beside import empty
from tests.live.binaries import PROGRAMS
from tests.live.control_plane import DISABLED_ADMISSION, LOOPBACK, ControlPlane
from tests.live.processes import free_port

#: The API version of Kubernetes' pod groups.
UPSTREAM_GROUPS = "scheduling.k8s.io/v1beta1"
#: The controllers of kube-controller-manager that run.
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "replicationcontroller-controller",
    "job-controller",
    "disruption-controller",
    "garbage-collector-controller",
)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    yield from started()


@pytest.fixture(scope="session")
def kube_scheduler() -> Path:
    path = Path(os.environ.get("KUBEBUILDER_ASSETS") or "") / "kube-scheduler"
    if not os.access(path, os.X_OK):
        pytest.skip("needs a kube-scheduler in KUBEBUILDER_ASSETS")
    return path


@pytest.fixture(autouse=True)
def emptied(request: pytest.FixtureRequest) -> Iterator[None]:
    """Delete the objects that a test leaves in the shared control plane: the next test starts with
    an empty cluster."""
    yield
    if "control_plane" in request.fixturenames:
        asyncio.run(empty(request.getfixturevalue("control_plane")))


@pytest.fixture(scope="module")
def group_plane() -> Iterator[ControlPlane]:
    """A second control plane, with Kubernetes' pod groups."""
    yield from started(
        "--feature-gates=GenericWorkload=true", f"--runtime-config={UPSTREAM_GROUPS}=true"
    )


def started(*flags: str, disabled_admission: str = DISABLED_ADMISSION) -> Iterator[ControlPlane]:
    """Start a control plane. Without the programs, the test run ends."""
    try:
        binaries = PROGRAMS.get()
    except NoBinaries as problem:
        pytest.exit(str(problem), returncode=1)
    plane = ControlPlane(binaries, *flags, disabled_admission=disabled_admission)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture
def controller_manager(control_plane: ControlPlane) -> Iterator[None]:
    yield from running_controllers(control_plane, CONTROLLERS)


@pytest.fixture
def controller_manager_with_volumes(control_plane: ControlPlane) -> Iterator[None]:
    """The controllers, and the one that binds volumes to claims."""
    yield from running_controllers(
        control_plane, (*CONTROLLERS, "persistentvolume-binder-controller")
    )


def running_controllers(
    control_plane: ControlPlane, controllers: Sequence[str], *flags: str
) -> Iterator[None]:
    """Run controllers of kube-controller-manager. ``flags``: further flags of it."""
    program = Path(os.environ.get("E2E_ASSETS") or E2E_PROGRAMS.cache()) / "kube-controller-manager"
    if not os.access(program, os.X_OK):
        pytest.skip(
            f"no kube-controller-manager at {program}: set E2E_ASSETS or run make test-e2e once"
        )
    folder = control_plane.folder
    arguments = (
        f"--kubeconfig={control_plane.kubeconfig('admin')}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={free_port()}",
        f"--cert-dir={folder / 'controller-certs'}",
        f"--controllers={','.join(controllers)}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *flags,
    )
    with (folder / "kube-controller-manager.log").open("ab") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
        assert process.poll() is None, "kube-controller-manager ended"
    finally:
        process.kill()
        process.wait()
