"""The kubectl plugin: a script that runs Bayplan, and its manifest for krew."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

KREW = Path(__file__).resolve().parents[2] / "deploy" / "krew"


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The script, where the PATH holds only what is in the folder and the shell's own tools."""
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
def test_the_script_runs_what_is_there(tmp_path: Path, name: str, line: str) -> None:
    program(tmp_path, name)
    done = run(tmp_path, "why", "default/p", "-n", "x")
    assert (done.returncode, done.stdout) == (0, f"{line}\n")


def test_without_a_way_to_run_it_the_script_says_what_it_needs(tmp_path: Path) -> None:
    done = run(tmp_path, "why", "default/p")
    assert done.returncode == 2
    assert "wanted bayplan, uvx or pipx on the PATH" in done.stderr


def test_the_manifest_is_one_that_krew_reads() -> None:
    text = (KREW / "bayplan.yaml").read_text()
    address = "uri: https://example.com/kubectl-bayplan.tar.gz\n      sha256: 0"
    filled = re.sub(r"\{\{addURIAndSha .*\}\}", address, text).replace("{{ .TagName }}", "v1.0.0")
    manifest = yaml.safe_load(filled)
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", "bayplan")
    (platform,) = manifest["spec"]["platforms"]
    names = [each["from"] for each in platform["files"]]
    assert platform["bin"] in names
    assert len(manifest["spec"]["shortDescription"]) <= 80
    assert os.access(KREW / platform["bin"], os.X_OK)
