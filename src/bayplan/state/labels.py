"""Node labels as columns: one int32 id per row for a key somebody asked for.

The column of a key is made when a selector or a topology key first needs it. A requirement is
evaluated once per distinct value of its key, as a look-up table, and then gathered; the last entry
of the table answers for rows without the label (their id is -1, which indexes it).
"""

from collections.abc import Sequence

import numpy as np

from bayplan.api.selectors import Requirement
from bayplan.state.columns import Column, Int32s, Mask, Vocabulary

ABSENT_ID = -1


class LabelColumn:
    """The values of one label key over all rows."""

    __slots__ = ("_tables", "ids", "values")

    def __init__(self, capacity: int) -> None:
        self.ids = Column(capacity, np.int32, ABSENT_ID)
        self.values: Vocabulary[str] = Vocabulary()
        self._tables: dict[Requirement, Mask] = {}

    def set(self, row: int, value: str | None) -> None:
        self.ids.values[row] = ABSENT_ID if value is None else self.values.intern(value)

    def matching(self, ids: Int32s, requirement: Requirement) -> Mask:
        """bool[ids]: whether the requirement holds for each row's value."""
        return self._table(requirement)[ids]

    def _table(self, requirement: Requirement) -> Mask:
        table = self._tables.get(requirement)
        if table is None or len(table) != len(self.values) + 1:
            answers = [requirement.matches_value(value) for value in self.values.values]
            answers.append(requirement.matches_value(None))
            table = self._tables[requirement] = np.array(answers, np.bool_)
        return table


class LabelColumns:
    """Label key → its column, made on first demand from the nodes' labels."""

    def __init__(self) -> None:
        self._columns: dict[str, LabelColumn] = {}

    def of(self, key: str, labels: Sequence[dict[str, str] | None], capacity: int) -> LabelColumn:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(capacity)
            for row, found in enumerate(labels):
                if found is not None and key in found:
                    column.set(row, found[key])
        return column

    def set_row(self, row: int, labels: dict[str, str] | None) -> None:
        for key, column in self._columns.items():
            column.set(row, labels.get(key) if labels else None)

    def grow(self, capacity: int) -> None:
        for column in self._columns.values():
            column.ids.grow(capacity)
