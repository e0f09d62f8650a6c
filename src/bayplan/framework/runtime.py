"""Framework: runs the extension points of one profile and checks the results of the plugins.

Each ``run_*`` method is one extension point with upstream's rules (runtime/framework.go, v1.37):
the order of the plugins, the effect of Skip, which status ends the run, and which plugin a status
names. If a plugin raises or returns a value that the contract does not allow, the result is an
Error that names the plugin.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from bayplan.framework.calls import Calls, CallsByShape, ChangePod, NamedCalls, OnNode, Permit
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome, checked_verdict
from bayplan.framework.handle import PodNominator
from bayplan.framework.placements import Placement
from bayplan.framework.plugin import JointPlacementScore, PlacementAssignments, Repetition
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.score_graph import graph_of, graph_scores
from bayplan.framework.scoring import PluginScores, ScoreTable, total_scores
from bayplan.framework.signing import PodSignature, Signer
from bayplan.framework.status import (
    SKIP,
    Code,
    NodeToStatus,
    Rejection,
    Status,
    is_skip,
    is_success,
    unresolvable,
    unschedulable,
)
from bayplan.framework.timing import (
    UNWATCHED,
    Bare,
    Evaluations,
    PluginTimer,
    TimedObject,
    Watch,
    plugin_stopwatch,
    stopwatches,
    timed_point,
)
from bayplan.framework.types import (
    MAX_NODE_SCORE,
    MAX_PERMIT_TIMEOUT_SECONDS,
    NominatingMode,
    Nomination,
    PreFilterResult,
)
from bayplan.framework.validation import (
    REJECTION_CODES,
    PlacementCheck,
    WrongAnswer,
    as_error,
    checked,
    checked_pair,
    described,
    failure_of,
    rejection_or_error,
)
from bayplan.state.cache import Snapshot
from bayplan.state.columns import NodeMask, Rows, all_true
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo

# ---- chosen node ----------------------------------------------------------------------------


#: The result of each of these points without plugins.
STRAIGHT_TO_BIND = (
    ("Reserve", Code.SUCCESS),
    ("Permit", Code.SUCCESS),
    ("PreBindPreFlight", Code.SKIP),
)


def goes_straight_to_bind(watched: TimedObject, calls: Calls) -> bool:
    """Whether no plugin takes part in Reserve, Permit and PreBind.

    The three points then count as run, with the results of `STRAIGHT_TO_BIND`.
    """
    if calls.reserve or calls.permit or calls.pre_bind_pre_flight:
        return False
    for point, code in STRAIGHT_TO_BIND:
        # As `idle`, without a further call: this is the way of most attempts.
        watched.stopwatches[point].took[code](0.0)
    return True


@timed_point("Reserve")
def reserve(
    watched: TimedObject,
    calls: NamedCalls[OnNode],
    state: CycleState,
    pod: PodInfo,
    *,
    node_name: str,
) -> Status | None:
    for name, ask in calls:
        try:
            status = checked(ask(state, pod, node_name))
        except BaseException as problem:  # noqa: BLE001
            return failure_of(name, "Reserve", problem, ask)
        if status is not None and not is_success(status):
            return rejection_or_error(status, "Reserve", name, ask)
    return None


@timed_point("Permit")
def permit(
    watched: TimedObject,
    calls: NamedCalls[Permit],
    state: CycleState,
    pod: PodInfo,
    *,
    node_name: str,
) -> tuple[Status | None, dict[str, float]]:
    waits: dict[str, float] = {}
    for name, ask in calls:
        try:
            answer, timeout_seconds = checked_pair(ask(state, pod, node_name), PERMIT_RESULT)
            status = checked(answer)
            if status is not None and status.code is Code.WAIT:
                waits[name] = wait_seconds(timeout_seconds)
                continue
        except BaseException as problem:  # noqa: BLE001
            return failure_of(name, "Permit", problem, ask), {}
        if status is not None and not is_success(status):
            return rejection_or_error(status, "Permit", name, ask, further=(Code.WAIT,)), {}
    return (Status(Code.WAIT) if waits else None), waits


@timed_point("PreBindPreFlight")
def pre_flights(
    watched: TimedObject,
    calls: NamedCalls[OnNode],
    state: CycleState,
    pod: PodInfo,
    *,
    node_name: str,
) -> Status | None:
    busy = False
    for name, ask in calls:
        try:
            status = checked(ask(state, pod, node_name))
        except BaseException as problem:  # noqa: BLE001
            return failure_of(name, "PreBindPreFlight", problem, ask)
        if is_skip(status):
            state.skip_pre_bind_plugins.add(name)
        elif status is None or status.code is Code.SUCCESS:
            busy = True
        else:
            return as_error(status, "PreBindPreFlight", name, ask, allowed=(Code.SKIP,))
    return None if busy else SKIP


PERMIT_RESULT = "a tuple of a Status or None and the seconds to wait"


def wait_seconds(timeout_seconds: Any) -> float:
    """The time-out, limited to upstream's maximum. Raises WrongAnswer unless it is above 0.

    A pod that waits for 0 seconds would be tried again at once, and its run would not end.
    """
    is_number = isinstance(timeout_seconds, int | float) and timeout_seconds is not True
    if not is_number or not timeout_seconds > 0:
        raise WrongAnswer(f"Wait and {described(timeout_seconds)}", "seconds to wait, more than 0")
    return min(timeout_seconds, MAX_PERMIT_TIMEOUT_SECONDS)


# ---- one node -------------------------------------------------------------------------------


#: The position of the node in a view of one node.
_IT: Rows = np.zeros(1, np.intp)


def filter_one(calls: Calls, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterOutcome:
    """Filter for a view of one node, through the single-node forms of plugins that have one.

    A DaemonSet's pod, a nomination and a what-if need one node. The array forms take several times
    as long for an array of one.
    """
    outcome, node = FilterOutcome(nodes, all_true(1)), nodes.info(0)
    for name, ask in calls.filter:
        if name in state.skip_filter_plugins:
            continue
        if name in calls.own_rows:
            row_filter = calls.filter_row[name]
            try:
                verdict = checked_verdict(row_filter(state, pod, node))
                if not verdict:
                    continue
                outcome.add(name, [Rejection(_IT, *rejection) for rejection in verdict])
            except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
                outcome.error = failure_of(name, "Filter", problem, row_filter)
        else:
            outcome.evaluate(name, ask, state, pod)
        if outcome.is_settled:
            break
    return outcome


# ---- runtime --------------------------------------------------------------------------------


#: The codes of rejections after which the next PostFilter plugin runs.
_PLAIN_REJECTIONS = (Code.UNSCHEDULABLE, Code.PENDING)

#: The codes with which PreFilter may reject a pod.
_PRE_FILTER_REJECTS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
_PRE_FILTER = (*_PRE_FILTER_REJECTS, Code.SKIP)
POST_FILTER_RESULT = "a tuple of a Nomination or None and a Status or None"

#: Upstream: RunPlacementGeneratePlugins.
NO_PLACEMENTS = "no feasible placements found"

_ALL_NODES = PreFilterResult()


class Framework:
    """One profile, ready to run."""

    def __init__(
        self,
        plugins: ProfilePlugins,
        nominator: PodNominator,
        watch: Watch = UNWATCHED,
        signer: Signer | None = None,
    ) -> None:
        self.plugins = plugins
        self.profile_name = plugins.profile_name
        #: Whether the profile has neither a score graph nor tie-break keys.
        self.graph = graph_of(plugins)
        self.is_plain_sum = self.graph is None and not plugins.tie_break
        #: Whether Bind and PostBind are one request to the API server.
        self.binds_with_one_request = (
            len(plugins.bind) == 1
            and plugins.bind[0].binds_with_one_request
            and not plugins.post_bind
        )
        self._nominator = nominator
        self.signer = signer or Signer(plugins)
        self.stopwatches = stopwatches(watch, self.profile_name)
        first_bind = plugins.bind[0].instance_name if plugins.bind else ""
        #: Observes how long Bind of the first plugin took, where the request is made without it.
        self.first_bind = plugin_stopwatch(watch, first_bind, "Bind")
        #: Filters that are skipped → the cached result of `only_amounts_matter` in
        #: profile/filter_runner.py.
        self.only_amounts_matter: dict[frozenset[str], bool] = {}
        #: Counts the evaluations of each plugin.
        self.evaluations = Evaluations()
        self._placements = PlacementCheck()
        self._calls = CallsByShape(plugins, Bare(), self.evaluations)
        #: The same calls, with the duration of each plugin recorded.
        self._timed_calls = CallsByShape(plugins, PluginTimer(watch), self.evaluations)

        #: The kinds of objects that decide which shapes concern the plugins.
        self.concern_kinds = frozenset(
            kind for plugin in plugins.instances() for kind in plugin.concern_kinds
        )

    def renew_concerns(self) -> None:
        """Ask the plugins again which shapes concern them, because an object changed."""
        for calls in (self._calls, self._timed_calls):
            calls.renew()
        self.signer.renew()

    def calls(self, state: CycleState, pod: PodInfo) -> Calls:
        """The calls of this attempt at each extension point."""
        calls = self._timed_calls if state.record_plugin_metrics else self._calls
        return calls.memo.once(pod.shape, calls.compute)

    def unconcerned(self, pod: PodInfo) -> frozenset[str]:
        """Instances that have nothing to do with pods of this shape."""
        return self._calls.memo.once(pod.shape, self._calls.compute).unconcerned

    def sign_pod(self, pod: PodInfo) -> PodSignature:
        """The pod's signature in this profile. Upstream: SignPod."""
        watch = self.stopwatches["Sign"]
        start = watch.now()
        signature = self.signer.sign(pod)
        # As upstream, the code is Success even if a plugin does not sign.
        watch.took[Code.SUCCESS](watch.now() - start)
        return signature

    # ---- PreFilter ------------------------------------------------------------------------

    @timed_point("PreFilter")
    def run_pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        """Returns (nodes to evaluate, rejection or error, instances that narrowed the nodes).

        Unresolvable returns at once. After Unschedulable the other plugins still run, and the last
        Unschedulable counts.
        """
        result = _ALL_NODES
        narrowing: set[str] = set()
        remembered: Status | None = None
        calls = self.calls(state, pod)
        state.skip_filter_plugins |= calls.filters_left_out
        for name, ask in calls.pre_filter:
            try:
                answer = ask(state, pod, nodes)
                if answer is None:
                    continue
                if answer is SKIP:  # the most frequent answer
                    state.skip_filter_plugins.add(name)
                    continue
                if isinstance(answer, PreFilterResult):
                    result = _narrowed(result, answer, name, narrowing)
                    if result.node_names is not None and not result.node_names:
                        return result, _nothing_left(narrowing), narrowing
                    continue
                status = checked(answer, "a PreFilterResult, a Status or None")
            except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
                return result, failure_of(name, "PreFilter", problem, ask), set()
            if is_skip(status):
                state.skip_filter_plugins.add(name)
            elif status is not None and not is_success(status):
                if status.code not in _PRE_FILTER_REJECTS:
                    return (
                        result,
                        as_error(status, "PreFilter", name, ask, allowed=_PRE_FILTER),
                        set(),
                    )
                remembered = status.with_plugin(name)
                if status.code is not Code.UNSCHEDULABLE:
                    return result, remembered, set()
        return result, remembered, narrowing

    def run_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Update the PreFilter state for a pod that a what-if adds to a node. Returns an Error or
        None."""
        calls = self.calls(state, pod).add_pod
        return _changed(calls, "AddPod on PreFilter", state, pod, changed=added, node=node)

    def follows_added_pods(self, state: CycleState, pod: PodInfo) -> bool:
        """Whether a plugin that does not skip updates its PreFilter state for an added pod."""
        calls = self.calls(state, pod).add_pod
        return any(name not in state.skip_filter_plugins for name, _ in calls)

    def run_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Update the PreFilter state for a pod that a what-if removes from a node. Returns an Error
        or None."""
        calls = self.calls(state, pod).remove_pod
        return _changed(calls, "RemovePod on PreFilter", state, pod, changed=removed, node=node)

    # ---- Filter ---------------------------------------------------------------------------

    @timed_point("Filter")
    def run_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeView,
        feasible: NodeMask | None = None,
    ) -> FilterOutcome:
        """Run each Filter plugin for the nodes that earlier plugins did not reject."""
        return self._filter(state, pod, nodes, feasible)

    def _filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask | None = None
    ) -> FilterOutcome:
        if len(nodes) == 1 and state.cached_results is None and (feasible is None or feasible[0]):
            return filter_one(self.calls(state, pod), state, pod, nodes)
        if feasible is None:
            feasible = np.ones(len(nodes), np.bool_)
        outcome = FilterOutcome(nodes, feasible)
        skipped = state.skip_filter_plugins
        for name, ask in self.calls(state, pod).filter:
            if name not in skipped:
                outcome.evaluate(name, ask, state, pod)
                if outcome.is_settled:
                    break
        return outcome

    def filter_answers(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> list[tuple[str, FilterOutcome]]:
        """The result of each Filter plugin that was not skipped, for all ``nodes``."""
        answers: list[tuple[str, FilterOutcome]] = []
        for name, ask in self.calls(state, pod).filter:
            if name not in state.skip_filter_plugins:
                outcome = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
                outcome.evaluate(name, ask, state, pod)
                answers.append((name, outcome))
        return answers

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, node_name: str
    ) -> Status | None:
        """Filter one node twice, with the pods nominated to it and without; both must pass.

        Only other pods of equal or higher priority count. Upstream:
        RunFilterPluginsWithNominatedPods.
        """
        position = snapshot.nodes.position(node_name)
        assert position is not None, f"no node {node_name}"
        added = self._nominated_there(pod, node_name)
        if added:
            status = self._verdict_with(added, state, pod, snapshot, position=position)
            if not is_success(status):
                return status
        return self._verdict(state, pod, snapshot, position)

    def nominated_ahead(self, pod: PodInfo) -> Mapping[str, Sequence[PodInfo]]:
        """By node name: the nominated pods that this pod must leave room for."""
        return self._nominator.nominated_ahead(pod)

    def _nominated_there(self, pod: PodInfo, node_name: str) -> list[PodInfo]:
        """Those of one node."""
        return [
            other
            for other in self._nominator.nominated_pods_for_node(node_name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]

    def _verdict_with(
        self,
        added: Sequence[PodInfo],
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        *,
        position: int,
    ) -> Status | None:
        what_if, node = state.clone(), snapshot.nodes.info(position)
        (missing,) = snapshot.nodes.take([position]).not_placed([added])
        with snapshot.trial() as trial:
            for other in missing:
                status = self.run_add_pod(what_if, pod, trial.assume(other, node.name), node)
                if not is_success(status):
                    return status
            return self._verdict(what_if, pod, snapshot, position)

    def _verdict(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, position: int
    ) -> Status | None:
        outcome = self._filter(state, pod, snapshot.nodes.take([position]))
        return outcome.error or outcome.status_of(0)

    # ---- PostFilter -----------------------------------------------------------------------

    @timed_point("PostFilter")
    def run_post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        """The first Success wins. Unresolvable, Wait and Error end the run. Messages of other
        rejections are joined."""
        reasons: list[str] = []
        blamed = ""
        best: Nomination | None = None
        for name, ask in self.calls(state, pod).post_filter:
            try:
                nomination, answer = checked_pair(
                    ask(state, pod, node_to_status), POST_FILTER_RESULT
                )
                status = checked(answer)
                if not isinstance(nomination, Nomination | None):
                    raise WrongAnswer(described((nomination, answer)), POST_FILTER_RESULT)
            except BaseException as problem:  # noqa: BLE001
                return None, failure_of(name, "PostFilter", problem, ask)
            if status is None or status.code is Code.SUCCESS:
                return nomination, (status or Status(Code.SUCCESS)).with_plugin(name)
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return nomination, status.with_plugin(name)
            if status.code is Code.WAIT:
                # A CandidateReview waits for an extender.
                return None, status.with_plugin(name)
            if status.code not in _PLAIN_REJECTIONS:
                if status.code is Code.ERROR and status.reasons:
                    # The reasons stay unchanged, because they end the pod's message.
                    return None, status.with_plugin(name)
                return None, as_error(status, "PostFilter", name, ask, allowed=REJECTION_CODES)
            if nomination is not None and nomination.mode is not NominatingMode.NOOP:
                best = nomination
            reasons += status.reasons
            blamed = blamed or name
        if not self.plugins.post_filter:
            return None, None
        return best, _all_rejected(tuple(reasons), blamed)

    def repetition(self, pod: PodInfo) -> Repetition:
        """How long equal pods get the last answer of PostFilter, which was for this pod."""
        unconcerned, longest = self.unconcerned(pod), Repetition.UNTIL_OTHER_STATUSES
        for plugin in self.plugins.post_filter:
            if plugin.instance_name not in unconcerned:
                longest = min(longest, plugin.repetition())
        return longest

    def count_repeats(self, count: int) -> None:
        """So many equal pods got the last answer of PostFilter without a call."""
        for plugin in self.plugins.post_filter:
            plugin.count_repeats(count)

    # ---- Score ----------------------------------------------------------------------------

    @timed_point("PreScore")
    def run_pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """Any status other than Success and Skip is an Error."""
        for name, ask in self.calls(state, pod).pre_score:
            try:
                status = ask(state, pod, nodes)
                if status is None:
                    continue
                if status is SKIP:
                    state.skip_score_plugins.add(name)
                    continue
                status = checked(status)
            except BaseException as problem:  # noqa: BLE001
                return failure_of(name, "PreScore", problem, ask)
            if is_skip(status):
                state.skip_score_plugins.add(name)
            elif status is not None and not is_success(status):
                return as_error(status, "PreScore", name, ask, allowed=(Code.SKIP,))
        return None

    @timed_point("Score")
    def run_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> ScoreTable | Status:
        """Raw, normalized and weighted scores of every instance that was not skipped."""
        if self.graph is not None:
            return graph_scores(self.graph, self.calls(state, pod), state, pod, nodes=nodes)
        columns: list[PluginScores] = []
        skipped, calls = state.skip_score_plugins, self.calls(state, pod).score
        for call in calls:
            if call.name in skipped:
                continue
            try:
                columns.append(call.column(state, pod, nodes))
            except BaseException as problem:  # noqa: BLE001
                return failure_of(call.name, "Score", problem)
        totals = total_scores(columns, len(nodes))
        if not calls:
            totals += 1  # upstream: without Score plugins every node gets 1
        return ScoreTable(nodes, columns, totals)

    @timed_point("PlacementGenerate")
    def run_placement_generate(
        self, group: GroupState | GroupTree, nodes: NodeView
    ) -> Sequence[Placement] | Status:
        """The placements that the plugin makes, one at least, or a rejection or an Error; without a
        plugin the nodes as they are."""
        plugin = next(iter(self.plugins.placement_generate), None)
        if plugin is None:
            return (Placement(),)
        name, ask = plugin.instance_name, plugin.generate_placements
        try:
            answer = ask(group, nodes)
            if not isinstance(answer, Status):
                self._placements.check(answer, nodes)
        except BaseException as problem:  # noqa: BLE001 - the status names the plugin
            return failure_of(name, "PlacementGenerate", problem, ask)
        if not isinstance(answer, Status):
            return answer or unschedulable(NO_PLACEMENTS).with_plugin(name)
        if answer.code is Code.ERROR and answer.reasons:
            # Upstream does not say which plugin failed.
            return answer.with_plugin(name)
        return rejection_or_error(answer, "PlacementGenerate", name, ask)

    @timed_point("PlacementScore")
    def run_placement_score(
        self, group: GroupState | GroupTree, placements: Sequence[PlacementAssignments]
    ) -> list[int] | Status:
        """The total score of each placement, in order; an error if a plugin fails."""
        totals = [0] * len(placements)
        for plugin, weight in self.plugins.placement_score:
            name, ask = plugin.instance_name, plugin.score_placement
            try:
                if isinstance(plugin, JointPlacementScore):
                    scores = plugin.score_placements(group, placements)
                else:
                    scores = [ask(group, placement) for placement in placements]
                scores = plugin.normalize_placements(group, scores)
                wrong = [score for score in scores if not 0 <= score <= MAX_NODE_SCORE]
                if wrong or len(scores) != len(placements):
                    expected = f"one int in 0..{MAX_NODE_SCORE} for each placement"
                    raise WrongAnswer(described(scores), expected, plugin.normalize_placements)
            except BaseException as problem:  # noqa: BLE001 - the status names the plugin
                return failure_of(name, "PlacementScore", problem, ask)
            totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
        return totals

    # ---- Reserve, Permit, on the way to PreBind -------------------------------------------

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """The first failure ends the run. The caller then calls `run_unreserve`."""
        calls = self.calls(state, pod).reserve
        if not calls:
            return self.stopwatches["Reserve"].idle()
        return reserve(self, calls, state, pod, node_name=node_name)

    @timed_point("Unreserve")
    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> list[Status]:
        """Run all plugins in reverse order, also after a failure. Returns the failures."""
        failures: list[Status] = []
        for name, ask in self.calls(state, pod).unreserve:
            try:
                ask(state, pod, node_name)
            except BaseException as problem:  # noqa: BLE001
                failures.append(failure_of(name, "Unreserve", problem, ask))
        return failures

    def run_permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, dict[str, float]]:
        """Returns (rejection, error or WAIT; instance → seconds to wait at most)."""
        calls = self.calls(state, pod).permit
        if calls:
            return permit(self, calls, state, pod, node_name=node_name)
        return self.stopwatches["Permit"].idle(), {}

    def run_pre_bind_pre_flights(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        """SKIP if no PreBind plugin has work. Plugins without work go into the CycleState."""
        calls = self.calls(state, pod).pre_bind_pre_flight
        if calls:
            return pre_flights(self, calls, state, pod, node_name=node_name)
        self.stopwatches["PreBindPreFlight"].idle(Code.SKIP)
        return SKIP


# ---- calls and results ---------------------------------------------------------------------


def _changed(
    calls: Iterable[tuple[str, ChangePod]],
    point: str,
    state: CycleState,
    pod: PodInfo,
    *,
    changed: PodInfo,
    node: NodeInfo,
) -> Status | None:
    """Call AddPod, or RemovePod, of the plugins that do not skip. Returns an Error or None."""
    for name, call in calls:
        if name in state.skip_filter_plugins:
            continue
        try:
            status = checked(call(state, pod, changed, node))
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's
            return failure_of(name, point, problem, call)
        if status is not None and not is_success(status):
            return as_error(status, point, name, call)
    return None


@lru_cache(maxsize=64)
def _all_rejected(reasons: tuple[str, ...], plugin: str) -> Status:
    """The status of PostFilter; pods of one template have mostly the same."""
    return Status(Code.UNSCHEDULABLE, reasons, plugin)


def _narrowed(
    result: PreFilterResult, answer: PreFilterResult, name: str, narrowing: set[str]
) -> PreFilterResult:
    if answer.node_names is not None:
        narrowing.add(name)
    return result.merge(answer)


def _nothing_left(narrowing: Iterable[str]) -> Status:
    names = sorted(narrowing)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    listed = " ".join(names)
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")
