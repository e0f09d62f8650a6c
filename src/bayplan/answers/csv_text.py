"""Rows as CSV. Names and messages come from a cluster, and a spreadsheet executes formulas."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

#: A cell of a spreadsheet that begins with one of these is a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A line of headings and one line per row. A text that a spreadsheet would take for a formula
    begins with an apostrophe."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    # Not a function for each cell: a run has a row for each pod.
    writer.writerows(
        [
            f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
            for value in row
        ]
        for row in (headings, *rows)
    )
    return text.getvalue()
