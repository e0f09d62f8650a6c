"""DefaultPreemption: if no node fits a pod, less important pods make room for the pod.

The pod is nominated to the node with the lowest costs, and the victims are evicted. The pod is
tried again when they are gone; until then pods of lower priority leave the room free. Upstream:
plugins/defaultpreemption, framework/preemption (v1.37).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct

from bayplan import rng
from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.plugin import (
    EnqueueExtensions,
    PluginArgs,
    PostFilterPlugin,
    PreEnqueuePlugin,
    Repetition,
)
from bayplan.framework.preemption import (
    EVICTING,
    REVIEW,
    CandidateReview,
    Candidates,
    GroupPreemption,
    PendingEvictions,
    Victims,
)
from bayplan.framework.status import (
    Code,
    Codes,
    Diagnosis,
    FitError,
    NodeToStatus,
    Status,
    listed_reasons,
    unresolvable,
    unschedulable,
)
from bayplan.framework.types import NominatingMode, Nomination
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.default_preemption.candidates import Batch, chosen, listed
from bayplan.plugins.default_preemption.dry_run import DryRun, Findings, lacks_victims
from bayplan.plugins.default_preemption.executor import (
    COMPOSITE,
    POD,
    POD_GROUP,
    PREFIX,
    Preemptor,
    RunningEvictions,
    is_preempted,
)
from bayplan.plugins.default_preemption.search_cache import RotatedPositions, SearchCache
from bayplan.plugins.default_preemption.victims import fits_without, violations
from bayplan.ports import ObjectReference, pod_reference
from bayplan.state.cache import Snapshot
from bayplan.state.columns import Rows
from bayplan.state.disruption_units import Unit, Units
from bayplan.state.nodes import NodeView
from bayplan.state.pod_group_trees import PodGroupTrees
from bayplan.state.pods import PodInfo, PodShape

# Upstream's words, letter for letter.
NEVER = "not eligible due to preemptionPolicy=Never."
VICTIMS_ARE_GOING = "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE_LEFT = "no candidate node for preemption"
PREEMPTED_MESSAGE = "found a potential placement for pod on node {}, preempting {} victims"
UNDER_WAY = "waiting for the preemption for this pod to be finished"

#: An array compares itself slowly with a member of an enumeration.
_UNSCHEDULABLE = int(Code.UNSCHEDULABLE)

_NOBODY = Nomination(NominatingMode.OVERRIDE, "")

_WITHOUT_VICTIMS = Victims(())


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    """How many candidates are enough: a share of the nodes that come into question, and a number
    of them, whichever is more."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def problems(self) -> Iterable[tuple[str, str]]:
        percentage, absolute = (
            self.min_candidate_nodes_percentage,
            self.min_candidate_nodes_absolute,
        )
        if not 0 <= percentage <= 100:
            yield "minCandidateNodesPercentage", f"{percentage}; wanted 0 to 100"
        if absolute < 0:
            yield "minCandidateNodesAbsolute", f"{absolute}; wanted 0 or more"
        if not percentage and not absolute:
            expected = "wanted more than 0 here or in minCandidateNodesAbsolute"
            yield "minCandidateNodesPercentage", f"0; {expected}"


class _Hopeless(Struct, frozen=True):
    """The reason why preemption does not help pods of one shape, and the objects that it depends
    on."""

    generation: int
    codes: Codes
    message: str


@final
class DefaultPreemption(
    PreEnqueuePlugin[DefaultPreemptionArgs], PostFilterPlugin, GroupPreemption, EnqueueExtensions
):
    """Makes room for pods that fit nowhere."""

    name = "DefaultPreemption"
    kinds = (POD_DISRUPTION_BUDGET,)

    def setup(self) -> None:
        self._args: DefaultPreemptionArgs = self.args or DefaultPreemptionArgs()
        self._evictions = RunningEvictions(self.handle, self.instance_name)
        #: Whether attempts end before their victims are evicted.
        self._is_async = self.handle.gates.enabled("SchedulerAsyncPreemption")
        #: Compiled from these objects.
        self._budgets: tuple[Sequence[Any], Budgets] = ((), Budgets())
        self._search_cache = SearchCache()
        self._potential = _Potential()
        #: Whether a node that fits without victims is no error, but for extenders to decide.
        self._are_needless_rejected = self.handle.behaviour.needless_nodes_are_reviewed
        self._hopeless: WeakKeyDictionary[PodShape, _Hopeless] = WeakKeyDictionary()
        #: See `repetition`.
        self._repetition = Repetition.NONE

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """A preemptor waits until its victims are evicted."""
        is_under_way = pod.uid in self._evictions.running and self._evictions.is_running(pod.uid)
        return unresolvable(UNDER_WAY) if is_under_way else None

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        began_seconds, self._repetition = self.handle.now_seconds, Repetition.NONE
        nomination, status = self._preempt(state, pod, node_to_status)
        if status.code is not Code.WAIT:
            metrics, seconds = self.handle.metrics, self.handle.now_seconds - began_seconds
            metrics.preemption_attempts.add()
            metrics.preemption_evaluation_duration.observe(seconds, POD, status.code)
        message = status.message
        if nomination is _NOBODY:
            self._repetition = max(self._repetition, Repetition.UNTIL_CHANGE)
        if not message:
            return nomination, status
        if status.code is Code.UNSCHEDULABLE:
            return nomination, _prefixed(message)
        return nomination, Status(status.code, (PREFIX + message,))

    def repetition(self) -> Repetition:
        return self._repetition

    def count_repeats(self, count: int) -> None:
        metrics = self.handle.metrics
        metrics.preemption_attempts.add(count=count)
        metrics.preemption_evaluation_duration.observe(0.0, POD, Code.UNSCHEDULABLE, count=count)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        # A pod that PreEnqueue gates is moved by events of this plugin only.
        event = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
        return [ClusterEventWithHint(event, _after_pod_gone)]

    # ---- groups ---------------------------------------------------------------------------

    def why_not_for_group(self, pods: Sequence[PodInfo]) -> str | None:
        """A group preempts unless one of its members must not. Upstream: podgrouppreemption.go."""
        if any(pod.spec.preemption_policy == "Never" for pod in pods):
            return NEVER
        return VICTIMS_ARE_GOING if self.is_making_room(pods) else None

    def is_making_room(self, pods: Sequence[PodInfo]) -> bool:
        """Upstream: isOngoingPreemption."""
        if any(self._evictions.is_running(pod.uid) for pod in pods):
            return True
        priority = min(pod.priority for pod in pods)
        nominated = {self.handle.nominator.nominated_node(pod) for pod in pods} - {""}
        return any(self._awaits_victims(name, priority) for name in sorted(nominated))

    def in_order_of_return(self, units: Sequence[Unit]) -> list[Unit]:
        """Pods that a budget protects first, then the most important ones."""
        ranked = sorted(units, key=lambda unit: unit.importance)
        counts = violations(ranked, self._current_budgets())
        pairs = list(zip(ranked, counts, strict=True))
        return [u for u, stays in pairs if stays] + [u for u, stays in pairs if not stays]

    def evict_for_group(
        self,
        group: ObjectReference,
        pods: Sequence[PodInfo],
        node_names: Sequence[str],
        victims: Sequence[PodInfo],
    ) -> PendingEvictions | None:
        metrics = self.handle.metrics
        metrics.workload_preemption_victims.observe(len(victims))
        disrupted_count = _disrupted_count(self.handle.group_trees, victims)
        kind = COMPOSITE if group.kind == COMPOSITE_POD_GROUP else POD_GROUP
        if disrupted_count:
            metrics.preemption_workload_disruptions.observe(disrupted_count, kind)
        preemptor = Preemptor(kind, group.uid, pods, node_names, group)
        violation_count = sum(self._current_budgets().violated_by(victims))
        going = Victims(tuple(victims), violation_count)
        if not self._is_async:
            return self._evictions.awaited(preemptor, going)
        metrics.workload_preemption_attempts.add(Code.SUCCESS)
        self._evictions.start(preemptor, going)
        return None

    # ---- for whoever wants to know --------------------------------------------------------

    def find(self, state: CycleState, pod: PodInfo, codes: Codes) -> Findings:
        """The dry run alone; ``codes``: of all nodes, uint8[nodes]. Nothing is evicted."""
        snapshot = self.handle.snapshot
        nodes = snapshot.nodes
        positions = self._potential.of(nodes, codes)
        count = len(positions)
        if not count:
            return Findings()
        start = rng.tie_index(self.handle.seed, pod.uid, 0, count)
        units = Units(self.handle.group_trees, nodes)
        question = (self.handle.runner, snapshot, state, pod)
        status = lacks_victims if self._are_needless_rejected else fits_without
        dry_run = DryRun(
            *question,
            self._current_budgets(),
            units,
            self._search_cache,
            lists_needless=self._reviews_needless(state),
            status_without_victims=status,
        )
        return dry_run.search(RotatedPositions(positions, start), self._enough(count))

    def why_not_eligible(self, pod: PodInfo, node_to_status: NodeToStatus) -> str | None:
        """Upstream: PodEligibleToPreemptOthers. None: it may preempt."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        nominated = pod.nominated_node_name
        if not nominated:
            return None
        # Where it was nominated to is out of the question by now: it looks elsewhere.
        if node_to_status.get(nominated).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return None
        return VICTIMS_ARE_GOING if self._awaits_victims(nominated, pod.priority) else None

    # ---- private --------------------------------------------------------------------------

    def _preempt(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status]:
        why_not = self.why_not_eligible(pod, node_to_status)
        if why_not is not None:
            return None, unschedulable(why_not)
        snapshot = self.handle.snapshot
        if not node_to_status.may_have(Code.UNSCHEDULABLE):
            self._repetition = Repetition.UNTIL_OTHER_STATUSES
            return _NOBODY, _not_helpful(snapshot.node_count)
        nodes = snapshot.nodes
        codes = node_to_status.codes(nodes)
        hopeless = self._hopeless.get(pod.shape)
        if (
            hopeless is not None
            and _is_unchanged(hopeless, snapshot, codes)
            # An object of a group may have changed the priorities of pods.
            and Units(self.handle.group_trees, nodes).are_single
        ):
            return _NOBODY, unschedulable(hopeless.message)
        findings = self.find(state, pod, codes)
        batch = findings.candidates
        needless = findings.needless if self._reviews_needless(state) else ()
        if batch is None and not needless:
            return self._no_candidates(state, pod, codes, findings)
        reviewed = _reviewed(state, batch, nodes, needless)
        if isinstance(reviewed, Status):
            return None, reviewed
        if not len(reviewed):
            return None, unschedulable(NO_CANDIDATE_LEFT)
        index = chosen(reviewed, nodes, self.handle.seed, pod.uid)
        name, victims = nodes.name(reviewed.positions.item(index)), reviewed.victims(index)
        self.handle.metrics.preemption_victims.observe(len(victims.pods))
        is_named = self.handle.behaviour.events_name_preempting_pod
        reference = pod_reference(pod) if is_named else None
        preemptor = Preemptor(POD, pod.uid, [pod], [name], reference)
        if self._is_async:
            self._evictions.start(preemptor, victims)
        else:
            state[EVICTING] = self._evictions.awaited(preemptor, victims)
        reasons: tuple[str, ...] = ()
        if self.handle.behaviour.preemption_names_node:
            reasons = (PREEMPTED_MESSAGE.format(name, len(victims.pods)),)
        return Nomination(NominatingMode.OVERRIDE, name), Status(Code.SUCCESS, reasons)

    def _no_candidates(
        self, state: CycleState, pod: PodInfo, codes: Codes, findings: Findings
    ) -> tuple[Nomination | None, Status]:
        if findings.errors:
            return None, Status(Code.ERROR, (_together(findings.errors),))
        snapshot = self.handle.snapshot
        tried_count = int(np.count_nonzero(codes == _UNSCHEDULABLE))
        reasons = Counter(findings.reasons)
        reasons[NOT_HELPFUL] += len(codes) - tried_count
        diagnosis = Diagnosis(listed_reasons=listed_reasons(+reasons))
        message = FitError(pod.key, snapshot.node_count, diagnosis).message
        runner, nominated = self.handle.runner, self.handle.nominator.nominated_nodes()
        are_single = Units(self.handle.group_trees, snapshot.nodes).are_single
        if not nominated and are_single and runner.only_amounts_matter(state):
            self._hopeless[pod.shape] = _Hopeless(snapshot.generation, codes, message)
        return _NOBODY, unschedulable(message)

    def _awaits_victims(self, node_name: str, priority: int) -> bool:
        """Whether pods are on their way out of a node for the sake of more important ones."""
        nodes = self.handle.snapshot.nodes
        position = nodes.position(node_name)
        if position is None:
            return False
        pods, trees = nodes.info(position).pods, self.handle.group_trees
        return any(is_preempted(pod) and trees.priority_of_pod(pod) < priority for pod in pods)

    def _enough(self, node_count: int) -> int:
        """Upstream: calculateNumCandidates."""
        args = self._args
        share = node_count * args.min_candidate_nodes_percentage // 100
        return min(max(share, args.min_candidate_nodes_absolute), node_count)

    def _reviews_needless(self, state: CycleState) -> bool:
        """Whether extenders may find victims on nodes that fit the pod but for them."""
        return self._are_needless_rejected and REVIEW in state

    def _current_budgets(self) -> Budgets:
        objects = self.handle.objects(POD_DISRUPTION_BUDGET).list()
        if objects is not self._budgets[0]:
            protect_all = self.handle.behaviour.empty_budgets_protect
            self._budgets = (objects, Budgets(objects, protect_all=protect_all))
        return self._budgets[1]


def _disrupted_count(trees: PodGroupTrees, victims: Sequence[PodInfo]) -> int:
    """Units of victims that belong to groups. Upstream: NumPodGroupDisruptions."""
    groups = trees.pod_groups
    states = [state for pod in victims if (state := groups.of(pod)) and state.group is not None]
    wholes = [trees.highest_whole(state) for state in states]
    return len({*wholes} - {None}) + wholes.count(None)


@lru_cache(maxsize=16)
def _prefixed(message: str) -> Status:
    """The rejection with this message."""
    return unschedulable(PREFIX + message)


@lru_cache(maxsize=16)
def _not_helpful(node_count: int) -> Status:
    """No node fits the pod, whatever pods leave it."""
    diagnosis = Diagnosis(listed_reasons=f"{node_count} {NOT_HELPFUL}")
    return unschedulable(FitError("", node_count, diagnosis).message)


@final
class _Potential:
    """The nodes that evicting pods may help with; they are mostly those of the last search."""

    def __init__(self) -> None:
        self._order: Rows | None = None
        self._codes = b""
        self._positions: Rows = np.zeros(0, np.intp)

    def of(self, nodes: NodeView, codes: Codes) -> Rows:
        """Their positions, as ties are drawn. ``codes``: uint8[nodes]."""
        order, as_bytes = nodes.table.draw_order(), codes.tobytes()
        if order is not self._order or as_bytes != self._codes:
            self._order, self._codes = order, as_bytes
            self._positions = order[codes[order] == _UNSCHEDULABLE]
        return self._positions


def _is_unchanged(hopeless: _Hopeless, snapshot: Snapshot, codes: Codes) -> bool:
    """No row has changed since, and every node is refused as it was."""
    return hopeless.generation == snapshot.generation and np.array_equal(hopeless.codes, codes)


def _reviewed(
    state: CycleState, batch: Batch | None, nodes: NodeView, needless: Iterable[str]
) -> Batch | Status:
    """The candidates that other plugins accept. See framework.preemption.

    ``batch`` None: the only candidates are the nodes without victims, ``needless``.
    """
    review: CandidateReview | None = state.get(REVIEW)
    if review is None:
        assert batch is not None, "without a review there are candidates with victims"
        return batch
    candidates = dict.fromkeys(needless, _WITHOUT_VICTIMS)
    left = review(candidates if batch is None else {**_by_name(batch, nodes), **candidates})
    if isinstance(left, Status):
        return left
    accepted: list[tuple[int, Victims]] = []
    for name, victims in left.items():
        position = nodes.position(name)
        if position is not None and victims.pods:
            accepted.append((position, victims))
    return listed(accepted)


def _by_name(batch: Batch, nodes: NodeView) -> Candidates:
    names = (nodes.name(position) for position in batch.positions.tolist())
    return {name: batch.victims(index) for index, name in enumerate(names)}


def _together(errors: Sequence[Status]) -> str:
    """Several errors in one sentence, as upstream's Aggregate has them."""
    texts = list(dict.fromkeys(status.message for status in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _after_pod_gone(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """Whether there is room now is decided by the plugins that rejected the pod."""
    return QueueingHint.QUEUE_SKIP
