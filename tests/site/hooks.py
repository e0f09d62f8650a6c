"""Functions that MkDocs calls while it builds the site (mkdocs.yml, `hooks`)."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from tests.site.links import OUTSIDE, for_site
from tests.site.reference import pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: The section of the navigation that takes documents which mkdocs.yml does not name.
_LAST = "Explanation"
#: The search in pages that are opened as files, without a server and without another host.
_SHIM = "assets/iframe-worker.js"


def on_config(config: Any) -> Any:
    """Complete the navigation."""
    text = str(config.nav)
    sections: dict[str, list[str]] = {}
    for entry in config.nav:
        sections |= entry if isinstance(entry, dict) else {}
    sections[_LAST] += [name for name in _documents("*.md") if f"'{name}'" not in text]
    config.nav.append({"Decisions": _documents("decisions/*.md")})
    return config


def _documents(pattern: str) -> list[str]:
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob(pattern))


def on_files(files: Files, config: Any) -> Files:
    """Add the reference pages and the documents outside of `docs`."""
    contents = pages() | {page: _text(path) for path, page in OUTSIDE.items()}
    contents[_SHIM] = _text("tests/site/iframe-worker.js")
    for page, content in contents.items():
        files.append(File.generated(config, page, content=content))
    return files


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return for_site(markdown, page.file.src_uri)
