"""Printed output for terminals, pipes and files."""

import io
import os
import pty
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rich.text import Text

from bayplan.answers.pages import PAGE_WIDTH
from bayplan.answers.table import Table
from bayplan.cli import console, streams
from tests.cli.command_line import process, write_objects
from tests.kit.manifests import node, pod


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """Two nodes, one pod that fits and one that does not."""
    large = pod("large", cpu="64")
    return write_objects(tmp_path / "in.yaml", node("n1"), node("n2"), pod("a"), large)


def standard_output(monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8") -> io.BytesIO:
    """Replace standard output; returns the bytes that are printed from now on."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding))
    streams.prepare_streams()
    return raw


# ---- widths and lines -----------------------------------------------------------------------


def test_a_line_stays_one_line_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = standard_output(monkeypatch)
    console.show([Text("word " * 100), Text("next")])
    assert raw.getvalue().decode().splitlines() == [("word " * 100).rstrip(), "next"]


def test_a_table_is_wrapped_to_a_readable_width(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = standard_output(monkeypatch)
    rows = Table("said")
    rows.add_row("word " * 100)
    console.show([rows])
    lines = raw.getvalue().decode().splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= PAGE_WIDTH


def test_brackets_and_colons_are_printed_literally(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = standard_output(monkeypatch)
    rows = Table("[bold]said[/bold]")
    rows.add_row("plugin(s) [a b] :smile: [/x]")
    console.show([rows])
    assert "plugin(s) [a b] :smile: [/x]" in raw.getvalue().decode()


def test_names_from_a_cluster_cannot_move_the_cursor_or_forge_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = standard_output(monkeypatch)
    name = "x\x1b]0;t\x1b[2J\n4 of 4"
    rows = Table(name, "a column")
    rows.add_row(name, "")
    rows.add_row("a cell that is wider than the text of unknown origin", "")
    console.show([Text(name), name, rows])
    written_text = raw.getvalue().decode()
    assert written_text.count(r"x\x1b]0;t\x1b[2J\n4 of 4") == 4
    assert "\x1b" not in written_text
    assert not [line for line in written_text.splitlines() if line.startswith("4 of 4")]


def test_characters_that_a_terminal_cannot_write_are_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = standard_output(monkeypatch, "ascii")
    console.show([Text("a → b … c – d é")])
    assert raw.getvalue() == b"a > b . c - d ?\n"


def test_tables_fall_back_to_ascii_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = standard_output(monkeypatch, "latin-1")
    rows = Table("a", "b")
    rows.add_row("1", "2")
    console.show([rows])
    assert raw.getvalue() == b"a | b\n--+--\n1 | 2\n"


def test_bytes_are_written_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = standard_output(monkeypatch, "ascii")
    streams.put("é\n".encode())
    assert raw.getvalue() == "é\n".encode()


# ---- terminals and pipes --------------------------------------------------------------------


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_closed_pipe_is_not_a_failure(objects: Path, output: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    completed = process("simulate", objects, "-o", output, stdout=writing)
    os.close(writing)
    assert (completed.returncode, completed.stderr) == (0, b"")


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_full_disk_is_reported_in_one_line(objects: Path, output: str) -> None:
    with open("/dev/full", "wb") as full:
        completed = process("simulate", objects, "-o", output, stdout=full)
    assert completed.returncode == 1
    assert completed.stderr == (
        b"bayplan: standard output: cannot be written: No space left on device\n"
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_not_a_failure(objects: Path, closed: str) -> None:
    command = f'"$0" -c "from bayplan.cli import main; main()" simulate "$1" {closed}'
    shell = ["sh", "-c", command, sys.executable, str(objects)]
    completed = subprocess.run(shell, capture_output=True, check=False, timeout=100)
    assert (completed.returncode, completed.stderr) == (0, b"")


def on_a_terminal(*arguments: str | Path, **env: str) -> tuple[int, str]:
    """Exit code and all output to a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    variables = {"TERM": "xterm-256color", "COLUMNS": "60", **env}
    # A terminal buffers some kilobytes; then a writer blocks until the buffer is read.
    with ThreadPoolExecutor(1) as reader:
        output = reader.submit(all_of, ours)
        try:
            completed = process(*arguments, stdout=theirs, stderr=theirs, env=variables)
        finally:
            os.close(theirs)
    os.close(ours)
    return completed.returncode, output.result().decode()


def all_of(terminal: int) -> bytes:
    """All output until the other end is closed."""
    output = b""
    try:
        while piece := os.read(terminal, 65536):
            output += piece
    except OSError:
        pass  # a terminal reports a closed end with this error
    return output


def test_a_terminal_shows_progress_and_then_the_summary(objects: Path) -> None:
    code, output = on_a_terminal("simulate", objects)
    assert code == 0
    assert output.index("reading") < output.index("2 of 2 pods")
    assert output.index("2 of 2 pods") < output.index("1 of 2 pods placed on 2 nodes")


def test_tables_are_as_wide_as_the_terminal(objects: Path) -> None:
    _, output = on_a_terminal("simulate", objects)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    summary = plain[plain.index("1 of 2 pods") :].splitlines()
    assert max(map(len, summary)) <= 60
    assert "   1   2 lack cpu      default/large" in summary


def test_emphasis_is_used_only_on_terminals_that_support_it() -> None:
    assert "\x1b[1mNodeName" in on_a_terminal("plugins")[1]
    assert "\x1b" not in on_a_terminal("plugins", TERM="dumb")[1]


def test_a_terminal_shows_that_an_attempt_is_repeated(tmp_path: Path, objects: Path) -> None:
    process("simulate", objects, "--out", tmp_path / "run")
    code, output = on_a_terminal("why", "a", "--run", tmp_path / "run", "--node", "n1")
    assert code == 0
    assert output.index("repeating the attempt") < output.index("attempt 1 at default/a")


def test_without_a_terminal_there_is_no_progress_bar(objects: Path) -> None:
    assert process("simulate", objects).stderr == b""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_every_encoding_is_supported(objects: Path, encoding: str) -> None:
    env = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for arguments in (("simulate", objects), ("simulate", "--help")):
        completed = process(*arguments, env=env)
        assert (completed.returncode, completed.stderr) == (0, b"")


def test_without_a_terminal_the_width_comes_from_columns(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    console.show([Text("word " * 20)])
    assert max(map(len, capfd.readouterr().out.splitlines())) <= 40
    monkeypatch.setenv("COLUMNS", "wide")
    console.show([Text("word " * 20)])
    assert len(capfd.readouterr().out.splitlines()) == 1


def test_progress_without_a_terminal_is_an_occasional_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(console, "wall_seconds", lambda: now[0])
    lines = console.ProgressLines("pods")
    for count in range(1, 31):
        now[0] += 1.0
        lines.update(count, 1000)
    message = [f"bayplan: {count} of 1,000 pods" for count in (10, 20, 30)]
    assert capfd.readouterr().err.splitlines() == message
