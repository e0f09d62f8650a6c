"""Commands that Bayplan prints, run by a shell as they are printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.dumps import draw_dump
from tests.cli.command_line import bayplan

#: A line of its own; a command that goes on after a backslash is one.
_COMMAND = re.compile(r"^ +(bayplan .+)$", re.MULTILINE)


def _printed_commands(*words: str) -> list[str]:
    result = bayplan(*words)
    assert result.exit_code in (0, 1), result.stderr
    text = f"{result.stdout}\n{result.stderr}".replace("\\\n", " ")
    return _COMMAND.findall(text)


def _run_by_shell(command: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "80"}
    return subprocess.run(
        command, shell=True, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ("why", "--all-pending", "a dump.json", "--seed", "7", "--kubernetes", "1.35"),
        ("why", "--all-pending", "--", "--plugin=a dump.json"),
        ("simulate", "a dump.json", "--out", "my run"),
        ("plugins", "new", "RackPolicy", "--out", "my policies"),
    ],
    ids=lambda words: words[0],
)
def test_a_printed_command_runs_as_it_is_printed(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has a blank in its name or looks like an option, and the output is narrower than
    the commands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    for name in ("a dump.json", "--plugin=a dump.json"):
        Path(name).write_text(draw_dump(3, 20).as_text(), encoding="utf-8")
    commands = _printed_commands(*words)
    assert commands
    for command in commands:
        done = _run_by_shell(command)
        assert done.returncode in (0, 1), f"{command}\n{done.stderr}"
        assert done.stdout, command
