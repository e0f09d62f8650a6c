"""The event loop of commands."""

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.cli import event_loop
from bayplan.cli.event_loop import run_event_loop
from tests.adapters.live.pems import certificate_and_key


async def loop_modules() -> set[str]:
    return {base.__module__ for base in type(asyncio.get_running_loop()).__mro__}


def test_asyncio_is_used_if_no_other_loop_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "uvloop", None)
    assert "asyncio.selector_events" in run_event_loop(loop_modules())


def test_uvloop_is_used_if_it_is_installed() -> None:
    pytest.importorskip("uvloop", reason="uvloop is not installed")
    assert "uvloop" in run_event_loop(loop_modules())


@pytest.mark.parametrize("is_asyncio", [True, False])
def test_a_connection_is_not_cut_off_within_its_handshake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_asyncio: bool
) -> None:
    if is_asyncio:
        monkeypatch.setattr(event_loop, "uvloop", None)
    pem = tmp_path / "both.pem"
    pem.write_bytes(b"".join(certificate_and_key()))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE

    async def work() -> bool:
        is_whole = asyncio.Event()

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            is_whole.set()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=serving) as server:
            port = server.sockets[0].getsockname()[1]
            dial = asyncio.create_task(asyncio.open_connection("127.0.0.1", port, ssl=asking))
            await asyncio.sleep(0)
            dial.cancel()
            await asyncio.wait([dial])
            async with asyncio.timeout(30):
                await is_whole.wait()
            return dial.cancelled()

    assert run_event_loop(work())


def test_a_warning_is_a_remark_without_escape_sequences() -> None:
    code = (
        "import asyncio, logging\n"
        "from bayplan.cli.event_loop import run_event_loop\n"
        "async def work(): logging.getLogger('bayplan').warning('slow: %s', '\\x1b[2J')\n"
        "run_event_loop(work())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "bayplan: slow: \\x1b[2J\n"
