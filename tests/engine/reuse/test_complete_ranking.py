"""A ranking that is updated row by row equals a full evaluation of all plugins."""

from typing import Any

import pytest

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranking.evaluation_plan import (
    EXTREME_MOVED,
    NODES_CAME_OR_WENT,
    PLUGIN_FAILED,
    TOO_MUCH_CHANGED,
    RankingInvalid,
)
from bayplan.engine.ranking.ranked_nodes import CHANGES_MAX, RankedNodes
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Caching
from bayplan.framework.scoring import Choice
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo
from bayplan.testing import pod
from tests.engine.cached_attempts import SEED, Attempts, Bad, MaxRank, Rank, Worse, chosen, message

THREE: dict[str, dict[str, str]] = {"n1": {"rank": "3"}, "n2": {"rank": "7"}, "n3": {"rank": "5"}}


def ranked(*plugins: Any, nodes: Any = None) -> tuple[Attempts, RankedNodes]:
    """Attempts with a ranking, and without recorded calls."""
    attempts = Attempts(*(plugins or (Bad, Rank)), nodes=nodes or THREE)
    ranking = attempts.ranking()
    for plugin in attempts.framework.plugins.instances():
        if isinstance(plugin, Bad | Rank):
            attempts.evaluated_nodes(plugin.instance_name)
    return attempts, ranking


def current(attempts: Attempts, ranking: RankedNodes) -> RankedNodes:
    """The ranking as an attempt brings it up to date; no plugin here has a PreScore."""
    asking = attempts.evaluator()
    ranking.update(asking)
    if ranking.feasible_count > 1:
        ranking.score(asking)
    return ranking


def best(attempts: Attempts, ranking: RankedNodes) -> str:
    return current(attempts, ranking).choose(SEED, attempts.pod.uid, 1).node_name


# ---- answers of a ranking -------------------------------------------------------------------


def test_the_best_node_is_taken_without_evaluating_a_plugin() -> None:
    attempts, ranking = ranked()
    assert best(attempts, ranking) == "n2"
    assert attempts.evaluated_nodes("Bad") == attempts.evaluated_nodes("Rank") == []


def test_only_a_changed_node_is_evaluated_again_and_moves() -> None:
    attempts, ranking = ranked()
    attempts.label("n1", rank="9")
    assert best(attempts, ranking) == "n1"
    assert (attempts.evaluated_nodes("Bad"), attempts.evaluated_nodes("Rank")) == (["n1"], ["n1"])
    attempts.label("n1", rank="1")
    assert best(attempts, ranking) == "n2"


def test_a_rejected_node_leaves_the_ranking_and_may_come_back() -> None:
    attempts, ranking = ranked()
    attempts.label("n2", rank="7", bad="broken")
    assert best(attempts, ranking) == "n3"
    assert ranking.feasible_count == 2
    attempts.label("n2", rank="7")
    assert best(attempts, ranking) == "n2"
    assert ranking.feasible_count == 3


def test_a_change_that_no_plugin_reads_evaluates_nothing() -> None:
    attempts, ranking = ranked()
    attempts.taint("n2")
    assert best(attempts, ranking) == "n2"
    assert attempts.evaluated_nodes("Bad") == attempts.evaluated_nodes("Rank") == []


def test_a_node_that_stays_rejected_is_not_scored() -> None:
    attempts, ranking = ranked(nodes={**THREE, "n4": {"bad": "broken"}})
    attempts.label("n4", bad="burning")
    assert best(attempts, ranking) == "n2"
    assert (attempts.evaluated_nodes("Bad"), attempts.evaluated_nodes("Rank")) == (["n4"], [])


def test_the_only_feasible_node_is_taken_with_any_score() -> None:
    attempts, ranking = ranked()
    attempts.label("n1", bad="broken")
    attempts.label("n2", bad="broken")
    assert current(attempts, ranking).only().node_name == "n3"
    attempts.label("n1", rank="2")
    attempts.label("n3", bad="broken")
    assert current(attempts, ranking).only().node_name == "n1"


def test_a_node_that_was_never_scored_can_leave_the_ranking() -> None:
    attempts, ranking = ranked()
    attempts.label("n1", bad="broken")
    attempts.label("n2", bad="broken")
    attempts.label("n3", rank="100")
    assert current(attempts, ranking).only().node_name == "n3"
    attempts.label("n3", rank="100", bad="broken")
    attempts.label("n1", rank="3")
    attempts.label("n2", rank="7")
    assert best(attempts, ranking) == "n2"


class Tainted(Bad):
    """Rejects nodes with a taint and reads no labels."""

    name = "Tainted"
    caching = Caching(facets=Facet.TAINTS)

    def filter_node(self, state: Any, pod: Any, node: NodeInfo) -> Status | None:
        self.calls.append(node.name)
        return unschedulable("tainted") if node.taints else None


def test_a_node_that_one_plugin_accepts_again_is_evaluated_by_all_other_plugins() -> None:
    attempts, ranking = ranked(Bad, Tainted, Rank)
    attempts.label("n2", rank="7", bad="broken")
    current(attempts, ranking)
    # The taints of a node are not evaluated while Bad rejects it.
    attempts.taint("n2")
    current(attempts, ranking)
    assert attempts.evaluated_nodes("Tainted") == []
    attempts.untie("n2", "bad")
    assert best(attempts, ranking) == "n3"
    assert attempts.evaluated_nodes("Tainted") == ["n2"]


class Crowded(Bad):
    """The results depend on the placed pods."""

    caching = Caching(facets=Facet.PODS | Facet.LABELS)


def test_a_row_with_pods_but_without_a_node_is_not_ranked() -> None:
    attempts, ranking = ranked(Crowded, Rank)
    attempts.cluster.add(pod("lost", node="ghost"))
    assert best(attempts, ranking) == "n2"
    assert ranking.feasible_count == 3
    assert attempts.evaluated_nodes("Bad") == []


def test_the_rejections_of_a_ranking_equal_those_of_the_plugins() -> None:
    attempts, ranking = ranked(Bad, Worse, Rank)
    attempts.label("n1", bad="broken")
    attempts.label("n2", worse="broken")
    attempts.label("n3", bad="burning", worse="broken")
    assert current(attempts, ranking).feasible_count == 0
    outcome = ranking.feasibility.outcome(attempts.cluster.lend().nodes)
    assert outcome.reason_counts_by_plugin() == {
        ("Bad", "Unschedulable", "broken"): 1,
        ("Bad", "Unschedulable", "burning"): 1,
        ("Worse", "Unschedulable", "broken"): 1,
    }
    assert outcome.statuses().keys() == {"n1", "n2", "n3"}


def test_a_cycle_with_a_ranking_has_the_same_message() -> None:
    attempts, _ = ranked()
    for name in THREE:
        attempts.label(name, bad="broken")
    by_ranking = attempts.attempt()
    assert by_ranking.ranking is not None
    assert message(by_ranking) == "0/3 nodes are available: 3 broken."
    assert by_ranking.node_to_status().get("n2") == unschedulable("broken").with_plugin("Bad")
    assert message(attempts.fresh()) == "0/3 nodes are available: 3 broken."


def columns(cycle: Cycle) -> list[tuple[str, list[int], list[int]]]:
    """(instance, raw, normalised) of each score plugin, and the totals."""
    table = cycle.score_table()
    assert table is not None
    columns_of_table = [(c.name, c.raw.tolist(), c.normalized.tolist()) for c in table.columns]
    return [*columns_of_table, ("", table.totals.tolist(), [])]


def test_the_score_table_of_a_ranking_equals_that_of_the_plugins() -> None:
    attempts, ranking = ranked(Bad, Rank, MaxRank)
    attempts.label("n3", rank="6")
    cycle = attempts.attempt()
    assert cycle.ranked_answer is ranking
    result = columns(cycle)
    assert result == [
        ("Rank", [3, 7, 6], [3, 7, 6]),
        ("MaxRank", [3, 7, 6], [42, 100, 85]),
        ("", [45, 107, 91], []),
    ]
    assert columns(attempts.fresh()) == result


def test_equal_nodes_are_drawn_as_in_a_full_cycle() -> None:
    nodes = {f"n{number}": {"rank": "5"} for number in range(40)}
    attempts, _ = ranked(nodes=nodes)
    drawn = set[str]()
    for number in range(30):
        attempts.label(f"n{number}", rank=str(4 + number % 2))
        cycle = attempts.attempt()
        assert cycle.ranked_answer is not None
        assert cycle.choice == attempts.fresh().choice
        drawn.add(chosen(cycle))
    assert len(drawn) > 10


def test_rows_that_were_not_evaluated_are_counted_when_the_counts_are_read() -> None:
    attempts, ranking = ranked()
    before = attempts.entry.row_counts()["Bad"]
    attempts.label("n1", rank="4")
    current(attempts, ranking)
    after = attempts.entry.row_counts()["Bad"]
    assert (after.evaluated - before.evaluated, after.cached - before.cached) == (1, 2)


def test_a_ranking_of_more_nodes_takes_more_bytes() -> None:
    few, many = ranked()[1], ranked(nodes={f"n{n}": {"rank": "1"} for n in range(3000)})[1]
    assert few.bytes_used < many.bytes_used < 3000 * 40


def answered_by(attempts: Attempts, ranking: RankedNodes) -> Choice | None:
    cycle = attempts.attempt()
    assert cycle.ranked_answer is ranking
    return cycle.choice


# ---- updates that invalidate a ranking ------------------------------------------------------


def refused(attempts: Attempts, ranking: RankedNodes) -> str:
    """The reason why the ranking cannot be brought up to date."""
    with pytest.raises(RankingInvalid) as problem:
        current(attempts, ranking)
    return problem.value.reason


def test_a_new_or_deleted_node_renumbers_the_tie_break_order() -> None:
    attempts, ranking = ranked()
    attempts.add("n4")
    assert refused(attempts, ranking) == NODES_CAME_OR_WENT
    attempts, ranking = ranked()
    attempts.remove("n1")
    assert refused(attempts, ranking) == NODES_CAME_OR_WENT


def test_a_limited_number_of_changed_nodes_move_and_more_changes_rank_all_nodes_again() -> None:
    attempts, ranking = ranked(nodes={f"n{number}": {"rank": "5"} for number in range(30)})
    for number in range(CHANGES_MAX):
        labels = {"bad": "broken"} if number % 9 == 8 else {"rank": str(number % 9)}
        attempts.label(f"n{number}", **labels)
    assert answered_by(attempts, ranking) == attempts.fresh().choice
    for number in range(CHANGES_MAX + 1):
        attempts.label(f"n{number}", rank="30")
    assert refused(attempts, ranking) == TOO_MUCH_CHANGED


def test_a_moved_extreme_changes_the_score_of_every_node() -> None:
    attempts, ranking = ranked(Bad, MaxRank)
    attempts.label("n1", rank="8")
    assert refused(attempts, ranking) == EXTREME_MOVED
    attempts, ranking = ranked(Bad, MaxRank)
    attempts.label("n2", rank="6")
    assert refused(attempts, ranking) == EXTREME_MOVED
    attempts, ranking = ranked(Bad, MaxRank)
    attempts.label("n2", rank="7", bad="broken")
    assert refused(attempts, ranking) == EXTREME_MOVED


def test_another_set_of_skipped_plugins_needs_another_ranking() -> None:
    _, ranking = ranked()
    state = CycleState()
    assert ranking.plan.fits(state, is_scored=True)
    state.skip_score_plugins.add("Rank")
    assert ranking.plan.fits(state, is_scored=False)
    assert not ranking.plan.fits(state, is_scored=True)
    state.skip_filter_plugins.add("Bad")
    assert not ranking.plan.fits(state, is_scored=False)


@pytest.mark.parametrize(
    ("plugin", "failure"),
    [
        ("Bad", RuntimeError("boom")),
        ("Bad", "no status"),
        ("Rank", RuntimeError("boom")),
        ("Rank", "no number"),
        ("Rank", 101),
        ("Rank", -1),
    ],
)
def test_a_failing_plugin_is_evaluated_in_a_full_cycle(plugin: str, failure: Any) -> None:
    attempts, ranking = ranked()
    attempts.label("n1", rank="4")
    attempts.plugin(plugin).failure = failure
    assert refused(attempts, ranking) == PLUGIN_FAILED
    attempts, _ = ranked()
    attempts.label("n1", rank="4")
    attempts.plugin(plugin).failure = failure
    cycle = attempts.attempt()
    assert cycle.status is not None
    assert (cycle.status.code, cycle.status.plugin) == (Code.ERROR, plugin)
    assert cycle.status == attempts.fresh().status


def test_a_ranking_that_cannot_be_updated_is_dropped_and_counted() -> None:
    attempts, _ = ranked()
    attempts.add("n4", rank="8")
    assert chosen(attempts.attempt()) == "n4"
    assert attempts.reuse.flushed_counts == {NODES_CAME_OR_WENT: 1}
    # The cached results stay: only the new node is evaluated.
    assert attempts.evaluated_nodes("Rank") == ["n4"]
