"""docs/conformance.md lists the specs that `make test-e2e` runs."""

from pathlib import Path

from tests.e2e.binaries import KUBERNETES_VERSION
from tests.e2e.suites import SUITES

PAGE = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()


def test_the_page_lists_the_specs_of_each_suite() -> None:
    sections = PAGE.split("\n## ")[1:]
    listed = {
        section.partition("\n")[0]: [
            line.removeprefix("- ") for line in section.splitlines() if line.startswith("- ")
        ]
        for section in sections
    }
    for suite in SUITES:
        assert listed[suite.title] == suite.specs()
        assert f"\n## {suite.title}\n\n{len(suite.specs())} specs." in PAGE


def test_the_page_names_the_version_of_the_specs() -> None:
    assert f"Kubernetes {KUBERNETES_VERSION}" in PAGE
