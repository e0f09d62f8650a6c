"""The event loop of commands."""

import asyncio
import socket
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


@pytest.fixture(params=["uvloop", "asyncio"])
def each_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "asyncio":
        monkeypatch.setattr(event_loop, "uvloop", None)


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.usefixtures("each_loop")
@pytest.mark.parametrize("is_upgraded", [False, True])
def test_a_connection_is_not_cut_off_within_its_handshake(
    tmp_path: Path, *, is_upgraded: bool
) -> None:
    """``is_upgraded``: a connection to a proxy becomes one to the server behind it."""
    pem = tmp_path / "both.pem"
    pem.write_bytes(b"".join(certificate_and_key()))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)

    async def work() -> bool:
        is_whole = asyncio.Event()

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if is_upgraded:
                await writer.start_tls(tls)
            is_whole.set()
            writer.close()

        serving = None if is_upgraded else tls
        async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=serving) as server:
            port = server.sockets[0].getsockname()[1]
            if is_upgraded:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                dial = asyncio.create_task(writer.start_tls(trusting()))
            else:
                opens = asyncio.open_connection("127.0.0.1", port, ssl=trusting())
                dial = asyncio.create_task(opens)
            await asyncio.sleep(0)
            dial.cancel()
            await asyncio.wait([dial])
            async with asyncio.timeout(30):
                await is_whole.wait()
            return dial.cancelled()

    assert run_event_loop(work())


@pytest.mark.usefixtures("each_loop")
def test_a_handshake_without_an_answer_goes_on_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server accepts connections and says nothing."""
    monkeypatch.setattr(event_loop, "_HANDSHAKE_SECONDS", 0.05)

    async def work() -> bytes:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            opens = asyncio.open_connection(*server.getsockname(), ssl=trusting())
            dial = asyncio.create_task(opens)
            accepted, _ = await loop.sock_accept(server)
            with accepted:
                dial.cancel()
                async with asyncio.timeout(30):
                    while received := await loop.sock_recv(accepted, 2**16):
                        pass
                return received

    assert run_event_loop(work()) == b""


def test_a_warning_is_a_remark_without_escape_sequences() -> None:
    code = (
        "import asyncio, logging\n"
        "from bayplan.cli.event_loop import run_event_loop\n"
        "async def work(): logging.getLogger('bayplan').warning('slow: %s', '\\x1b[2J')\n"
        "run_event_loop(work())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "bayplan: slow: \\x1b[2J\n"
