"""`bayplan ui`: refusals, and the page of the installed command."""

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import refusal
from tests.ui.example_run import PACK

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart"
#: No test sets this event.
_PAUSE = threading.Event()
_SCRIPT = "from bayplan.cli import main; main()"


def test_a_run_and_files_of_a_cluster_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert refusal("ui", tmp_path, EXAMPLE) == [
        "found 1 run and 1 other path, wanted one run, two runs, or files of one cluster"
    ]


def test_a_path_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "runs"
    assert refusal("ui", missing) == [
        f"{missing}: there is no such file or folder; wanted a run, or files of a cluster"
    ]


def test_a_path_and_a_context_are_refused() -> None:
    assert refusal("ui", EXAMPLE, "--context", "prod") == [
        f"found {EXAMPLE} and --kubeconfig or --context, wanted one of them"
    ]


def test_an_empty_token_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    lines = refusal("ui", EXAMPLE, "--token-file", tmp_path / "token")
    assert lines == [f"--token-file {tmp_path / 'token'}: found nothing, wanted a token"]


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that serves the page. A test that fails does not wait for its end."""
    command = [sys.executable, "-c", _SCRIPT, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ([], r"http://127\.0\.0\.1:\d+/ "),
        (["--bind-address", "0.0.0.0"], r"http://0\.0\.0\.0:\d+/\?token=[0-9a-f]{32} "),
    ],
)
def test_the_command_prints_the_address_and_ends_at_sigterm(
    options: list[str], pattern: str
) -> None:
    with serving("ui", str(EXAMPLE), *options) as process:
        assert process.stderr is not None
        address = re.search(pattern, process.stderr.readline())
        assert address is not None
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address[0].strip(), timeout=20) as response:
            assert b'<script type="module" src="static/app.js">' in response.read()


def page_of(*arguments: str, kind: str, path: str) -> Any:
    """An answer of the page that a command serves after its work has ended."""
    with serving(*arguments, "--ui") as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        address = next(filter(None, (re.search(r"http://\S+", line) for line in lines)))[0]
        kinds: list[str] = []
        phase = ""
        while not kinds or (kinds[-1], phase) != (kind, "ready"):
            with urllib.request.urlopen(f"{address}api/sources", timeout=20) as response:
                [source] = json.load(response)
            phase = source["phase"]
            kinds.append(source["kind"])
            assert len(kinds) < 400, kinds[-5:]
            _PAUSE.wait(0.1)
        with urllib.request.urlopen(f"{address}api/{path}", timeout=20) as response:
            answer = json.load(response)
    # The page is served before the work has ended.
    assert kinds[0] == "work"
    return answer


def test_simulate_shows_its_progress_and_its_run() -> None:
    view = page_of("simulate", str(EXAMPLE), kind="run", path="overview")
    assert view["nodes"] == 12


def test_compare_shows_its_progress_and_the_differences(tmp_path: Path) -> None:
    packing = tmp_path / "packing.yaml"
    packing.write_text(PACK, encoding="utf-8")
    spreading = tmp_path / "spreading.yaml"
    spreading.write_text(PACK.replace("MostAllocated", "LeastAllocated"), encoding="utf-8")
    configs = ("--config", str(spreading), "--config", str(packing))
    command = ("compare", str(EXAMPLE), *configs, "--processes", "1")
    view = page_of(*command, kind="comparison", path="experiment")
    assert view["configurations"] == ["spreading", "packing"]
    assert view["baseline"] == "spreading"
    (one,) = view["inputs"].values()
    assert one["differing"]
    assert one["differing"][0]["cells"][0]["configuration"] == "packing"
