"""Answers for a reader as plain text and as HTML."""

from rich.text import Text

from bayplan.answers.pages import PAGE_WIDTH, as_html, as_text
from bayplan.answers.table import Table


def test_a_long_line_is_not_wrapped_and_has_no_blanks_at_its_end() -> None:
    long_line = "x" * 2 * PAGE_WIDTH
    assert as_text([Text(long_line + "  "), Text("second")]) == f"{long_line}\nsecond"


def test_control_characters_are_shown_as_escapes() -> None:
    table = Table("name of the pod")
    table.add_row("web\x1b[2J")
    text = as_text([Text("a\nb"), table])
    assert "\x1b" not in text
    assert "a\\nb" in text
    assert "web\\x1b[2J" in text


def test_markup_of_a_name_has_no_effect() -> None:
    assert as_text(["[bold]web[/bold] :smile:"]) == "[bold]web[/bold] :smile:"


def test_html_escapes_what_has_a_meaning_in_it() -> None:
    page = as_html([Text("<script>alert(1)</script>", style="bold")])
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.startswith("<pre")
