"""RankedDomain: the part of a ranking that lies in one domain.

The members of a group that must stay together are tried in one domain at a time. Where no score
depends on which nodes are feasible, a node has the same total in its domain as among all nodes. So
the ranking of all nodes answers for each domain, and is kept up to date once for all of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import numpy as np
import numpy.typing as npt

from bayplan.engine.ranking.node_feasibility import FEASIBLE, NodeFeasibility
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.framework.filtering import Feasibility, FilterOutcome, RejectedNodes
from bayplan.framework.scoring import Choice, ScoreTable
from bayplan.journal import NodeScore
from bayplan.rng import tie_index
from bayplan.state.columns import Int64s, Rows
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView
from bayplan.state.resources import RowEquivalence

#: What decides about further members in a domain: see `CountedContent.content`.
Content = frozenset[tuple[tuple[int, int], int]]

#: Sets of nodes whose rows are remembered.
_DOMAINS_MAX = 4096


def answers_for_domains(ranking: RankedNodes) -> bool:
    """Whether a node has the same answer whichever other nodes are feasible."""
    return ranking.plan.is_complete and not ranking.with_extremes


def decides(ranking: RankedNodes) -> bool:
    """Whether a ranking decides about its pods, and a placed pod changes only the amounts of its
    node."""
    return answers_for_domains(ranking) and ranking.depends_on_amounts


@final
class DomainRows:
    """The rows of nodes by the names of the nodes, in draw order, until nodes come or go."""

    def __init__(self) -> None:
        self._order: Rows | None = None
        self._rows: dict[frozenset[str], Rows] = {}
        self._positions: dict[frozenset[str], Rows] = {}

    def of(self, names: frozenset[str], table: NodeTable) -> Rows:
        """intp[names of nodes in the cluster]."""
        self._follow(table.draw_order())
        rows = self._rows.get(names)
        if rows is None:
            row_of = table.row_of
            inside = np.array([row_of[name] for name in names if name in row_of], np.intp)
            inside = inside[table.alive.values[inside]]
            rows = self._rows[names] = inside[np.argsort(table.draw_places()[inside])]
        return rows

    def positions(self, names: frozenset[str], nodes: NodeView) -> Rows:
        """intp[names of nodes in the cluster]: positions in a view of all nodes, ascending."""
        self._follow(nodes.table.draw_order())
        positions = self._positions.get(names)
        if positions is None:
            positions = self._positions[names] = nodes.positions(list(names))
        return positions

    def _follow(self, order: Rows) -> None:
        """Forget everything if nodes came or went, or if there are too many domains."""
        if order is not self._order or len(self._rows) + len(self._positions) >= _DOMAINS_MAX:
            self._order, self._rows, self._positions = order, {}, {}


@final
class DomainFeasibility(Feasibility):
    """The feasibility of the nodes of a domain. The nodes outside were not evaluated."""

    __slots__ = ("_feasible_count", "_numbers", "_rejected", "_rows", "_whole", "is_feasible")

    def __init__(self, whole: NodeFeasibility, rows: Rows) -> None:
        self._whole = whole
        self._rows = rows
        self._numbers = whole.of_rows(rows)
        #: bool[rows]
        self.is_feasible: npt.NDArray[np.bool_] = self._numbers == FEASIBLE
        self._feasible_count = int(np.count_nonzero(self.is_feasible))
        self._rejected: Sequence[RejectedNodes] | None = None

    @property
    def feasible_count(self) -> int:
        return self._feasible_count

    def rejected(self) -> Sequence[RejectedNodes]:
        if self._feasible_count == len(self._rows):
            return ()
        if self._rejected is None:
            self._rejected = list(self._whole.rejections(Counter(self._numbers.tolist())))
        return self._rejected

    def reject(self, place: int, number: int) -> None:
        """Note that the feasible node at a place of the domain now has this rejection."""
        self._numbers[place], self.is_feasible[place] = number, False
        self._feasible_count -= 1
        self._rejected = None

    def outcome(self, nodes: NodeView) -> FilterOutcome:
        """The feasibility as arrays over the nodes of the domain. ``nodes``: these nodes, or
        more."""
        return self._whole.outcome(self._inside(nodes))

    def _inside(self, nodes: NodeView) -> NodeView:
        return nodes.take_rows(lambda: np.sort(self._rows))


#: The total of a node that is not feasible; its negative is an int64, too.
_NO_TOTAL: Final = np.iinfo(np.int64).min + 1


@final
class RankedDomain:
    """The nodes of one domain, as a complete ranking has them. After `move` they are as the ranking
    will have them when equal pods are placed on nodes of the domain."""

    __slots__ = (
        "_classes",
        "_rows",
        "_tied",
        "_totals",
        "evaluated_count",
        "feasibility",
        "table",
        "whole",
    )

    def __init__(self, whole: RankedNodes, rows: Rows) -> None:
        """``whole``: a ranking that `answers_for_domains`. ``rows``: those of the domain, in draw
        order."""
        self.whole = whole
        self.table = whole.table
        self._rows = rows
        #: By place in the domain; made when first read.
        self._totals: Int64s | None = None
        self._classes: Int64s | None = None
        #: The places of the nodes with the highest total, ascending.
        self._tied: Rows | None = None
        self.feasibility = DomainFeasibility(whole.feasibility, rows)
        self.evaluated_count = len(rows)

    @property
    def feasible_count(self) -> int:
        return self.feasibility.feasible_count

    def feasible_nodes(self, nodes: NodeView) -> NodeView:
        """The feasible nodes among ``nodes``, which contains all of them."""
        return nodes.take_rows(lambda: np.sort(self._rows[self.feasibility.is_feasible]))

    def only(self) -> Choice:
        """The one feasible node."""
        return Choice(self._name(int(self.feasibility.is_feasible.argmax())))

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node with the highest total; among equal ones, the one that is drawn."""
        places = self._tied_places()
        count = len(places)
        index = tie_index(seed, pod_uid, attempt, count) if count > 1 else 0
        return Choice(self._name(places.item(index)), count, index)

    def best_total(self) -> int:
        """The highest total. There must be a feasible node, and all must have totals."""
        return self._all_totals().item(self._tied_places().item(0))

    def best_scores(self, count_max: int) -> tuple[NodeScore, ...]:
        """The scores of the best nodes, the best first, and equal ones in draw order."""
        places = self._tied_places()
        if len(places) < count_max:
            order = np.argsort(-self._all_totals(), kind="stable")
            places = order[: min(count_max, self.feasible_count)]
        return tuple(self.whole.lines(self._rows[places[:count_max]]))

    def score_table(self, nodes: NodeView) -> ScoreTable:
        """``nodes``: the feasible ones."""
        return self.whole.score_table(nodes)

    def is_repeatable(self, equivalence: RowEquivalence) -> bool:
        """Whether the nodes that tie are equivalent for such pods, so that the same nodes remain
        whichever one is drawn."""
        if not self.feasible_count:
            return True
        classes = self._all_classes()[self._tied_places()]
        return bool((classes == classes[0]).all())

    def move(self, row: int, number: int) -> int:
        """Do what `RankedNodes.move` does for the domain. The ranking of all nodes stays as it
        is."""
        after = self.whole.after(row, number)
        if after is None:
            return -1
        verdict, total = after
        place = int((self._rows == row).argmax())
        self._all_classes()[place] = number
        if verdict != FEASIBLE:
            total = _NO_TOTAL
            self.feasibility.reject(place, verdict)
        self._all_totals()[place] = total
        self._tied = None
        return self.feasible_count

    def uncount(self) -> None:
        """A domain counts no answers."""

    def _name(self, place: int) -> str:
        return self.table.names[self._rows.item(place)]

    def _tied_places(self) -> Rows:
        if self._tied is None:
            totals = self._all_totals()
            self._tied = np.flatnonzero(totals == totals.item(totals.argmax()))
        return self._tied

    def _all_totals(self) -> Int64s:
        if self._totals is None:
            totals = self.whole.totals_of(self._rows)
            self._totals = np.where(self.feasibility.is_feasible, totals, _NO_TOTAL)
        return self._totals

    def _all_classes(self) -> Int64s:
        if self._classes is None:
            self._classes = self.table.resources.equivalence.of_rows(self._rows)
        return self._classes


@final
class CountedContent:
    """How many feasible nodes of each kind of equivalent nodes a domain has.

    In domains of equal content equal members get equal totals, as long as each draw is among
    equivalent nodes. A change of some rows is counted without the others.
    """

    __slots__ = ("_counts", "_kind_of_row", "rows")

    def __init__(self, whole: RankedNodes, rows: Rows) -> None:
        """``whole``: a ranking that is up to date and `answers_for_domains`. ``rows``: those of the
        domain."""
        self.rows = rows
        feasible_rows = rows[whole.feasibility.of_rows(rows) == FEASIBLE]
        kinds = _pairs(whole.places_left(feasible_rows))
        #: The kind of each feasible row. A rejected row is not in it.
        self._kind_of_row = dict(zip(feasible_rows.tolist(), kinds, strict=True))
        self._counts = Counter(self._kind_of_row.values())

    def content(self) -> Content:
        return frozenset(self._counts.items())

    def renew(self, whole: RankedNodes, changed_rows: Iterable[int]) -> None:
        """Count these rows of the domain again. ``whole``: the same ranking, up to date."""
        counts, kind_of_row = self._counts, self._kind_of_row
        for row in changed_rows:
            before = kind_of_row.pop(row, None)
            if before is not None:
                counts[before] -= 1
                if not counts[before]:
                    del counts[before]
            if whole.feasibility.numbers[row] == FEASIBLE:
                (kind,) = _pairs(whole.places_left(np.array([row], np.intp)))
                kind_of_row[row] = kind
                counts[kind] += 1


def _pairs(parts: tuple[Int64s, Int64s]) -> Iterator[tuple[int, int]]:
    """The pairs of two arrays, as plain numbers."""
    return zip(*(part.tolist() for part in parts), strict=True)
