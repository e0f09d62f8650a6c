"""Visits of the page, with the checks that apply to every test."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize

T = TypeVar("T")

MARKUP = "<img src=x onerror=alert(1)>"
WAIT_MS = 60_000
_AXE = Path(__file__).parent / "axe.min.js"
#: Counts the questions of the page that are open: from the request to the end of the body.
_COUNT_QUESTIONS = """
window.openQuestions = 0;
window.quietFrames = 0;
const ask = window.fetch;
window.fetch = async (...parameters) => {
  window.openQuestions += 1;
  const close = () => { window.openQuestions -= 1; };
  try {
    const response = await ask(...parameters);
    response.clone().arrayBuffer().then(close, close);
    return response;
  } catch (problem) {
    close();
    throw problem;
  }
};
"""
#: An answer may lead to a new view, and this to new questions: each takes a frame or two.
_IS_QUIET = """() => {
  const isOpen = document.querySelector('main .loading, main .stale');
  const isLoaded = document.querySelector('main h1') && !isOpen;
  window.quietFrames = isLoaded && window.openQuestions === 0 ? window.quietFrames + 1 : 0;
  return window.quietFrames >= 6;
}"""
WIDE: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 800}


def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """The result of a call in another thread. Playwright runs an event loop in the main thread, and
    virtual time needs a thread without one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call, *arguments).result()


@contextmanager
def visit(browser: Browser, url: str, *, dark: bool = False, phone: bool = False) -> Iterator[Page]:
    """Open a page; fails after requests to another host, errors or dialogs."""
    context = browser.new_context(
        viewport=PHONE if phone else WIDE,
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
        reduced_motion="reduce",
    )
    page = context.new_page()
    problems: list[str] = []
    host = urlsplit(url).netloc

    def on_request(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != host:
            problems.append(f"request to {request.url}")

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(f"{message.text} {message.location.get('url')}")

    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.on("dialog", lambda dialog: problems.append(f"dialog {dialog.message}"))
    page.set_default_timeout(WAIT_MS)
    page.add_init_script(_COUNT_QUESTIONS)
    page.goto(url)
    yield page
    context.close()
    assert not problems, problems


def go(page: Page, view: str) -> None:
    """Open a view, and wait until it is loaded."""
    page.evaluate("hash => { location.hash = hash; }", f"#/{view}")
    settle(page)


def settle(page: Page) -> None:
    """Wait until the view is loaded and no question is open. The stream of ticks may stay open."""
    page.evaluate("() => { window.quietFrames = 0; }")
    page.wait_for_function(_IS_QUIET)


def violations(page: Page) -> list[str]:
    """The violations that axe-core reports for the page."""
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    result = page.evaluate("async () => await axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in result["violations"]
        for node in one["nodes"][:3]
    ]


def screenshot(page: Page, name: str) -> None:
    """Write a picture into the folder that SCREENSHOTS names, if it is set."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"ui-{name}.png")
