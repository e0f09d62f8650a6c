"""NodeEquivalence: the results of equivalent nodes, so that no plugin is called for the next one.

A placed pod changes the amounts of its node, and on a cluster of few machine types the node then
equals another node that took such a pod before. Where results depend on amounts alone, the earlier
results hold for it. `RowEquivalence` of the node table numbers the classes of equivalent nodes.
"""

from typing import Final, final

from bayplan.engine.ranking.evaluation_plan import EvaluationPlan
from bayplan.engine.ranking.node_feasibility import FEASIBLE
from bayplan.engine.ranking.row_cache import (
    CACHED,
    EQUIVALENT_MAX,
    UNKNOWN,
    CachedScores,
)
from bayplan.state.change_log import Facet
from bayplan.state.node_table import NodeTable

#: What a placed pod changes of its node.
PLACED_FACETS: Final = int(Facet.REQUESTED | Facet.PODS)
#: What a placed pod with host ports changes of its node. Equivalent nodes agree in these facets.
TAKEN_FACETS: Final = PLACED_FACETS | int(Facet.PORTS)


@final
class NodeEquivalence:
    """The verdicts and scores of nodes that took a pod, by class of equivalent nodes."""

    __slots__ = ("_caches", "_classes", "_of_class", "is_used")

    def __init__(self, table: NodeTable, plan: EvaluationPlan) -> None:
        self._classes = table.resources.equivalence
        self._caches = [cache for cache in plan.row_caches() if cache.facets & TAKEN_FACETS]
        self.is_used = plan.follows_amounts(TAKEN_FACETS)
        #: (feasibility number, sum of the scores that a placed pod changes)
        self._of_class: dict[int, tuple[int, int]] = {}

    def learn(self, row: int, number: int, placed_total: int) -> None:
        """``placed_total``: of the scores that a placed pod changes; 0 for a rejected row."""
        if self.is_used:
            if len(self._of_class) >= EQUIVALENT_MAX:
                self._of_class.clear()
            self._of_class[self._classes.numbers[row]] = number, placed_total

    def find(self, row: int) -> tuple[int, int] | None:
        """What `learn` stored for an equivalent node; None: there is no such node."""
        return self._of_class.get(self._classes.numbers[row])

    def of_class(self, number: int) -> tuple[int, int] | None:
        """What `learn` stored for a class; None: nothing."""
        return self._of_class.get(number)

    def skip(self, since: int, generation: int) -> None:
        """The cached results of the first generation are those of the second, too."""
        for cache in self._caches:
            if cache.generation == since:
                cache.generation = generation

    def renew(
        self, row: int, equivalent: int, generation: int, *, may_be_rejected: bool = True
    ) -> tuple[int, int] | None:
        """Renew the cached results of a row whose newest change is one of amounts alone.

        ``equivalent``: the class of the row after the change. ``generation``: that of the change.
        Returns what `find` returns; None if a plugin has to be called."""
        result = self._of_class.get(equivalent)
        if result is None:
            return None
        is_feasible = result[0] == FEASIBLE
        if not (is_feasible or may_be_rejected):
            return None
        for cache in self._caches:
            if cache.generation != generation - 1 or cache.of_equivalent is None:
                return None
            cached = cache.of_equivalent.get(equivalent)
            if cached is None:
                if is_feasible:
                    return None
                # The row is rejected, so nobody needs the result.
                cache.marks[row] = UNKNOWN
            elif type(cache) is CachedScores:
                if cache.scores is None:
                    cache.put(row, cached)
                else:
                    # This does what `put` does, without a call: a result of an equivalent row fits
                    # into the array.
                    cache.scores[row] = cached
                    cache.marks[row] = CACHED
            else:
                cache.marks[row] = cached
            cache.generation = generation
        return result
