"""Where a group may be placed: anywhere, or within one domain of a topology key.

The domains of a required key are tried one after another, each with all members. The domain in
which most members fit is the best; then the domain whose nodes score highest; then the first by
name. The domains of preferred keys are tried in the same way, one key after another, within the
domains of the required key. If no preferred domain suffices, the group may be placed in any domain
of the required key. Members that already have nodes determine the domain. Upstream: KEP-5732,
TopologyPlacementGenerator.

If no domain of a key suffices for members that are placed one after another, an arrangement of all
members may; see `arranged_pass`. A group that is divided into slices is always arranged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, final

from msgspec import Struct

from bayplan.engine.podgroups.arranged_pass import ArrangedPass, may_search
from bayplan.engine.podgroups.equal_members import kind_of, ranking_for
from bayplan.engine.podgroups.topology import Domains, Worth, Worths
from bayplan.engine.podgroups.trial import PodGroupTrial, TrialSetup
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from bayplan.framework.placements import Placement
from bayplan.framework.plugin import PlacementAssignments
from bayplan.framework.status import Status
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.cache import Snapshot, Trial
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo
from bayplan.state.resources import uses

#: The plugin named for groups that fit in no domain. A new node or a changed label may help them.
TOPOLOGY_NAME: Final = "PodGroupTopology"
TOPOLOGY_EVENTS: Final = (
    ClusterEventWithHint(
        ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    ),
)


@final
class Watch:
    """Counts the trials of domains, and measures their duration."""

    def __init__(self, telemetry: Telemetry, profile_name: str) -> None:
        self._metrics = telemetry.metrics
        self._now = telemetry.clock.now
        self._profile_name = profile_name
        self._since_seconds = 0.0

    def generated(self, count: int) -> None:
        """Note that the trials of ``count`` domains begin."""
        if count:
            self._metrics.generated_placements.add(self._profile_name, count=count)
        self._since_seconds = self._now()

    def evaluated(self, *, suffices: bool) -> None:
        """Note that the trial of one domain has ended."""
        began, self._since_seconds = self._since_seconds, self._now()
        self._count(1, self._since_seconds - began, suffices=suffices)

    def remembered(self, count: int, sufficing_count: int) -> None:
        """Note ``count`` domains whose results were remembered, which took no time."""
        self._count(sufficing_count, 0.0, suffices=True)
        self._count(count - sufficing_count, 0.0, suffices=False)

    def _count(self, count: int, took_seconds: float, *, suffices: bool) -> None:
        if count:
            labels = "feasible" if suffices else "infeasible", self._profile_name
            self._metrics.placement_evaluations.add(*labels, count=count)
            self._metrics.placement_evaluation_duration.observe(took_seconds, *labels, count=count)


#: Passes of single members from which on it is worth it to count first what each domain has free.
_COUNTED_FROM: Final = 500
#: The worth of a domain that has too little free for all members.
_TOO_SMALL: Final = Worth(-1, 0)

EVERYWHERE: Final = Placement()
_NOWHERE: Final = Placement("", frozenset())


class _Run(Protocol):
    """Runs a pass within a domain."""

    def __call__(self, domain: Placement, *, is_compared: bool = False) -> PodGroupTrial: ...


def best_pass(
    setup: TrialSetup,
    trial: Trial,
    members: Sequence[QueuedPodInfo],
    state: GroupState,
    *,
    needed_count: int,
    only: str = "",
    inside: Placement = EVERYWHERE,
) -> PodGroupTrial:
    """The pass of the best domain, whose placements are in the trial; or, if the group fits
    nowhere, the pass that explains why. ``only``: the only domain of the required key that may be
    used; "": any. ``inside``: the placement of the group above."""
    snapshot, rejecting, group = setup.cluster.loan, set[str](), state.group
    assert snapshot is not None and group is not None
    wide = _acceptable(setup, members, state, only=only, inside=inside)
    if isinstance(wide, Status):
        return PodGroupTrial(setup, trial).without_placement(wide)
    narrow = _preferred(setup.domains, snapshot, group.preferred_topologies, state, wide=wide)
    has_placements = setup.has_placements_for(state)
    searches, problem, is_counted = may_search(setup, group, members), "", False

    def run(domain: Placement, *, is_compared: bool = False) -> PodGroupTrial:
        group_trial = PodGroupTrial(setup, trial, domain.nodes, is_compared=is_compared)
        group_trial.run(members, needed_count)
        group_trial.domain = domain.name
        rejecting.update(group_trial.blamed())
        return group_trial

    watch = Watch(setup.telemetry, members[0].pod.scheduler_name)
    compare = partial(_best, run, setup, members=members, needed_count=needed_count, watch=watch)
    alone: Callable[[Placement], PodGroupTrial] = run
    if has_placements:
        alone = partial(_alone, run, watch, needed_count)
        compare = partial(compare, choose=partial(by_scores, setup, members, state))
    failed: PodGroupTrial | None = None
    for key, domains in (*narrow, (group.required_topology, wide)):
        counts = not group.is_upstream and len(domains) * len(members) >= _COUNTED_FROM
        is_counted |= counts
        arranged_pass = None
        if searches or counts:
            arranged_pass = ArrangedPass(
                setup, members, state, key=key, domains=domains, needed_count=needed_count
            )
        search = arranged_pass if searches else None
        failed = None
        if not group.slices:
            is_compared = domains is not wide or len(wide) > 1
            tried = domains if search is None else search.promising_domains()
            promising = arranged_pass.promising_domains if arranged_pass and counts else None
            failed = compare(tried, promising=promising) if is_compared else alone(wide[0])
        if failed is not None and (failed.fits(needed_count) or failed.is_undone):
            return failed
        if search is not None and (failed is None or failed.placed):
            if failed is not None:
                failed.undo()
            arranged = search.run(trial)
            if arranged is not None:
                return arranged
            problem = search.problem
    if failed is None:
        failed = run(wide[0])
    failed.search_problem = problem
    if has_placements:
        failed.placement_count = len(wide)
    if narrow or wide != [EVERYWHERE]:
        # An event that helps in another domain helps the group.
        failed.elsewhere = rejecting | {TOPOLOGY_NAME}
        if searches or is_counted:
            # In domains without enough places no pass ran that would name a plugin.
            framework = setup.frameworks[members[0].pod.scheduler_name]
            failed.elsewhere |= {plugin.instance_name for plugin in framework.plugins.filter}
    return failed


def domain_of_members(
    domains: Domains, snapshot: Snapshot, state: GroupState | None
) -> frozenset[str] | None:
    """The nodes for a member of a group whose other members have nodes; None: all nodes. A member
    of a divided group goes where a slice lacks one."""
    if state is None or state.group is None or not state.assigned_count:
        return None
    nodes: frozenset[str] | None = None
    if state.group.required_topology:
        possible = domains.of(snapshot, state.group.required_topology, state)
        nodes = possible[0].nodes if possible else frozenset()
    return domains.lacking(snapshot, state, nodes).nodes


def why_nowhere(domains: Domains, snapshot: Snapshot, state: GroupState) -> str:
    """Why no node satisfies the required key; "" if some do."""
    key = "" if state.group is None else state.group.required_topology
    if not key or domains.of(snapshot, key, state):
        return ""
    if any(value_id >= 0 for value_id in snapshot.nodes.labels.ids(key).tolist()):
        return f"its members hold nodes that share no value of the label {key}"
    return f"no node has the label {key}"


def placements(
    setup: TrialSetup, profile_name: str, group: GroupState | GroupTree, inside: Placement
) -> list[Placement] | Status:
    """The placements that the profile's plugin makes for a group within the placement of the group
    above; or why it makes none."""
    assert setup.cluster.loan is not None
    nodes = setup.cluster.loan.nodes
    if inside.nodes is not None:
        nodes = nodes.take(nodes.positions(sorted(inside.nodes)))
    made = setup.frameworks[profile_name].run_placement_generate(group, nodes)
    return made if isinstance(made, Status) else [one.within(inside) for one in made]


def _acceptable(
    setup: TrialSetup,
    members: Sequence[QueuedPodInfo],
    state: GroupState,
    *,
    only: str,
    inside: Placement,
) -> list[Placement] | Status:
    """The acceptable domains, one at least; or why the profile's plugin makes no placements."""
    snapshot, group = setup.cluster.loan, state.group
    assert snapshot is not None and group is not None
    if setup.has_placements_for(state):
        return placements(setup, members[0].pod.scheduler_name, state, inside)
    if not group.required_topology:
        return [EVERYWHERE]
    possible = setup.domains.of(snapshot, group.required_topology, state)
    return [domain for domain in possible if only in ("", domain.name)] or [_NOWHERE]


def _preferred(
    domains: Domains,
    snapshot: Snapshot,
    keys: Iterable[str],
    state: GroupState,
    *,
    wide: Sequence[Placement],
) -> list[tuple[str, list[Placement]]]:
    """The domains of each preferred key that has some within the acceptable domains."""
    narrow: list[tuple[str, list[Placement]]] = []
    for key in keys:
        preferred = domains.of(snapshot, key, state)
        parts = [domain.within(one) for domain in preferred for one in wide]
        narrow.append((key, [domain for domain in parts if domain.nodes]))
    return [(key, preferred) for key, preferred in narrow if preferred]


# ---- comparison -----------------------------------------------------------------------------


def _alone(run: _Run, watch: Watch, needed_count: int, domain: Placement) -> PodGroupTrial:
    """The pass of the only placement, which is compared with no other."""
    watch.generated(1)
    group_trial = run(domain)
    watch.evaluated(suffices=group_trial.fits(needed_count))
    return group_trial


def _best(
    run: _Run,
    setup: TrialSetup,
    domains: Sequence[Placement],
    *,
    members: Sequence[QueuedPodInfo],
    needed_count: int,
    watch: Watch,
    promising: Callable[[], Sequence[Placement]] | None,
    choose: "_Choose | None" = None,
) -> PodGroupTrial | None:
    """The pass of the best domain, repeated in the trial; None: no domain suffices, and nothing is
    placed. ``promising``: the domains that have enough free for all members; None: a pass tells.
    ``choose``: chooses among the domains that suffice; None: the greatest worth decides."""
    if not domains:
        return None
    watch.generated(len(domains))
    known = _remembered(setup, members, needed_count, domains)
    worths: list[Worth | None] = [None] * len(domains)
    if known is not None:
        worths = [each.get(known.kind) for each in known.worths]
    unknown_count = sum(worth is None for worth in worths)
    if promising is not None and unknown_count * len(members) >= _COUNTED_FROM:
        names = {domain.name for domain in promising()}
        for place, domain in enumerate(domains):
            if worths[place] is None and domain.name not in names:
                worths[place] = _TOO_SMALL
    tried: dict[int, PodGroupTrial] = {}
    for place, domain in enumerate(domains):
        if worths[place] is not None:
            continue
        # A domain of equal content may have been tried just before.
        worth = None if known is None else known.worths[place].get(known.kind)
        if worth is None:
            if known is not None:
                # The trials before may have changed more than the ranking follows.
                ranking_for(setup, members)
            group_trial = run(domain, is_compared=True)
            group_trial.undo()
            tried[place] = group_trial
            placed_count = -1 if group_trial.error is not None else len(group_trial.placed)
            worth = Worth(placed_count, group_trial.total_score)
            if known is not None and group_trial.is_repeatable:
                setup.results.learn(known.worths[place], known.kind, worth)
            watch.evaluated(suffices=placed_count >= needed_count)
            if choose is not None and placed_count < 0:
                return group_trial
        worths[place] = worth
    all_worths = [worth for worth in worths if worth is not None]
    remembered = [place for place in range(len(domains)) if place not in tried]
    sufficing = [place for place in remembered if all_worths[place].placed_count >= needed_count]
    watch.remembered(len(remembered), len(sufficing))
    best = max(all_worths)
    if best.placed_count >= needed_count:
        if known is not None and tried:
            ranking_for(setup, members)
        if choose is None:
            return run(domains[all_worths.index(best)])
        pods: dict[int, Sequence[PodInfo]] = {}
        for place, worth in enumerate(all_worths):
            if worth.placed_count >= needed_count:
                placed = [one.pod for one in tried[place].placed] if place in tried else None
                pods[place] = placed or [one.pod for one in members[: worth.placed_count]]
        if len(pods) == 1:
            return run(domains[next(iter(pods))])
        chosen = choose({domains[place]: pods_there for place, pods_there in pods.items()})
        if isinstance(chosen, Placement):
            return run(chosen)
        return run(domains[next(iter(pods))]).without_placement(chosen)
    for place in remembered if promising is None else ():
        # The plugins that reject members there are to be noted.
        run(domains[place]).undo()
    return None


#: From the members that fit in each domain that suffices to the domain to use, or to an error.
_Choose = Callable[[Mapping[Placement, Sequence[PodInfo]]], Placement | Status]


def by_scores(
    setup: TrialSetup,
    members: Sequence[QueuedPodInfo],
    group: GroupState | GroupTree,
    pods: Mapping[Placement, Sequence[PodInfo]],
) -> Placement | Status:
    """The domain that the plugins of PlacementScore score highest; the first of equal ones, where
    kube-scheduler draws."""
    snapshot = setup.cluster.loan
    assert snapshot is not None
    nodes = snapshot.nodes
    assignments = [
        PlacementAssignments(
            domain.name, nodes.take(nodes.positions(sorted(domain.nodes or nodes.names()))), placed
        )
        for domain, placed in pods.items()
    ]
    totals = setup.frameworks[members[0].pod.scheduler_name].run_placement_score(group, assignments)
    if isinstance(totals, Status):
        return totals
    return list(pods)[totals.index(max(totals))]


class _RememberedResults(Struct, frozen=True):
    """Results of trials with members of the same kind."""

    #: Members of one kind get equal results in domains of equal content.
    kind: object
    #: By domain.
    worths: Sequence[Worths]


def _remembered(
    setup: TrialSetup,
    members: Sequence[QueuedPodInfo],
    needed_count: int,
    domains: Sequence[Placement],
) -> _RememberedResults | None:
    """The remembered results for these members. None: results may depend on more than the members
    and the content of the domains."""
    ranking = ranking_for(setup, members) if len(domains) > 1 else None
    if ranking is None or ranking.is_behind:
        return None
    results = setup.results
    worths = results.of(ranking, domains, setup.runner.domain_rows)
    pod = members[0].pod
    of_members = pod.scheduler_name, uses(pod.shape), len(members), needed_count
    kind = results.kind(of_members, partial(kind_of, ranking, members, needed_count))
    return _RememberedResults(kind, worths)
