"""What the journal keeps of a scheduling cycle: counts, the best nodes' scores, the tie."""

from collections import Counter
from collections.abc import Callable
from typing import final

import numpy as np

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranked_domain import RankedDomain
from bayplan.engine.reuse_steps import MergedColumns
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.arithmetic import highest
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.scoring import PluginScores, ScoreTable
from bayplan.framework.status import Status
from bayplan.framework.types import Nomination
from bayplan.journal import AttemptRecord, NodeScore, RejectionCount, TieBreakStep
from bayplan.state.cache import ClusterView
from bayplan.state.columns import Rows

BEST_NODES_MAX = 5

#: Called with a cycle at its end, while its snapshot is still lent.
OnAttempt = Callable[[Cycle], None]


@final
class CycleEnd:
    """Records a cycle and takes the cluster back: what follows may change it."""

    def __init__(
        self, cluster: ClusterView, telemetry: Telemetry, on_attempt: OnAttempt | None
    ) -> None:
        self._cluster = cluster
        self._telemetry = telemetry
        self._on_attempt = on_attempt

    @property
    def is_observed(self) -> bool:
        """Whether someone reads each cycle as a whole."""
        return self._on_attempt is not None

    def __call__(
        self,
        cycle: Cycle,
        result: str,
        status: Status | None = None,
        message: str = "",
        *,
        nomination: Nomination | None = None,
    ) -> None:
        """``status``: the answer that the cycle ended with, where it is not success."""
        record = self.observe(cycle, result, status, message, nomination=nomination)
        if record is not None:
            self._telemetry.journal.write(record)
        self._cluster.take_back()

    def observe(
        self,
        cycle: Cycle,
        result: str,
        status: Status | None = None,
        message: str = "",
        *,
        nomination: Nomination | None = None,
    ) -> AttemptRecord | None:
        """The record of the cycle; None: nobody reads the journal. The cluster stays lent."""
        if self._on_attempt is not None:
            self._on_attempt(cycle)
        telemetry = self._telemetry
        if not telemetry.journal.is_recording:
            return None
        pod, choice, ranking = cycle.pod, cycle.choice, cycle.ranking
        table: ScoreTable | None = None
        if cycle.within is not None and isinstance(ranking, RankedDomain):
            feasible_count, rejections = ranking.feasible_count, _rejections(cycle)
            is_scored = choice is not None and feasible_count > 1
            scores = ranking.best_scores(BEST_NODES_MAX) if is_scored else ()
        elif choice is None or ranking is None:
            feasible_count = cycle.feasible_count
            rejections, scores = _rejections(cycle), tuple[NodeScore, ...]()
            table = cycle.table
            if table is not None:
                scores = best_scores(table)
        else:
            feasible_count = ranking.feasibility.feasible_count
            rejections = ranking.feasibility.rejection_counts()
            scores = ranking.best_scores(BEST_NODES_MAX) if feasible_count > 1 else ()
        return AttemptRecord(
            at_seconds=telemetry.clock.now(),
            pod=pod.key,
            uid=pod.uid,
            profile=cycle.framework.profile_name,
            attempt=cycle.queued.attempts,
            result=result,
            node=choice.node_name if choice is not None else "",
            message=message,
            node_count=self._cluster.cache.table.node_count,
            feasible_count=feasible_count,
            rejections=rejections,
            scores=scores,
            score_notes=() if table is None else tuple(table.notes),
            tie_break=() if table is None else _tie_break(table),
            tied_count=choice.tied_count if choice is not None else 0,
            tied_index=choice.tied_index if choice is not None else 0,
            nominated_node="" if nomination is None else nomination.node_name,
            plugin="" if status is None else status.plugin,
        )


def _rejections(cycle: Cycle) -> tuple[RejectionCount, ...]:
    """How many nodes each Filter plugin, extender and PreFilter plugin rejected."""
    feasibility = cycle.feasibility
    if feasibility is None:
        return ()
    statuses, absent_count = cycle.extender_round.statuses, cycle.absent_count
    if not statuses and (cycle.node_names is None or not absent_count):
        return feasibility.rejection_counts()
    ranking, absent = cycle.ranking, cycle.absent_status
    names = ", ".join(sorted(cycle.narrowing))
    if isinstance(ranking, RankedDomain):
        are_all_feasible = ranking.feasible_count == ranking.row_count
    else:
        are_all_feasible = isinstance(feasibility, FilterOutcome) and not feasibility.entries
    if are_all_feasible and not statuses and len(absent.reasons) == 1:
        # The usual case for a member of a group, whose domain leaves the other nodes out, and for a
        # pod of a DaemonSet, for which PreFilter does.
        return (RejectionCount(names, str(absent.code), absent.reasons[0], nodes=absent_count),)
    counts = Counter(feasibility.reason_counts_by_plugin())
    for status in statuses.values():
        for reason in status.reasons or ("",):
            counts[(status.plugin, str(status.code), reason)] += 1
    if cycle.node_names is not None and absent_count:
        for reason in absent.reasons:
            counts[(names, str(absent.code), reason)] += absent_count
    return tuple(RejectionCount(*key, nodes=count) for key, count in sorted(counts.items()))


def _tie_break(table: ScoreTable) -> tuple[TieBreakStep, ...]:
    return tuple(TieBreakStep(s.key, s.equal_count, s.left_count) for s in table.tie_steps)


def best_scores(table: ScoreTable, count_max: int = BEST_NODES_MAX) -> tuple[NodeScore, ...]:
    """The best nodes, best first: equals in the order of the draw, those that tie-break keys left
    before all others."""
    if table.tied is None:
        return _lines(table, _best_positions(table, count_max))
    left = table.nodes.table.first_drawn(table.tied, count_max)
    positions = _best_positions(table, count_max)
    eliminated = positions[~table.tied[positions]]
    return _lines(table, np.concatenate((left, eliminated))[:count_max])


def _best_positions(table: ScoreTable, count_max: int) -> Rows:
    """Positions of the best nodes by total, equals in the order of the draw."""
    totals, nodes = table.totals, table.nodes
    count = min(count_max, len(totals))
    best = nodes.table.first_drawn(table.best(), count)
    total = highest(totals)
    # One round for each distinct total. A partition takes many times as long where most are equal.
    while len(best) < count:
        total = highest(totals[totals < total])
        equals = nodes.table.first_drawn(totals == total, count - len(best))
        best = np.concatenate((best, equals))
    return best


def node_score(table: ScoreTable, position: int) -> NodeScore:
    """One node's line of the table."""
    (line,) = _lines(table, np.array([position]))
    return line


def _lines(table: ScoreTable, positions: Rows) -> tuple[NodeScore, ...]:
    columns = table.columns
    if isinstance(columns, MergedColumns):
        # Extenders and score graphs prevent that.
        assert not table.extender_scores and table.reading is None
        return columns.best_scores(positions, table.totals)
    lines = [column.lines(positions) for column in columns]
    for name, scores in table.extender_scores.items():
        lines.append(PluginScores(name, 1, scores, scores).lines(positions))
    read = [column.lines(positions) for column in table.read]
    none = [()] * len(positions)
    return tuple(
        map(
            NodeScore,
            table.nodes.take(positions).names(),
            table.totals[positions].tolist(),
            zip(*lines, strict=True) if lines else none,
            zip(*read, strict=True) if read else none,
        )
    )
