"""AlikeNodes: for one pod's like, what became of feasible nodes that took a pod.

A node that is now like one that took a pod before has the same verdict and the same scores, as far
as these follow from its amounts: nobody need be asked. See state.alike_rows.
"""

from typing import final

from bayplan.engine.kept_answers import ALIKE_MAX
from bayplan.engine.likes import Like
from bayplan.state.node_table import NodeTable


@final
class AlikeNodes:
    """By the number of rows that are alike."""

    __slots__ = ("_alike", "_kept", "_log", "_of_number", "is_used")

    def __init__(self, table: NodeTable, like: Like, placed: int) -> None:
        """``placed``: the facets that a placed pod changes, and alike nodes are alike in."""
        self._alike = table.resources.alike
        self._log = table.log
        self._kept = [kept for kept in like.all_kept() if kept.facets & placed]
        self.is_used = like.follows_amounts(placed)
        #: (number of its standing, what the shares that changed come to)
        self._of_number: dict[int, tuple[int, int]] = {}

    def learn(self, row: int, standing: int, total: int) -> None:
        """What became of a row. ``total``: of the shares that changed; of a feasible one."""
        if self.is_used:
            if len(self._of_number) >= ALIKE_MAX:
                self._of_number.clear()
            self._of_number[self._alike.of_row(row)] = standing, total

    def find(self, row: int) -> tuple[int, int] | None:
        """The same of one that is now like this row; None: none was."""
        return self._of_number.get(self._alike.of_row(row))

    def renew(self, row: int, *, is_wanted: bool) -> bool:
        """What is kept of a row whose amounts alone changed, by the newest change. False: somebody
        must be asked. ``is_wanted``: the row is feasible."""
        number, since = self._alike.of_row(row), self._log.generation - 1
        for kept in self._kept:  # noqa: SIM110 - asked for every pod, and twice as fast
            if not kept.renew(since, row, number, is_wanted=is_wanted):
                return False
        return True

    def forget(self) -> None:
        """All rows may have changed."""
        self._of_number.clear()
