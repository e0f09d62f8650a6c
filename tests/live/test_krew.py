"""krew itself validates and installs the kubectl plugin. `make test-live` builds krew."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan import __version__
from tests.deploy.checkers import KREW
from tests.deploy.rendering import DEPLOY

#: krew is built once, which takes a minute.
pytestmark = pytest.mark.timeout(600)


def run(*command: str | Path, **env: str) -> str:
    """Run a program that must succeed; returns what it prints."""
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(name="release")
def _release(tmp_path: Path) -> Path:
    """The manifest and the archive of a release."""
    folder = tmp_path / "release"
    run(sys.executable, DEPLOY / "krew" / "manifest.py", "https://example.com/releases", folder)
    return folder


def test_the_validation_of_krews_index_accepts_the_manifest(release: Path) -> None:
    program = KREW.get() / "validate-krew-manifest"
    printed = run(program, "-manifest", release / "bayplan.yaml", "-skip-install")
    assert "structural validation OK" in printed
    assert "no overlapping spec.platform[].selector" in printed


@pytest.mark.parametrize("system", [("linux", "amd64"), ("linux", "arm64"), ("darwin", "arm64")])
def test_krew_installs_the_plugin_and_the_plugin_runs(
    release: Path, tmp_path: Path, system: tuple[str, str]
) -> None:
    env = {"KREW_ROOT": str(tmp_path / "root"), "KREW_OS": system[0], "KREW_ARCH": system[1]}
    archive = f"--archive={release / 'kubectl-bayplan.tar.gz'}"
    manifest = f"--manifest={release / 'bayplan.yaml'}"
    printed = run(KREW.get() / "krew", "install", manifest, archive, **env)
    assert "Installed plugin: bayplan" in printed
    plugin = tmp_path / "root" / "bin" / "kubectl-bayplan"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert __version__ in run(plugin, "--version", PATH=path)
