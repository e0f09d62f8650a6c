"""The version has one place; the changelog is made from the fragments."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from bayplan import __version__
from tests.release.packages import ROOT

KINDS = {"added", "changed", "fixed", "removed"}
FRAGMENTS = sorted(path for path in (ROOT / "changes").glob("*.md") if path.name != "README.md")


def test_the_installed_version_is_that_of_the_module() -> None:
    assert version("bayplan") == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", __version__)


@pytest.mark.parametrize("field", ["version", "appVersion"])
def test_the_chart_has_the_version_of_the_program(field: str) -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart[field] == __version__


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_has_a_kind_and_a_text(path: Path) -> None:
    _slug, kind, _suffix = path.name.split(".")
    assert kind in KINDS
    assert path.read_text(encoding="utf-8").strip()


def test_the_changelog_has_every_fragment_under_its_kind_with_links_from_the_root() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--date", "2026-01-01"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    text = " ".join(completed.stdout.split())
    assert f"## Bayplan {__version__} (2026-01-01) ### Added - " in text
    assert "](../" not in text
    for path in FRAGMENTS:
        content = path.read_text(encoding="utf-8").replace("](../", "](")
        assert " ".join(content.split()) in text, path.name
