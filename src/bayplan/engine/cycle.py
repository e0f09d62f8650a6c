"""Cycle: one pod's scheduling cycle, as an explicit record of the results of its steps.

So a cycle can stop after a step with an effect (an extender must be called), be set aside, and
start again with the answer; see `schedule_one.py`.
"""

from collections import Counter
from collections.abc import Set
from typing import NamedTuple, final

import numpy as np

from bayplan.engine.extenders.results import Question
from bayplan.engine.extenders.round import ExtenderRound
from bayplan.engine.reuse.entry import SignatureEntry
from bayplan.engine.reuse.ranked_nodes import RankedNodes
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome, RejectedNodes
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import Choice, ScoreTable
from bayplan.framework.status import (
    EXTENDER_NAME,
    Code,
    Diagnosis,
    FitError,
    NodeToStatus,
    Status,
    unresolvable,
)
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.cache import Snapshot
from bayplan.state.nodes import NodeView


class Restriction(NamedTuple):
    """Why an attempt does not look at all nodes."""

    #: The instance that registers the events after which it may; "": no event helps.
    plugin: str
    #: The reason of the nodes that the attempt does not look at.
    reason: str


#: A group that is to stay together is tried in one domain at a time.
OUTSIDE_OF_DOMAIN = Restriction("", "node(s) outside of the domain that the group was tried in")
_NOT_LOOKED_AT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


@final
class Cycle:
    """The record of one attempt."""

    __slots__ = (
        "_outcome",
        "_table",
        "candidates",
        "choice",
        "entry",
        "extender_round",
        "framework",
        "narrowing",
        "node_names",
        "partial_ranking",
        "pod",
        "question",
        "queued",
        "ranking",
        "restriction",
        "snapshot",
        "started_seconds",
        "state",
        "status",
        "step",
        "within",
    )

    def __init__(
        self,
        queued: QueuedPodInfo,
        framework: Framework,
        snapshot: Snapshot,
        started_seconds: float = 0.0,
    ) -> None:
        self.queued = queued
        self.pod = queued.pod
        self.framework = framework
        self.snapshot = snapshot
        self.started_seconds = started_seconds
        self.state = CycleState()
        self.step = 0
        #: Names of the only nodes that this attempt looks at; None: all nodes.
        self.within: frozenset[str] | None = None
        self.restriction = OUTSIDE_OF_DOMAIN
        #: The nodes to filter, and their names where PreFilter narrowed them.
        self.candidates: NodeView | None = None
        self.node_names: frozenset[str] | None = None
        self.narrowing: Set[str] = frozenset()
        #: The cache entry of the pod's signature; the ranking that answers this cycle; or a ranking
        #: that covers only some plugins.
        self.entry: SignatureEntry | None = None
        self.ranking: RankedNodes | None = None
        self.partial_ranking: RankedNodes | None = None
        self._outcome: FilterOutcome | None = None
        self._table: ScoreTable | None = None
        self.choice: Choice | None = None
        #: How a cycle without a node ended: a rejection of the pod as a whole, or an Error.
        self.status: Status | None = None
        #: The call that extenders are to answer, and what they answered so far.
        self.question: Question | None = None
        self.extender_round = ExtenderRound()

    # A cycle that a ranking answers has no arrays. They are computed when somebody reads them.

    @property
    def outcome(self) -> FilterOutcome | None:
        """The rejected nodes and the reasons; None: no node was filtered."""
        if self._outcome is None and self.ranking is not None:
            self._outcome = self.ranking.feasibility.outcome(self.snapshot.nodes)
        return self._outcome

    @outcome.setter
    def outcome(self, outcome: FilterOutcome | None) -> None:
        self._outcome = outcome

    @property
    def rejected(self) -> RejectedNodes | None:
        """The same, counted; None: no node was filtered."""
        if self._outcome is None and self.ranking is not None:
            return self.ranking.feasibility
        return self._outcome

    @property
    def table(self) -> ScoreTable | None:
        """The feasible nodes' scores; None where fewer than two were feasible."""
        ranking = self.ranking
        if self._table is None and ranking is not None and ranking.feasible_count > 1:
            self._table = ranking.score_table(self.feasible_nodes(ranking))
        return self._table

    @table.setter
    def table(self, table: ScoreTable | None) -> None:
        self._table = table

    def feasible_nodes(self, ranking: RankedNodes) -> NodeView:
        nodes = self.snapshot.nodes if self.candidates is None else self.candidates
        return nodes.take_rows(ranking.feasible_rows)

    @property
    def is_done(self) -> bool:
        return self.choice is not None or self.status is not None

    def begin_anew(self, snapshot: Snapshot) -> None:
        """Back to the first step: nodes, nominations and objects may have changed. The answers of
        extenders stay."""
        record_plugin_metrics = self.state.record_plugin_metrics
        self.snapshot, self.state = snapshot, CycleState()
        self.state.record_plugin_metrics = record_plugin_metrics
        self.step = 0
        self.outcome = self.node_names = self.status = None
        self.entry = self.ranking = self.partial_ranking = None
        self.extender_round.begin_anew()

    def start_with(self, state: CycleState, entry: SignatureEntry | None) -> None:
        """Take the notes of an earlier attempt at a pod of this signature. ``entry``: None: the
        cycle runs without cached results."""
        state.record_plugin_metrics = self.state.record_plugin_metrics
        state.pods_to_activate = {}
        state.cached_results = None if entry is None else entry.caches
        self.state = state
        self.ranking = self.partial_ranking = None

    @property
    def feasible_count(self) -> int:
        if self.ranking is not None:
            return self.ranking.feasible_count
        return int(np.count_nonzero(self.outcome.feasible)) if self.outcome is not None else 0

    @property
    def absent_count(self) -> int:
        """Nodes that were not filtered, though others were."""
        outcome = self._outcome
        return self.snapshot.node_count - len(outcome.nodes) if outcome is not None else 0

    @property
    def absent_status(self) -> Status:
        """Of the nodes that were not filtered."""
        if self.rejected is None and self.status is not None:
            return self.status
        if self.node_names is None:
            return _NOT_LOOKED_AT
        if not self.narrowing:
            return unresolvable(self.restriction.reason)
        listed = " ".join(sorted(self.narrowing))
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")

    def fit_error(self) -> FitError:
        """Why no node was found."""
        diagnosis = Diagnosis(unschedulable_plugins=set(self.narrowing))
        rejected = self.rejected
        if rejected is None:
            assert self.status is not None
            diagnosis.pre_filter_msg = self.status.message
            diagnosis.add_plugin_status(self.status)
        else:
            diagnosis.unschedulable_plugins |= rejected.plugins()
            diagnosis.pending_plugins |= rejected.pending_plugins()
            diagnosis.counted = self._reason_counts(rejected)
        if self.extender_round.statuses:
            diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
        if self.restriction.plugin:
            diagnosis.unschedulable_plugins.add(self.restriction.plugin)
        return FitError(self.pod.key, self.snapshot.node_count, diagnosis)

    def node_to_status(self) -> NodeToStatus:
        """Every node's status by name: for PostFilter, and for explanations."""
        rejected, absent = self.rejected, self.absent_status
        if rejected is None:
            return NodeToStatus(absent=absent)
        statuses = rejected.node_to_status(self.snapshot.nodes, absent)
        for name, status in self.extender_round.statuses.items():
            statuses.set(name, status)
        return statuses

    def _reason_counts(self, rejected: RejectedNodes) -> Counter[str]:
        counts = rejected.reason_counts()
        absent_count = self.absent_count
        if absent_count:
            for reason in self.absent_status.reasons:
                counts[reason] += absent_count
        for status in self.extender_round.statuses.values():
            counts.update(status.reasons)
        return counts
