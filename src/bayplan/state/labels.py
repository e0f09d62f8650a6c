"""Node labels as columns: one int32 id per row for each key in use.

The column of a key is made when a selector or a topology key first needs it. Most conditions are
comparisons of ids; one that reads the values themselves (Gt, Lt) is evaluated once per distinct
value into a look-up table. Rows without the label have the id -1, which indexes the table's last
entry.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bayplan.api.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NOT_IN,
    Requirement,
)
from bayplan.state.columns import Column, Int32s, Mask, Vocabulary

ABSENT_ID = -1

#: Up to this many values, comparing with each id is faster than a look-up table.
_COMPARED_VALUES_MAX = 3
#: Tables per key, so that pods with ever new bounds do not use ever more memory.
_TABLES_MAX = 64


class LabelColumn:
    """The values of one label key over all rows."""

    __slots__ = ("_tables", "holder_count", "ids", "values")

    def __init__(self, capacity: int) -> None:
        self.ids = Column(capacity, np.int32, ABSENT_ID)
        self.values: Vocabulary[str] = Vocabulary()
        #: The number of rows with the label.
        self.holder_count = 0
        self._tables: dict[Requirement, Mask] = {}

    def set(self, row: int, value: str | None) -> None:
        before, ids = self.ids.values.item(row), self.ids.values
        ids[row] = ABSENT_ID if value is None else self.values.intern(value)
        self.holder_count += (value is not None) - (before != ABSENT_ID)

    def fill(self, value_by_row: Mapping[int, str]) -> None:
        """Set rows of a new column at once."""
        ids = self.values.intern_all(value_by_row.values())
        self.ids.values[[*value_by_row]] = ids
        self.holder_count = len(ids)

    def matching(self, ids: Int32s, requirement: Requirement) -> Mask:
        """bool[ids]: whether the requirement holds for each row's value."""
        operator = requirement.operator
        if operator == IN:
            return self._among(ids, requirement.values)
        if operator == NOT_IN:
            return ~self._among(ids, requirement.values)
        if operator == EXISTS:
            return ids != ABSENT_ID
        if operator == DOES_NOT_EXIST:
            return ids == ABSENT_ID
        return self._table(requirement).take(ids)

    def _among(self, ids: Int32s, values: Sequence[str]) -> Mask:
        """bool[ids]: whether the value is one of these; false without the label."""
        value_ids = [each for value in values if (each := self.values.find(value)) is not None]
        if len(value_ids) > _COMPARED_VALUES_MAX:
            table = np.zeros(len(self.values) + 1, np.bool_)
            table[value_ids] = True
            return table.take(ids)
        if not value_ids:
            return np.zeros(len(ids), np.bool_)
        among = ids == value_ids[0]
        for value_id in value_ids[1:]:
            among |= ids == value_id
        return among

    def _table(self, requirement: Requirement) -> Mask:
        table = self._tables.get(requirement)
        if table is None or len(table) != len(self.values) + 1:
            if len(self._tables) >= _TABLES_MAX:
                self._tables.clear()
            answers = [requirement.matches_value(value) for value in self.values.values]
            answers.append(requirement.matches_value(None))
            table = self._tables[requirement] = np.array(answers, np.bool_)
        return table


class LabelColumns:
    """Label key → its column, made at first use from the nodes' labels."""

    def __init__(self) -> None:
        #: The columns made so far.
        self.columns: dict[str, LabelColumn] = {}

    def of(self, key: str, labels: Sequence[dict[str, str] | None], capacity: int) -> LabelColumn:
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = LabelColumn(capacity)
            holders = ((row, each) for row, each in enumerate(labels) if each and key in each)
            column.fill({row: each[key] for row, each in holders})
        return column

    def set_row(self, row: int, labels: dict[str, str] | None) -> None:
        for key, column in self.columns.items():
            column.set(row, labels.get(key) if labels else None)

    def grow(self, capacity: int) -> None:
        for column in self.columns.values():
            column.ids.grow(capacity)
