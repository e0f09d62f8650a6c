"""CycleAnswer: what the steps filter and score of one cycle came to, in whichever form.

Four forms answer a cycle, and its readers do not ask which one it is:

    ArrayAnswer   the plugins were evaluated for all candidates, as arrays (below)
    RankedNodes   the cached ranking of all nodes (`engine/ranking/ranked_nodes.py`)
    RankedDomain  the part of such a ranking that lies in one domain (`engine/ranked_domain.py`)
    CellAnswer    a ranking of cells of equal nodes (`engine/ranking/node_cells.py`)

The forms agree: the same cycle has the same feasible nodes, the same choice, the same scores and
the same reasons in each of them. The state machine of reuse compares them after each step.
"""

from typing import Protocol, final

from bayplan.framework.filtering import Feasibility, FilterOutcome
from bayplan.framework.scoring import Choice, ScoreTable, choose
from bayplan.journal import NodeScore
from bayplan.state.nodes import NodeView
from bayplan.state.resources import RowEquivalence


class CycleAnswer(Protocol):
    """The feasible nodes of one cycle, their scores and the reasons of the other nodes."""

    @property
    def feasibility(self) -> Feasibility:
        """Which nodes are feasible, and why the others are not."""
        ...

    @property
    def feasible_count(self) -> int: ...

    @property
    def evaluated_count(self) -> int:
        """The number of nodes that Filter decided about; the others are absent."""
        ...

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node with the highest total; among equal ones, the one that is drawn. At least two
        nodes must be feasible."""
        ...

    def best_total(self) -> int:
        """The highest total. At least two nodes must be feasible."""
        ...

    def best_scores(self, count_max: int) -> tuple[NodeScore, ...]:
        """The scores of the best nodes, the best first, and equal ones in draw order. The nodes
        must have scores."""
        ...

    def feasible_nodes(self, nodes: NodeView) -> NodeView:
        """The feasible nodes among ``nodes``, which contains all of them."""
        ...

    def score_table(self, nodes: NodeView) -> ScoreTable:
        """All scores as arrays. ``nodes``: the feasible ones, which have scores."""
        ...

    def is_repeatable(self, equivalence: RowEquivalence) -> bool:
        """Whether each set of nodes that is equivalent to the evaluated ones gives an equal pod an
        equivalent node, whichever node is drawn. The pod is one for which placed pods change only
        the amounts of their nodes: of nodes that tie, the other scores are equal, too.
        ``equivalence``: of the rows of the node table."""
        ...


@final
class ArrayAnswer:
    """The outcome of Filter and the table of scores, as the plugins returned them."""

    __slots__ = ("feasibility", "table")

    def __init__(self, outcome: FilterOutcome, table: ScoreTable | None) -> None:
        """``table``: None where no plugin scored."""
        self.feasibility = outcome
        self.table = table

    @property
    def feasible_count(self) -> int:
        return self.feasibility.feasible_count

    @property
    def evaluated_count(self) -> int:
        return len(self.feasibility.nodes)

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        return choose(self._scored(), seed, pod_uid, attempt)

    def best_total(self) -> int:
        return int(self._scored().totals.max())

    def best_scores(self, count_max: int) -> tuple[NodeScore, ...]:
        return self._scored().best_lines(count_max)

    def feasible_nodes(self, nodes: NodeView) -> NodeView:
        return self.feasibility.nodes.take(self.feasibility.feasible)

    def score_table(self, nodes: NodeView) -> ScoreTable:
        return self._scored()

    def is_repeatable(self, equivalence: RowEquivalence) -> bool:
        if self.table is None:
            return self.feasible_count <= 1
        rows = self.table.nodes.table.rows[self.table.best_positions()]
        return equivalence.has_one_number(rows)

    def _scored(self) -> ScoreTable:
        assert self.table is not None, "no plugin scored"
        return self.table
