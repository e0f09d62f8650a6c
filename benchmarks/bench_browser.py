"""The loading time of the page in a browser, with a large run.

    python -m benchmarks browser [--nodes 15000] [--pods 100000] [--turns 5] [--pictures DIR]

The timeline is that of `benchmarks.bench_ui`; a process of its own serves it, and Chromium opens it
on the same machine. The overview is usable when its numbers and four charts are there; a pod is
found when its row is the only one after its name was entered; the heat map is there when its canvas
is painted. Seconds of the wall clock: the median and the maximum of the turns, each with a new
context of the browser.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import click
from playwright.sync_api import Page, ViewportSize, expect, sync_playwright
from rich.console import Console
from rich.table import Table

from bayplan.ui.server import UiOptions, serve_ui
from bayplan.ui.subjects import READY, Subject
from benchmarks.bench_ui import timeline

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_WIDE: ViewportSize = {"width": 1280, "height": 800}


class _MadeUp(Subject):
    """A timeline without a run folder."""

    kind = "run"

    def __init__(self, nodes: int, pods: int) -> None:
        super().__init__(f"{nodes} nodes, {pods} pods")
        self._timeline = timeline(nodes, pods)
        self._phase = READY


def _serve(nodes: int, pods: int) -> None:
    def say(url: str) -> None:
        print(url, flush=True)

    asyncio.run(serve_ui([_MadeUp(nodes, pods)], UiOptions(), say))


def _overview(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_function("() => document.querySelectorAll('.chart canvas').length >= 3")


def _search(page: Page, last: str) -> None:
    page.get_by_role("searchbox", name="Pod name").fill(last)
    # Checks at each frame; `expect` checks after 100, 350 and 850 ms.
    page.wait_for_function("() => document.querySelectorAll('table.pods tbody tr').length === 1")


def _heat(page: Page) -> None:
    page.evaluate("() => { location.hash = '#/nodes?group=zone'; }")
    page.wait_for_function("() => document.querySelector('.heat canvas')?.height > 150")


def _seconds(call: Callable[..., None], *arguments: Any) -> float:
    start = perf_counter()
    call(*arguments)
    return perf_counter() - start


@click.command()
@click.option("--nodes", default=15_000, show_default=True)
@click.option("--pods", default=100_000, show_default=True)
@click.option("--turns", default=5, show_default=True)
@click.option("--pictures", type=click.Path(path_type=Path), help="A folder for pictures")
@click.option("--serve", is_flag=True, hidden=True)
def main(nodes: int, pods: int, turns: int, pictures: Path | None, serve: bool) -> None:
    if serve:
        _serve(nodes, pods)
        return
    command = [sys.executable, "-m", "benchmarks", "browser", "--serve"]
    command += ["--nodes", str(nodes), "--pods", str(pods)]
    load = os.getloadavg()[0]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            taken = _measured(url, f"pod-{pods - 1:06d}", turns, pictures)
        finally:
            server.send_signal(signal.SIGTERM)
    table = Table("view", "median s", "maximum s", title=f"{nodes} nodes, {pods} pods")
    for view, times in taken.items():
        table.add_row(view, f"{median(times):.2f}", f"{max(times):.2f}")
    Console().print(table, f"load of the machine before: {load:.1f}")


def _measured(url: str, last: str, turns: int, pictures: Path | None) -> dict[str, list[float]]:
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _PROGRAMS)))
    taken: dict[str, list[float]] = {"overview": [], "heat map": [], "pod by name": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        for _ in range(turns):
            page = browser.new_page(viewport=_WIDE)
            taken["overview"].append(_seconds(_overview, page, url))
            _picture(page, pictures, "overview")
            taken["heat map"].append(_seconds(_heat, page))
            _picture(page, pictures, "nodes")
            page.evaluate("() => { location.hash = '#/pods'; }")
            expect(page.locator("table.pods tbody tr")).to_have_count(50)
            taken["pod by name"].append(_seconds(_search, page, last))
            _picture(page, pictures, "pods")
            page.close()
        browser.close()
    return taken


def _picture(page: Page, folder: Path | None, name: str) -> None:
    if folder is not None:
        page.screenshot(path=folder / f"large-{name}.png", full_page=name != "pods")
