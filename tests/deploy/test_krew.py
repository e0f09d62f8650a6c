"""The kubectl plugin: a script that runs Bayplan, and its manifest for krew."""

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from bayplan import __version__

KREW = Path(__file__).resolve().parents[2] / "deploy" / "krew"


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the script with a PATH of only this folder, to which the shell is added."""
    (folder / "sh").symlink_to("/bin/sh")
    env = {"PATH": str(folder)}
    command = ["/bin/sh", str(KREW / "kubectl-bayplan"), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)


def program(folder: Path, name: str) -> None:
    path = folder / name
    path.write_text(f'#!/bin/sh\necho {name} "$@"\n')
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bayplan", "bayplan why default/p -n x"),
        ("uvx", "uvx --from bayplan bayplan why default/p -n x"),
        ("pipx", "pipx run --spec bayplan bayplan why default/p -n x"),
    ],
)
def test_the_script_runs_the_program_that_exists(tmp_path: Path, name: str, line: str) -> None:
    program(tmp_path, name)
    completed = run(tmp_path, "why", "default/p", "-n", "x")
    assert (completed.returncode, completed.stdout) == (0, f"{line}\n")


def test_without_a_program_to_run_the_script_names_the_supported_ones(tmp_path: Path) -> None:
    completed = run(tmp_path, "why", "default/p")
    assert completed.returncode == 2
    assert "wanted bayplan, uvx or pipx on the PATH" in completed.stderr


def written(folder: Path, releases: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(KREW / "manifest.py"), releases, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_manifest_has_the_form_that_krew_reads(tmp_path: Path) -> None:
    """The URL is complete and has the package's version; the checksum is that of the archive."""
    assert written(tmp_path, "https://example.com/releases/").returncode == 0
    manifest = yaml.safe_load((tmp_path / "bayplan.yaml").read_text())
    packed = (tmp_path / "kubectl-bayplan.tar.gz").read_bytes()
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", "bayplan")
    assert manifest["spec"]["version"] == f"v{__version__}"
    (platform,) = manifest["spec"]["platforms"]
    file = f"v{__version__}/kubectl-bayplan.tar.gz"
    assert platform["uri"] == f"https://example.com/releases/{file}"
    assert platform["sha256"] == hashlib.sha256(packed).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        modes = {member.name: member.mode for member in tar.getmembers()}
    assert set(modes) == {each["from"] for each in platform["files"]}
    assert modes[platform["bin"]] & 0o100
    assert len(manifest["spec"]["shortDescription"]) <= 80
    assert "$" not in (tmp_path / "bayplan.yaml").read_text()


def test_releases_without_https_are_refused(tmp_path: Path) -> None:
    completed = written(tmp_path, "example.com")
    assert completed.returncode != 0
    assert "wanted an https URL" in completed.stderr
