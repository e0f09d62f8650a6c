"""Signals and the garbage collector."""

import asyncio
import gc
import json
import os
import signal
from pathlib import Path

import pytest

from bayplan.serving.process import (
    on_signal,
    settle_memory,
    stop_on_signals,
    unless,
    until_started,
)
from tests.live.processes import SchedulerProcess, replicas

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_one_signal_requests_a_stop(number: signal.Signals) -> None:
    async def script() -> None:
        stop = stop_on_signals()
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 10)
        # The system ends the process at the next signal of either kind.
        assert {signal.getsignal(each) for each in STOP_SIGNALS} == {signal.SIG_DFL}

    before = {each: signal.getsignal(each) for each in STOP_SIGNALS}
    try:
        asyncio.run(script())
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.mark.parametrize("command", ["run", "webhook", "serve-extender"])
def test_a_server_that_waits_for_an_exec_plugin_ends_on_a_signal(
    tmp_path: Path, command: str
) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sleep",
        "args": ["1000"],
        "interactiveMode": "Never",
    }
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": plugin}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(content))
    server = SchedulerProcess(command, [command, f"--kubeconfig={kubeconfig}"], tmp_path / "log")
    with replicas(server):
        server.wait_until_printed("runs the exec plugin")
        assert server.end() == 0, server.output
    assert "Traceback" not in server.output


async def test_a_stop_ends_the_start_and_closes_what_is_open() -> None:
    stop, steps = asyncio.Event(), list[str]()
    async with until_started(stop):
        try:
            asyncio.get_running_loop().call_soon(stop.set)
            await asyncio.Event().wait()
        finally:
            steps.append("closed")
    assert steps == ["closed"]


async def test_after_the_start_the_block_handles_a_stop() -> None:
    stop, steps = asyncio.Event(), list[str]()
    async with until_started(stop) as start_is_over:
        start_is_over()
        stop.set()
        await asyncio.sleep(0.01)
        steps.append("stopped")
    assert steps == ["stopped"]


async def test_a_time_limit_of_the_start_is_no_stop() -> None:
    with pytest.raises(TimeoutError):
        async with until_started(asyncio.Event()), asyncio.timeout(0):
            await asyncio.Event().wait()


async def test_a_signal_handler_is_active_inside_the_block() -> None:
    requested = asyncio.Event()
    with on_signal("SIGUSR2", requested.set):
        os.kill(os.getpid(), signal.SIGUSR2)
        await asyncio.wait_for(requested.wait(), 10)
    assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGUSR2)


async def test_an_unavailable_signal_is_ignored() -> None:
    with on_signal("SIGNONE", lambda: None):
        pass


async def test_work_continues_until_a_stop_is_requested() -> None:
    stop, ended = asyncio.Event(), list[str]()

    async def quick() -> None:
        ended.append("quick")

    async def endless() -> None:
        try:
            stop.set()
            await asyncio.Event().wait()
        finally:
            ended.append("endless")

    async def broken() -> None:
        raise ZeroDivisionError

    assert await unless(stop, quick())
    with pytest.raises(ZeroDivisionError):
        await unless(stop, broken())
    assert not await unless(stop, endless())
    assert ended == ["quick", "endless"]


def test_objects_of_the_start_are_excluded_from_garbage_collection() -> None:
    before = gc.get_threshold()
    try:
        settle_memory()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
