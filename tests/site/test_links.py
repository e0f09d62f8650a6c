"""Links of the repository become links of the site, or names of files."""

import pytest

from tests.site.hooks import ROOT
from tests.site.links import OUTSIDE, for_site, page_of


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("gangs.md", "[a](operations.md#x)", "[a](operations.md#x)"),
        ("versions.md", "[a](../CHANGELOG.md)", "[a](project/changelog.md)"),
        ("gangs.md", "[a](../examples/starving_gang)", "[a](examples/starving-gang.md)"),
        ("gangs.md", "[a](../deploy/examples/gang.yaml)", "a (`deploy/examples/gang.yaml`)"),
        ("gangs.md", "[deploy/crds](../deploy/crds)", "deploy/crds"),
        ("how-to/a.md", "[a](../gangs.md)", "[a](../gangs.md)"),
        ("project/security.md", "[a](docs/operations.md#b)", "[a](../operations.md#b)"),
        ("examples/gangs.md", "[a](../../docs/gangs.md)", "[a](../gangs.md)"),
        ("reference/chart.md", "[a](ci/x.yaml)", "a (`deploy/chart/ci/x.yaml`)"),
        ("a.md", "specs [Serial] [a](b.md)", "specs \\[Serial\\] [a](b.md)"),
        ("a.md", "[a](https://example.com/x) [b](#here)", "[a](https://example.com/x) [b](#here)"),
    ],
)
def test_a_link_leads_to_the_page_of_the_same_document(page: str, text: str, expected: str) -> None:
    assert for_site(text, page) == expected


def test_code_is_unchanged() -> None:
    text = "`[a](../b)`\n\n    [a](../b)\n\n```yaml\n[a](../b)\n```\n"
    assert for_site(text, "x.md") == text


def test_every_document_outside_exists_and_has_a_page_of_its_own() -> None:
    assert all((ROOT / path).is_file() for path in OUTSIDE)
    assert len(set(OUTSIDE.values())) == len(OUTSIDE)
    assert page_of("docs/decisions") is None
