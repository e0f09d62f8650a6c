"""mkdocs.yml names pages that exist, each of them once."""

import re

from tests.site.hooks import DOCS, ROOT
from tests.site.links import OUTSIDE
from tests.site.reference import pages


def test_the_navigation_names_each_page_once_and_no_other_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    names = re.findall(r"- (\S+\.md)$", text, re.MULTILINE)
    assert sorted(names) == sorted(set(names))
    in_docs = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert set(names) <= in_docs | {*OUTSIDE.values()} | pages().keys()
    assert {*OUTSIDE.values()} | pages().keys() <= set(names)
