"""What the journal keeps of a scheduling cycle: counts, the best nodes' scores, the tie."""

from collections import Counter
from collections.abc import Callable
from typing import final

from bayplan.engine.cycle import Cycle
from bayplan.engine.cycle_answer import CycleAnswer
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status
from bayplan.framework.types import Nomination
from bayplan.journal import AttemptRecord, NodeScore, RejectionCount, TieBreakStep
from bayplan.state.cache import ClusterView

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
        #: Whether someone reads each cycle as a whole.
        self.is_observed = on_attempt is not None

    def __call__(
        self,
        cycle: Cycle,
        result: str,
        status: Status | None = None,
        message: str = "",
        *,
        nomination: Nomination | None = None,
    ) -> AttemptRecord | None:
        """``status``: the answer that the cycle ended with, where it is not success. Returns the
        record; None: nobody reads the journal."""
        record = self.observe(cycle, result, status, message, nomination=nomination)
        if record is not None:
            self._telemetry.journal.write(record)
        self._cluster.take_back()
        return record

    def show(self, cycle: Cycle) -> None:
        """Show the cycle to whoever reads each of them."""
        if self._on_attempt is not None:
            self._on_attempt(cycle)

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
        self.show(cycle)
        telemetry = self._telemetry
        if not telemetry.journal.is_recording:
            return None
        pod, choice, table, answer = cycle.pod, cycle.choice, cycle.table, cycle.answer
        feasible_count, rejections = 0, tuple[RejectionCount, ...]()
        scores = tuple[NodeScore, ...]()
        if answer is not None:
            feasible_count = answer.feasible_count
            if cycle.node_names is None and not cycle.extender_round.statuses:
                rejections = answer.feasibility.rejection_counts()
            else:
                rejections = _rejections(cycle, answer)
            if cycle.is_scored:
                scores = answer.best_scores(BEST_NODES_MAX)
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


def _rejections(cycle: Cycle, answer: CycleAnswer) -> tuple[RejectionCount, ...]:
    """How many nodes each Filter plugin, extender and PreFilter plugin rejected."""
    statuses, feasibility = cycle.extender_round.statuses, answer.feasibility
    absent_count = 0 if cycle.node_names is None else cycle.absent_count
    if not statuses and not absent_count:
        return feasibility.rejection_counts()
    absent, names = cycle.absent_status, ", ".join(sorted(cycle.narrowing))
    are_all_feasible = answer.feasible_count == answer.evaluated_count
    if are_all_feasible and not statuses and len(absent.reasons) == 1:
        # This is the usual case for a member of a group, whose domain leaves the other nodes out,
        # and for a pod of a DaemonSet, whose PreFilter leaves them out.
        return (RejectionCount(names, str(absent.code), absent.reasons[0], nodes=absent_count),)
    counts = Counter(feasibility.reason_counts_by_plugin())
    for status in statuses.values():
        for reason in status.reasons or ("",):
            counts[(status.plugin, str(status.code), reason)] += 1
    if absent_count:
        for reason in absent.reasons:
            counts[(names, str(absent.code), reason)] += absent_count
    return tuple(RejectionCount(*key, nodes=count) for key, count in sorted(counts.items()))


def _tie_break(table: ScoreTable) -> tuple[TieBreakStep, ...]:
    return tuple(TieBreakStep(s.key, s.equal_count, s.left_count) for s in table.tie_steps)
