"""Rows as tables of pandas, of Polars, and without a library."""

import subprocess
import sys

import pandas
import polars
import pytest

from bayplan import frames
from bayplan.frames import Table, frame

COLUMNS = ("pod", "node")
ROWS = [{"pod": "default/a", "node": "n1"}, {"pod": "default/b", "node": None}]


def test_pandas_comes_first() -> None:
    table = frame(COLUMNS, ROWS)
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == list(COLUMNS)
    assert table.to_dict("records")[0] == ROWS[0]


def test_a_program_that_has_imported_polars_gets_its_tables() -> None:
    script = (
        "import polars\nfrom bayplan.frames import frame\nprint(type(frame(['a'], [{'a': 1}])))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=100
    ).stdout
    assert printed.strip() == f"{polars.DataFrame}"


def test_a_frame_without_rows_has_its_columns() -> None:
    assert list(frame(COLUMNS, []).columns) == list(COLUMNS)


def test_without_a_library_the_rows_come_as_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_LIBRARIES", ())
    table = frame(COLUMNS, ROWS)
    assert isinstance(table, Table)
    assert list(table) == ROWS
    assert repr(table) == "Table(pod, node: 2 rows)"
    assert list(pandas.DataFrame(list(table)).columns) == list(COLUMNS)


def test_a_notebook_shows_a_table_with_escaped_cells() -> None:
    rows = [{"pod": "<b>", "node": None}] * 61
    page = Table(COLUMNS, rows)._repr_html_()
    assert "<td>&lt;b&gt;</td><td></td>" in page
    assert page.endswith("<p>and 1 more rows</p>")
