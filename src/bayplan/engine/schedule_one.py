"""CycleRunner: runs the steps of a scheduling cycle.

    1 look up   2 pre_filter   3 nominated node   4 answer from a ranking   5 filter
    6 extenders' filter   7 extenders' scores   8 pre_score and score   9 select

After the last step `placements.py` assumes the pod. A cycle that stops for the call of an extender
starts again at the first step when the answer comes, and takes the answers that it has. A node that
the extenders were not called for is left out, and a node that has no room any more is not chosen.
Upstream: schedule_one.go, algorithm.go (v1.37).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayplan.engine.cycle import NO_NODE_FITS, Cycle
from bayplan.engine.extenders.results import AnsweredQuestion, Extender, Extenders, Question
from bayplan.engine.ranked_domain import DomainRows
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.reuse_steps import ReuseSteps
from bayplan.framework.filtering import FilterOutcome, RejectionEntry
from bayplan.framework.scoring import Choice, choose
from bayplan.framework.status import NO_NODES_AVAILABLE, Code, Status, is_success
from bayplan.framework.tie_break import break_ties
from bayplan.framework.types import PreFilterResult
from bayplan.profile.filter_runner import filter_overlay, only_amounts_matter
from bayplan.queue.nominator import Nominator
from bayplan.state.amounts_overlay import with_added
from bayplan.state.cache import Snapshot
from bayplan.state.columns import Mask, Rows, all_true, is_any
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: With sampling at least this many feasible nodes are collected (upstream:
#: minFeasibleNodesToFind).
SAMPLED_NODES_MIN = 100


class CycleRunner:
    """Runs cycles step by step. It is deterministic, and does not know the queue and the cache."""

    def __init__(
        self,
        nominator: Nominator,
        seed: int,
        extenders: Iterable[Extender],
        caches: Mapping[str, ResultCache] | None = None,
    ) -> None:
        """``caches``: by profile; a profile without a cache evaluates every plugin."""
        self.nominator = nominator
        self.seed = seed
        self.extenders = Extenders(extenders)
        self._has_extenders = bool(self.extenders)
        self.caches: Mapping[str, ResultCache] = {} if caches is None else caches
        self._reuse = ReuseSteps(nominator, seed, self.extenders, self.caches)
        #: Where the next sampled search starts in the order of the draw, per profile.
        self.sampling_starts: dict[str, int] = {}
        self._steps: tuple[Callable[[Cycle], Question | None], ...] = (
            self._reuse.look_up,
            self._pre_filter,
            self._nominated_node,
            self._reuse.answer,
            self._filter,
            self._ask_extenders,
            self._ask_scores,
            self._score,
            self._select,
        )

    def run(self, cycle: Cycle) -> Question | None:
        """Run steps until the cycle is done; returns None, or the call of an extender that the
        cycle stops for."""
        while cycle.choice is None and cycle.status is None:
            cycle.question = self._steps[cycle.step](cycle)
            if cycle.question is not None:
                return cycle.question
            cycle.step += 1
        self._reuse.learn(cycle)
        return None

    def resume(
        self, cycle: Cycle, snapshot: Snapshot, answered: AnsweredQuestion
    ) -> Question | None:
        """Start a cycle again with the answer that it stopped for; returns as `run`."""
        assert answered.question is cycle.question, f"{cycle.pod!r} waits for another answer"
        cycle.extender_round.take(answered)
        cycle.begin_anew(snapshot)
        return self.run(cycle)

    def may_rank(self, cycle: Cycle) -> bool:
        """Whether the cycle looks at all nodes, and only this profile's plugins decide."""
        return self._reuse.may_rank(cycle)

    @property
    def domain_rows(self) -> DomainRows:
        """The rows of nodes by their names."""
        return self._reuse.domain_rows

    # ---- steps ----------------------------------------------------------------------------

    def _pre_filter(self, cycle: Cycle) -> None:
        nodes = cycle.snapshot.nodes
        if not len(nodes):
            cycle.status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_NODES_AVAILABLE,))
            return
        run = cycle.framework.run_pre_filter
        result, status, cycle.narrowing = run(cycle.state, cycle.pod, nodes)
        if status is not None and not is_success(status):
            cycle.status = status
            return
        cycle.node_names = result.node_names
        if cycle.within is not None:
            cycle.node_names = result.merge(PreFilterResult(cycle.within)).node_names
        if cycle.within is not None and cycle.node_names == cycle.within:
            cycle.candidates = nodes.take(self.domain_rows.positions(cycle.within, nodes))
        else:
            cycle.candidates = _candidates(nodes, cycle.node_names)

    def _nominated_node(self, cycle: Cycle) -> Question | None:
        """If the node that the pod is nominated to still fits, no other node is evaluated.

        Extenders are called for this node alone. Upstream: evaluateNominatedNode.
        """
        name = cycle.pod.nominated_node_name
        if not name or cycle.extender_round.is_nominated_node_out:
            return None
        assert cycle.candidates is not None
        position = cycle.candidates.position(name)
        if position is not None:
            question = self._try_nominated(cycle, name, position)
            if question is not None or cycle.choice is not None:
                return question
        # An Error does not end the cycle: the node is evaluated again with all other nodes.
        cycle.status = cycle.outcome = None
        cycle.extender_round.give_up_nominated_node()
        return None

    def _try_nominated(self, cycle: Cycle, name: str, position: int) -> Question | None:
        assert cycle.candidates is not None
        framework = cycle.framework
        status = framework.filter_with_nominated(cycle.state, cycle.pod, cycle.snapshot, name)
        if not is_success(status):
            return None
        only = cycle.candidates.take([position])
        cycle.outcome = FilterOutcome(only, np.ones(1, np.bool_))
        question = self._ask_extenders(cycle)
        if question is None and cycle.status is None:
            cycle.choice = Choice(name)
        return question

    def _filter(self, cycle: Cycle) -> None:
        nodes = cycle.candidates
        assert nodes is not None
        if not len(nodes):
            # The nodes that PreFilter named do not exist. No plugin is called for an empty view.
            cycle.outcome = FilterOutcome(nodes, np.zeros(0, np.bool_))
            return
        outcome = self._reuse.filter(cycle, nodes) or self._filter_all(cycle, nodes)
        cycle.outcome = outcome
        if outcome.error is not None:
            cycle.status = outcome.error
        elif not cycle.extender_round.has_answers:
            self._sample(cycle, outcome)

    def _ask_extenders(self, cycle: Cycle) -> Question | None:
        assert cycle.outcome is not None
        if not self._has_extenders:
            cycle.status = None if is_any(cycle.outcome.feasible) else NO_NODE_FITS
            return None
        return _taken(cycle, cycle.extender_round.filter(self.extenders, cycle.pod, cycle.outcome))

    def _ask_scores(self, cycle: Cycle) -> Question | None:
        assert cycle.outcome is not None
        if not self._has_extenders:
            return None
        return _taken(
            cycle, cycle.extender_round.prioritize(self.extenders, cycle.pod, cycle.outcome)
        )

    def _score(self, cycle: Cycle) -> None:
        outcome, framework = cycle.outcome, cycle.framework
        assert outcome is not None
        nodes, feasible_count = outcome.nodes, outcome.feasible_count
        if feasible_count == 1:
            cycle.choice = Choice(nodes.name(int(np.argmax(outcome.feasible))))
            return
        if feasible_count < len(nodes):
            nodes = nodes.take(outcome.feasible)
        status = framework.run_pre_score(cycle.state, cycle.pod, nodes)
        if status is not None and not is_success(status):
            cycle.status = status
            return
        scored = self._reuse.score(cycle, nodes)
        if scored is None:
            scored = framework.run_score(cycle.state, cycle.pod, nodes)
        if isinstance(scored, Status):
            cycle.status = scored
            return
        if cycle.extender_round.has_answers:
            cycle.extender_round.add_scores(scored)
        cycle.table = scored

    def _select(self, cycle: Cycle) -> None:
        assert cycle.table is not None
        if not cycle.framework.is_plain_sum:
            keys = cycle.framework.calls(cycle.state, cycle.pod).tie_break
            cycle.status = break_ties(keys, cycle.state, cycle.pod, cycle.table)
            if cycle.status is not None:
                return
        queued = cycle.queued
        assert cycle.table is not None
        cycle.choice = choose(cycle.table, self.seed, queued.pod.uid, queued.attempts)

    # ---- inside ---------------------------------------------------------------------------

    def _filter_all(self, cycle: Cycle, nodes: NodeView) -> FilterOutcome:
        nominated = _nominated_nodes(nodes, self.nominator.nominated_ahead(cycle.pod))
        if not nominated.names:
            return cycle.framework.run_filter(cycle.state, cycle.pod, nodes, all_true(len(nodes)))
        return _filter_at_once(cycle, nodes, nominated) or _filter_each(cycle, nodes, nominated)

    def _sample(self, cycle: Cycle, outcome: FilterOutcome) -> None:
        """Apply percentageOfNodesToScore: only the first feasible nodes from a rotating start
        remain."""
        percentage = cycle.framework.plugins.percentage_of_nodes_to_score
        if not 0 < percentage < 100:
            return
        profile = cycle.framework.profile_name
        start = self.sampling_starts.get(profile, 0)
        outcome.feasible, looked_at = sampled(outcome, percentage, start)
        self.sampling_starts[profile] = (start + looked_at) % cycle.snapshot.node_count


def _taken(cycle: Cycle, question_or_status: Question | Status | None) -> Question | None:
    """The call of an extender to stop for. A status ends the cycle."""
    if isinstance(question_or_status, Status):
        cycle.status = question_or_status
        return None
    return question_or_status


def _candidates(nodes: NodeView, names: frozenset[str] | None) -> NodeView:
    return nodes if names is None else nodes.take(nodes.positions(list(names)))


def sampled(outcome: FilterOutcome, percentage: int, start: int) -> tuple[Mask, int]:
    """Returns (the feasible nodes that remain, how many nodes were looked at until then).

    From a rotating start in the order of the draw, the first max(100, n x percentage / 100)
    feasible nodes of n candidates remain. Upstream: numFeasibleNodesToFind.
    """
    count = len(outcome.nodes)
    needed_count = max(SAMPLED_NODES_MIN, count * percentage // 100)
    if needed_count >= count:
        return outcome.feasible, count
    order = np.roll(outcome.nodes.table.draw_order(), -(start % count))
    feasible_counts = np.cumsum(outcome.feasible[order])
    if feasible_counts[-1] <= needed_count:
        return outcome.feasible, count
    looked_at = int(np.searchsorted(feasible_counts, needed_count)) + 1
    is_sampled = np.zeros(count, np.bool_)
    is_sampled[order[:looked_at]] = True
    return is_sampled & outcome.feasible, looked_at


# ---- nominated nodes ------------------------------------------------------------------------


class _NominatedNodes(NamedTuple):
    """The nodes with nominated pods of the pod's priority or a higher one, by position.

    Such a node must pass Filter twice: with these pods and without them. The first rejection
    counts. Upstream: RunFilterPluginsWithNominatedPods.
    """

    positions: Rows
    names: Sequence[str]
    pods: Sequence[Sequence[PodInfo]]


def _nominated_nodes(
    nodes: NodeView, pods_by_name: Mapping[str, Sequence[PodInfo]]
) -> _NominatedNodes:
    """The candidates with nominated pods. ``pods_by_name``: the nominated pods of all nodes that
    have some."""
    positions = nodes.positions(list(pods_by_name))
    names = nodes.take(positions).names()
    return _NominatedNodes(positions, names, [pods_by_name[name] for name in names])


def _filter_at_once(
    cycle: Cycle, nodes: NodeView, nominated: _NominatedNodes
) -> FilterOutcome | None:
    """Evaluate all nodes with nominated pods at once, in an overlay that has these pods. None: pods
    on a node affect the Filters through more than amounts, or a Filter failed."""
    framework, state, pod = cycle.framework, cycle.state, cycle.pod
    if not only_amounts_matter(framework, state) or framework.follows_added_pods(state, pod):
        return None
    positions, some = nominated.positions, nodes.take(nominated.positions)
    overlay = with_added(some, some.not_placed(nominated.pods))
    with_pods = filter_overlay(framework, state.clone(), pod, overlay)
    if with_pods.error is not None:
        return None
    feasible = all_true(len(nodes))
    feasible[positions] = with_pods.feasible
    outcome = framework.run_filter(state, pod, nodes, feasible)
    # A node that was rejected for several reasons has the highest of their codes.
    codes = with_pods.codes(some, Code.SUCCESS)
    for entry in with_pods.entries:
        at = entry.positions
        moved = RejectionEntry(entry.plugin, entry.code, entry.reasons, positions[at], codes[at])
        outcome.entries.append(moved)
    return outcome


def _filter_each(cycle: Cycle, nodes: NodeView, nominated: _NominatedNodes) -> FilterOutcome:
    """Evaluate each node with nominated pods in a trial."""
    feasible = all_true(len(nodes))
    feasible[nominated.positions] = False
    outcome = cycle.framework.run_filter(cycle.state, cycle.pod, nodes, feasible)
    for position, name in zip(nominated.positions.tolist(), nominated.names, strict=True):
        if outcome.error is None:
            status = cycle.framework.filter_with_nominated(
                cycle.state, cycle.pod, cycle.snapshot, name
            )
            outcome.settle(position, status)
    return outcome
