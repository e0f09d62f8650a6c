"""The code blocks, configurations and commands of the documents work as written."""

import os
import re
from pathlib import Path

import pytest

from tests.documents.reading import DOCUMENTS, ROOT, excerpts_of, make_targets
from tests.documents.sandbox import Sandbox

#: The minimum of commands that run here per document; further commands need a cluster or files.
RUN = {
    "README.md": 9,
    "docs/benchmarks.md": 1,
    "docs/comparing.md": 2,
    "docs/fit.md": 4,
    "docs/gangs.md": 1,
    "docs/operations.md": 3,
    "docs/plugins.md": 1,
    "docs/what-if.md": 4,
}


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_document_works_as_written(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All excerpts run in order, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    # The comparisons have two small runs; separate processes would take longer to start.
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    sandbox = Sandbox(tmp_path)
    for excerpt in excerpts_of((ROOT / path).read_text(encoding="utf-8")):
        sandbox.try_out(excerpt)
    assert len(sandbox.has_run) >= RUN.get(path, 0), sandbox.has_run


@pytest.mark.parametrize("path", DOCUMENTS)
def test_make_targets_in_documents_exist(path: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    assert set(make_targets((ROOT / path).read_text(encoding="utf-8"))) <= targets


def test_all_three_ways_to_compose_plugins_are_documented() -> None:
    """The three ways to compose plugins: the configuration, a score source, an inner plugin."""
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    for words in ("**In the configuration**", "**In a plugin of your own**", "**In code**"):
        assert words in text


def test_modules_that_the_glossary_names_exist() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    cells = [row.split("|")[3] for row in text.splitlines() if row.count("|") == 4]
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert len(names) > 10
    source = ROOT / "src" / "bayplan"
    missing = {n for n in names if not (source / n).is_dir() and not (source / f"{n}.py").is_file()}
    assert not missing
