"""Equal members: pods of one template that a ranking of all nodes answers for.

The theory. A pass places the members of a group one after another. If all members are of one
template, and one ranking of all nodes decides about each of them, the result of the pass is a
function of three things: the nodes as they are, the number of members, and the draws among nodes
that tie. Nothing in it depends on the names of the members. So if no draw decided the pass, a group
of equal members in equal number gets the same result from the same nodes.

What is kept. `FailedPasses` has the results of failed passes by kind of members. It is made for the
usual load of a full cluster: many groups of one kind fail one after another, and each failed pass
leaves the nodes as they were. The next group of that kind then costs one look-up of its ranking in
place of a pass, and the earlier result is repeated with the names of its members.

Why it stays true. All results are dropped as soon as a node or another object changes; two
generations say so. `kind_of` names everything about the members that a ranking or a plugin reads. A
reservation, a nomination, an extender, a plugin with Reserve, a draw among ties, or a domain that
the group must stay in each make a pass depend on more than the nodes. In these cases no result is
remembered, and none is repeated.
"""

from collections.abc import Hashable, Sequence
from typing import Final, final

from msgspec import structs

from bayplan.engine.cycle import Cycle
from bayplan.engine.podgroups.trial import (
    FittingMember,
    PassResult,
    PodGroupTrial,
    TrialSetup,
)
from bayplan.engine.ranked_domain import answers_for_domains
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.engine.reuse.entry import ObjectGeneration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord
from bayplan.state.pod_groups import GroupState
from bayplan.state.resources import uses

#: A pod of a new signature is ranked at the end of its second cycle.
_RANKING_CYCLES: Final = 3


def are_equal(setup: TrialSetup, members: Sequence[QueuedPodInfo]) -> bool:
    """Whether all members are of one template, and no reservation, no nomination and no reserving
    plugin decides about them."""
    first = members[0].pod
    if setup.end.is_observed or setup.reservations.exclusive.groups:
        return False
    if setup.reservations.reserved_nodes(first):
        return False
    shape, owners = first.shape, first.metadata.owner_references
    for queued in members:
        pod = queued.pod
        if pod.shape is not shape or pod.status.nominated_node_name:
            return False
        if pod.metadata.owner_references != owners:
            return False
    calls = setup.frameworks[first.scheduler_name].calls(CycleState(), first)
    return not (calls.reserve or calls.unreserve)


def decides(ranking: RankedNodes) -> bool:
    """Whether a ranking decides about its pods, and a placed pod changes only the amounts of its
    node."""
    return answers_for_domains(ranking) and ranking.depends_on_amounts


def ranking_for(setup: TrialSetup, members: Sequence[QueuedPodInfo]) -> RankedNodes | None:
    """The ranking of all nodes for equal members. Some of its totals may be missing. None: the
    members are not equal, or something besides the nodes may decide."""
    if not are_equal(setup, members):
        return None
    first = members[0]
    framework, snapshot = setup.frameworks[first.pod.scheduler_name], setup.cluster.loan
    assert snapshot is not None
    for _ in range(_RANKING_CYCLES):
        cycle = Cycle(first, framework, snapshot, setup.telemetry.clock.now())
        if not setup.runner.may_rank(cycle):
            return None
        setup.runner.run(cycle)
        ranking = cycle.ranking
        if ranking is not None and cycle.ranked_answer is ranking:
            return ranking if decides(ranking) else None
        state, entry = cycle.state, cycle.entry
        skipped = state.skip_filter_plugins | state.skip_score_plugins
        if entry is not None and any(name not in skipped for name, _ in entry.uncached):
            return None
    return None


def kind_of(ranking: RankedNodes, members: Sequence[QueuedPodInfo], needed_count: int) -> Hashable:
    """A key: members with equal keys get equal results from equal nodes. ``ranking``: see
    `ranking_for`."""
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
        cluster is lent."""
        if self._generations != self._current_generations():
            self._results.clear()
        if not self._results or not self._may_repeat(state):
            return None
        ranking = ranking_for(self._setup, members)
        if ranking is None:
            return None
        result = self._results.get(kind_of(ranking, members, needed_count))
        return None if result is None else self._repeated(result, members)

    def learn(
        self,
        group_trial: PodGroupTrial,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        needed_count: int,
    ) -> None:
        """Remember the result of a failed pass."""
        ranking = group_trial.ranking
        if ranking is None or not self._may_repeat(state) or group_trial.error is not None:
            return
        if decides(ranking) and are_equal(self._setup, members):
            if len(self._results) >= _KINDS_MAX:
                self._results.clear()
            result = group_trial.result()
            # The members that fit are recorded as unschedulable, because the group failed.
            placed = [one._replace(record=_unschedulable(one.record)) for one in result.placed]
            kind = kind_of(ranking, members, needed_count)
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
