"""What the journal keeps of a scheduling cycle: counts, the best nodes' scores, the tie."""

import numpy as np

from bayplan.engine.cycle import Cycle
from bayplan.engine.selection import in_draw_order
from bayplan.framework.score_table import ScoreTable
from bayplan.journal import AttemptRecord, NodeScore, PluginScore, RejectionCount
from bayplan.state.columns import Rows

BEST_NODES_MAX = 5


def attempt_record(
    cycle: Cycle, at_seconds: float, result: str, message: str, nominated_node: str = ""
) -> AttemptRecord:
    """Taken while the cycle's snapshot is still lent."""
    choice, status = cycle.choice, cycle.status
    return AttemptRecord(
        at_seconds=at_seconds,
        pod=cycle.pod.key,
        uid=cycle.pod.uid,
        profile=cycle.framework.profile_name,
        attempt=cycle.queued.attempts,
        result=result,
        node=choice.node_name if choice is not None else "",
        message=message,
        node_count=cycle.snapshot.node_count,
        feasible_count=cycle.feasible_count,
        rejections=_rejections(cycle),
        scores=best_scores(cycle.table) if cycle.table is not None else (),
        tied_count=choice.tied_count if choice is not None else 0,
        tied_index=choice.tied_index if choice is not None else 0,
        nominated_node=nominated_node,
        plugin=status.plugin if status is not None else "",
    )


def _rejections(cycle: Cycle) -> tuple[RejectionCount, ...]:
    if cycle.outcome is None:
        return ()
    counts = cycle.outcome.reason_counts_by_plugin()
    return tuple(RejectionCount(*key, nodes=count) for key, count in counts.items())


def best_scores(table: ScoreTable, count_max: int = BEST_NODES_MAX) -> tuple[NodeScore, ...]:
    """The best nodes, best first, equals in the order of the draw."""
    return tuple(node_score(table, p) for p in _best_positions(table, count_max).tolist())


def _best_positions(table: ScoreTable, count_max: int) -> Rows:
    totals = table.totals
    count = min(count_max, len(totals))
    limit = np.partition(totals, len(totals) - count)[len(totals) - count]
    above = np.flatnonzero(totals > limit)
    ordered = in_draw_order(table.nodes, above) if len(above) else above
    ordered = ordered[np.argsort(-totals[ordered], kind="stable")]
    level = in_draw_order(table.nodes, np.flatnonzero(totals == limit))
    return np.concatenate((ordered, level))[:count]


def node_score(table: ScoreTable, position: int) -> NodeScore:
    """One node's line of the table."""
    plugins = tuple(
        PluginScore(
            column.name,
            int(column.raw[position]),
            int(column.normalized[position]),
            int(column.normalized[position]) * column.weight,
        )
        for column in table.columns
    )
    return NodeScore(table.nodes.name(position), int(table.totals[position]), plugins)
