"""`make release-check`: its lines and its exit code."""

import re
import sys
from pathlib import Path

import pytest

from tests.release.checking import IMAGE_PYTHON, PYTHONS, Report, interpreter
from tests.release.packages import ROOT


def test_one_failure_makes_the_whole_check_fail(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.line(True, "a")
    report.skip("b")
    assert not report.has_failed
    report.line(False, "c")
    report.line(True, "d")
    assert report.has_failed
    assert capsys.readouterr().out == "ok      a\nabsent  b\nFAILED  c\nok      d\n"


def test_a_version_that_is_not_installed_has_no_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert interpreter("3.11") is None
    shim = tmp_path / "python3.11"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert interpreter("3.11") is None
    folder = tmp_path / "versions" / "3.11.7" / "bin"
    folder.mkdir(parents=True)
    (folder / "python3.11").symlink_to(sys.executable)
    assert interpreter("3.11") == str(folder / "python3.11")


def test_the_versions_of_python_are_those_of_the_documents_and_the_image() -> None:
    assert f"ARG PYTHON={IMAGE_PYTHON}\n" in (ROOT / "deploy" / "Dockerfile").read_text()
    assert IMAGE_PYTHON in PYTHONS
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"Language :: Python :: (3\.\d+)", project) == [*PYTHONS]
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    assert all(version in page for version in PYTHONS)
