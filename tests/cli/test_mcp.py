"""`bayplan mcp`: options and one-line errors. agents/test_server.py tests the answers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import process, refusal


def test_http_needs_a_token_and_a_token_needs_http(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    expected = ["--http and --token-file: wanted both or none"]
    assert refusal("mcp", "--http", "0") == expected
    assert refusal("mcp", "--token-file", token) == expected
    token.write_text("\n")
    assert refusal("mcp", "--http", "0", "--token-file", token) == [
        f"{token}: found no token, wanted one line"
    ]


def test_files_and_a_kubeconfig_are_two_clusters() -> None:
    assert refusal("mcp", "cluster.yaml", "--context", "staging") == [
        "found files and --kubeconfig or --context, wanted one cluster"
    ]


def test_a_moment_is_one_of_a_run() -> None:
    assert refusal("mcp", "--at", "5m") == ["--at: wanted the folder of a run as the cluster"]


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mcp", "mcp_types", "bayplan.cli.agents.server"):
        monkeypatch.setitem(sys.modules, name, None)
    (line,) = refusal("mcp")
    assert line.endswith("is not installed: pip install 'bayplan[mcp]'")


def test_the_program_ends_with_its_client() -> None:
    ended = process("mcp", "examples/quickstart", stdin=-3)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_although_its_client_is_silent(
    tmp_path: Path, number: signal.Signals
) -> None:
    script = "from bayplan.cli import main; main()"
    program = subprocess.Popen(
        [sys.executable, "-c", script, "mcp", "examples/quickstart"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert program.stdin is not None
    assert program.stdout is not None
    with program:
        # An answer: it reads its input now.
        program.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        program.stdin.flush()
        assert b'"id":1' in program.stdout.readline()
        program.send_signal(number)
        assert program.wait(100) == 0
    assert not list(tmp_path.iterdir())
