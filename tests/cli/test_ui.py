"""`bayplan ui`: what is refused, and the page of the installed command."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.command_line import refusal

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart"
_SCRIPT = "from bayplan.cli import main; main()"


def test_a_run_and_files_of_a_cluster_are_refused(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "manifest.json").write_text("{}")
    assert refusal("ui", tmp_path, EXAMPLE) == [
        "found 1 runs and 1 other paths, wanted one run, two runs, or files of one cluster"
    ]


def test_a_path_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "runs"
    assert refusal("ui", missing) == [
        f"{missing}: there is no such file or folder; wanted a run, or files of a cluster"
    ]


def test_an_empty_token_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    lines = refusal("ui", EXAMPLE, "--token-file", tmp_path / "token")
    assert lines == [f"--token-file {tmp_path / 'token'}: found nothing, wanted a token"]


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
    command = [sys.executable, "-c", _SCRIPT, "ui", str(EXAMPLE), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = re.search(pattern, process.stderr.readline())
        assert address is not None
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address[0].strip(), timeout=20) as response:
            assert b'<script type="module" src="static/app.js">' in response.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_simulate_shows_its_run() -> None:
    command = [sys.executable, "-c", _SCRIPT, "simulate", str(EXAMPLE), "--ui"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        address = next(filter(None, (re.search(r"http://\S+", line) for line in lines)))
        with urllib.request.urlopen(f"{address[0]}api/sources", timeout=20) as response:
            [source] = json.load(response)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert source["kind"] == "run"
