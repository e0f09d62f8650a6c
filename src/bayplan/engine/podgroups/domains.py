"""Where a group may be placed: anywhere, or within one domain of a topology key.

A required key's domains are tried one after another, each in full: where most members fit is
best, then where their nodes score highest, then the first by name. A preferred key is tried
likewise, within the required one's domains; where none suffices, the group goes where it fits.
Members that hold a node already decide the domain, for those that come later, too. Upstream:
KEP-5732, TopologyPlacementGenerator.
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

#: Blamed for groups that found no domain; what may help those is a node, or a label.
TOPOLOGY_NAME: Final = "PodGroupTopology"
TOPOLOGY_EVENTS: Final = (
    ClusterEventWithHint(
        ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    ),
)


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes that share a value of a label; without a name: all nodes."""

    name: str = ""
    nodes: frozenset[str] | None = None

    def within(self, other: "Domain") -> "Domain":
        if self.nodes is None or other.nodes is None:
            return other if self.nodes is None else self
        return Domain(self.name, self.nodes & other.nodes)


@final
class Watch:
    """Counts and times domains as they are tried, one after another."""

    def __init__(self, telemetry: Telemetry, profile_name: str) -> None:
        self._metrics = telemetry.metrics
        self._now = telemetry.clock.now
        self._profile_name = profile_name
        self._since_seconds = 0.0

    def generated(self, count: int) -> None:
        """So many are tried now."""
        if count:
            self._metrics.generated_placements.add(self._profile_name, count=count)
        self._since_seconds = self._now()

    def evaluated(self, *, suffices: bool) -> None:
        """One was tried."""
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
    """The pass that is to be kept, or to be explained; its placements stand."""
    snapshot, rejecting = setup.engine.cluster.loan, set[str]()
    assert snapshot is not None
    narrow, wide = _choices(snapshot, state)

    def run(domain: Domain) -> PodGroupTrial:
        found = PodGroupTrial(setup, trial, domain.nodes).run(members, needed_count)
        found.domain = domain.name
        rejecting.update(found.blamed())
        return found

    watch = Watch(setup.engine.telemetry, members[0].pod.scheduler_name)
    found = _best(run, narrow, needed_count, watch)
    if found is None and len(wide) > 1:
        found = _best(run, wide, needed_count, watch)
    if found is None:
        found = run(wide[0])
        if setup.engine.gates.enabled("TopologyAwareWorkloadScheduling"):
            found.placement_count = len(wide)
        if narrow or wide != [EVERYWHERE]:
            # What helps in another domain helps the group.
            found.elsewhere = rejecting | {TOPOLOGY_NAME}
    return found


def domain_of_members(snapshot: Snapshot, state: GroupState | None) -> frozenset[str] | None:
    """The nodes that a member may go to that comes when others hold theirs; None: all."""
    key = "" if state is None or state.group is None else state.group.required_topology
    if state is None or not key or not state.assigned_count:
        return None
    found = _domains(snapshot, key, state)
    return found[0].nodes if found else frozenset()


def why_nowhere(snapshot: Snapshot, state: GroupState) -> str:
    """Why a required key leaves no node at all; "" where it leaves some."""
    key = "" if state.group is None else state.group.required_topology
    if not key or _domains(snapshot, key, state):
        return ""
    if any(value_id >= 0 for value_id in snapshot.nodes.labels.ids(key).tolist()):
        return f"its members hold nodes that share no value of the label {key}"
    return f"no node has the label {key}"


def _choices(snapshot: Snapshot, state: GroupState) -> tuple[list[Domain], list[Domain]]:
    """Domains that are preferred, and those that will do; the latter at least one."""
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
    """The best domain's pass, made once more; None: none suffices, and nothing stands."""
    best: tuple[int, int] | None = None
    best_domain = EVERYWHERE
    watch.generated(len(domains))
    for domain in domains:
        found = run(domain)
        found.undo()
        worth = (len(found.placed), found.total_score)
        suffices = found.error is None and worth[0] >= needed_count
        watch.evaluated(suffices=suffices)
        if suffices and (best is None or worth > best):
            best, best_domain = worth, domain
    return None if best is None else run(best_domain)


def _domains(snapshot: Snapshot, key: str, state: GroupState) -> list[Domain]:
    """Nodes by their value of the label, in order of the values; where members hold nodes already,
    only the domain of all of these."""
    nodes = snapshot.nodes
    ids, values, names = nodes.labels.ids(key).tolist(), nodes.labels.values(key), nodes.names()
    found: dict[str, list[str]] = defaultdict(list)
    for name, value_id in zip(names, ids, strict=True):
        if value_id >= 0:
            found[values[int(value_id)]].append(name)
    held = {_node_of(pod) for pod in state.assigned()}
    domains = [Domain(value, frozenset(found[value])) for value in sorted(found)]
    return [domain for domain in domains if domain.nodes is not None and held <= domain.nodes]


def _node_of(pod: Pod | PodInfo) -> str:
    return pod.node_name if isinstance(pod, PodInfo) else pod.spec.node_name or ""
