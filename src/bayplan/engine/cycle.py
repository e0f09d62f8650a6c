"""Cycle: one pod's scheduling cycle, as an explicit record of the results of its steps.

So a cycle can stop after a step with an effect (an extender must be called), be set aside, and
start again with the answer; see `schedule_one.py`.
"""

from collections.abc import Set
from functools import lru_cache
from typing import NamedTuple, final

from bayplan.engine.cycle_answer import ArrayAnswer, CycleAnswer
from bayplan.engine.extenders.results import Question
from bayplan.engine.extenders.round import ExtenderRound
from bayplan.engine.ranking.evaluation_plan import SingleNodeEvaluator
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.engine.reuse.entry import SignatureEntry
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import Feasibility, FilterOutcome, RejectionSummary
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import Choice, ScoreTable
from bayplan.framework.status import (
    EXTENDER_NAME,
    Code,
    Diagnosis,
    FitError,
    NodeToStatus,
    Status,
    listed_reasons,
    unresolvable,
    unschedulable,
)
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.cache import Snapshot
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo


class Restriction(NamedTuple):
    """Why an attempt does not look at all nodes."""

    #: The plugin instance whose events wake the pod; "": no event helps.
    plugin: str
    #: The reason of the nodes that the attempt does not look at.
    reason: str
    #: Whether messages count the nodes that the attempt does not look at.
    is_counted: bool = True


#: A group that is to stay together is tried in one domain at a time.
OUTSIDE_OF_DOMAIN = Restriction("", "node(s) outside of the domain that the group was tried in")
#: The same under the gate TopologyAwareWorkloadScheduling: messages count only the nodes of the
#: placement.
OUTSIDE_OF_PLACEMENT = OUTSIDE_OF_DOMAIN._replace(is_counted=False)
_NOT_LOOKED_AT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
NO_NODE_FITS = unschedulable()


@lru_cache(maxsize=64)
def _left_out(narrowing: frozenset[str]) -> Status:
    """The status of nodes that these plugins left out at PreFilter."""
    listed = " ".join(sorted(narrowing))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")


@final
class Cycle:
    """The record of one attempt."""

    __slots__ = (
        "candidates",
        "choice",
        "entry",
        "evaluator",
        "extender_round",
        "framework",
        "narrowing",
        "node_names",
        "outcome",
        "pod",
        "question",
        "queued",
        "ranked_answer",
        "ranking",
        "restriction",
        "snapshot",
        "started_seconds",
        "state",
        "status",
        "step",
        "table",
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
        #: The cache entry of the pod's signature, and the ranking of all nodes that the cycle uses.
        self.entry: SignatureEntry | None = None
        #: Calls plugins for single rows, in the present state of the cycle.
        self.evaluator: SingleNodeEvaluator | None = None
        self.ranking: RankedNodes | None = None
        #: What the ranking answers in place of the steps filter and score. None: the ranking covers
        #: only some plugins, or there is none.
        self.ranked_answer: CycleAnswer | None = None
        #: The results of the steps filter and score. None: the step did not run; see `answer`.
        self.outcome: FilterOutcome | None = None
        self.table: ScoreTable | None = None
        self.choice: Choice | None = None
        #: How a cycle without a node ended: a rejection of the pod as a whole, or an Error.
        self.status: Status | None = None
        #: The call that extenders are to answer, and what they answered so far.
        self.question: Question | None = None
        self.extender_round = ExtenderRound()

    @property
    def answer(self) -> CycleAnswer | None:
        """What filter and score came to; None: no node was filtered."""
        if self.ranked_answer is not None or self.outcome is None:
            return self.ranked_answer
        return ArrayAnswer(self.outcome, self.table)

    @property
    def feasibility(self) -> Feasibility | None:
        """Which nodes are feasible, and why the others are not; None: no node was filtered."""
        return self.outcome if self.ranked_answer is None else self.ranked_answer.feasibility

    @property
    def feasible_count(self) -> int:
        feasibility = self.feasibility
        return 0 if feasibility is None else feasibility.feasible_count

    @property
    def is_scored(self) -> bool:
        """Whether the feasible nodes have scores. A single feasible node is chosen without
        scores."""
        if self.ranked_answer is None:
            return self.table is not None
        return self.choice is not None and self.ranked_answer.feasible_count > 1

    def filter_outcome(self) -> FilterOutcome | None:
        """The outcome of Filter as arrays; None: no node was filtered."""
        feasibility = self.feasibility
        return None if feasibility is None else feasibility.outcome(self.snapshot.nodes)

    def score_table(self) -> ScoreTable | None:
        """The scores as arrays; None: no plugin scored."""
        answer = self.answer
        if answer is None or not self.is_scored:
            return None
        nodes = self.snapshot.nodes if self.candidates is None else self.candidates
        return answer.score_table(answer.feasible_nodes(nodes))

    @property
    def is_done(self) -> bool:
        return self.choice is not None or self.status is not None

    def begin_anew(self, snapshot: Snapshot) -> None:
        """Return to the first step, because nodes, nominations and objects may have changed. The
        answers of extenders stay."""
        before = self.state
        self.snapshot, self.state = snapshot, CycleState()
        self.state.record_plugin_metrics = before.record_plugin_metrics
        self.state.group_notes = before.group_notes
        self.step = 0
        self.outcome = self.table = self.node_names = self.status = None
        self.entry = self.ranking = self.ranked_answer = None
        self.extender_round.begin_anew()

    def start_with(self, state: CycleState, entry: SignatureEntry | None) -> None:
        """Take the notes of an earlier attempt at a pod of this signature. ``entry``: the entry of
        the signature; None: the cycle runs without cached results."""
        state.record_plugin_metrics = self.state.record_plugin_metrics
        state.group_notes = self.state.group_notes
        state.pods_to_activate = {}
        state.cached_results = None if entry is None else entry.caches
        self.state = state
        self.ranking = self.ranked_answer = None

    @property
    def absent_count(self) -> int:
        """The number of nodes that were not filtered, while others were."""
        if self.ranked_answer is not None and self.node_names is None:
            # A ranking of all nodes, or its cells.
            return 0
        answer = self.answer
        return 0 if answer is None else self.snapshot.node_count - answer.evaluated_count

    @property
    def absent_status(self) -> Status:
        """The status of the nodes that were not filtered."""
        if self.status is not None and self.feasibility is None:
            return self.status
        if self.node_names is None:
            return _NOT_LOOKED_AT
        if not self.narrowing:
            return unresolvable(self.restriction.reason)
        return _left_out(frozenset(self.narrowing))

    def pod_on(self, node_name: str) -> PodInfo:
        """The pod on a node, with what its devices take of the node."""
        pod = self.pod
        if pod.shape.rules.counts_claims:
            pod = pod.with_claim_amounts(self.state.claim_amounts.get(node_name, ()))
        return pod.on_node(node_name)

    def fit_error(self) -> FitError:
        """The reasons why no node was found."""
        diagnosis = Diagnosis(unschedulable_plugins=set(self.narrowing))
        feasibility = self.feasibility
        if feasibility is None:
            assert self.status is not None
            diagnosis.pre_filter_msg = self.status.message
            diagnosis.add_plugin_status(self.status)
        else:
            summary = feasibility.summary()
            diagnosis.unschedulable_plugins.update(summary.plugins)
            diagnosis.pending_plugins.update(summary.pending_plugins)
            diagnosis.listed_reasons = self._listed_reasons(summary)
        if self.extender_round.statuses or self.extender_round.has_left_out_nodes:
            diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
        if self.restriction.plugin:
            diagnosis.unschedulable_plugins.add(self.restriction.plugin)
        return FitError(self.pod.key, self.snapshot.node_count - self._uncounted_count(), diagnosis)

    def _uncounted_count(self) -> int:
        """The number of nodes that messages leave out."""
        if self.within is None or self.restriction.is_counted:
            return 0
        return self.snapshot.node_count - len(self.within)

    def node_to_status(self) -> NodeToStatus:
        """Every node's status by name: for PostFilter, and for explanations."""
        feasibility, absent = self.feasibility, self.absent_status
        if feasibility is None:
            return NodeToStatus(absent=absent)
        statuses = feasibility.node_to_status(self.snapshot.nodes, absent)
        for name, status in self.extender_round.statuses.items():
            statuses.set(name, status)
        return statuses

    def _listed_reasons(self, summary: RejectionSummary) -> str:
        absent_count = self.absent_count - self._uncounted_count()
        by_extenders = self.extender_round.statuses
        if not absent_count and not by_extenders:
            return summary.listed_reasons
        counts = summary.reason_counts.copy()
        if absent_count:
            for reason in self.absent_status.reasons:
                counts[reason] += absent_count
        for status in by_extenders.values():
            counts.update(status.reasons)
        return listed_reasons(counts)
