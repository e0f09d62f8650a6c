"""First rejections by node, and rankings of profiles with plugins that cannot be cached."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranking.evaluation_plan import EXTREME_MOVED
from bayplan.engine.ranking.node_feasibility import NO_NODE, NodeFeasibility
from bayplan.engine.ranking.row_cache import CachedFilterResults
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Code, Rejection
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node
from tests.engine.cached_attempts import (
    Attempts,
    Bad,
    MaxRank,
    NotTheFirst,
)

# ---- first rejections -----------------------------------------------------------------------


NAMES = ("n0", "n1", "n2", "n3", "n4")


#: Every result is cached.
NOT_NEEDED: Any = None


class Feasibility:
    """Five nodes, the results of the plugins A and B, and the feasibility computed from them."""

    def __init__(self, **message: Mapping[int, tuple[str, ...]]) -> None:
        """``message``: plugin → row → reasons. Reasons of B do not count where A rejects."""
        self.cluster = SampleCluster().add(*(node(name) for name in NAMES))
        table = self.cluster.cache.table
        self.nodes = self.cluster.lend().nodes
        self.outcome = FilterOutcome(self.nodes, np.ones(len(NAMES), np.bool_))
        self.cached_results = {name: CachedFilterResults(table, Facet.LABELS) for name in "AB"}
        for name, value in self.cached_results.items():
            feasible = self.outcome.feasible
            self.outcome.add(name, [_rejection(*each) for each in message.get(name, {}).items()])
            for row in np.flatnonzero(feasible).tolist():
                reasons = message.get(name, {}).get(row)
                value.learn_one(row, ((Code.UNSCHEDULABLE, reasons),) if reasons else ())
        self.feasibility = NodeFeasibility(list(self.cached_results.items()), table.capacity)
        self.feasibility.read(self.nodes.table.rows, NOT_NEEDED)

    def rejections(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Node → (plugin, reasons)."""
        statuses = self.feasibility.outcome(self.nodes).statuses()
        return {name: (status.plugin, status.reasons) for name, status in statuses.items()}

    def turn_down(self, row: int, by: str, *reasons: str) -> int:
        """Reject one row. Returns the rejection's number."""
        results = self.cached_results[by]
        verdict = results.learn_one(row, ((Code.UNSCHEDULABLE, reasons),))
        number = self.feasibility.number(list(self.cached_results).index(by), verdict)
        self.feasibility.set(row, number)
        return number


def _rejection(row: int, reasons: tuple[str, ...]) -> Rejection:
    return Rejection(np.array([row], np.intp), Code.UNSCHEDULABLE, reasons)


def test_a_row_without_a_node_is_neither_feasible_nor_rejected() -> None:
    stood = Feasibility()
    assert len(stood.feasibility) > len(NAMES)
    assert stood.feasibility.numbers[len(NAMES)] == NO_NODE
    stood.feasibility.set(2, NO_NODE)
    assert stood.feasibility.feasible_rows().tolist() == [0, 1, 3, 4]
    assert stood.rejections() == {}


# ---- rankings beside plugins that are not cached --------------------------------------------


def decision(cycle: Cycle) -> dict[str, Any]:
    table, outcome = cycle.score_table(), cycle.filter_outcome()
    assert outcome is not None
    return {
        "choice": cycle.choice,
        "feasible": outcome.feasible.tolist(),
        "rejected": outcome.reason_counts_by_plugin(),
        "columns": [] if table is None else [
            (each.name, each.raw.tolist(), each.normalized.tolist()) for each in table.columns
        ],
        "totals": [] if table is None else table.totals.tolist(),
    }  # fmt: skip


def uses_totals(attempts: Attempts) -> Cycle:
    """One more attempt, which must use cached results and equal a full evaluation."""
    cycle = attempts.attempt()
    assert cycle.ranking is not None
    assert cycle.ranked_answer is None
    assert decision(cycle) == decision(attempts.fresh())
    return cycle


# ---- which results are cached ---------------------------------------------------------------


def test_a_score_shared_by_all_nodes_is_cached_until_scores_differ() -> None:
    attempts = Attempts(Bad, NotTheFirst, MaxRank, nodes={f"n{n}": {"rank": "2"} for n in range(5)})
    for _ in range(3):
        attempts.attempt()
    cycle = uses_totals(attempts)
    assert cycle.ranking is not None
    assert cycle.ranking.plan.called_scores == []
    attempts.label("n4", rank="1")
    cycle = attempts.attempt()
    assert cycle.ranking is None
    assert attempts.reuse.flushed_counts[EXTREME_MOVED] == 1
    assert decision(cycle) == decision(attempts.fresh())
    uses_totals(attempts)
