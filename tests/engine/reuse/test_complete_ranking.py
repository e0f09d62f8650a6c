"""A ranking that is updated row by row equals a full evaluation of all plugins."""

from typing import Any

import pytest

from bayplan.engine.cycle import Cycle
from bayplan.engine.reuse.evaluation_plan import (
    EXTREME_MOVED,
    NODES_CAME_OR_WENT,
    PLUGIN_FAILED,
    TOO_MUCH_CHANGED,
    RankingInvalid,
)
from bayplan.engine.reuse.ranked_nodes import CHANGES_MAX, RankedNodes
from bayplan.engine.reuse_steps import score_table_of
from bayplan.framework.caching import Caching
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.scoring import Choice
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo
from bayplan.testing import pod
from tests.engine.cached_attempts import SEED, Attempts, Bad, MaxRank, Rank, Worse, chosen, message

THREE: dict[str, dict[str, str]] = {"n1": {"rank": "3"}, "n2": {"rank": "7"}, "n3": {"rank": "5"}}


def ranked(*plugins: Any, nodes: Any = None) -> tuple[Attempts, RankedNodes]:
    """With a ranking, and nobody noted as asked so far."""
    known = Attempts(*(plugins or (Bad, Rank)), nodes=nodes or THREE)
    picks = known.ranking()
    for plugin in known.framework.plugins.instances():
        if isinstance(plugin, Bad | Rank):
            known.evaluated_nodes(plugin.instance_name)
    return known, picks


def current(known: Attempts, picks: RankedNodes) -> RankedNodes:
    """As an attempt brings it up to date; no plugin here has a PreScore."""
    asking = known.evaluator()
    picks.update(asking)
    if picks.feasible_count > 1:
        picks.score(asking)
    return picks


def best(known: Attempts, picks: RankedNodes) -> str:
    return current(known, picks).choose(SEED, known.pod.uid, 1).node_name


# ---- answers of a ranking -------------------------------------------------------------------


def test_the_best_node_is_taken_without_evaluating_a_plugin() -> None:
    known, picks = ranked()
    assert best(known, picks) == "n2"
    assert known.evaluated_nodes("Bad") == known.evaluated_nodes("Rank") == []


def test_only_a_changed_node_is_evaluated_again_and_moves() -> None:
    known, picks = ranked()
    known.label("n1", rank="9")
    assert best(known, picks) == "n1"
    assert (known.evaluated_nodes("Bad"), known.evaluated_nodes("Rank")) == (["n1"], ["n1"])
    known.label("n1", rank="1")
    assert best(known, picks) == "n2"


def test_a_rejected_node_leaves_the_ranking_and_may_come_back() -> None:
    known, picks = ranked()
    known.label("n2", rank="7", bad="broken")
    assert best(known, picks) == "n3"
    assert picks.feasible_count == 2
    known.label("n2", rank="7")
    assert best(known, picks) == "n2"
    assert picks.feasible_count == 3
    assert picks.feasible_rows() is None


def test_a_change_that_no_plugin_reads_evaluates_nothing() -> None:
    known, picks = ranked()
    known.taint("n2")
    assert best(known, picks) == "n2"
    assert known.evaluated_nodes("Bad") == known.evaluated_nodes("Rank") == []


def test_a_node_that_stays_rejected_needs_no_score() -> None:
    known, picks = ranked(nodes={**THREE, "n4": {"bad": "broken"}})
    known.label("n4", bad="burning")
    assert best(known, picks) == "n2"
    assert (known.evaluated_nodes("Bad"), known.evaluated_nodes("Rank")) == (["n4"], [])


def test_the_only_feasible_node_is_taken_whatever_its_score() -> None:
    known, picks = ranked()
    known.label("n1", bad="broken")
    known.label("n2", bad="broken")
    assert current(known, picks).only().node_name == "n3"
    known.label("n1", rank="2")
    known.label("n3", bad="broken")
    assert current(known, picks).only().node_name == "n1"


def test_a_node_that_was_never_scored_can_leave_the_ranking() -> None:
    known, picks = ranked()
    known.label("n1", bad="broken")
    known.label("n2", bad="broken")
    known.label("n3", rank="100")
    assert current(known, picks).only().node_name == "n3"
    known.label("n3", rank="100", bad="broken")
    known.label("n1", rank="3")
    known.label("n2", rank="7")
    assert best(known, picks) == "n2"


class Tainted(Bad):
    """Turns down nodes with a taint; labels are no matter to it."""

    name = "Tainted"
    caching = Caching(facets=Facet.TAINTS)

    def filter_node(self, state: Any, pod: Any, node: NodeInfo) -> Status | None:
        self.asked.append(node.name)
        return unschedulable("tainted") if node.taints else None


def test_a_node_that_one_plugin_accepts_again_is_evaluated_by_all_other_plugins() -> None:
    known, picks = ranked(Bad, Tainted, Rank)
    known.label("n2", rank="7", bad="broken")
    current(known, picks)
    # Nobody asks about a node's taints while Bad turns it down.
    known.taint("n2")
    current(known, picks)
    assert known.evaluated_nodes("Tainted") == []
    known.untie("n2", "bad")
    assert best(known, picks) == "n3"
    assert known.evaluated_nodes("Tainted") == ["n2"]


class Crowded(Bad):
    """Answers may follow from the pods that are there."""

    caching = Caching(facets=Facet.PODS | Facet.LABELS)


def test_a_row_that_holds_pods_but_no_node_is_not_ranked() -> None:
    known, picks = ranked(Crowded, Rank)
    known.cluster.add(pod("lost", node="ghost"))
    assert best(known, picks) == "n2"
    assert picks.feasible_count == 3
    assert known.evaluated_nodes("Bad") == []


def test_the_rejections_of_a_ranking_equal_those_of_the_plugins() -> None:
    known, picks = ranked(Bad, Worse, Rank)
    known.label("n1", bad="broken")
    known.label("n2", worse="broken")
    known.label("n3", bad="burning", worse="broken")
    assert current(known, picks).feasible_count == 0
    outcome = picks.feasibility.outcome(known.cluster.lend().nodes)
    assert outcome.reason_counts_by_plugin() == {
        ("Bad", "Unschedulable", "broken"): 1,
        ("Bad", "Unschedulable", "burning"): 1,
        ("Worse", "Unschedulable", "broken"): 1,
    }
    assert outcome.statuses().keys() == {"n1", "n2", "n3"}


def test_a_cycle_answered_from_a_ranking_has_the_same_message() -> None:
    known, _ = ranked()
    for name in THREE:
        known.label(name, bad="broken")
    by_ranking = known.attempt()
    assert by_ranking.ranking is not None
    assert message(by_ranking) == "0/3 nodes are available: 3 broken."
    assert by_ranking.node_to_status().get("n2") == unschedulable("broken").with_plugin("Bad")
    assert message(known.fresh()) == "0/3 nodes are available: 3 broken."


def columns(cycle: Cycle) -> list[tuple[str, list[int], list[int]]]:
    """(instance, raw, normalised) of each that scores, and the totals."""
    table = score_table_of(cycle)
    assert table is not None
    found = [(c.name, c.raw.tolist(), c.normalized.tolist()) for c in table.columns]
    return [*found, ("", table.totals.tolist(), [])]


def test_the_score_table_of_a_ranking_equals_that_of_the_plugins() -> None:
    known, picks = ranked(Bad, Rank, MaxRank)
    known.label("n3", rank="6")
    cycle = known.attempt()
    assert cycle.ranking is picks
    result = columns(cycle)
    assert result == [
        ("Rank", [3, 7, 6], [3, 7, 6]),
        ("MaxRank", [3, 7, 6], [42, 100, 85]),
        ("", [45, 107, 91], []),
    ]
    assert columns(known.fresh()) == result


def test_equal_nodes_are_drawn_as_in_a_full_cycle() -> None:
    nodes = {f"n{number}": {"rank": "5"} for number in range(40)}
    known, _ = ranked(nodes=nodes)
    drawn = set[str]()
    for number in range(30):
        known.label(f"n{number}", rank=str(4 + number % 2))
        cycle = known.attempt()
        assert cycle.ranking is not None
        assert cycle.choice == known.fresh().choice
        drawn.add(chosen(cycle))
    assert len(drawn) > 10


def test_rows_that_were_not_evaluated_are_counted_when_the_counts_are_read() -> None:
    known, picks = ranked()
    before = known.entry.row_counts()["Bad"]
    known.label("n1", rank="4")
    current(known, picks)
    after = known.entry.row_counts()["Bad"]
    assert (after.evaluated - before.evaluated, after.cached - before.cached) == (1, 2)


def test_a_ranking_of_more_nodes_takes_more_bytes() -> None:
    few, many = ranked()[1], ranked(nodes={f"n{n}": {"rank": "1"} for n in range(3000)})[1]
    assert few.bytes_used < many.bytes_used < 3000 * 40


def answered_by(known: Attempts, picks: RankedNodes) -> Choice | None:
    cycle = known.attempt()
    assert cycle.ranking is picks
    return cycle.choice


# ---- updates that invalidate a ranking ------------------------------------------------------


def refused(known: Attempts, picks: RankedNodes) -> str:
    """Why the ranking cannot be brought up to date."""
    with pytest.raises(RankingInvalid) as problem:
        current(known, picks)
    return problem.value.reason


def test_a_new_or_deleted_node_renumbers_the_tie_break_order() -> None:
    known, picks = ranked()
    known.add("n4")
    assert refused(known, picks) == NODES_CAME_OR_WENT
    known, picks = ranked()
    known.remove("n1")
    assert refused(known, picks) == NODES_CAME_OR_WENT


def test_a_limited_number_of_changed_nodes_move_and_more_changes_rank_all_nodes_again() -> None:
    known, picks = ranked(nodes={f"n{number}": {"rank": "5"} for number in range(30)})
    for number in range(CHANGES_MAX):
        labels = {"bad": "broken"} if number % 9 == 8 else {"rank": str(number % 9)}
        known.label(f"n{number}", **labels)
    assert answered_by(known, picks) == known.fresh().choice
    for number in range(CHANGES_MAX + 1):
        known.label(f"n{number}", rank="30")
    assert refused(known, picks) == TOO_MUCH_CHANGED


def test_a_moved_extreme_changes_the_score_of_every_node() -> None:
    known, picks = ranked(Bad, MaxRank)
    known.label("n1", rank="8")
    assert refused(known, picks) == EXTREME_MOVED
    known, picks = ranked(Bad, MaxRank)
    known.label("n2", rank="6")
    assert refused(known, picks) == EXTREME_MOVED
    known, picks = ranked(Bad, MaxRank)
    known.label("n2", rank="7", bad="broken")
    assert refused(known, picks) == EXTREME_MOVED


def test_another_set_of_skipped_plugins_needs_another_ranking() -> None:
    _, picks = ranked()
    state = CycleState()
    assert picks.plan.fits(state, is_scored=True)
    state.skip_score_plugins.add("Rank")
    assert picks.plan.fits(state, is_scored=False)
    assert not picks.plan.fits(state, is_scored=True)
    state.skip_filter_plugins.add("Bad")
    assert not picks.plan.fits(state, is_scored=False)


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
    known, picks = ranked()
    known.label("n1", rank="4")
    known.plugin(plugin).failure = failure
    assert refused(known, picks) == PLUGIN_FAILED
    known, _ = ranked()
    known.label("n1", rank="4")
    known.plugin(plugin).failure = failure
    cycle = known.attempt()
    assert cycle.status is not None
    assert (cycle.status.code, cycle.status.plugin) == (Code.ERROR, plugin)
    assert cycle.status == known.fresh().status


def test_a_ranking_that_cannot_be_updated_is_dropped_and_counted() -> None:
    known, _ = ranked()
    known.add("n4", rank="8")
    assert chosen(known.attempt()) == "n4"
    assert known.reuse.flushed_counts == {NODES_CAME_OR_WENT: 1}
    # The answers stay: only the new node is asked about.
    assert known.evaluated_nodes("Rank") == ["n4"]
