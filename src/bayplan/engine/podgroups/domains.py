"""Where a group may be placed: anywhere, or within one domain of a topology key.

The domains of a required key are tried one after another, each with all members. The best domain is
the one in which most members fit. Among equal ones it is the one whose nodes score highest, then
the first by name. The domains of preferred keys are tried in the same way, one key after another,
within the domains of the required key. If no preferred domain suffices, the group may be placed in
any domain of the required key. Members that already have nodes determine the domain. Upstream:
KEP-5732, TopologyPlacementGenerator.

If no domain of a key suffices for members that are placed one after another, an arrangement of all
members may suffice; see `arranged_pass`. A group that is divided into slices is always arranged.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, final

from msgspec import Struct

from bayplan.engine.podgroups.arranged_pass import AloneMasks, ArrangedPass, may_search
from bayplan.engine.podgroups.equal_members import equal_members, members_kind, with_ranking_of_now
from bayplan.engine.podgroups.topology import Domains, Worth, Worths
from bayplan.engine.podgroups.trial import EqualMembers, PodGroupTrial, TrialSetup
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
class DomainTrialMetrics:
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


#: From so many passes of single members on, it pays to count first what each domain has free.
_COUNTED_FROM: Final = 500
#: The worth of a domain that has too little free for all members.
_TOO_SMALL: Final = Worth(-1, 0)

EVERYWHERE: Final = Placement()
_NOWHERE: Final = Placement("", frozenset())


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
    """The pass of the best domain, with its placements in the trial. If the group fits nowhere, it
    is the pass that explains why. ``only``: the only domain of the required key that may be used;
    "": any. ``inside``: the placement of the group above."""
    wide = _acceptable(setup, members, state, only=only, inside=inside)
    if isinstance(wide, Status):
        return PodGroupTrial(setup, trial).without_placement(wide)
    passes = _Passes(setup, trial, members, needed_count)
    return _Search(setup, passes, state, wide).run()


@final
class _Search:
    """Tries the domains of a group, level after level, until one suffices."""

    def __init__(
        self, setup: TrialSetup, passes: "_Passes", state: GroupState, wide: Sequence[Placement]
    ) -> None:
        """``wide``: the acceptable domains, at least one."""
        assert state.group is not None, "no attempt is made at a group without an object"
        self._setup = setup
        self._passes = passes
        self._state = state
        self._group = state.group
        self._wide = wide
        self._has_placements = setup.has_placements_for(state)
        self._searches = may_search(setup, state.group, passes.members)
        #: Why the last arranged pass found nothing.
        self._problem = ""
        self._is_counted = False
        #: The last pass that placed members one after another.
        self._failed: PodGroupTrial | None = None

    def run(self) -> PodGroupTrial:
        """The pass of the best domain, as `best_pass` returns it."""
        setup, group, wide = self._setup, self._group, self._wide
        assert setup.cluster.loan is not None
        narrow = _preferred(
            setup.domains, setup.cluster.loan, group.preferred_topologies, self._state, wide=wide
        )
        for key, domains in (*narrow, (group.required_topology, wide)):
            sufficing = self._try_level(key, domains)
            if sufficing is not None:
                return sufficing
        is_anywhere = not narrow and wide == [EVERYWHERE]
        return self._explained(is_anywhere=is_anywhere)

    def _try_level(self, key: str, domains: Sequence[Placement]) -> PodGroupTrial | None:
        """The pass of the best domain of a key, or a pass that ends the search. None: no domain
        suffices."""
        passes, needed_count = self._passes, self._passes.needed_count
        counts = not self._group.is_upstream
        counts = counts and len(domains) * len(passes.members) >= _COUNTED_FROM
        self._is_counted |= counts
        arranged = None
        if self._searches or counts:
            arranged = ArrangedPass(
                self._setup,
                passes.members,
                self._state,
                key=key,
                domains=domains,
                needed_count=needed_count,
                masks=passes.masks,
            )
        failed = self._failed = None
        if not self._group.slices:
            promising = arranged.promising_domains if arranged and counts else None
            search = arranged if self._searches else None
            tried = domains if search is None else search.promising_domains()
            failed = self._failed = self._one_by_one(domains, tried, promising)
        if failed is not None and (failed.fits(needed_count) or failed.is_undone):
            return failed
        if not self._searches or arranged is None or not (failed is None or failed.placed):
            return None
        if failed is not None:
            failed.undo()
        if not self._group.slices and arranged.has_one_kind:
            # Such members fit in any order, or in none.
            return None
        found = arranged.run(passes.trial)
        self._problem = arranged.problem
        return found

    def _one_by_one(
        self,
        domains: Sequence[Placement],
        tried: Sequence[Placement],
        promising: Callable[[], Sequence[Placement]] | None,
    ) -> PodGroupTrial | None:
        """The best of the passes that place the members one after another. ``tried``: the domains
        of the level that may suffice."""
        if domains is not self._wide or len(self._wide) > 1:
            choose = None
            if self._has_placements:
                choose = partial(by_scores, self._setup, self._passes.members, self._state)
            return self._passes.best(tried, promising=promising, choose=choose)
        if self._has_placements:
            return self._passes.alone(self._wide[0])
        return self._passes.run(self._wide[0])

    def _explained(self, *, is_anywhere: bool) -> PodGroupTrial:
        """The pass that explains why no domain suffices."""
        passes = self._passes
        failed = self._failed or passes.run(self._wide[0])
        failed.search_problem = self._problem
        if self._has_placements:
            failed.placement_count = len(self._wide)
        if not is_anywhere:
            # An event that helps in another domain helps the group, too.
            failed.elsewhere = passes.rejecting | {TOPOLOGY_NAME}
            if self._searches or self._is_counted:
                # No pass ran in the domains without enough places, so no pass names their plugins.
                filters = passes.framework.plugins.filter
                failed.elsewhere |= {plugin.instance_name for plugin in filters}
        return failed


def domain_of_members(
    domains: Domains, snapshot: Snapshot, state: GroupState | None
) -> frozenset[str] | None:
    """The nodes for a member of a group whose other members have nodes; None: all nodes. A member
    of a divided group goes to a slice that lacks one."""
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
    above; or a text that says why it makes none."""
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
    """The acceptable domains, at least one; or a text that says why the profile's plugin makes no
    placements."""
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


@final
class _Passes:
    """Passes over the same members, in domain after domain."""

    def __init__(
        self,
        setup: TrialSetup,
        trial: Trial,
        members: Sequence[QueuedPodInfo],
        needed_count: int,
    ) -> None:
        self._setup = setup
        self.trial = trial
        self.members = members
        self.needed_count = needed_count
        self.framework = setup.frameworks[members[0].pod.scheduler_name]
        self._watch = DomainTrialMetrics(setup.telemetry, self.framework.profile_name)
        #: Plugins that rejected members.
        self.rejecting = set[str]()
        #: The members, if it is known that they are equal; and whether this was looked up.
        self._equal: EqualMembers | None = None
        self._is_looked_up = False
        #: Where a member fits if it is the only one. It is read while nothing is placed.
        self.masks = AloneMasks(setup, self.are_equal)

    def are_equal(self) -> bool:
        """Whether one ranking of all nodes answers for all members. It is called while nothing is
        placed."""
        return (self._equal if self._is_looked_up else self._look_up()) is not None

    def _look_up(self) -> EqualMembers | None:
        """The members with a ranking that is up to date, if they are equal."""
        if not self._is_looked_up:
            self._is_looked_up = True
            self._equal = equal_members(self._setup, self.members)
        elif self._equal is not None:
            # The passes before may have changed more than the ranking follows.
            self._equal = with_ranking_of_now(self._setup, self._equal)
        return self._equal

    def run(self, domain: Placement, *, is_compared: bool = False) -> PodGroupTrial:
        """A pass in one domain."""
        if self._is_looked_up:
            self._look_up()
        group_trial = PodGroupTrial(
            self._setup, self.trial, domain.nodes, is_compared=is_compared, equal=self._equal
        )
        group_trial.run(self.members, self.needed_count)
        group_trial.domain = domain.name
        self.rejecting |= group_trial.blamed()
        return group_trial

    def alone(self, domain: Placement) -> PodGroupTrial:
        """The pass of the only placement. It is compared with no other pass."""
        self._watch.generated(1)
        group_trial = self.run(domain)
        self._watch.evaluated(suffices=group_trial.fits(self.needed_count))
        return group_trial

    def best(
        self,
        domains: Sequence[Placement],
        *,
        promising: Callable[[], Sequence[Placement]] | None,
        choose: "_Choose | None",
    ) -> PodGroupTrial | None:
        """The pass of the best domain, repeated in the trial. None: no domain suffices, and nothing
        is placed. ``promising``: the domains that have enough free for all members; None: only a
        pass can tell. ``choose``: chooses among the domains that suffice; None: the greatest worth
        decides."""
        if not domains:
            return None
        self._watch.generated(len(domains))
        compared = _ComparedDomains(domains, self._remembered(domains))
        if promising is not None and compared.unknown_count * len(self.members) >= _COUNTED_FROM:
            compared.leave_out({domain.name for domain in promising()})
        for place in range(len(domains)):
            if not compared.has_worth(place):
                failed = self._compare(compared, place)
                if failed is not None and choose is not None:
                    return failed
        untried = [place for place in range(len(domains)) if place not in compared.tried]
        sufficing = compared.sufficing(self.needed_count)
        self._watch.remembered(len(untried), len(sufficing.keys() & set(untried)))
        if sufficing:
            return self._chosen(compared, sufficing, choose)
        for place in untried if promising is None else ():
            # A pass runs, so that the plugins that reject members are noted.
            self.run(domains[place]).undo()
        return None

    def _compare(self, compared: "_ComparedDomains", place: int) -> PodGroupTrial | None:
        """Try one domain, and compare its worth. Returns the pass if it ended with an error."""
        group_trial = self.run(compared.domains[place], is_compared=True)
        group_trial.undo()
        has_error = group_trial.error is not None
        worth = Worth(-1 if has_error else len(group_trial.pods), group_trial.total_score)
        compared.tried[place], compared.worths[place] = group_trial.pods, worth
        memory = compared.memory
        if memory is not None and group_trial.is_repeatable:
            self._setup.results.learn(memory.worths[place], memory.kind, worth)
        self._watch.evaluated(suffices=worth.placed_count >= self.needed_count)
        return group_trial if has_error else None

    def _chosen(
        self,
        compared: "_ComparedDomains",
        sufficing: Mapping[int, Worth],
        choose: "_Choose | None",
    ) -> PodGroupTrial:
        """The pass of one of the domains that suffice."""
        domains = compared.domains
        if choose is None:
            return self.run(domains[max(sufficing, key=sufficing.__getitem__)])
        pods: dict[Placement, Sequence[PodInfo]] = {}
        first_by_count: dict[int, Sequence[PodInfo]] = {}
        for place, worth in sufficing.items():
            count = worth.placed_count
            if compared.memory is None and count < len(self.members):
                pods[domains[place]] = compared.tried[place]
                continue
            # All members fit, or they are equal.
            if count not in first_by_count:
                first_by_count[count] = [one.pod for one in self.members[:count]]
            pods[domains[place]] = first_by_count[count]
        first = next(iter(pods))
        chosen = first if len(sufficing) == 1 else choose(pods)
        if isinstance(chosen, Placement):
            return self.run(chosen)
        return self.run(first).without_placement(chosen)

    def _remembered(self, domains: Sequence[Placement]) -> "_RememberedResults | None":
        """The remembered results for these members. None: the results may depend on more than the
        members and the content of the domains."""
        equal = self._look_up() if len(domains) > 1 else None
        if equal is None or equal.ranking.is_behind:
            return None
        setup, members, ranking = self._setup, self.members, equal.ranking
        worths = setup.results.of(ranking, domains, setup.runner.domain_rows)
        pod = members[0].pod
        of_members = pod.scheduler_name, uses(pod.shape), len(members), self.needed_count
        describe = partial(members_kind, ranking, members, self.needed_count)
        return _RememberedResults(setup.results.kind(of_members, describe), worths)


class _RememberedResults(Struct, frozen=True):
    """Results of trials with members of the same kind."""

    #: Members of one kind get equal results in domains of equal content.
    kind: object
    #: By domain.
    worths: Sequence[Worths]


@final
class _ComparedDomains:
    """The known worths of the domains of a level."""

    def __init__(self, domains: Sequence[Placement], memory: _RememberedResults | None) -> None:
        self.domains = domains
        self.memory = memory
        self.worths: list[Worth | None] = [None] * len(domains)
        if memory is not None:
            self.worths = [each.get(memory.kind) for each in memory.worths]
        #: The members that fit, on their nodes, by the place of a domain that was tried.
        self.tried: dict[int, Sequence[PodInfo]] = {}

    @property
    def unknown_count(self) -> int:
        return self.worths.count(None)

    def leave_out(self, promising: Container[str]) -> None:
        """Leave out the domains of unknown worth that are not promising."""
        for place, domain in enumerate(self.domains):
            if self.worths[place] is None and domain.name not in promising:
                self.worths[place] = _TOO_SMALL

    def has_worth(self, place: int) -> bool:
        """Whether the worth is known. A domain of equal content may have been tried just before."""
        if self.worths[place] is None and self.memory is not None:
            self.worths[place] = self.memory.worths[place].get(self.memory.kind)
        return self.worths[place] is not None

    def sufficing(self, needed_count: int) -> dict[int, Worth]:
        """The places and worths of the domains in which enough members fit, in the order of the
        domains."""
        return {
            place: worth
            for place, worth in enumerate(self.worths)
            if worth is not None and worth.placed_count >= needed_count
        }


#: A function: from the members that fit in each domain that suffices to the domain to use, or to an
#: error.
_Choose = Callable[[Mapping[Placement, Sequence[PodInfo]]], Placement | Status]


def by_scores(
    setup: TrialSetup,
    members: Sequence[QueuedPodInfo],
    group: GroupState | GroupTree,
    pods: Mapping[Placement, Sequence[PodInfo]],
) -> Placement | Status:
    """The domain that the plugins of PlacementScore score highest. Among equal ones it is the
    first; kube-scheduler draws one."""
    snapshot = setup.cluster.loan
    assert snapshot is not None
    nodes, rows = snapshot.nodes, setup.runner.domain_rows
    assignments = [
        PlacementAssignments(
            domain.name,
            nodes,
            placed,
            None if domain.nodes is None else rows.positions(domain.nodes, nodes),
        )
        for domain, placed in pods.items()
    ]
    totals = setup.frameworks[members[0].pod.scheduler_name].run_placement_score(group, assignments)
    if isinstance(totals, Status):
        return totals
    return list(pods)[totals.index(max(totals))]
