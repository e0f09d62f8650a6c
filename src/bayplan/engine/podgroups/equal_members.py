"""Equal members: pods that one ranking of all nodes answers for.

The theory. A pass places the members of a group one after another. If one ranking of all nodes
decides about each of them, the result of the pass is a function of three things: the nodes as they
are, the number of members, and the draws among nodes that tie. Nothing in it depends on the names
of the members, nor on labels that no plugin reads. So if no draw decided the pass, a group of equal
members in equal number gets the same result from the same nodes.

What is kept. `FailedPasses` has the results of failed passes by kind of members. It is made for the
usual load of a full cluster: many groups of one kind fail one after another, and each failed pass
leaves the nodes as they were. The next group of that kind then costs one look-up of its ranking in
place of a pass, and the earlier result is repeated with the names of its members.

Why it stays true. All results are dropped as soon as a node or another object changes; two
generations say so. `members_kind` names everything about the members that a ranking or a plugin
reads. A reservation, a nomination, an extender, a plugin with Reserve, a draw among ties, or a
domain that the group must stay in each make a pass depend on more than the nodes. In these cases no
result is remembered, and none is repeated.
"""

from collections.abc import Hashable, Sequence
from typing import Final, final

from msgspec import structs

from bayplan.engine.cycle import Cycle
from bayplan.engine.podgroups.trial import (
    EqualMembers,
    FittingMember,
    PassResult,
    PodGroupTrial,
    TrialSetup,
    serves_template,
)
from bayplan.engine.ranked_domain import decides
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.engine.reuse.entry import ObjectGeneration
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodShape
from bayplan.state.resources import uses

#: How many cycles are made until a ranking answers. For a new signature, the nodes are ranked at
#: the end of the second cycle.
_RANKING_CYCLES: Final = 3


def equal_members(setup: TrialSetup, members: Sequence[QueuedPodInfo]) -> EqualMembers | None:
    """The members and their ranking, in which totals may be missing. None: the ranking of one
    member does not answer for another one, or something besides the nodes may decide.

    The members may differ in labels, as long as no plugin that has something to say about them
    reads these labels. A cycle of one member of each template shows this."""
    pods = [queued.pod for queued in members]
    if (
        setup.end.is_observed
        or setup.reservations.is_active
        or len({uses(pod.shape) for pod in pods}) > 1
        or any(pod.status.nominated_node_name for pod in pods)
    ):
        return None
    cycles, ranking = dict[PodShape, Cycle](), None
    for queued in members:
        shape, owners = queued.pod.shape, queued.pod.metadata.owner_references
        cycle = cycles.get(shape)
        if cycle is not None and cycle.pod.metadata.owner_references == owners:
            continue
        cycle = _answered(setup, queued)
        if cycle is None or cycle.ranking is not (ranking or cycle.ranking):
            return None
        cycles[shape], ranking = cycle, cycle.ranking
    assert ranking is not None, "an attempt is made at one member at least"
    return EqualMembers(ranking, cycles)


def with_ranking_of_now(setup: TrialSetup, equal: EqualMembers) -> EqualMembers | None:
    """The same members after changes of nodes alone, with a ranking that has followed these
    changes."""
    ranking = equal.ranking
    if not ranking.is_dropped and ranking.generation == ranking.table.log.generation:
        return equal
    cycle = _answered(setup, next(iter(equal.cycles.values())).queued)
    if cycle is None or cycle.ranking is None:
        return None
    return structs.replace(equal, ranking=cycle.ranking)


def _answered(setup: TrialSetup, queued: QueuedPodInfo) -> Cycle | None:
    """A cycle of a member that a ranking of all nodes answers. None: no ranking decides alone about
    the pods of this template and owner."""
    pod, snapshot = queued.pod, setup.cluster.loan
    assert snapshot is not None
    framework = setup.frameworks[pod.scheduler_name]
    for _ in range(_RANKING_CYCLES):
        cycle = Cycle(queued, framework, snapshot, setup.telemetry.clock.now())
        if not setup.runner.may_rank(cycle):
            return None
        setup.runner.run(cycle)
        if cycle.ranking is not None and cycle.ranked_answer is cycle.ranking:
            return cycle if serves_template(cycle) else None
        state, entry = cycle.state, cycle.entry
        skipped = state.skip_filter_plugins | state.skip_score_plugins
        if entry is not None and any(name not in skipped for name, _ in entry.uncached):
            return None
    return None


def members_kind(
    ranking: RankedNodes, members: Sequence[QueuedPodInfo], needed_count: int
) -> Hashable:
    """A key: members with equal keys get equal results from equal nodes. ``ranking``: of
    `equal_members`."""
    plan, parts, pod = ranking.plan, ranking.owner.parts, members[0].pod
    names = [*(name for name, _ in plan.filters), *(score.name for score in plan.scores)]
    signed = tuple([(name, parts[name]) for name in names])
    amounts = uses(pod.shape)
    return pod.scheduler_name, plan.skip_set, signed, amounts, len(members), needed_count


# ---- failed passes --------------------------------------------------------------------------


#: Kinds of members whose results are remembered.
_KINDS_MAX: Final = 256


@final
class FailedPasses:
    """The results of failed passes by kind of members, for one state of the cluster."""

    def __init__(self, setup: TrialSetup) -> None:
        cluster = setup.cluster
        self._setup = setup
        self._log = cluster.cache.table.log
        self._objects = ObjectGeneration(cluster.cache.table, cluster.objects)
        self._results: dict[Hashable, PassResult] = {}
        #: The generations of the nodes and of all other objects.
        self._generations = (-1, -1)

    def find(
        self, members: Sequence[QueuedPodInfo], state: GroupState, needed_count: int
    ) -> PassResult | None:
        """The result that a pass over these members would have; None if only a pass can tell. The
        cluster must be lent."""
        if self._generations != self._current_generations():
            self._results.clear()
        if not self._results or not self._may_repeat(state):
            return None
        equal = equal_members(self._setup, members)
        if equal is None:
            return None
        result = self._results.get(members_kind(equal.ranking, members, needed_count))
        return None if result is None else self._repeated(result, members)

    def learn(
        self,
        group_trial: PodGroupTrial,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        needed_count: int,
    ) -> None:
        """Remember the result of a failed pass."""
        ranking, may_repeat = group_trial.ranking, self._may_repeat(state)
        if ranking is None or not may_repeat or group_trial.error is not None:
            return
        if decides(ranking) and group_trial.are_of_tried_templates(members):
            if len(self._results) >= _KINDS_MAX:
                self._results.clear()
            result = group_trial.result()
            # The members that fit are recorded as unschedulable, because the group failed.
            placed = [one._replace(record=_unschedulable(one.record)) for one in result.placed]
            kind = members_kind(ranking, members, needed_count)
            self._results[kind] = structs.replace(result, placed=placed)

    def stay(self) -> None:
        """Keep the results for the next attempt, because this one left the cluster as it was."""
        self._generations = self._current_generations()

    def _current_generations(self) -> tuple[int, int]:
        return self._log.generation, self._objects.now()

    def _may_repeat(self, state: GroupState) -> bool:
        """Whether the pass of the group is one over all nodes, and only the pass decides. A plugin
        that makes placements may make others each time."""
        group = state.group
        assert group is not None, "no attempt is made at a group without an object"
        is_in_domain = group.required_topology or group.preferred_topologies or group.slices
        is_in_domain = is_in_domain or self._setup.has_placements_for(state)
        has_reservation = self._setup.reservations.is_active
        return not (is_in_domain or has_reservation or group.min_resources)

    def _repeated(self, result: PassResult, members: Sequence[QueuedPodInfo]) -> PassResult:
        """The result of an earlier pass with the names of these members, in the order in which they
        are tried."""
        at_seconds = self._setup.telemetry.clock.now()

        def own(record: AttemptRecord | None, queued: QueuedPodInfo) -> AttemptRecord | None:
            if record is None:
                return None
            pod, attempt = queued.pod, queued.attempts
            return structs.replace(
                record, at_seconds=at_seconds, pod=pod.key, uid=pod.uid, attempt=attempt
            )

        tried = list(members)
        unplaced = [
            structs.replace(one, queued=queued, record=own(one.record, queued))
            for one in result.unplaced
            for queued in (tried[one.nth - 1],)
        ]
        places = {one.nth - 1 for one in result.unplaced}
        fitting = [queued for place, queued in enumerate(tried) if place not in places]
        placed = [
            FittingMember(queued.pod.uid, own(one.record, queued))
            for one, queued in zip(result.placed, fitting, strict=False)
        ]
        return structs.replace(result, placed=placed, unplaced=unplaced)


def _unschedulable(record: AttemptRecord | None) -> AttemptRecord | None:
    return None if record is None else structs.replace(record, result="unschedulable")
