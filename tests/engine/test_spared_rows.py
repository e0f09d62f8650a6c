"""What was not asked is added up by instance; rows that were judged anew count as asked."""

from collections import defaultdict

from bayplan.engine.kept_answers import KeptVerdicts, RowCounts
from bayplan.engine.likes import Like
from bayplan.engine.spared_rows import SparedRows
from bayplan.state.change_log import Facet
from bayplan.state.node_table import NodeTable

PLACED = int(Facet.REQUESTED | Facet.PODS)


def test_counts_are_added_up_once() -> None:
    table, counts = NodeTable(), defaultdict[str, RowCounts](RowCounts)
    filters = [
        ("Room", KeptVerdicts(table, Facet.REQUESTED)),
        ("Taints", KeptVerdicts(table, Facet.TAINTS)),
    ]
    like = Like(
        filters=filters, shares=[], skipped_filters=set(), skipped_scores=None, counts=counts
    )
    spared = SparedRows(like, PLACED)
    spared.judged_count = 50
    spared.followed_count = 2
    spared.add_up()
    spared.add_up()
    assert counts == {"Room": RowCounts(asked=2, kept=48), "Taints": RowCounts(asked=0, kept=50)}
