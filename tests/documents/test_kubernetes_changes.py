"""The page of what versions do differently is that of the tables."""

from tests.documents.kubernetes_changes import PAGE, page


def test_the_page_is_current() -> None:
    """`python -m tests.documents.kubernetes_changes` writes it again."""
    assert PAGE.read_text(encoding="utf-8") == page()
