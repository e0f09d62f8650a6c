"""Where a group may be placed: anywhere, or within one domain of a topology key.

The domains of a required key are tried one after another, each with all members. The domain in
which most members fit is the best; then the domain whose nodes score highest; then the first by
name. The domains of a preferred key are tried in the same way, within the domains of the required
key. If no preferred domain suffices, the group may be placed in any domain of the required key.
Members that already have nodes determine the domain. Upstream: KEP-5732,
TopologyPlacementGenerator.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

from bayplan.api.objects import Pod
from bayplan.engine.podgroups.trial import PodGroupTrial, TrialSetup
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
)
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.cache import Snapshot, Trial
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo

#: The plugin named for groups that fit in no domain. A new node or a changed label may help them.
TOPOLOGY_NAME: Final = "PodGroupTopology"
TOPOLOGY_EVENTS: Final = (
    ClusterEventWithHint(
        ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    ),
)


@dataclass(frozen=True, slots=True)
class Domain:
    """The nodes that share a value of a label. Without a name: all nodes."""

    name: str = ""
    nodes: frozenset[str] | None = None

    def within(self, other: "Domain") -> "Domain":
        if self.nodes is None or other.nodes is None:
            return other if self.nodes is None else self
        return Domain(self.name, self.nodes & other.nodes)


@final
class Watch:
    """Counts the trials of domains, and measures their duration."""

    def __init__(self, telemetry: Telemetry, profile_name: str) -> None:
        self._metrics = telemetry.metrics
        self._now = telemetry.clock.now
        self._profile_name = profile_name
        self._since_seconds = 0.0

    def generated(self, count: int) -> None:
        """The trials of ``count`` domains begin."""
        if count:
            self._metrics.generated_placements.add(self._profile_name, count=count)
        self._since_seconds = self._now()

    def evaluated(self, *, suffices: bool) -> None:
        """The trial of one domain has ended."""
        result = "feasible" if suffices else "infeasible"
        metrics, began, self._since_seconds = self._metrics, self._since_seconds, self._now()
        metrics.placement_evaluations.add(result, self._profile_name)
        took = self._since_seconds - began
        metrics.placement_evaluation_duration.observe(took, result, self._profile_name)


EVERYWHERE: Final = Domain()
_NOWHERE: Final = Domain("", frozenset())
_Run = Callable[[Domain], PodGroupTrial]


def best_pass(
    setup: TrialSetup,
    trial: Trial,
    members: Sequence[QueuedPodInfo],
    state: GroupState,
    *,
    needed_count: int,
) -> PodGroupTrial:
    """The pass of the best domain or, if the group fits nowhere, the pass that explains why. Its
    placements are in the trial."""
    snapshot, rejecting = setup.engine.cluster.loan, set[str]()
    assert snapshot is not None
    narrow, wide = _choices(snapshot, state)

    def run(domain: Domain) -> PodGroupTrial:
        group_trial = PodGroupTrial(setup, trial, domain.nodes).run(members, needed_count)
        group_trial.domain = domain.name
        rejecting.update(group_trial.blamed())
        return group_trial

    watch = Watch(setup.engine.telemetry, members[0].pod.scheduler_name)
    group_trial = _best(run, narrow, needed_count, watch)
    if group_trial is None and len(wide) > 1:
        group_trial = _best(run, wide, needed_count, watch)
    if group_trial is None:
        group_trial = run(wide[0])
        if setup.engine.gates.enabled("TopologyAwareWorkloadScheduling"):
            group_trial.placement_count = len(wide)
        if narrow or wide != [EVERYWHERE]:
            # An event that helps in another domain helps the group.
            group_trial.elsewhere = rejecting | {TOPOLOGY_NAME}
    return group_trial


def domain_of_members(snapshot: Snapshot, state: GroupState | None) -> frozenset[str] | None:
    """The nodes for a member of a group whose other members have nodes; None: all nodes."""
    key = "" if state is None or state.group is None else state.group.required_topology
    if state is None or not key or not state.assigned_count:
        return None
    domains = _domains(snapshot, key, state)
    return domains[0].nodes if domains else frozenset()


def why_nowhere(snapshot: Snapshot, state: GroupState) -> str:
    """Why no node satisfies the required key; "" if some do."""
    key = "" if state.group is None else state.group.required_topology
    if not key or _domains(snapshot, key, state):
        return ""
    if any(value_id >= 0 for value_id in snapshot.nodes.labels.ids(key).tolist()):
        return f"its members hold nodes that share no value of the label {key}"
    return f"no node has the label {key}"


def _choices(snapshot: Snapshot, state: GroupState) -> tuple[list[Domain], list[Domain]]:
    """(the preferred domains, the acceptable domains); at least one is acceptable."""
    group = state.group
    assert group is not None
    wide = [EVERYWHERE]
    if group.required_topology:
        wide = _domains(snapshot, group.required_topology, state) or [_NOWHERE]
    narrow: list[Domain] = []
    if group.preferred_topology:
        for domain in _domains(snapshot, group.preferred_topology, state):
            narrow += [domain.within(one) for one in wide]
    return [domain for domain in narrow if domain.nodes], wide


def _best(
    run: _Run, domains: Sequence[Domain], needed_count: int, watch: Watch
) -> PodGroupTrial | None:
    """The pass of the best domain, repeated in the trial; None: no domain suffices, and nothing is
    placed."""
    best: tuple[int, int] | None = None
    best_domain = EVERYWHERE
    watch.generated(len(domains))
    for domain in domains:
        group_trial = run(domain)
        group_trial.undo()
        worth = (len(group_trial.placed), group_trial.total_score)
        suffices = group_trial.error is None and worth[0] >= needed_count
        watch.evaluated(suffices=suffices)
        if suffices and (best is None or worth > best):
            best, best_domain = worth, domain
    return None if best is None else run(best_domain)


def _domains(snapshot: Snapshot, key: str, state: GroupState) -> list[Domain]:
    """The nodes by their value of the label, in the order of the values. If members already have
    nodes: only the domain that contains all these nodes."""
    nodes = snapshot.nodes
    ids, values, names = nodes.labels.ids(key).tolist(), nodes.labels.values(key), nodes.names()
    names_by_value: dict[str, list[str]] = defaultdict(list)
    for name, value_id in zip(names, ids, strict=True):
        if value_id >= 0:
            names_by_value[values[int(value_id)]].append(name)
    node_names = {_node_of(pod) for pod in state.assigned()}
    domains = [Domain(value, frozenset(names_by_value[value])) for value in sorted(names_by_value)]
    return [domain for domain in domains if domain.nodes is not None and node_names <= domain.nodes]


def _node_of(pod: Pod | PodInfo) -> str:
    return pod.node_name if isinstance(pod, PodInfo) else pod.spec.node_name or ""
