"""A ranking that is updated row by row equals a full evaluation of all plugins."""

from typing import Any

import pytest

from bayplan.engine.ranking.evaluation_plan import (
    PLUGIN_FAILED,
    RankingInvalid,
)
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.framework.status import Code
from tests.engine.cached_attempts import Attempts, Bad, Rank

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


# ---- answers of a ranking -------------------------------------------------------------------


def test_a_ranking_of_more_nodes_takes_more_bytes() -> None:
    few, many = ranked()[1], ranked(nodes={f"n{n}": {"rank": "1"} for n in range(3000)})[1]
    assert few.bytes_used < many.bytes_used < 3000 * 40


# ---- updates that invalidate a ranking ------------------------------------------------------


def refused(attempts: Attempts, ranking: RankedNodes) -> str:
    """The reason why the ranking cannot be brought up to date."""
    with pytest.raises(RankingInvalid) as problem:
        current(attempts, ranking)
    return problem.value.reason


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
