"""Equal members: pods of one template that a ranking of all nodes answers for.

What becomes of equal members in a trial follows from the nodes alone, and from the draws. So a
result holds for the members of another group, too, if both groups are of one kind.
"""

from collections.abc import Hashable, Sequence
from typing import Final

from bayplan.engine.cycle import Cycle
from bayplan.engine.podgroups.trial import TrialSetup
from bayplan.engine.ranked_domain import answers_for_domains
from bayplan.engine.reuse.ranked_nodes import RankedNodes
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.resources import uses

#: A pod of a new signature is ranked at the end of its second cycle.
_RANKING_CYCLES: Final = 3


def are_equal(setup: TrialSetup, members: Sequence[QueuedPodInfo]) -> bool:
    """Whether all members are of one template, and no reservation, no nomination and no reserving
    plugin decides about them."""
    engine, first = setup.engine, members[0].pod
    if setup.end.is_observed or engine.reservations.reserved_nodes(first):
        return False
    shape, owners = first.shape, first.metadata.owner_references
    for queued in members:
        pod = queued.pod
        if pod.shape is not shape or pod.status.nominated_node_name:
            return False
        if pod.metadata.owner_references != owners:
            return False
    calls = engine.frameworks[first.scheduler_name].calls(CycleState(), first)
    return not (calls.reserve or calls.unreserve)


def decides(ranking: RankedNodes) -> bool:
    """Whether a ranking decides about its pods, and a placed pod changes only the amounts of its
    node."""
    return answers_for_domains(ranking) and ranking.depends_on_amounts


def ranking_for(setup: TrialSetup, members: Sequence[QueuedPodInfo]) -> RankedNodes | None:
    """All nodes as equal members rank them, up to date but for totals; None: the members are not
    equal, or something besides the nodes may decide."""
    if not are_equal(setup, members):
        return None
    engine, first = setup.engine, members[0]
    framework, snapshot = engine.frameworks[first.pod.scheduler_name], engine.cluster.loan
    assert snapshot is not None
    for _ in range(_RANKING_CYCLES):
        cycle = Cycle(first, framework, snapshot, engine.clock.now())
        if not setup.runner.may_rank(cycle):
            return None
        setup.runner.run(cycle)
        ranking = cycle.ranking
        if isinstance(ranking, RankedNodes):
            return ranking if decides(ranking) else None
        state, entry = cycle.state, cycle.entry
        skipped = state.skip_filter_plugins | state.skip_score_plugins
        if entry is not None and any(name not in skipped for name, _ in entry.uncached):
            return None
    return None


def kind_of(ranking: RankedNodes, members: Sequence[QueuedPodInfo], needed_count: int) -> Hashable:
    """Equal for members that get equal results from equal nodes. ``ranking``: see `ranking_for`."""
    plan, parts, pod = ranking.plan, ranking.owner.parts, members[0].pod
    names = [*(name for name, _ in plan.filters), *(score.name for score in plan.scores)]
    signed = tuple([(name, parts[name]) for name in names])
    amounts = uses(pod.shape)
    return pod.scheduler_name, plan.skip_set, signed, amounts, len(members), needed_count
