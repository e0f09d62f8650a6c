"""The event loop of commands."""

import asyncio

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
