"""Preemption for a group: victims for as many members as the group needs, or none.

A trial removes all pods of lower priority from all nodes and places the members. For groups of
other kinds than Kubernetes' own, it removes only pods up to the lowest priority at which the group
fits. Then the removed pods of the members' nodes return one after another, as long as all members
on the node still fit; if a member cannot run while certain pods are on other nodes, all removed
pods return one after another, as long as all members fit. A pod that cannot return is a victim. If
the group does not fit without all pods of lower priority, no pod is evicted. Upstream:
podgrouppreemption.go (v1.37).

A group that has to share a domain by its annotation frees the domain in which the fewest groups
lose pods. A trial removes only pods of this domain. If the members do not fit then, a plugin may
have looked at pods of other domains, and a trial without all pods of lower priority decides. A
domain is not tried if the amounts that its pods use show that more groups lose pods there than in
the best domain.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple, Protocol, final

import numpy as np
from msgspec import Struct

from bayplan.engine.exclusive_domains import domain_nodes, is_daemon
from bayplan.engine.failures import CLEAR_NOMINATION
from bayplan.engine.outbox import Outbox
from bayplan.engine.podgroups.controller import missing_resources
from bayplan.engine.podgroups.domains import best_pass
from bayplan.engine.podgroups.refusals import (
    UPSTREAM_PREFIX,
    NoPreemption,
    PreemptionPlan,
    reason,
    texts_of,
)
from bayplan.engine.podgroups.trial import PlacedMember, TrialSetup, unreserve
from bayplan.engine.sync_preemption import SyncPreemptions
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.placements import Placement
from bayplan.framework.plugin import PodGroupPostFilterPlugin
from bayplan.framework.preemption import GroupPreemption
from bayplan.framework.status import Code, is_success
from bayplan.framework.types import NominatingMode, Nomination, QueuedPodInfo
from bayplan.ports import ObjectReference
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.queue.nominator import Nominator
from bayplan.state.cache import Snapshot, Trial
from bayplan.state.disruption_units import Unit, Units
from bayplan.state.nodes import NodeView
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import NO_PRIORITY

#: Runs a step of an attempt at a group that began at a time; see `AttemptBoundary`.
Guard = Callable[[QueuedPodGroupInfo, Sequence[QueuedPodInfo], float, Callable[[], None]], None]

#: The number of domains whose plans are compared.
_PLANS_MAX: Final = 32
#: The count for a domain that does not suffice whichever pods leave. It is more than any real
#: count.
_NEVER_ENOUGH: Final = (1 << 62, 1 << 62)
PREFIX = " pod group preemption: "
NOT_HELPFUL = "preemption is not helpful for scheduling the group"
#: Upstream's words.
_NO_VICTIMS = "No preemption victims found for incoming preemptor"
_ONGOING = "ongoing preemption on nominated nodes"


#: The key of a group, or the uid of a single pod.
PodsByOwner = Mapping[object, list[PodInfo]]


class DomainToFree(NamedTuple):
    """A domain from whose nodes pods may leave."""

    #: "": all nodes.
    name: str = ""
    #: None: all nodes.
    nodes: frozenset[str] | None = None
    #: How many groups or single pods lose pods at least, and how many pods leave at least; see
    #: `_hurt`.
    hurt_at_least: tuple[int, int] = (0, 0)


ANYWHERE: Final = DomainToFree()


class Preemptor(Protocol):
    """A group of pods, or a tree of groups, for which victims are searched."""

    @property
    def members(self) -> Sequence[QueuedPodInfo]: ...

    @property
    def is_upstream(self) -> bool:
        """Whether the group is of Kubernetes' own kind. Its members are placed as kube-scheduler
        places them."""
        ...

    @property
    def is_plain(self) -> bool:
        """Whether plugins that make no room are called. They are called neither for a tree nor for
        a group whose placements are constrained. Upstream: dynamicresources.go."""
        ...

    def place(self, trial: Trial, only: str = "") -> tuple[Sequence[PlacedMember], str]:
        """Place the members in the trial. Returns (the placed members, ""). If too few fit, nothing
        is placed, and it returns (no members, the reason in upstream's words). ``only``: the only
        domain that may be used; "": any."""
        ...

    def domains_to_free(self, snapshot: Snapshot, highest: int) -> Sequence[DomainToFree]:
        """The domains of which one is freed if pods up to a priority leave. Of equally good
        domains, the first is freed."""
        ...

    def nodes_alone(self, snapshot: Snapshot, names: Set[str]) -> frozenset[str]:
        """The nodes on which no other pod may stay if members are on ``names``."""
        ...


class PodGroupToPlace(Struct, frozen=True):
    """A group of pods, of which ``needed_count`` have to find nodes."""

    setup: TrialSetup
    members: Sequence[QueuedPodInfo]
    state: GroupState
    needed_count: int

    @property
    def is_upstream(self) -> bool:
        return self.state.is_upstream

    @property
    def is_plain(self) -> bool:
        group = self.state.group
        is_constrained = group is not None and bool(group.required_topology)
        return not (is_constrained and self.setup.has_placements_for(self.state))

    def place(self, trial: Trial, only: str = "") -> tuple[Sequence[PlacedMember], str]:
        snapshot, state, count = self.setup.cluster.loan, self.state, self.needed_count
        assert snapshot is not None
        pass_ = best_pass(self.setup, trial, self.members, state, needed_count=count, only=only)
        if pass_.fits(count) and not missing_resources(state, snapshot, pass_):
            return pass_.placed, ""
        pass_.undo()
        texts = texts_of(self.setup.gates.behaviour)
        return (), reason(pass_.result(), state, len(self.members), texts)

    def domains_to_free(self, snapshot: Snapshot, highest: int) -> Sequence[DomainToFree]:
        """The domains of the required key, those with the fewest groups that could lose pods first.
        All nodes for a group without such a key, and for Kubernetes' own groups, which are placed
        as kube-scheduler places them."""
        state = self.state
        if state.group is None or self.is_upstream or not state.group.required_topology:
            return (ANYWHERE,)
        domains = self.setup.domains.of(snapshot, state.group.required_topology, state)
        is_alone = state.group.exclusive_topology == state.group.required_topology
        domain_of = {node: domain.name for domain in domains for node in domain.nodes or ()}
        pods: dict[str, dict[object, list[PodInfo]]]
        pods = {domain.name: defaultdict(list) for domain in domains}
        #: The domains that the group cannot have alone, whichever pods leave.
        shared = set[str]()
        for pod in self.setup.cluster.cache.pods():
            domain_name = domain_of.get(pod.node_name)
            if domain_name is None:
                continue
            if pod.priority <= highest:
                pods[domain_name][_owner(pod)].append(pod)
            elif is_alone and pod.group_key != state.key and not is_daemon(pod):
                shared.add(domain_name)
        in_order = sorted(domains, key=lambda domain: (len(pods[domain.name]), domain.name))
        return [
            self._to_free(snapshot, domain, pods[domain.name], is_shared=domain.name in shared)
            for domain in in_order
        ] or (ANYWHERE,)

    def _to_free(
        self, snapshot: Snapshot, domain: Placement, pods: PodsByOwner, *, is_shared: bool
    ) -> DomainToFree:
        """A domain and what may leave it. ``pods``: the pods that may leave the domain.
        ``is_shared``: another pod stays there, while the group has to be alone."""
        group, nodes = self.state.group, snapshot.nodes
        assert group is not None and domain.nodes is not None, "all nodes are no domain"
        if not Units(self.setup.cluster.group_trees, nodes).are_single:
            return DomainToFree(domain.name, domain.nodes)
        if is_shared:
            return DomainToFree(domain.name, domain.nodes, _NEVER_ENOUGH)
        inside = nodes.take(self.setup.runner.domain_rows.positions(domain.nodes, nodes))
        at_least = _hurt_at_least(self._least_needs(), inside, pods.values())
        if group.exclusive_topology == group.required_topology:
            leaving = [[pod for pod in each if not is_daemon(pod)] for each in pods.values()]
            alone = sum(map(bool, leaving)), sum(map(len, leaving))
            at_least = max(at_least[0], alone[0]), max(at_least[1], alone[1])
        return DomainToFree(domain.name, domain.nodes, at_least)

    def _least_needs(self) -> dict[str, int]:
        """By resource, the sum of the smallest requests of as many members as the group needs."""
        requests = [queued.pod.shape.requests for queued in self.members]
        names = {name for each in requests for name in each}
        return {
            name: sum(sorted(each.get(name, 0) for each in requests)[: self.needed_count])
            for name in names
        }

    def nodes_alone(self, snapshot: Snapshot, names: Set[str]) -> frozenset[str]:
        return domain_nodes(snapshot.nodes, self.state, names)


@final
class PodGroupPreemptor:
    """Finds the victims for a group. The plugin of the profile allows the preemption and evicts."""

    def __init__(
        self,
        setup: TrialSetup,
        nominator: Nominator,
        outbox: Outbox,
        evicting: SyncPreemptions,
        *,
        guard: Guard,
    ) -> None:
        self._evicting = evicting
        self._guard = guard
        self._setup = setup
        self._cluster = setup.cluster
        self._telemetry = setup.telemetry
        self._frameworks = setup.frameworks
        self._nominator = nominator
        self._outbox = outbox
        #: (generation of the nodes, the lowest priority of a pod on a node).
        self._lowest = (-1, NO_PRIORITY)

    def find(
        self, group: Preemptor, notes: Mapping[Hashable, Any] | None = None
    ) -> PreemptionPlan | NoPreemption | None:
        """Call the plugins of PodGroupPostFilter in order, until one makes room. Returns the plan,
        or why there is none; None: no plugin says anything. The cluster must be lent.

        ``notes``: the notes that the members shared in the pass; None: nothing is released.
        """
        framework = self._frameworks[group.members[0].pod.scheduler_name]
        watch = framework.stopwatches["PodGroupPostFilter"]
        start = watch.now()
        result = self._result(framework.plugins.pod_group_post_filter, group, notes)
        is_made = result is not None and result.is_being_made
        watch.took[Code.SUCCESS if is_made else Code.UNSCHEDULABLE](watch.now() - start)
        return result

    def _result(
        self,
        plugins: Iterable[PodGroupPostFilterPlugin],
        group: Preemptor,
        notes: Mapping[Hashable, Any] | None,
    ) -> PreemptionPlan | NoPreemption | None:
        text, reasons = "", list[str]()
        for plugin in plugins:
            if isinstance(plugin, GroupPreemption):
                result = self._preemption(group, plugin)
                if isinstance(result, PreemptionPlan) or result.is_final:
                    return result
                text = text or result.text
                reasons.append(result.upstream_text)
            elif group.is_plain:
                if notes is not None:
                    plugin.release_for_group(notes)
                reasons.append(plugin.group_reason)
        upstream_text = ", ".join(filter(None, reasons))
        return NoPreemption(text, upstream_text) if text or upstream_text else None

    def _preemption(
        self, group: Preemptor, plugin: GroupPreemption
    ) -> PreemptionPlan | NoPreemption:
        pods = [queued.pod for queued in group.members]
        why_not = plugin.why_not_for_group(pods)
        if why_not is not None:
            if plugin.is_making_room(pods):
                return NoPreemption(why_not, f"{UPSTREAM_PREFIX}{_ONGOING}", is_being_made=True)
            return NoPreemption(why_not, f"{UPSTREAM_PREFIX}{why_not}")
        snapshot = self._cluster.loan
        assert snapshot is not None
        highest = self._highest_to_evict(snapshot, group)
        if highest is None:
            return NoPreemption(
                NOT_HELPFUL, f"{UPSTREAM_PREFIX}{_NO_VICTIMS}", is_unresolvable=True
            )
        if isinstance(highest, str):
            return NoPreemption(NOT_HELPFUL, f"{UPSTREAM_PREFIX}{highest}")
        plan = self._plan(snapshot, group, highest, plugin)
        return plan or NoPreemption(NOT_HELPFUL, f"{UPSTREAM_PREFIX}{NOT_HELPFUL}")

    def evict(
        self,
        lead: QueuedPodGroupInfo,
        members: Sequence[QueuedPodInfo],
        started_seconds: float,
        reference: ObjectReference,
        *,
        plan: PreemptionPlan,
        then: Callable[[str], None],
    ) -> None:
        """Nominate the members and evict the victims. The plugin decides whether the attempt waits
        for the evictions. ``reference``: the object that the events of victims name. ``then``: gets
        what went wrong; "": nothing."""
        plugin = self._plugin(members)
        for pod, nomination in self._nominations(plan):
            self._nominator.add_nominated_pod(pod, nomination)
        nodes = tuple(sorted({node_name for _, node_name in plan.placements}))
        pods = [queued.pod for queued in members]
        evicting = plugin.evict_for_group(reference, pods, nodes, plan.victims)
        if evicting is None:
            lead.awaits_victims = True
            then("")
            return

        def ended(problem: str) -> None:
            self._guard(lead, members, started_seconds, partial(then, problem))

        self._evicting.wait(f"group {lead.key}", evicting, ended)

    def report_nominations(self, plan: PreemptionPlan) -> None:
        """Nominate the members again, because their failures withdrew their nominations, and write
        the nominations to the API."""
        for pod, nomination in self._nominations(plan):
            self._nominator.add_nominated_pod(pod, nomination)
            self._outbox.patch_status(pod, None, nomination.node_name)

    def give_up(self, members: Sequence[QueuedPodInfo], problem: str) -> str:
        """Withdraw the nominations, because the evictions failed. Returns upstream's message."""
        for queued in members:
            pod = self._cluster.pods.get(queued.pod.uid)
            if pod is not None and not pod.node_name:
                self._nominator.add_nominated_pod(pod, CLEAR_NOMINATION)
                self._outbox.patch_status(pod, None, "")
        name = self._plugin(members).instance_name
        return f'error in "{name}" PodGroupPostFilter plugins: {problem}'

    def _nominations(self, plan: PreemptionPlan) -> Iterable[tuple[PodInfo, Nomination]]:
        """The nominations of the members that still wait for a node."""
        for pod, node_name in plan.placements:
            current = self._cluster.pods.get(pod.uid)
            if current is not None and not current.node_name:
                yield current, Nomination(NominatingMode.OVERRIDE, node_name)

    def _plugin(self, members: Sequence[QueuedPodInfo]) -> GroupPreemption:
        """The plugin that evicts the victims of the plan."""
        framework = self._frameworks[members[0].pod.scheduler_name]
        plugins = framework.plugins.pod_group_post_filter
        return next(plugin for plugin in plugins if isinstance(plugin, GroupPreemption))

    def _units(self, snapshot: Snapshot) -> Units:
        return Units(self._cluster.group_trees, snapshot.nodes)

    # ---- pods to remove ---------------------------------------------------------------------

    def _highest_to_evict(self, snapshot: Snapshot, group: Preemptor) -> int | str | None:
        """The priority up to which pods leave before the group is placed. None: no pod has a lower
        priority. A text: why the group does not fit even without all these pods, as upstream says
        it."""
        of_groups = self._units(snapshot).priorities_of_groups()
        own = min(queued.pod.priority for queued in group.members)
        if min(self._lowest_priority(snapshot), *of_groups, own) == own:
            return None
        ranked = snapshot.ranked_pods(snapshot.nodes)
        priorities = of_groups.union(np.unique(ranked.priorities).tolist())
        levels = sorted(priority for priority in priorities if priority < own)
        why_not = self._why_not_without(snapshot, group, levels[-1])
        if why_not:
            return why_not
        if group.is_upstream:
            return levels[-1]
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if self._why_not_without(snapshot, group, levels[middle]):
                low = middle + 1
            else:
                high = middle
        return levels[high]

    def _lowest_priority(self, snapshot: Snapshot) -> int:
        """The lowest priority of a pod on a node. It is remembered, because in a full cluster one
        attempt after another reads it while no pod comes or goes."""
        generation = self._cluster.cache.table.log.generation
        if self._lowest[0] != generation:
            lowest = snapshot.ranked_pods(snapshot.nodes).lowest.min(initial=NO_PRIORITY)
            self._lowest = generation, int(lowest)
        return self._lowest[1]

    def _why_not_without(self, snapshot: Snapshot, group: Preemptor, highest: int) -> str:
        """Why the group does not fit without all pods up to a priority; "" if it fits."""
        for domain in group.domains_to_free(snapshot, highest):
            is_promising = domain.nodes is not None and domain.hurt_at_least != _NEVER_ENOUGH
            if is_promising and not self._why_not_in(snapshot, group, highest, domain):
                return ""
        return self._why_not_in(snapshot, group, highest, ANYWHERE)

    def _why_not_in(
        self, snapshot: Snapshot, group: Preemptor, highest: int, domain: DomainToFree
    ) -> str:
        """Why the group does not fit if only pods of one domain leave; "" if it fits."""
        with snapshot.trial() as trial:
            _remove(trial, snapshot, self._units(snapshot), highest, area=domain.nodes)
            placed, why_not = group.place(trial, domain.name)
            self._give_back(placed)
        return why_not

    def _give_back(self, placed: Sequence[PlacedMember]) -> None:
        """Unreserve the members; the trial undoes their placements."""
        for one in reversed(placed):
            unreserve(self._telemetry, one.cycle, one.pod)

    # ---- pods that return -------------------------------------------------------------------

    def _plan(
        self, snapshot: Snapshot, group: Preemptor, highest: int, plugin: GroupPreemption
    ) -> PreemptionPlan | None:
        """The plan. For a group that has to share a domain, it is the plan of the domain in which
        the fewest groups lose pods, and among equal ones the fewest pods leave."""
        domains = enumerate(group.domains_to_free(snapshot, highest))
        plans: dict[tuple[tuple[int, int], int], PreemptionPlan] = {}
        for place, domain in sorted(domains, key=lambda each: (each[1].hurt_at_least, each[0])):
            is_worse = bool(plans) and (domain.hurt_at_least, place) > min(plans)
            if is_worse or len(plans) == _PLANS_MAX:
                break
            plan = self._plan_within(snapshot, group, highest, plugin=plugin, domain=domain)
            if plan is not None:
                plans[_hurt(plan), place] = plan
        return plans[min(plans)] if plans else None

    def _plan_within(
        self,
        snapshot: Snapshot,
        group: Preemptor,
        highest: int,
        *,
        plugin: GroupPreemption,
        domain: DomainToFree,
    ) -> PreemptionPlan | None:
        """The plan whose victims make room in a domain; None: there is none."""
        areas = (None,) if domain.nodes is None else (domain.nodes, None)
        plans = (
            self._plan_without(snapshot, group, highest, area, plugin=plugin, only=domain.name)
            for area in areas
        )
        return next((plan for plan in plans if plan is not None), None)

    def _plan_without(
        self,
        snapshot: Snapshot,
        group: Preemptor,
        highest: int,
        area: frozenset[str] | None,
        *,
        plugin: GroupPreemption,
        only: str,
    ) -> PreemptionPlan | None:
        """The plan if all pods up to a priority leave before the group is placed. ``area``: the
        nodes from which they leave; None: all nodes."""
        with snapshot.trial() as trial:
            away = _remove(trial, snapshot, self._units(snapshot), highest, area=area)
            placed, why_not = group.place(trial, only)
            if why_not:
                return None
            try:
                order = plugin.in_order_of_return(away)
                alone = group.nodes_alone(snapshot, {one.pod.node_name for one in placed})
                victims = self._victims(trial, snapshot, placed, order, alone=alone)
            finally:
                self._give_back(placed)
        if not victims:
            return None
        placements = tuple((one.cycle.pod, one.pod.node_name) for one in placed)
        return PreemptionPlan(placements, victims)

    def _victims(
        self,
        trial: Trial,
        snapshot: Snapshot,
        placed: Sequence[PlacedMember],
        away: Sequence[Unit],
        *,
        alone: frozenset[str],
    ) -> tuple[PodInfo, ...]:
        """The victims, the most important first; none if the members do not fit although all pods
        of their nodes are away. ``alone``: nodes on which no other pod may stay."""
        nodes = {one.pod.node_name for one in placed}
        leaving = self._leaving(trial, snapshot, placed, away, alone=alone, nodes=nodes)
        if not self._all_fit(trial, snapshot, placed):
            # A member cannot run while certain pods are on other nodes.
            staying = (unit for unit in away if unit not in leaving)
            for pod in (pod for unit in staying for pod in unit.pods):
                trial.remove(pod)
            leaving = self._leaving(trial, snapshot, placed, away, alone=alone, nodes=None)
            if not self._all_fit(trial, snapshot, placed):
                return ()
        leaving.sort(key=lambda unit: unit.importance)
        return tuple(pod for unit in leaving for pod in unit.pods)

    def _leaving(
        self,
        trial: Trial,
        snapshot: Snapshot,
        placed: Sequence[PlacedMember],
        away: Sequence[Unit],
        *,
        alone: frozenset[str],
        nodes: Set[str] | None,
    ) -> list[Unit]:
        """Put back the units beside which the members fit. Returns the other units. ``nodes``: the
        nodes of the members, where a unit concerns only the members on its nodes; None: a unit
        concerns all members."""
        leaving: list[Unit] = []
        for unit in away:
            own = {pod.node_name for pod in unit.pods}
            if nodes is not None and own.isdisjoint(nodes) and own.isdisjoint(alone):
                _put_back(trial, unit)
                continue
            if any(pod.node_name in alone and not is_daemon(pod) for pod in unit.pods):
                leaving.append(unit)
                continue
            _put_back(trial, unit)
            there = [one for one in placed if nodes is None or one.pod.node_name in own]
            if not self._all_fit(trial, snapshot, there):
                for pod in unit.pods:
                    trial.remove(pod)
                leaving.append(unit)
        return leaving

    def _all_fit(self, trial: Trial, snapshot: Snapshot, placed: Sequence[PlacedMember]) -> bool:
        return all(self._still_fits(trial, snapshot, one) for one in placed)

    def _still_fits(self, trial: Trial, snapshot: Snapshot, one: PlacedMember) -> bool:
        """Whether a member still fits its node, by a new evaluation without its reservation."""
        pod, node_name, framework = one.cycle.pod, one.pod.node_name, one.cycle.framework
        unreserve(self._telemetry, one.cycle, one.pod)
        trial.remove(one.pod)
        state = CycleState()
        result, status, _ = framework.run_pre_filter(state, pod, snapshot.nodes)
        if is_success(status) and result.node_names is not None:
            fits = node_name in result.node_names
        else:
            fits = is_success(status)
        if fits:
            verdict = framework.filter_with_nominated(state, pod, snapshot, node_name)
            fits = is_success(verdict)
        trial.assume(pod, node_name)
        return is_success(framework.run_reserve(one.cycle.state, one.pod, node_name)) and fits


def _hurt(plan: PreemptionPlan) -> tuple[int, int]:
    """How many groups or single pods lose pods, and how many pods."""
    return len({_owner(pod) for pod in plan.victims}), len(plan.victims)


def _owner(pod: PodInfo) -> object:
    return pod.uid if pod.group_key is None else pod.group_key


def _hurt_at_least(
    needs: Mapping[str, int], nodes: NodeView, pods_by_owner: Collection[Sequence[PodInfo]]
) -> tuple[int, int]:
    """How many groups or single pods lose pods at least, and how many pods leave at least, if the
    nodes have to offer these amounts. `_NEVER_ENOUGH`: the nodes do not offer them, whatever
    leaves. A resource that some node does not offer itself is left out, because devices may stand
    for it."""
    owner_count = pod_count = 0
    for name, amount in needs.items():
        allocatable = nodes.allocatable(name)
        if not allocatable.all():
            continue
        missing = amount - int((allocatable - nodes.requested(name)).clip(0).sum())
        amounts = [[pod.shape.requests.get(name, 0) for pod in pods] for pods in pods_by_owner]
        if sum(map(sum, amounts)) < missing:
            return _NEVER_ENOUGH
        owner_count = max(owner_count, _least_count(missing, map(sum, amounts)))
        pod_count = max(pod_count, _least_count(missing, chain.from_iterable(amounts)))
    return owner_count, pod_count


def _least_count(missing: int, amounts: Iterable[int]) -> int:
    """How many of the amounts are needed at least to reach a sum."""
    in_order = sorted(amounts, reverse=True)
    return bisect_left(list(accumulate(in_order, initial=0)), missing)


def _remove(
    trial: Trial, snapshot: Snapshot, units: Units, highest: int, *, area: Set[str] | None
) -> list[Unit]:
    """Remove all pods up to a priority. ``area``: only from these nodes; None: from all nodes."""
    nodes = snapshot.nodes
    is_concerned = snapshot.ranked_pods(nodes).lowest <= highest
    is_concerned[nodes.positions(sorted(units.node_names()))] = True
    if area is not None:
        is_inside = np.zeros(len(nodes), np.bool_)
        is_inside[nodes.positions(sorted(area))] = True
        is_concerned &= is_inside
    positions: list[int] = np.flatnonzero(is_concerned).tolist()
    there = (pod for position in positions for pod in nodes.info(position).pods)
    if units.are_single:
        there = (pod for pod in there if pod.priority <= highest)
    away = [unit for unit in units.of(there) if unit.priority <= highest]
    for unit in away:
        for pod in unit.pods:
            trial.remove(pod)
    return away


def _put_back(trial: Trial, unit: Unit) -> None:
    for pod in unit.pods:
        trial.assume(pod, pod.node_name)
