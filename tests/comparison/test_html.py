"""The report as one page."""

from html.parser import HTMLParser

from bayplan.comparison.html import page
from bayplan.comparison.table import SPEED, Comparison
from tests.comparison.kit import run

FOUND = Comparison([run(name, seed, placed=seed + 1.5) for name in "ab" for seed in (0, 2)], "a")


class Cells(HTMLParser):
    """Rows of cells of all tables, and tags that are open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_its_tables_have_means_differences_and_runs() -> None:
    rows = Cells(page(FOUND, "Study", {})).rows
    assert ["placed", "2.50 ± 1.41", "2.50 ± 1.41"] in rows
    assert ["placed", "0 [0, 0]"] in rows
    assert ["a", "2", "3.50"] in rows
    assert any(row[0] == SPEED for row in rows)


def test_every_tag_is_closed_and_all_rows_of_a_table_are_equally_long() -> None:
    found = Cells(page(FOUND, "Study & more", {"p": "<svg/>"}))
    assert found.open == []
    assert {len(row) for row in found.rows} == {2, 3}
