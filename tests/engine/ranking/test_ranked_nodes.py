"""First rejections by node, and rankings of profiles with plugins that cannot be cached."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranking.evaluation_plan import EXTREME_MOVED, TOO_MUCH_CHANGED, RankingInvalid
from bayplan.engine.ranking.node_feasibility import FEASIBLE, NO_NODE, NodeFeasibility
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.engine.ranking.row_cache import CachedFilterResults
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Code, Rejection
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node, pod
from tests.engine.cached_attempts import (
    Attempts,
    Bad,
    Company,
    MaxRank,
    NotTheFirst,
    Rank,
    Unsigned,
    labelled,
    message,
)

# ---- first rejections -----------------------------------------------------------------------


NAMES = ("n0", "n1", "n2", "n3", "n4")
FULL, TAINTED = ("full",), ("tainted", "and more")


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
        statuses = self.feasibility.statuses_among(self.nodes)
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


def test_the_code_of_a_row_follows_its_changes() -> None:
    stood = Feasibility(A={1: FULL, 3: TAINTED}, B={1: TAINTED, 2: FULL})
    for absent in (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING):
        expected = stood.outcome.codes(stood.nodes, absent).tolist()
        assert stood.feasibility.codes(stood.nodes, absent).tolist() == expected
    stood.turn_down(0, "A", "full")
    result = stood.feasibility.codes(stood.nodes, Code.PENDING).tolist()
    assert result == [Code.UNSCHEDULABLE, *expected[1:]]


def test_a_row_without_a_node_is_neither_feasible_nor_rejected() -> None:
    stood = Feasibility()
    assert len(stood.feasibility) > len(NAMES)
    assert stood.feasibility.numbers[len(NAMES)] == NO_NODE
    stood.feasibility.set(2, NO_NODE)
    assert stood.feasibility.feasible_rows().tolist() == [0, 1, 3, 4]
    assert stood.rejections() == {}


def test_a_row_counts_under_its_latest_result() -> None:
    stood = Feasibility(A={1: FULL, 2: FULL})
    stood.feasibility.set(1, FEASIBLE)
    assert stood.feasibility.feasible_count == 4
    assert stood.rejections() == {"n2": ("A", FULL)}
    stood.feasibility.set(2, FEASIBLE)
    assert stood.feasibility.feasible_count == 5
    assert stood.feasibility.outcome(stood.nodes).plugins() == set()
    stood.turn_down(0, "B", *TAINTED)
    assert stood.feasibility.feasible_count == 4
    assert stood.rejections() == {"n0": ("B", TAINTED)}


def test_too_many_distinct_rejections_invalidate_the_ranking() -> None:
    feasibility = Feasibility().feasibility
    # Two numbers are not rejections, and all numbers fit into two bytes.
    assert [feasibility.number(0, verdict) for verdict in range((1 << 16) - 2)][-1] == (1 << 16) - 1
    with pytest.raises(RankingInvalid, match=TOO_MUCH_CHANGED):
        feasibility.number(1, 0)


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


def settled(*plugins: Any, count: int = 12) -> Attempts:
    """Attempts with totals, and without recorded calls."""
    attempts = Attempts(*plugins, nodes=labelled(count))
    for _ in range(3):
        attempts.attempt()
    for plugin in attempts.framework.plugins.instances():
        if isinstance(plugin, Bad | Rank):
            attempts.evaluated_nodes(plugin.instance_name)
    return attempts


def uses_totals(attempts: Attempts) -> Cycle:
    """One more attempt, which must use cached results and equal a full evaluation."""
    cycle = attempts.attempt()
    assert cycle.ranking is not None
    assert cycle.ranked_answer is None
    assert decision(cycle) == decision(attempts.fresh())
    return cycle


# ---- which plugins are evaluated ------------------------------------------------------------


def test_an_unsigned_plugin_is_evaluated_in_full_and_all_other_results_are_reused() -> None:
    attempts = settled(Bad, Rank, Unsigned)
    unsigned = attempts.plugin("Unsigned")
    unsigned.call_count = 0
    attempts.attempt()
    assert unsigned.call_count == 12
    assert attempts.evaluated_nodes("Bad") == attempts.evaluated_nodes("Rank") == []
    uses_totals(attempts)


def test_the_message_without_feasible_nodes_equals_that_of_a_full_cycle() -> None:
    attempts = settled(Bad, NotTheFirst, Rank, Company, count=3)
    for name in ("n001", "n002"):
        attempts.label(name, bad="broken", first="no")
    cycle = attempts.attempt()
    assert cycle.ranking is not None
    text = message(cycle)
    assert text == "0/3 nodes are available: 1 comes first, 2 broken."
    assert message(attempts.fresh()) == text


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


def test_the_best_nodes_have_the_same_lines_as_in_the_table() -> None:
    ranks = {f"n{number}": {"rank": str(number % 4)} for number in range(9)}
    attempts = Attempts(Bad, Rank, MaxRank, nodes=ranks)
    for _ in range(3):
        attempts.attempt()
    for name, labels in (("n3", {"rank": "1"}), ("n6", {"bad": "broken"}), ("n4", {"rank": "3"})):
        cycle, table = attempts.attempt(), attempts.fresh().table
        ranking = cycle.ranking
        assert ranking is not None and ranking is cycle.ranked_answer and table is not None
        assert ranking.best_scores(5) == table.best_lines(5)
        ranking.validate()
        attempts.label(name, **labels)


@pytest.mark.parametrize("plugins", [(Bad, NotTheFirst, Rank, Company), (Bad, Rank, Unsigned)])
def test_the_best_nodes_have_the_same_lines_as_without_a_partial_ranking(plugins: Any) -> None:
    attempts = settled(*plugins)
    for name in ("n003", "n005"):
        cycle = attempts.attempt()
        assert cycle.ranking is not None and cycle.table is not None
        scores = cycle.table.best_lines(5)
        cycle.ranking.validate()
        fresh = attempts.fresh()
        assert fresh.table is not None and scores == fresh.table.best_lines(5)
        attempts.label(name, rank="9")


def test_a_failing_plugin_ends_the_attempt_and_is_named() -> None:
    attempts = settled(Bad, NotTheFirst, Rank, Company)
    attempts.plugin("Rank").failure = OSError("disk")
    attempts.label("n003", rank="1")
    cycle = attempts.attempt()
    assert cycle.status is not None
    assert cycle.status.code is Code.ERROR
    assert cycle.status == attempts.fresh().status


# ---- nodes that become equivalent -----------------------------------------------------------


def filled(attempts: Attempts, *names: str) -> None:
    """Add a pod to each of these nodes, assumed or reported."""
    for name in names:
        number = len(attempts.cluster.cache.pods())
        attempts.cluster.take_back()
        attempts.cluster.add(pod(f"placed-{number}", node=name, cpu="500m"))


def fitting(*plugins: Any) -> tuple[Attempts, RankedNodes]:
    """Attempts with totals that depend on amounts, after one of four nodes got a pod."""
    names = ("n1", "n2", "n3", "n4")
    attempts = Attempts(NodeResourcesFit, *plugins, nodes={name: {"rank": "1"} for name in names})
    ranking = attempts.ranking()
    filled(attempts, "n1")
    assert not ranking.follow(), "no equivalent node was evaluated"
    assert attempts.attempt().choice == attempts.fresh().choice
    return attempts, ranking


def test_rows_updated_without_evaluation_count_as_evaluated() -> None:
    attempts, _ = fitting()
    before = attempts.reuse.row_counts()["NodeResourcesFit"]
    for name in ("n2", "n3"):
        filled(attempts, name)
        attempts.attempt()
    after = attempts.reuse.row_counts()["NodeResourcesFit"]
    # Once as a Filter and once as a Score.
    assert after.evaluated - before.evaluated == 4
    assert after.cached - before.cached == 2 * 2 * (4 - 1)
