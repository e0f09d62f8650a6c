"""The event loop of commands."""

import asyncio
import subprocess
import sys

import pytest

from bayplan.cli import event_loop
from bayplan.cli.event_loop import run_event_loop


async def loop_module() -> str:
    return type(asyncio.get_running_loop()).__module__


def test_asyncio_is_used_if_no_other_loop_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "uvloop", None)
    assert run_event_loop(loop_module()).startswith("asyncio")


def test_uvloop_is_used_if_it_is_installed() -> None:
    pytest.importorskip("uvloop", reason="uvloop is not installed")
    assert run_event_loop(loop_module()).startswith("uvloop")


def test_a_warning_is_a_remark_without_escape_sequences() -> None:
    code = (
        "import asyncio, logging\n"
        "from bayplan.cli.event_loop import run_event_loop\n"
        "async def work(): logging.getLogger('bayplan').warning('slow: %s', '\\x1b[2J')\n"
        "run_event_loop(work())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "bayplan: slow: \\x1b[2J\n"
