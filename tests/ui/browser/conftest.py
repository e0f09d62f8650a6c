"""A Chromium, a run on a page of the installed command, and a page with markup in its names."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bayplan.sim.output.run_folder import RunFolder
from bayplan.ui.server import application
from bayplan.ui.subjects import RunSubject, Subject
from tests.history.stored_runs import write_run
from tests.ui.browser.visits import MARKUP, WAIT_MS, in_thread, settle, visit
from tests.ui.example_run import PACK, example_workload

_SCRIPT = "from bayplan.cli import main; main()"
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def _chromium() -> str:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.exit("no Chromium: install the Debian package chromium, or set CHROMIUM", 2)
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = _chromium()
    # Only a page that hangs exceeds this, also on a machine with other work.
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("browser") / "example"
    return in_thread(write_run, path, example_workload())


@pytest.fixture(scope="session")
def url(run_folder: RunFolder) -> Iterator[str]:
    """The page of the example run, served by the command in a separate process."""
    with served(run_folder) as address:
        yield address


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    with visit(browser, url) as opened:
        settle(opened)
        yield opened


@pytest.fixture(scope="session")
def pair_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of two runs with different scoring strategies."""
    folder, feed = tmp_path_factory.mktemp("pair"), example_workload(30)
    one = in_thread(write_run, folder / "least-allocated", feed)
    other = in_thread(write_run, folder / "most-allocated", feed, PACK)
    with served(one, other) as address:
        yield address


@contextmanager
def served(*folders: RunFolder) -> Iterator[str]:
    with served_paths(*(Path(folder.path) for folder in folders)) as address:
        yield address


@contextmanager
def served_paths(*paths: Path) -> Iterator[str]:
    command = [sys.executable, "-c", _SCRIPT, "ui", *map(str, paths)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # Notes about the files may come first.
        addresses = (re.search(r"http://\S+", line) for line in process.stderr)
        address = next(filter(None, addresses), None)
        assert address is not None
        try:
            yield address[0]
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def markup_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page whose names and reasons are markup. The API server refuses such names, so that the
    test changes the names in the timeline."""
    folder = in_thread(write_run, tmp_path_factory.mktemp("markup") / "run", example_workload(5))
    run = RunSubject(folder)
    in_thread(run.load)
    run.name = MARKUP
    line = run.timeline
    line.pods = [
        pod._replace(name=f"default/{MARKUP}{number}") for number, pod in enumerate(line.pods)
    ]
    line.node_names = [f"{MARKUP}{number}" for number, _ in enumerate(line.node_names)]
    line.group_names = [f"default/{MARKUP}"]
    with served_subjects(run) as address:
        yield address


@contextmanager
def served_subjects(*subjects: Subject) -> Iterator[str]:
    """The page of these subjects, served by a thread of this process."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    addresses: list[str] = []

    async def start() -> web.AppRunner:
        runner = web.AppRunner(application(list(subjects)))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        addresses.append(f"http://127.0.0.1:{runner.addresses[0][1]}/")
        started.set()
        return runner

    def serve() -> None:
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())

    thread = threading.Thread(target=serve)
    thread.start()
    assert started.wait(20)
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
