"""Exec plugins of a kubeconfig: programs that print a credential.

As in client-go (plugin/pkg/client/auth/exec/exec.go, tools/clientcmd/loader.go): a command with a
slash is relative to the folder of its kubeconfig, another one is looked up in $PATH. Unlike there,
a plugin that does not end is killed, its output is bounded, and what it writes to standard error
becomes log lines without escape sequences.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import final

import msgspec
from msgspec import Struct

from bayplan.adapters.live.errors import LoginError
from bayplan.printable import printable

_log = logging.getLogger(__name__)

#: After this time a log line says what is waited for.
NOTICE_SECONDS = 5.0
#: A plugin that nobody can answer has this long; one that may ask somebody has longer.
SILENT_SECONDS_MAX = 60.0
INTERACTIVE_SECONDS_MAX = 600.0
#: A credential is a few KiB.
OUTPUT_BYTES_MAX = 1 << 20
#: Of standard error.
_LINES_MAX, _LINE_LENGTH_MAX = 100, 500
_MODES = ("Never", "IfAvailable", "Always")


class _Variable(Struct):
    name: str
    value: str = ""


class ExecPlugin(Struct, rename="camel", kw_only=True):
    """`exec` of a kubeconfig's user."""

    api_version: str
    command: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""


class ExecStatus(Struct, rename="camel"):
    """The credential."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(Struct, rename="camel"):
    api_version: str = ""
    status: ExecStatus | None = None


async def credential_of(plugin: ExecPlugin, folder: Path) -> ExecStatus:
    """Run a plugin. ``folder``: that of its kubeconfig. Raises LoginError."""
    is_interactive = _is_interactive(plugin)
    seconds = INTERACTIVE_SECONDS_MAX if is_interactive else SILENT_SECONDS_MAX
    program = _program(plugin, folder)
    try:
        async with asyncio.timeout(seconds):
            output = await _output(plugin, program, is_interactive=is_interactive)
    except TimeoutError:
        raise LoginError(
            f"exec plugin {plugin.command}: did not end within {seconds:g} s"
        ) from None
    return _status(plugin, output)


def _program(plugin: ExecPlugin, folder: Path) -> str:
    """The path of the program. Raises LoginError."""
    command = plugin.command
    if os.sep in command:
        return str(folder / command)
    program = shutil.which(command)
    if program is None:
        hint = f"; {printable(plugin.install_hint)}" if plugin.install_hint else ""
        raise LoginError(f"exec: executable {command} not found{hint}")
    # An entry of $PATH such as "." would run what lies in the working directory (Go's ErrDot).
    if not os.path.isabs(program):
        raise LoginError(f"exec: executable {command}: found only in the working directory")
    return program


def _is_interactive(plugin: ExecPlugin) -> bool:
    """Whether the plugin may read standard input. Raises LoginError."""
    if plugin.interactive_mode not in _MODES:
        raise LoginError(
            f"exec: interactiveMode: found {plugin.interactive_mode!r}, wanted {', '.join(_MODES)}"
        )
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not is_terminal:
        raise LoginError("exec plugin cannot support interactive mode: no terminal is there")
    return is_terminal and plugin.interactive_mode != "Never"


def _status(plugin: ExecPlugin, output: bytes) -> ExecStatus:
    """Raises LoginError."""
    try:
        credential = msgspec.json.decode(output, type=_Credential)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise LoginError(
            f"exec plugin {plugin.command}: found no ExecCredential in its output: {problem}"
        ) from None
    if credential.api_version != plugin.api_version:
        raise LoginError(
            f"exec plugin is configured to use API version {plugin.api_version}, plugin returned "
            f"version {credential.api_version}"
        )
    status = credential.status
    if status is None:
        raise LoginError("exec plugin didn't return a status field")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise LoginError("exec plugin returned only certificate or key, not both")
    if not status.token and not status.client_key_data:
        raise LoginError("exec plugin didn't return a token or cert/key pair")
    return status


async def _output(plugin: ExecPlugin, program: str, *, is_interactive: bool) -> bytes:
    """What the plugin writes to standard output. Raises LoginError."""
    loop = asyncio.get_running_loop()
    # A task, because a start that is cut off would leave the process, and asyncio waits for it.
    start = loop.create_task(
        loop.subprocess_exec(
            lambda: _Pipes(plugin.command),
            program,
            *(plugin.args or ()),
            env=_environment(plugin, is_interactive=is_interactive),
            stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
            # Its own children end with it. A process in a session of its own has no terminal.
            start_new_session=not is_interactive,
        )
    )
    notice = loop.call_later(
        NOTICE_SECONDS, _log.warning, "waiting for the exec plugin %s", plugin.command
    )
    try:
        await asyncio.wait((start,))
        transport, pipes = start.result()
        await pipes.ended
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise LoginError(f"exec: executable {plugin.command} cannot be run: {why}") from None
    finally:
        notice.cancel()
        await asyncio.wait((start,))
        if start.exception() is None:
            await _end(*start.result(), is_interactive=is_interactive)
    if code := transport.get_returncode():
        raise LoginError(f"exec: executable {plugin.command} failed with exit code {code}")
    return bytes(pipes.output)


async def _end(
    transport: asyncio.SubprocessTransport, pipes: "_Pipes", *, is_interactive: bool
) -> None:
    """Kill what still runs, and close the pipes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if is_interactive:
            transport.kill()
        else:
            os.killpg(transport.get_pid(), signal.SIGKILL)
    # `close` before the end of the process would take its exit code from the loop.
    await pipes.exited.wait()
    transport.close()
    await pipes.closed.wait()


def _environment(plugin: ExecPlugin, *, is_interactive: bool) -> Mapping[str, str]:
    information = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": is_interactive},
    }
    variables = {each.name: each.value for each in plugin.env or ()}
    whole = msgspec.json.encode(information).decode()
    return {**os.environ, **variables, "KUBERNETES_EXEC_INFO": whole}


@final
class _Pipes(asyncio.SubprocessProtocol):
    """Reads what a plugin writes."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._line_count = 0
        self.output = bytearray()
        #: Done when the plugin has ended, or has an exception: it is given up.
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        #: Set when the process is gone; and when the pipes are closed, too.
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self._log_lines(data)
            return
        if len(self.output) + len(data) <= OUTPUT_BYTES_MAX:
            self.output += data
        elif not self.ended.done():
            limit = f"{OUTPUT_BYTES_MAX >> 20} MiB"
            text = f"exec plugin {self._command}: its output is larger than {limit}"
            self.ended.set_exception(LoginError(text))

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        if not self.ended.done():
            self.ended.set_result(None)

    def _log_lines(self, data: bytes) -> None:
        """What the plugin tells its user, a part of a line, too: it may be a question."""
        for line in data.decode(errors="replace").splitlines():
            if self._line_count < _LINES_MAX and line.strip():
                text = printable(line[:_LINE_LENGTH_MAX])
                _log.warning("exec plugin %s: %s", self._command, text)
                self._line_count += 1
