"""`make site`: strict, without other hosts, and searchable."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.site.hooks import ROOT

#: What a page loads by itself: scripts, styles, images, fonts.
_LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]*\bsrc=["']?(https?:[^"'> ]+)"""
    r"""|<link[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon)["']?[^>]*"""
    r"""\bhref=["']?(https?:[^"'> ]+)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.timeout(600)
def test_every_document_is_a_page(site: Path) -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        page = path.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / page).is_file(), page
    for page in ("project/security", "reference/chart", "reference/plugin-api"):
        assert (site / f"{page}.html").is_file()


@pytest.mark.timeout(600)
def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 40
    for page in pages:
        assert not _LOADED.findall(page.read_text(encoding="utf-8")), page


@pytest.mark.timeout(600)
def test_the_search_works_without_a_server(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    entries = json.loads(index.removeprefix("var __index = "))["docs"]
    assert any("Coscheduling" in entry["text"] for entry in entries)
    assert any(entry["location"].startswith("reference/plugin-api.html#") for entry in entries)
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'src="assets/iframe-worker.js"' in page
    assert (site / "assets" / "iframe-worker.js").is_file()
