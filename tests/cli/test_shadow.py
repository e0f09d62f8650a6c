"""`bayplan shadow`: options, exit codes, one-line errors. tests/live tests the running shadow."""

import errno
import json
import socket
from pathlib import Path

import pytest

from bayplan.cli.streams import EXIT_UNREADABLE
from bayplan.durations import DESCRIPTION
from tests.cli.command_line import bayplan, profile, refusal, write_objects


def kubeconfig(folder: Path, server: str = "http://127.0.0.1:1") -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


def test_a_missing_context_ends_with_3(tmp_path: Path) -> None:
    result = bayplan("shadow", "--kubeconfig", kubeconfig(tmp_path), "--context", "nope")
    assert (result.exit_code, result.stdout) == (EXIT_UNREADABLE, "")
    (line,) = result.stderr.splitlines()
    assert "nope" in line


def test_a_missing_kubeconfig_ends_with_3() -> None:
    result = bayplan("shadow", "--kubeconfig", "/nonexistent")
    assert (result.exit_code, result.stdout) == (EXIT_UNREADABLE, "")
    (line,) = result.stderr.splitlines()
    assert "/nonexistent" in line


def test_an_invalid_duration_is_refused() -> None:
    assert refusal("shadow", "--for", "soon") == [f'--for: found "soon", wanted {DESCRIPTION}']


def test_a_policy_decides_about_the_same_pods(tmp_path: Path) -> None:
    own = {**profile(), "profiles": [{"schedulerName": "own"}]}
    policy = write_objects(tmp_path / "policy.yaml", own)
    (line,) = refusal("shadow", "--policy", policy)
    assert line == (
        f"{policy}: found profiles own, wanted one named default-scheduler: its pods are compared"
    )


def test_the_time_ends_also_if_the_server_never_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        path = kubeconfig(tmp_path, f"http://127.0.0.1:{mute.getsockname()[1]}")
        result = bayplan("shadow", "--for", "1s", "--kubeconfig", path)
    assert (result.exit_code, result.stdout) == (EXIT_UNREADABLE, "")
    assert result.stderr.splitlines() == [
        "bayplan: 1 s are over, and the cluster is not read yet: there is no report"
    ]


def test_a_full_disk_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bayplan.cli.shadow.follow", full)
    command = ("shadow", "--kubeconfig", str(kubeconfig(tmp_path)), "--out", "runs/a")
    assert refusal(*command) == ["--out runs/a: No space left on device"]
