"""Making room for a group: for as many members as it needs, or for none.

Pods of lower priority are thought away all over the cluster, no more important ones than it takes
for the group to fit; where its members then stand, pods come back one after another as long as all
members of their node still fit. Who cannot come back is a victim. Nobody is evicted for a group
that would not fit even so. Upstream: podgrouppreemption.go (v1.37), which tries the whole group
anew for every pod that comes back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from bayplan.engine.failures import CLEAR_NOMINATION
from bayplan.engine.outbox import group_reference
from bayplan.engine.podgroups.controller import missing_resources
from bayplan.engine.podgroups.domains import best_pass
from bayplan.engine.podgroups.refusals import UPSTREAM_PREFIX, NoPreemption, PreemptionPlan, reason
from bayplan.engine.podgroups.trial import PlacedMember, PodGroupTrial, TrialSetup
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.preemption import Evicting, GroupPreemption
from bayplan.framework.status import is_success
from bayplan.framework.types import NominatingMode, Nomination, QueuedPodInfo
from bayplan.state.cache import Snapshot, Trial
from bayplan.state.disruption_units import Unit, Units
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo

PREFIX = " pod group preemption: "
NOT_HELPFUL = "preemption is not helpful for scheduling the group"
#: Upstream's words.
_NO_VICTIMS = "No preemption victims found for incoming preemptor"
_ONGOING = "ongoing preemption on nominated nodes"


@dataclass(frozen=True, slots=True)
class _Group:
    members: Sequence[QueuedPodInfo]
    state: GroupState
    needed_count: int

    @property
    def priority(self) -> int:
        return min(queued.pod.priority for queued in self.members)


@final
class PodGroupPreemptor:
    """Asks the profile's plugin who may be evicted; has it do so."""

    def __init__(self, setup: TrialSetup) -> None:
        self._setup = setup
        self._engine = setup.engine

    def find(
        self, members: Sequence[QueuedPodInfo], state: GroupState, needed_count: int
    ) -> PreemptionPlan | NoPreemption | None:
        """While the cluster is lent. None: nobody preempts here."""
        plugin = self._plugin(members)
        if plugin is None:
            return None
        pods = [queued.pod for queued in members]
        why_not = plugin.why_not_for_group(pods)
        if why_not is not None:
            if plugin.is_making_room(pods):
                return NoPreemption(why_not, f"{UPSTREAM_PREFIX}{_ONGOING}", is_being_made=True)
            return NoPreemption(why_not, self._with_reasons(members, why_not))
        snapshot = self._engine.cluster.loan
        assert snapshot is not None
        group = _Group(members, state, needed_count)
        highest = self._highest_to_evict(snapshot, group)
        if highest is None:
            return NoPreemption(NOT_HELPFUL, f"{UPSTREAM_PREFIX}{_NO_VICTIMS}")
        if isinstance(highest, str):
            return NoPreemption(NOT_HELPFUL, self._with_reasons(members, highest))
        room = self._room(snapshot, group, highest, plugin)
        if room is not None:
            return room
        return NoPreemption(NOT_HELPFUL, self._with_reasons(members, NOT_HELPFUL))

    def make(
        self, members: Sequence[QueuedPodInfo], state: GroupState, room: PreemptionPlan
    ) -> Evicting | None:
        """Keep the room for the members, and tell the victims to go. Evicting: that is to be
        begun, and the attempt waits for it."""
        plugin = self._plugin(members)
        assert plugin is not None
        for known, nomination in self._nominations(room):
            self._engine.nominator.add_nominated_pod(known, nomination)
        assert state.group is not None, "no attempt is made at a group without an object"
        nodes = tuple(sorted({node_name for _, node_name in room.placements}))
        pods = [queued.pod for queued in members]
        return plugin.evict_for_group(group_reference(state.group), pods, nodes, room.victims)

    def tell(self, room: PreemptionPlan) -> None:
        """The API learns where the members are nominated to."""
        for known, nomination in self._nominations(room):
            self._engine.outbox.patch_status(known, None, nomination.node_name)

    def give_up(self, members: Sequence[QueuedPodInfo], problem: str) -> str:
        """No room was made: nobody is nominated. What is said of it; upstream's words."""
        engine = self._engine
        for queued in members:
            known = engine.cluster.pods.get(queued.pod.uid)
            if known is not None and not known.node_name:
                engine.nominator.add_nominated_pod(known, CLEAR_NOMINATION)
                engine.outbox.patch_status(known, None, "")
        plugins = engine.frameworks[members[0].pod.scheduler_name].plugins.post_filter
        names = (p.instance_name for p in plugins if isinstance(p, GroupPreemption))
        return f'error in "{next(names)}" PodGroupPostFilter plugins: {problem}'

    def _nominations(self, room: PreemptionPlan) -> Iterable[tuple[PodInfo, Nomination]]:
        """Of those members that still wait for a node."""
        for pod, node_name in room.placements:
            known = self._engine.cluster.pods.get(pod.uid)
            if known is not None and not known.node_name:
                yield known, Nomination(NominatingMode.OVERRIDE, node_name)

    def _plugin(self, members: Sequence[QueuedPodInfo]) -> GroupPreemption | None:
        framework = self._engine.frameworks[members[0].pod.scheduler_name]
        plugins = framework.plugins.post_filter
        return next((p for p in plugins if isinstance(p, GroupPreemption)), None)

    def _with_reasons(self, members: Sequence[QueuedPodInfo], text: str) -> str:
        """Where upstream asks each PostFilter plugin, each one's reason stands in the message."""
        plugins = self._engine.frameworks[members[0].pod.scheduler_name].plugins.post_filter
        reasons = (plugin.group_reason for plugin in plugins)
        return ", ".join([*filter(None, reasons), f"{UPSTREAM_PREFIX}{text}"])

    def _units(self, snapshot: Snapshot) -> Units:
        return Units(self._engine.cluster.pod_groups, snapshot.nodes)

    # ---- who has to be thought away ---------------------------------------------------------

    def _highest_to_evict(self, snapshot: Snapshot, group: _Group) -> int | str | None:
        """The lowest priority up to which pods must leave for the group to fit; None: no pod is of
        lower priority. A text: why the group does not fit without them all, in upstream's
        words."""
        units = self._units(snapshot)
        priorities = np.unique(snapshot.ranked_pods(snapshot.nodes).priorities)
        known = {*priorities.tolist(), *(unit.priority for unit in units.all_groups())}
        levels = sorted(priority for priority in known if priority < group.priority)
        if not levels:
            return None
        why_not = self._why_not_without(snapshot, group, levels[-1])
        if why_not:
            return why_not
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if self._why_not_without(snapshot, group, levels[middle]):
                low = middle + 1
            else:
                high = middle
        return levels[high]

    def _why_not_without(self, snapshot: Snapshot, group: _Group, highest: int) -> str:
        """Why the group does not fit without all pods up to a priority; "" where it does."""
        with snapshot.trial() as trial:
            _remove(trial, snapshot, self._units(snapshot), highest)
            pass_, fits = self._placed(trial, snapshot, group)
            if fits:
                self._give_back(pass_.placed)
                return ""
        return reason(pass_, group.state, len(group.members))

    def _placed(
        self, trial: Trial, snapshot: Snapshot, group: _Group
    ) -> tuple[PodGroupTrial, bool]:
        """The members on their nodes, and whether enough fit; if not, nothing stands."""
        pass_ = best_pass(
            self._setup, trial, group.members, group.state, needed_count=group.needed_count
        )
        is_enough = pass_.error is None and len(pass_.placed) >= group.needed_count
        if is_enough and not missing_resources(group.state, snapshot, pass_):
            return pass_, True
        pass_.undo()
        return pass_, False

    def _give_back(self, placed: Sequence[PlacedMember]) -> None:
        """What members have reserved; their places go with the trial."""
        for one in reversed(placed):
            one.cycle.framework.run_unreserve(one.cycle.state, one.pod, one.pod.node_name)

    # ---- who may come back ------------------------------------------------------------------

    def _room(
        self, snapshot: Snapshot, group: _Group, highest: int, plugin: GroupPreemption
    ) -> PreemptionPlan | None:
        with snapshot.trial() as trial:
            away = _remove(trial, snapshot, self._units(snapshot), highest)
            pass_, fits = self._placed(trial, snapshot, group)
            if not fits:
                return None
            try:
                order = plugin.in_order_of_return(away)
                victims = self._victims(trial, snapshot, pass_.placed, order)
            finally:
                self._give_back(pass_.placed)
        if not victims:
            return None
        placements = tuple((one.cycle.pod, one.pod.node_name) for one in pass_.placed)
        return PreemptionPlan(placements, victims)

    def _victims(
        self,
        trial: Trial,
        snapshot: Snapshot,
        placed: Sequence[PlacedMember],
        away: Sequence[Unit],
    ) -> tuple[PodInfo, ...]:
        """Nobody where the members' nodes alone are not enough."""
        nodes = {one.pod.node_name for one in placed}
        beside: list[Unit] = []
        for unit in away:
            if any(pod.node_name in nodes for pod in unit.pods):
                beside.append(unit)
            else:
                _put_back(trial, unit)
        if not all(self._still_fits(trial, snapshot, one) for one in placed):
            return ()
        victims: list[PodInfo] = []
        for unit in beside:
            _put_back(trial, unit)
            own = {pod.node_name for pod in unit.pods}
            there = [one for one in placed if one.pod.node_name in own]
            if not all(self._still_fits(trial, snapshot, one) for one in there):
                for pod in unit.pods:
                    trial.remove(pod)
                victims += unit.pods
        return tuple(victims)

    def _still_fits(self, trial: Trial, snapshot: Snapshot, one: PlacedMember) -> bool:
        """Whether a member would find its node as it found it, asked anew."""
        pod, node_name, framework = one.cycle.pod, one.pod.node_name, one.cycle.framework
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
        return fits


def _remove(trial: Trial, snapshot: Snapshot, units: Units, highest: int) -> list[Unit]:
    """Think all up to a priority away."""
    nodes = snapshot.nodes
    is_concerned = snapshot.ranked_pods(nodes).lowest <= highest
    is_concerned[nodes.positions(sorted(units.node_names()))] = True
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
