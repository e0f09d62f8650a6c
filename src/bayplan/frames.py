"""Rows as a table of pandas or Polars, where one of them is installed.

Neither library is a dependency. A program that has imported one of them gets its tables. Otherwise
pandas comes first, then Polars, and without both the rows come as a `Table`.
"""

import html
import importlib.util
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias, final, overload

from bayplan.lazy_loader import load

Row: TypeAlias = dict[str, Any]

#: pandas.DataFrame, polars.DataFrame or `Table`. The libraries are optional, so this type cannot
#: name their classes.
DataFrame: TypeAlias = Any

_LIBRARIES = ("pandas", "polars")
#: The most rows that a notebook shows.
_SHOWN_ROWS_MAX = 60


@final
class Table(Sequence[Row]):
    """Rows with equal columns. pandas, Polars and Arrow accept it as a sequence of rows."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self.columns = list(columns)
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Table({', '.join(self.columns)}: {len(self)} rows)"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        lines = [
            "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in self.columns)
            for row in self._rows[:_SHOWN_ROWS_MAX]
        ]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        further = len(self) - len(lines)
        more = f"<p>and {further:,} more rows</p>" if further else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def frame(columns: Sequence[str], rows: Sequence[Row]) -> DataFrame:
    """The rows as a DataFrame. ``columns``: the keys of every row, in order."""
    library = _library()
    if library is None:
        return Table(columns, rows)
    by_column = {name: [row[name] for row in rows] for name in columns}
    return load(f"{library}:DataFrame")(by_column)


def _library() -> str | None:
    imported = [name for name in _LIBRARIES if name in sys.modules]
    installed = (name for name in _LIBRARIES if importlib.util.find_spec(name) is not None)
    return next(iter(imported), None) or next(installed, None)
