"""Exec plugins: where the program is, how long it may run, and what it may print."""

import asyncio
import logging
import os
import sys
import threading
from pathlib import Path

import pytest

from bayplan.adapters.live import exec_plugin
from bayplan.adapters.live.errors import LoginError
from bayplan.adapters.live.exec_plugin import ExecPlugin, ExecStatus, credential_of

#: No test sets this event.
_PAUSE = threading.Event()
_VERSION = "client.authentication.k8s.io/v1"
_FINE = f'{{"apiVersion":"{_VERSION}","kind":"ExecCredential","status":{{"token":"T"}}}}'


def script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(command: str, folder: Path, mode: str = "Never", hint: str = "") -> ExecStatus:
    plugin = ExecPlugin(
        api_version=_VERSION, command=command, interactive_mode=mode, install_hint=hint
    )
    return asyncio.run(credential_of(plugin, folder))


def problem_of(folder: Path, text: str) -> str:
    script(folder / "plugin", text)
    with pytest.raises(LoginError) as error:
        run(str(folder / "plugin"), folder)
    return str(error.value)


@pytest.mark.parametrize("command", ["./sub/plugin", "sub/plugin", "../{name}/sub/plugin"])
def test_a_command_with_a_slash_is_beside_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    script(home / "sub" / "plugin", f"echo '{_FINE}'")
    script(elsewhere / "sub" / "plugin", "exit 9")
    monkeypatch.chdir(elsewhere)
    assert run(command.format(name="home"), home).token == "T"


def test_a_bare_command_is_looked_up_in_the_path_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin" / "plugin", f"echo '{_FINE}'")
    script(tmp_path / "beside", f"echo '{_FINE}'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/bin")
    assert run("plugin", tmp_path).token == "T"
    with pytest.raises(LoginError, match="exec: executable beside not found; install it"):
        run("beside", tmp_path, hint="install it")


def test_a_command_of_the_working_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "plugin", f"echo '{_FINE}'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}/bin")
    with pytest.raises(LoginError, match="only in the working directory"):
        run("plugin", tmp_path)


def test_a_plugin_that_does_not_end_is_announced_and_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exec_plugin, "NOTICE_SECONDS", 0.1)
    monkeypatch.setattr(exec_plugin, "SILENT_SECONDS_MAX", 0.5)
    problem = problem_of(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/child\nwait")
    assert problem == f"exec plugin {tmp_path}/plugin: did not end within 0.5 s"
    assert caplog.messages == [f"waiting for the exec plugin {tmp_path}/plugin"]
    child = int((tmp_path / "child").read_text())
    # It is killed already; the test ends at its own time limit if the child does not.
    while _is_alive(child):
        _PAUSE.wait(0.01)


def _is_alive(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_start_that_is_cut_off_leaves_no_process(tmp_path: Path) -> None:
    script(tmp_path / "plugin", "sleep 1000")
    before = child_pids()
    plugin = ExecPlugin(api_version=_VERSION, command="./plugin", interactive_mode="Never")
    task = asyncio.get_running_loop().create_task(credential_of(plugin, tmp_path))
    while child_pids() == before:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled()
    assert child_pids() == before


def child_pids() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def test_endless_output_is_refused(tmp_path: Path) -> None:
    assert "its output is larger than 1 MiB" in problem_of(tmp_path, "exec yes AAAAAAAAAAAAAAA")


def test_endless_complaints_end_with_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exec_plugin, "SILENT_SECONDS_MAX", 0.5)
    assert "did not end within" in problem_of(tmp_path, "exec yes complaint >&2")
    assert len(caplog.messages) == 100


def test_complaints_are_shown_without_escape_sequences(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    problem = problem_of(tmp_path, 'printf "\\033[2JEVIL\\r\\n" >&2; exit 3')
    assert problem == f"exec: executable {tmp_path}/plugin failed with exit code 3"
    assert caplog.record_tuples == [
        (
            "bayplan.adapters.live.exec_plugin",
            logging.WARNING,
            f"exec plugin {tmp_path}/plugin: \\x1b[2JEVIL",
        )
    ]


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", "found no ExecCredential in its output"),
        ("garbage", "found no ExecCredential in its output"),
        ("[" * 5000, "found no ExecCredential in its output"),
        ('{"status":{"token":"T"}}', "plugin returned version "),
        (f'{{"apiVersion":"{_VERSION}"}}', "didn't return a status field"),
        (f'{{"apiVersion":"{_VERSION}","status":{{}}}}', "didn't return a token or cert/key pair"),
        (
            f'{{"apiVersion":"{_VERSION}","status":{{"clientKeyData":"K"}}}}',
            "returned only certificate or key, not both",
        ),
        (f'{{"apiVersion":"{_VERSION}","status":{{"token":7}}}}', "Expected `str`, got `int`"),
    ],
)
def test_an_output_without_a_credential_is_refused(
    tmp_path: Path, output: str, problem: str
) -> None:
    assert problem in problem_of(tmp_path, f"printf '%s' '{output}'")


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "plugin").write_text("no program")
    with pytest.raises(LoginError, match="cannot be run: Permission denied"):
        run("./plugin", tmp_path)


@pytest.mark.parametrize(
    ("mode", "problem"), [("Always", "no terminal is there"), ("Perhaps", "interactiveMode: found")]
)
def test_a_mode_that_cannot_be_is_refused(tmp_path: Path, mode: str, problem: str) -> None:
    with pytest.raises(LoginError, match=problem):
        run("./plugin", tmp_path, mode)


def test_a_plugin_that_nobody_can_answer_has_no_standard_input(tmp_path: Path) -> None:
    script(tmp_path / "plugin", f"read line && exit 4; echo '{_FINE}'")
    assert run("./plugin", tmp_path, "IfAvailable").token == "T"
