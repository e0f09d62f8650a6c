"""The choices for equal pods that are placed one after another, before any of them is counted.

A ranking follows each placement beforehand: it knows what a node becomes that takes one more pod of
the template (`NodeEquivalence`), and which counts of topology domains grow.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, final

from bayplan.engine.ranking.evaluation_plan import RankingInvalid
from bayplan.engine.ranking.node_cells import CellAnswer
from bayplan.engine.ranking.ranked_nodes import SCORED_MIN
from bayplan.framework.scoring import Choice
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.node_table import NodeTable
from bayplan.state.pods import PodShape


class MovingRanking(Protocol):
    """A ranking of some nodes that follows placements. A placement may be counted already, or be
    known beforehand."""

    @property
    def table(self) -> NodeTable: ...
    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node to choose, as `CycleAnswer.choose` returns it."""
        ...

    def move(self, row: int, number: int) -> int:
        """Follow a placement on a feasible row. ``number``: the class of the row after it. Returns
        the number of feasible nodes that are left; -1: only an evaluation tells what follows."""
        ...

    def uncount(self) -> None:
        """Do not count the answer after the last placement, because nobody uses it."""
        ...


@final
class MovingCells:
    """The cells of a ranking, which are up to date, as a `MovingRanking` for one template."""

    def __init__(self, answer: CellAnswer, shape: PodShape) -> None:
        """``answer``: the present one of the cells. ``shape``: that of the pods."""
        self._cells = cells = answer.node_cells
        self._steps = cells.steps(shape)
        self.table = cells.ranking.table
        #: The answer for the next pod.
        self.answer = answer
        #: Why the cells have to be dropped; "": they stay.
        self.problem = ""

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        return self.answer.choose(seed, pod_uid, attempt)

    def move(self, row: int, number: int) -> int:
        """Follow a placement, as `MovingRanking.move` does. No node is left, too, if the cells have
        to be dropped."""
        if self._cells.ranking.move(row, number) < 0:
            return -1
        try:
            self._cells.move(row, self._steps)
            answer = self._cells.answer()
        except RankingInvalid as problem:
            self.problem = problem.reason
            return 0
        if answer is None:
            return 0
        self.answer = answer
        return answer.feasibility.feasible_count

    def uncount(self) -> None:
        self._cells.ranking.uncount()


def choices(
    ranking: MovingRanking, seed: int, run: Iterable[QueuedPodInfo], used: str
) -> Iterator[Choice]:
    """The choices for equal pods that are placed one after another. They end before a choice that
    needs an evaluation, or that has fewer than two nodes.

    The ranking is up to date for the first pod, which has two nodes. At each choice it is up to
    date for that pod. The caller counts each pod on its node, in this order, at its choice or after
    all of them. ``used``: what each pod uses of its node.
    """
    equivalence, row_of = ranking.table.resources.equivalence, ranking.table.row_of
    numbers, row, before = dict[int, int](), -1, 0
    for queued in run:
        if row >= 0:
            number = equivalence.ways.get((before, used, True))
            feasible_count = -1 if number is None else ranking.move(row, number)
            if number is None or feasible_count < SCORED_MIN:
                if feasible_count >= 0:
                    ranking.uncount()
                return
            numbers[row] = number
        choice = ranking.choose(seed, queued.pod.uid, queued.attempts)
        row = row_of[choice.node_name]
        before = numbers.get(row) or equivalence.numbers[row]
        yield choice
