"""Where a group may be placed: anywhere, or within one domain of a topology key.

A required key's domains are tried one after another, each in full: where most members fit is
best, then where their nodes score highest, then the first by name. A preferred key is tried
likewise, within the required one's domains; where none suffices, the group goes where it fits.
Members that hold a node already decide the domain. Upstream: KEP-5732, TopologyPlacementGenerator.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from bayplan.api.objects import Pod
from bayplan.engine.group_cycle import GroupPass, Trying
from bayplan.framework.interface import QueuedPodInfo
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot, Trial

#: Names of the nodes of a domain; None: all nodes.
Domain = frozenset[str] | None
_Run = Callable[[Domain], GroupPass]


def best_pass(
    trying: Trying,
    trial: Trial,
    members: Sequence[QueuedPodInfo],
    state: GroupState,
    needed_count: int,
) -> GroupPass:
    """The pass that is to be kept, or to be explained; its placements stand."""

    def run(within: Domain) -> GroupPass:
        return GroupPass(trying, trial, within).run(members, needed_count)

    snapshot = trying.engine.lent
    assert snapshot is not None
    narrow, wide = _choices(snapshot, state)
    found = _best(run, narrow, needed_count)
    if found is None and len(wide) > 1:
        found = _best(run, wide, needed_count)
    return found if found is not None else run(wide[0])


def _choices(snapshot: Snapshot, state: GroupState) -> tuple[list[Domain], list[Domain]]:
    """Domains that are preferred, and those that will do; the latter at least one."""
    group = state.group
    assert group is not None
    wide: list[Domain] = [None]
    if group.required_topology:
        wide = [*_domains(snapshot, group.required_topology, state)] or [frozenset()]
    narrow: list[Domain] = []
    if group.preferred_topology:
        for domain in _domains(snapshot, group.preferred_topology, state):
            narrow += [domain if one is None else one & domain for one in wide]
    return [domain for domain in narrow if domain], wide


def _best(run: _Run, domains: Sequence[Domain], needed_count: int) -> GroupPass | None:
    """The best domain's pass, made once more; None: none suffices, and nothing stands."""
    best: tuple[int, int] | None = None
    best_domain: Domain = None
    for domain in domains:
        found = run(domain)
        found.undo()
        worth = (len(found.fitted), found.total_score)
        if found.error is None and worth[0] >= needed_count and (best is None or worth > best):
            best, best_domain = worth, domain
    return None if best is None else run(best_domain)


def _domains(snapshot: Snapshot, key: str, state: GroupState) -> list[frozenset[str]]:
    """Nodes by their value of the label, in order of the values; where members hold nodes already,
    only the domain of all of these."""
    nodes = snapshot.nodes
    ids, values, names = nodes.label_ids(key).tolist(), nodes.label_values(key), nodes.names()
    found: dict[str, list[str]] = defaultdict(list)
    for name, value_id in zip(names, ids, strict=True):
        if value_id >= 0:
            found[values[int(value_id)]].append(name)
    held = {_node_of(pod) for pod in state.assigned()}
    domains = [frozenset(found[value]) for value in sorted(found)]
    return [domain for domain in domains if held <= domain]


def _node_of(pod: Pod | PodInfo) -> str:
    return pod.node_name if isinstance(pod, PodInfo) else pod.spec.node_name or ""
